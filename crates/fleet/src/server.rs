//! A NATS server for a fleet: its directory with configuration, keys and stored messages.
//!
//! On loopback it accepts connections with keys; on other addresses, with keys and TLS. Each agent has its
//! own key, which permits only the messages of that agent.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kelvin_host::{ProcessStat, SystemTree};
use serde::{Deserialize, Serialize};

use crate::bus::Connection;
use crate::error::FleetError;
use crate::ssh::{PlacedAgent, placed_file};
use crate::subject::Subjects;
use crate::{Name, keys};

type Result<T> = std::result::Result<T, FleetError>;

/// How long the server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// The largest message; a second of an agent takes a few KiB.
const LARGEST: &str = "8MB";

/// A fleet's own server.
#[derive(Debug, Clone)]
pub struct FleetServer {
    directory: PathBuf,
}

/// A running server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerState {
    /// Its process ID.
    pub pid: u32,
    /// Its URL.
    pub url: String,
    /// The fleet's lab, which is part of all subjects.
    pub lab: Name,
}

/// Options of `kelvin fleet up`.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The listening address.
    pub listen: IpAddr,
    /// The port; 0 for any.
    pub port: u16,
    /// The agents that may connect.
    pub agents: Vec<Name>,
}

impl FleetServer {
    /// The server with this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The key file of a client: `controller`, or an agent's name.
    pub fn key(&self, client: &str) -> PathBuf {
        self.directory.join(format!("{client}.nk"))
    }

    /// The certificate of the authority, which exists with TLS.
    pub fn authority(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// The running server; `None` if it does not run.
    pub fn state(&self) -> Option<ServerState> {
        let text = std::fs::read_to_string(self.directory.join("state.json")).ok()?;
        let state: ServerState = serde_json::from_str(&text).ok()?;
        is_server(state.pid).then_some(state)
    }

    /// The connection settings of a client.
    pub fn connection(&self, client: &str) -> Result<Connection> {
        let state = self.state().ok_or_else(|| {
            FleetError::Refused(format!(
                "no NATS server runs in {}; kelvin fleet up starts one",
                self.directory.display()
            ))
        })?;
        let authority = state.url.starts_with("tls://").then(|| self.authority());
        Ok(Connection { url: state.url, key: Some(self.key(client)), authority, certificate: None })
    }

    /// Starts the server unless it runs, with keys for these agents.
    pub fn up(&self, lab: &Name, options: &ServerOptions) -> Result<ServerState> {
        let mut distinct: Vec<&Name> = options.agents.iter().collect();
        distinct.sort();
        distinct.dedup();
        if distinct.len() < options.agents.len() || distinct.iter().any(|name| name.as_str() == "controller")
        {
            let why = "each agent needs a different name, other than controller";
            return Err(FleetError::Refused(why.into()));
        }
        if options.listen.is_unspecified() {
            let why = "give the address at which the other hosts reach this one, such as 10.0.0.1";
            return Err(FleetError::Refused(why.into()));
        }
        if let Some(state) = self.state() {
            let there = format!("://{}:", host_in_url(options.listen));
            if !state.url.contains(&there)
                || options.port != 0 && !state.url.ends_with(&format!(":{}", options.port))
            {
                return Err(FleetError::Refused(format!(
                    "the fleet's server runs at {}: stop it first with kelvin fleet down",
                    state.url
                )));
            }
            if let Some(new) = options.agents.iter().find(|agent| !self.key(agent.as_str()).exists()) {
                return Err(FleetError::Refused(format!(
                    "the fleet's server runs without a key for {new}: stop it first with kelvin fleet down"
                )));
            }
            return Ok(state);
        }
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(FleetError::file(&self.directory))?;
        let tls = !options.listen.is_loopback();
        if tls {
            self.make_certificates(options.listen)?;
        }
        let mut users = Vec::new();
        for client in std::iter::once("controller").chain(options.agents.iter().map(Name::as_str)) {
            let path = self.key(client);
            users.push((client, if path.exists() { keys::public(&path)? } else { keys::make(&path)? }));
        }
        let config = self.directory.join("nats.conf");
        let text = self.config(lab, options, &users, tls);
        write_private(&config, &text)?;
        let log = self.directory.join("nats.log");
        for old in self.ports_files() {
            // A file left by a killed server.
            let _gone = std::fs::remove_file(old);
        }
        let child = Command::new("nats-server")
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir(&self.directory)
            // The server outlives this command and must not receive its Ctrl-C.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                FleetError::Refused(format!(
                    "cannot start nats-server ({error}); install it (Debian: nats-server) or give a running one \
                     with --nats"
                ))
            })?;
        let port = self.wait_for_port(child, &log)?;
        let host = host_in_url(options.listen);
        let scheme = if tls { "tls" } else { "nats" };
        let state =
            ServerState { pid: port.0, url: format!("{scheme}://{host}:{}", port.1), lab: lab.clone() };
        let text = serde_json::to_string(&state).map_err(|error| FleetError::Message(error.to_string()))?;
        write_private(&self.directory.join("state.json"), &text)?;
        Ok(state)
    }

    /// Stops the server. Returns false if it did not run.
    pub fn down(&self) -> Result<bool> {
        let Some(state) = self.state() else { return Ok(false) };
        let pid = rustix::process::Pid::from_raw(state.pid.cast_signed());
        let ended = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
        if let Some(Err(error)) = ended {
            return Err(FleetError::Refused(format!("cannot stop nats-server: {error}")));
        }
        let since = Instant::now();
        while is_server(state.pid) {
            if since.elapsed() > PATIENCE {
                return Err(FleetError::Refused("nats-server does not stop".into()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let path = self.directory.join("state.json");
        std::fs::remove_file(&path).map_err(FleetError::file(&path))?;
        Ok(true)
    }

    /// The agents that were started on other hosts.
    ///
    /// # Errors
    /// When their list cannot be read; otherwise these agents would be forgotten.
    pub fn placed(&self) -> Result<Vec<PlacedAgent>> {
        let path = placed_file(&self.directory);
        match std::fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| FleetError::Refused(format!("{}: {error}", path.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(FleetError::file(&path)(error)),
        }
    }

    /// Stores the list of agents on other hosts.
    pub fn remember(&self, placed: &[PlacedAgent]) -> Result<()> {
        let text = serde_json::to_string(placed).map_err(|error| FleetError::Message(error.to_string()))?;
        write_private(&placed_file(&self.directory), &text)
    }

    fn ports_files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "ports")).collect()
    }

    /// Waits until the server writes its port into its ports file.
    fn wait_for_port(&self, mut child: std::process::Child, log: &Path) -> Result<(u32, u16)> {
        let (since, pid) = (Instant::now(), child.id());
        loop {
            let ended = child.try_wait().ok().flatten();
            if ended.is_some() || since.elapsed() > PATIENCE {
                let _ended = child.kill();
                let _reaped = child.wait();
                let text = std::fs::read_to_string(log).unwrap_or_default();
                let last = text.lines().last().unwrap_or("it says nothing").to_owned();
                return Err(FleetError::Refused(format!("nats-server did not start: {last}")));
            }
            let text = self.ports_files().iter().find_map(|path| std::fs::read_to_string(path).ok());
            if let Some(port) = text.and_then(|text| port_in(&text)) {
                // The server outlives this command. While the command runs, this thread reaps it.
                std::thread::spawn(move || child.wait());
                return Ok((pid, port));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn config(&self, lab: &Name, options: &ServerOptions, users: &[(&str, String)], tls: bool) -> String {
        let directory = self.directory.display();
        let port = if options.port == 0 { "-1".into() } else { options.port.to_string() };
        let mut text = format!(
            "# Written by kelvin fleet up.\nhost: \"{}\"\nport: {port}\nports_file_dir: \"{directory}\"\n\
             log_file: \"{directory}/nats.log\"\nmax_payload: {LARGEST}\njetstream {{ store_dir: \
             \"{directory}/jetstream\" }}\n",
            options.listen
        );
        if tls {
            let _ = writeln!(
                text,
                "tls {{ cert_file: \"{directory}/server.pem\", key_file: \"{directory}/server.key\", timeout: 5 }}"
            );
        }
        text.push_str("authorization { users = [\n");
        for (client, key) in users {
            let _ = writeln!(text, "  {{ nkey: {key}, permissions: {} }}", permissions(lab, client));
        }
        text.push_str("] }\n");
        text
    }

    /// Creates a certificate for the address, and unless it exists an authority for this fleet only.
    fn make_certificates(&self, address: IpAddr) -> Result<()> {
        let has_authority = self.authority().exists() && self.directory.join("ca.key").exists();
        write_private(
            &self.directory.join("server.ext"),
            &format!("subjectAltName=IP:{address}\nextendedKeyUsage=serverAuth\n"),
        )?;
        let steps: [&[&str]; 3] = [
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "3650",
                "-subj",
                "/CN=kelvin fleet",
                "-keyout",
                "ca.key",
                "-out",
                "ca.pem",
            ],
            &[
                "req",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-subj",
                "/CN=kelvin fleet server",
                "-keyout",
                "server.key",
                "-out",
                "server.csr",
            ],
            &[
                "x509",
                "-req",
                "-in",
                "server.csr",
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "3650",
                "-extfile",
                "server.ext",
                "-out",
                "server.pem",
            ],
        ];
        for step in steps.into_iter().skip(usize::from(has_authority)) {
            // The directory is accessible to its owner only, and keys are created with such a mode as well.
            let made = Command::new("openssl").args(step).current_dir(&self.directory).output().map_err(
                |error| FleetError::Refused(format!("cannot make a certificate: openssl: {error}")),
            )?;
            if !made.status.success() {
                let why = String::from_utf8_lossy(&made.stderr).trim().to_owned();
                return Err(FleetError::Refused(format!("cannot make a certificate: {why}")));
            }
        }
        Ok(())
    }
}

/// The form of an address in a URL.
fn host_in_url(address: IpAddr) -> String {
    match address {
        IpAddr::V6(address) => format!("[{address}]"),
        IpAddr::V4(address) => address.to_string(),
    }
}

/// The subjects that a client may publish and subscribe to.
fn permissions(lab: &Name, client: &str) -> String {
    if client == "controller" {
        return format!(
            "{{ publish: [\"kelvin.{lab}.>\", \"$JS.>\", \"_INBOX.>\"], subscribe: [\"kelvin.{lab}.>\", \"_INBOX.>\"] }}"
        );
    }
    let bucket =
        client.parse::<Name>().map(|agent| Subjects::for_lab(lab).bucket(&agent)).unwrap_or_default();
    format!(
        "{{ publish: [\"kelvin.{lab}.agents.beat.{client}\", \"kelvin.{lab}.run.*.out.{client}\", \
         \"$O.{bucket}.>\", \"$JS.API.STREAM.INFO.OBJ_{bucket}\", \"$JS.API.DIRECT.GET.OBJ_{bucket}.>\", \
         \"$JS.API.STREAM.MSG.GET.OBJ_{bucket}\"], \
         subscribe: [\"kelvin.{lab}.agents.hello\", \"kelvin.{lab}.agent.{client}.*\", \
         \"kelvin.{lab}.run.*.controller\", \"_INBOX_{client}.>\"], \
         allow_responses: {{ max: 1, expires: \"10m\" }} }}"
    )
}

/// Replaces a file completely, or leaves it unchanged on errors. Only its owner may read it.
fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let new = path.with_extension("new");
    let opened = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.and_then(|()| std::fs::rename(&new, path)).map_err(FleetError::file(path))
}

/// Whether a process is a NATS server. After a restart of the host its number may belong to another process.
fn is_server(pid: u32) -> bool {
    let runs = ProcessStat::read(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'));
    runs && SystemTree::default().process_name(pid).as_deref() == Some("nats-server")
}

/// The port in the server's ports file.
fn port_in(text: &str) -> Option<u16> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let url = value.get("nats")?.get(0)?.as_str()?;
    url.rsplit(':').next()?.trim_end_matches('/').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_the_servers_file() {
        assert_eq!(port_in(r#"{"nats":["nats://127.0.0.1:41021"]}"#), Some(41021));
        assert_eq!(port_in(r#"{"nats":["tls://[::1]:41021/"]}"#), Some(41021));
        assert_eq!(port_in(r#"{"nats":[]}"#), None);
        assert_eq!(port_in("{"), None);
    }

    #[test]
    fn an_agent_speaks_for_itself_only() {
        let text = permissions(&"lab".parse().unwrap(), "db1");
        assert!(text.contains("\"kelvin.lab.agents.beat.db1\""), "{text}");
        assert!(
            !text.contains("kelvin.lab.>") && !text.contains("$JS.>") && !text.contains("$O.>"),
            "{text}"
        );
        // Of all streams it can read that of its own bucket, and it cannot remove or change any.
        let apis = text.split("$JS.API.").skip(1).all(|api| api.contains(".OBJ_KELVIN_lab_of_db1"));
        assert!(
            apis && !text.contains("PURGE") && !text.contains("DELETE") && !text.contains("CREATE"),
            "{text}"
        );
    }
}

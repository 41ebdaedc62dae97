//! Checks that the traffic between a controller, its agents and the NATS server contains no secret. Every byte is recorded,
//! without TLS.

use super::proxy::Proxy;
use super::*;

/// The password of the database user, which each process finds in a different place.
const PASSWORD: &str = "Kelvin0Planted1Secret2";
/// Another line of the password file.
const OTHER_LINE: &str = "Other3Servers4Word5";
/// A password for another engine in the controller's environment.
const OTHER_ENGINE: &str = "Maria6Controllers7Word8";
/// A wrong password.
const WRONG: &str = "Mistyped9Word0";

/// The encodings of a secret to search for: plain, hexadecimal, list of numbers, and base64 at each alignment.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let hex = secret.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    let numbers: Vec<String> = secret.iter().map(u8::to_string).collect();
    let mut forms =
        vec![secret.to_vec(), hex.to_uppercase().into(), hex.into(), numbers.join(",").into_bytes()];
    for last in [*b"+/", *b"-_"] {
        forms.extend((0..3).map(|before| base64(secret, before, last)));
    }
    forms
}

/// The base64 characters that the secret alone determines when `before` bytes precede it.
fn base64(secret: &[u8], before: usize, last: [u8; 2]) -> Vec<u8> {
    let alphabet: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(last).collect();
    let bit = |at: usize| usize::from(secret[at / 8 - before] >> (7 - at % 8) & 1);
    let (first, end) = ((before * 8).div_ceil(6), (before + secret.len()) * 8 / 6);
    let sextet = |at: usize| (at * 6..at * 6 + 6).fold(0, |value, at| value << 1 | bit(at));
    (first..end).map(|at| alphabet[sextet(at)]).collect()
}

/// The names of the secrets that `bytes` contains, in any encoding.
fn secrets_in<'a>(bytes: &[u8], secrets: &[(&'a str, Vec<u8>)]) -> Vec<&'a str> {
    let text = String::from_utf8_lossy(bytes);
    let is_in = |form: &Vec<u8>| text.contains(std::str::from_utf8(form).unwrap());
    secrets.iter().filter(|(_, secret)| forms(secret).iter().any(is_in)).map(|(name, _)| *name).collect()
}

/// A server whose user `bench` needs the password, and the URL of its database.
fn server_with_a_password() -> (Server, String) {
    let server = Server::start();
    let mut config = server.instance.config();
    let mut session = PostgresEngine::new(config.clone()).connect().unwrap();
    session.run(&format!("create role bench superuser login password '{PASSWORD}'")).unwrap();
    session.run("create table hits (at int)").unwrap();
    let rules = session.query("show hba_file").unwrap().text(0, 0).unwrap().to_owned();
    let trusted = std::fs::read_to_string(&rules).unwrap();
    let asked = "local all bench scram-sha-256\nhost all bench all scram-sha-256\n";
    std::fs::write(&rules, format!("{asked}{trusted}")).unwrap();
    session.query("select pg_reload_conf()").unwrap();
    config.user = "bench".into();
    let url = config.to_string();
    let engine = PostgresEngine::new(config);
    wait_until("the server asks for a password", || engine.connect().is_err());
    (server, url)
}

/// A controller and three agents, which reach the NATS server through a proxy that records.
struct Recorded {
    fleet: TestFleet,
    proxy: Proxy,
    url: String,
    passwords: std::path::PathBuf,
    /// Dropped last: the database server ends after its clients.
    _server: Server,
}

impl Recorded {
    fn start() -> Self {
        let (server, url) = server_with_a_password();
        // Starts the NATS server with three keys. Agents started here do not use the proxy.
        let mut fleet = TestFleet::start(3, &[&url], "15s", &[]);
        let passwords =
            fleet.place.write("passwords", format!("*:*:*:bench:{PASSWORD}\nelsewhere:*:*:*:{OTHER_LINE}\n"));
        let owner = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o600);
        std::fs::set_permissions(&passwords, owner).unwrap();
        let proxy = Proxy::to(fleet.port);
        for agent in &mut fleet.agents {
            agent.kill().unwrap();
            agent.wait().unwrap();
        }
        let mut recorded = Self { fleet, proxy, url, passwords, _server: server };
        for number in 0..3 {
            recorded.start_agent(number);
        }
        recorded
    }

    fn key(&self, client: &str) -> std::path::PathBuf {
        self.fleet.place.path(&format!(".local/share/kelvin/fleet/lab/{client}.nk"))
    }

    /// A command with these arguments that connects through the proxy with this client's key.
    fn command(&self, client: &str, words: &[&str]) -> std::process::Command {
        let mut command = self.fleet.place.command(words);
        let nats = format!("nats://127.0.0.1:{}", self.proxy.port);
        command.args(["--nats", &nats, "--lab", "lab", "--nats-key"]).arg(self.key(client));
        command
    }

    /// The first agent gets the password from its environment, the second from a file; the third gets a wrong one.
    fn start_agent(&mut self, number: usize) {
        let name = self.fleet.names[number].clone();
        let store = self.fleet.place.path(&format!("{name}.db"));
        let words =
            ["agent", "--name", &name, "--allow-target", &self.url, "--store", store.to_str().unwrap()];
        let mut agent = self.command(&name, &words);
        match number {
            0 => agent.env("PGPASSWORD", PASSWORD),
            1 => agent.env("PGPASSFILE", &self.passwords),
            _ => agent.env("PGPASSWORD", WRONG),
        };
        let log = File::create(self.fleet.place.path(&format!("{name}.log"))).unwrap();
        self.fleet.agents[number] = agent.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.fleet.wait_for_agent(&name);
    }

    /// A run of a script on these agents.
    fn run(&self, target: &str, hosts: &str) -> Output {
        let words = [
            "run",
            "script",
            "hit.sql",
            "--target",
            target,
            "--hosts",
            hosts,
            "--users",
            "2",
            "--ramp-up",
            "0s",
        ];
        let more = ["--duration", "3s", "--accept-noise", "--start-skew", "10s"];
        let mut run = self.command("controller", &[&words[..], &more].concat());
        run.env("PGPASSFILE", &self.passwords).env("MYSQL_PWD", OTHER_ENGINE);
        run.output().unwrap()
    }

    fn secrets(&self) -> Vec<(&'static str, Vec<u8>)> {
        let words = [
            ("the database's password", PASSWORD),
            ("another line of the file of passwords", OTHER_LINE),
            ("another engine's password", OTHER_ENGINE),
            ("the wrong password", WRONG),
        ];
        let mut secrets: Vec<_> = words.map(|(name, word)| (name, word.as_bytes().to_vec())).into();
        for client in ["controller", "g0", "g1", "g2"] {
            let seed = std::fs::read_to_string(self.key(client)).unwrap().trim().to_owned();
            assert!(seed.starts_with("SU") && seed.len() > 50, "{client} has a seed");
            secrets.push(("the seed of a key", seed.into_bytes()));
        }
        secrets
    }
}

#[test]
fn no_secret_crosses_nats() {
    let recorded = Recorded::start();
    recorded.fleet.place.write("hit.sql", "insert into hits (at) values (1);\n");
    let output = recorded.run(&recorded.url, "g0,g1");
    assert_counts(&recorded.fleet.place, &output);
    let run = recorded.fleet.place.report("last");
    let hosts = run["points"][0]["generator"]["hosts"].as_array().unwrap();
    assert!(
        hosts.len() == 2 && hosts.iter().all(|host| host["headline_count"].as_u64() > Some(0)),
        "{hosts:?}"
    );
    // The agents' own files are transferred, too.
    let collected = recorded.command("controller", &["fleet", "collect", "last", "--all"]).output().unwrap();
    assert_eq!(collected.status.code(), Some(0), "{}", text(&collected.stderr));

    // The messages after a failed login, and a URL with a password.
    let refused = recorded.run(&recorded.url, "g2");
    let why = text(&refused.stderr);
    assert!(
        refused.status.code() == Some(4) && why.contains("agent g2: ") && why.contains("password"),
        "{why}"
    );
    let named = recorded.url.replacen("bench@", &format!("bench:{PASSWORD}@"), 1);
    let refused_url = recorded.run(&named, "g0");
    assert_eq!(refused_url.status.code(), Some(2), "{}", text(&refused_url.stderr));

    let secrets = recorded.secrets();
    let streams = recorded.proxy.recorded();
    let all = streams.concat();
    let crossed = |word: &str| all.windows(word.len()).any(|part| part == word.as_bytes());
    for word in [
        "CONNECT {",
        "insert into hits",
        "\"sequence\":",
        "SQLite format 3",
        "password authentication failed",
    ] {
        assert!(crossed(word), "{word:?} is in what was recorded");
    }
    for stream in &streams {
        assert_eq!(secrets_in(stream, &secrets), [""; 0]);
    }
    for output in [&output, &collected, &refused, &refused_url] {
        assert_eq!(secrets_in(&[&output.stdout[..], &output.stderr].concat(), &secrets), [""; 0]);
    }
    for file in ["kelvin.db", "g0.db", "g1.db", "g0.log", "g1.log", "g2.log"] {
        let content = std::fs::read(recorded.fleet.place.path(file)).unwrap();
        assert_eq!(secrets_in(&content, &secrets), [""; 0], "{file}");
    }
}

#[test]
fn a_secret_is_found_in_whatever_form_it_is_written() {
    let secrets = [("it", b"Pass-w0rd?".to_vec()), ("another", b"unseen".to_vec())];
    // Encoded by independent programs: printf '…Pass-w0rd?…' | base64, xxd -p, xxd -p -u.
    for written in [
        "\u{1}Pass-w0rd?\0",
        "UGFzcy13MHJkPw==",
        "eFBhc3MtdzByZD95",
        "eHhQYXNzLXcwcmQ/eXk=",
        "eHhQYXNzLXcwcmQ_eXk",
        "00506173732d773072643f00",
        "50 506173732D773072643F",
        "[1,80,97,115,115,45,119,48,114,100,63]",
    ] {
        assert_eq!(secrets_in(written.as_bytes(), &secrets), ["it"], "{written}");
    }
    assert_eq!(secrets_in(b"Pass-w0rd UGFzcy13MHJkIQ== 506173732d773072643e", &secrets), [""; 0]);
}

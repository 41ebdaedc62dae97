//! Agents that a real ssh places on a host with a separate, real sshd.

use std::path::PathBuf;

use super::support::{Place, text, wait_until};
use super::*;

/// An sshd on loopback with separate keys and configuration. The home directory of its users is the test's.
struct Sshd {
    place: Place,
    server: Child,
}

impl Sshd {
    fn start() -> Self {
        let place = Place::new();
        let home = place.path("home");
        std::fs::create_dir(&home).unwrap();
        for key in ["host", "user"] {
            let path = place.path(key);
            let made = std::process::Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f", path.to_str().unwrap()])
                .status()
                .unwrap();
            assert!(made.success());
        }
        let port = port::spare();
        let at = |name: &str| place.path(name).display().to_string();
        let options = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nSetEnv HOME={}\n",
            at("host"),
            at("user.pub"),
            home.display()
        );
        place.write("sshd_config", options);
        let public = std::fs::read_to_string(place.path("host.pub")).unwrap();
        place.write("known_hosts", format!("[127.0.0.1]:{port} {public}"));
        let client = format!(
            "Host h1 h2\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {}\n  IdentitiesOnly yes\n  \
             UserKnownHostsFile {}\n  CheckHostIP no\nHost away\n  HostName 127.0.0.1\n  Port 1\n",
            at("user"),
            at("known_hosts")
        );
        place.write("ssh_config", client);
        // As root, sshd changes its root directory to this one before authentication.
        let _there = std::fs::create_dir("/run/sshd");
        let log = File::create(place.path("sshd.log")).unwrap();
        let server = std::process::Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", &at("sshd_config")])
            .stderr(log)
            .spawn()
            .unwrap();
        let sshd = Self { place, server };
        wait_until("sshd listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        sshd
    }

    /// Runs a kelvin command whose ssh knows this server.
    fn run(&self, args: &[&str]) -> Output {
        let ssh = format!("ssh -F {}", self.place.path("ssh_config").display());
        self.place.command(args).env("KELVIN_SSH", ssh).output().unwrap()
    }

    #[track_caller]
    fn expect(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        let shown = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
        let log = std::fs::read_to_string(self.place.path("sshd.log")).unwrap_or_default();
        assert_eq!(output.status.code(), Some(code), "{args:?}\n{shown}\nsshd: {log}");
        shown
    }

    fn on_host(&self, name: &str) -> PathBuf {
        self.place.path("home").join(".kelvin-fleet/lab").join(name)
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.run(&["fleet", "down", "lab"]);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn ssh_places_agents_which_run_and_leave_nothing() {
    let sshd = Sshd::start();
    // The test's directory is the controller's home; the home of sshd's users is that of the hosts.
    let data = sshd.place.path("data");
    std::fs::create_dir(&data).unwrap();
    let path = data.to_str().unwrap();
    for (host, word) in [("-oProxyCommand=id", "not the name of a host"), ("a;id", "not the name of a host")]
    {
        let hosts = format!("--ssh={host}");
        assert!(sshd.expect(2, &["fleet", "up", "lab", &hosts, "--allow-path", path]).contains(word));
    }
    assert!(sshd.expect(2, &["fleet", "up", "lab", "--ssh", "h1"]).contains("--allow-target"));
    let up = ["fleet", "up", "lab", "--ssh", "h1,h2", "--allow-path", path];
    let shown = sshd.expect(0, &up);
    assert!(shown.contains("h1  on h1") && shown.contains("h2  on h2"), "{shown}");
    for agent in ["h1", "h2"] {
        let key = std::fs::metadata(sshd.on_host(agent).join("agent.nk")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&key.permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
    let shown = sshd.expect(0, &["fleet", "status", "lab"]);
    assert_eq!(shown.matches("  started on h").count(), 2, "{shown}");
    assert_eq!(shown.matches("  idle").count(), 2, "{shown}");
    let pids: Vec<String> = ["h1", "h2"]
        .map(|agent| {
            std::fs::read_to_string(sshd.on_host(agent).join("agent.pid")).unwrap().trim().to_owned()
        })
        .into();
    // No key and no seed appears in a process list.
    let seed = std::fs::read_to_string(sshd.on_host("h1").join("agent.nk")).unwrap();
    for pid in &pids {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!text(&line).contains(seed.trim()), "the key is in the arguments");
    }
    assert!(sshd.expect(0, &up).contains("was already running"));
    let job = format!("[a]\nrw=randread\nsize=64k\nfilename={path}/file\n");
    sshd.place.write("job.fio", job);
    let run = ["run", "io", "--job", "job.fio", "--fleet", "lab", "--hosts", "h1", "--accept-noise"];
    let output = sshd.run(&run);
    assert_counts(&sshd.place, &output);
    let shown = sshd.expect(0, &["fleet", "down", "lab"]);
    assert!(shown.contains("removed from h1") && shown.contains("stopped"), "{shown}");
    assert!(!sshd.place.path("home/.kelvin-fleet").exists(), "nothing is left on the hosts");
    for pid in pids {
        assert!(!PathBuf::from(format!("/proc/{pid}/exe")).exists(), "agent {pid} is left");
    }
    // A host that does not answer is named, and stays recorded until it answers.
    let shown = sshd.expect(2, &["fleet", "up", "lab", "--ssh", "away", "--allow-path", path]);
    assert!(shown.contains("host away"), "{shown}");
    assert!(sshd.expect(2, &["fleet", "down", "lab"]).contains("host away"));
    assert!(sshd.expect(1, &["fleet", "status", "lab"]).contains("started on away"));
}

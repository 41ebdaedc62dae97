//! Starts agents on other hosts with the user's own `ssh`: copies the running binary and the agent's key,
//! starts the agent, and later stops it and removes what was copied.
//!
//! Secrets are only passed through standard input. Names of hosts, labs and agents are checked, so that none
//! can act as an option or as shell syntax.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Name;
use crate::error::FleetError;
use crate::message::clean;

type Result<T> = std::result::Result<T, FleetError>;

/// The longest name of a host, including a user.
const LONGEST: usize = 255;

/// Checks whether a process is the agent that was started here. After a restart of the host its number may
/// belong to another process.
const OURS: &str = r#"
here=$(pwd -P)
pid=$(cat agent.pid 2>/dev/null || :)
ours() { [ -n "$pid" ] && [ "$(readlink "/proc/$pid/exe" 2>/dev/null)" = "$here/kelvin" ]; }
"#;

/// Starts the agent as a transient unit if a service manager keeps it after the connection, otherwise in a
/// new session.
const START: &str = r#"
if ours; then echo "running $pid"; exit 0; fi
chmod 700 kelvin.new
mv -f kelvin.new kelvin
./kelvin --version >/dev/null
rm -f agent.pid
manager=none
if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then
  if [ "$(id -u)" = 0 ]; then manager=--system
  elif [ "$(loginctl show-user "$(id -un)" --property=Linger --value 2>/dev/null)" = yes ]; then manager=--user
  fi
fi
if [ "$manager" = none ]; then setsid sh "$here/start" >/dev/null 2>&1 </dev/null &
else systemd-run "$manager" --quiet --collect --unit="$unit" --setenv="HOME=$HOME" sh "$here/start"
fi
echo started
"#;

/// Stops the agent and removes what was copied.
const STOP: &str = r#"
if ours; then
  kill -TERM "$pid"
  i=0
  while ours && [ "$i" -lt 200 ]; do sleep 0.2 2>/dev/null || sleep 1; i=$((i+1)); done
  if ours; then kill -KILL "$pid"; fi
fi
rm -f kelvin kelvin.new agent.nk ca.pem start agent.pid agent.log
cd "$HOME"
rmdir "$here"
rmdir "$lab" .kelvin-fleet 2>/dev/null || :
echo removed
"#;

/// A host for `ssh`: a name, an address or an alias of its configuration, with or without a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SshHost(String);

impl SshHost {
    /// As text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of an agent on this host; `None` if no valid name results.
    pub fn agent_name(&self) -> Option<Name> {
        Name::of_host(self.0.rsplit('@').next().unwrap_or(&self.0))
    }
}

impl FromStr for SshHost {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-:@".contains(c);
        let is_option = text.split('@').any(|part| part.is_empty() || part.starts_with('-'));
        if text.len() > LONGEST || !text.chars().all(allowed) || is_option {
            return Err(format!("{text:?} is not the name of a host: write host or user@host"));
        }
        Ok(Self(text.into()))
    }
}

impl TryFrom<String> for SshHost {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        text.parse()
    }
}

impl From<SshHost> for String {
    fn from(host: SshHost) -> Self {
        host.0
    }
}

/// An agent on another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedAgent {
    /// The fleet.
    pub lab: Name,
    /// The agent.
    pub agent: Name,
    /// Its host.
    pub host: SshHost,
}

/// The files and settings of an agent on another host.
#[derive(Debug)]
pub struct AgentFiles<'a> {
    /// The kelvin binary.
    pub kelvin: &'a Path,
    /// The seed of its key.
    pub key: &'a Path,
    /// The certificate of the server's authority, with TLS.
    pub authority: Option<&'a Path>,
    /// The URL of the NATS server.
    pub url: &'a str,
    /// The agent's flags for its allowed targets.
    pub allow: &'a [String],
}

/// The user's ssh, possibly with options, such as `ssh -F FILE`.
#[derive(Debug, Clone)]
pub struct Ssh {
    words: Vec<String>,
}

impl Ssh {
    /// Splits a command into words; the default is `ssh`.
    pub fn new(text: Option<&str>) -> Self {
        let words: Vec<String> = text.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
        Self { words: if words.is_empty() { vec!["ssh".into()] } else { words } }
    }

    /// A non-interactive command on a host, which ends when the host does not answer.
    fn command(&self, host: &SshHost, remote: &str) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
        command.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]);
        command.args(["--", host.as_str(), remote]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn finished(host: &SshHost, output: std::io::Result<Output>) -> Result<String> {
        let refused = |why: String| FleetError::Refused(format!("host {}: {why}", host.as_str()));
        let output = output.map_err(|error| refused(format!("ssh: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        Err(refused(clean(last.unwrap_or("its shell ended with an error"))))
    }

    /// Runs a script on a host and returns its output.
    fn run(&self, host: &SshHost, script: &str) -> Result<String> {
        let spawned = self.command(host, "sh -s").stdin(Stdio::piped()).spawn();
        let output = spawned.and_then(|mut child| {
            if let Some(mut input) = child.stdin.take() {
                // A host that refuses does not read the script, and reports why.
                let _refused = input.write_all(script.as_bytes());
            }
            child.wait_with_output()
        });
        Self::finished(host, output)
    }

    /// Copies a file to the agent's host, readable only by its owner.
    fn copy(&self, placed: &PlacedAgent, from: &Path, name: &str) -> Result<()> {
        let file = File::open(from).map_err(FleetError::file(from))?;
        let directory = placed.directory();
        let remote = format!(
            "sh -c 'umask 077 && mkdir -p \"$HOME/{directory}\" && cat > \"$HOME/{directory}/{name}\"'"
        );
        let output = self.command(&placed.host, &remote).stdin(Stdio::from(file)).output();
        Self::finished(&placed.host, output).map(drop)
    }

    /// Copies binary and files, and starts the agent. Returns false if it is already running.
    pub fn place(&self, placed: &PlacedAgent, files: &AgentFiles<'_>) -> Result<bool> {
        let found = self.run(&placed.host, "uname -sm")?;
        let own = rustix::system::uname();
        let own = format!("{} {}", own.sysname().to_string_lossy(), own.machine().to_string_lossy());
        if found != own {
            let why = format!("{} is {}, but this kelvin is for {own}", placed.host.as_str(), clean(&found));
            return Err(FleetError::Refused(why));
        }
        if self.state(placed)?.is_some() {
            return Ok(false);
        }
        self.copy(placed, files.kelvin, "kelvin.new")?;
        self.copy(placed, files.key, "agent.nk")?;
        if let Some(authority) = files.authority {
            self.copy(placed, authority, "ca.pem")?;
        }
        let script = format!(
            "set -eu\numask 077\nunit=kelvin-fleet-{}-{}\ncd \"$HOME/{}\"\n{OURS}cat > start <<'END_OF_START'\n{}\
             END_OF_START\n{START}",
            placed.lab,
            placed.agent,
            placed.directory(),
            placed.launcher(files)
        );
        Ok(self.run(&placed.host, &script)? == "started")
    }

    /// The agent's process ID; `None` if it does not run.
    pub fn state(&self, placed: &PlacedAgent) -> Result<Option<u32>> {
        let script = format!(
            "cd \"$HOME/{}\" 2>/dev/null || exit 0\n{OURS}if ours; then echo \"$pid\"; fi\n",
            placed.directory()
        );
        Ok(self.run(&placed.host, &script)?.parse().ok())
    }

    /// The last line of the agent's output.
    pub fn log(&self, placed: &PlacedAgent) -> Result<String> {
        let script = format!("tail -n 1 \"$HOME/{}/agent.log\" 2>/dev/null || :\n", placed.directory());
        Ok(clean(&self.run(&placed.host, &script)?))
    }

    /// Stops the agent, and removes what was copied. Its own results are kept.
    pub fn remove(&self, placed: &PlacedAgent) -> Result<()> {
        let script = format!(
            "set -eu\ncd \"$HOME/{}\" 2>/dev/null || exit 0\nlab=.kelvin-fleet/{}\n{OURS}{STOP}",
            placed.directory(),
            placed.lab
        );
        self.run(&placed.host, &script).map(drop)
    }
}

impl PlacedAgent {
    /// The agent's directory, relative to the home directory of the host's user.
    fn directory(&self) -> String {
        format!(".kelvin-fleet/{}/{}", self.lab, self.agent)
    }

    /// The script whose process becomes the agent (`exec`).
    fn launcher(&self, files: &AgentFiles<'_>) -> String {
        let mut words = vec!["agent".to_owned(), "--name".into(), self.agent.to_string()];
        words.extend(
            ["--lab", self.lab.as_str(), "--nats", files.url, "--nats-key", "agent.nk"].map(str::to_owned),
        );
        if files.authority.is_some() {
            words.extend(["--nats-ca", "ca.pem"].map(str::to_owned));
        }
        words.extend(files.allow.iter().cloned());
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        format!(
            "cd \"$HOME/{}\" || exit 1\necho $$ > agent.pid\nexec \"$(pwd -P)/kelvin\" {} >>agent.log 2>&1 </dev/null\n",
            self.directory(),
            words.join(" ")
        )
    }
}

/// A quoted word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The file with the list of started agents.
pub(crate) fn placed_file(directory: &Path) -> PathBuf {
    directory.join("ssh.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_no_option_and_no_shell() {
        for good in ["db1", "bench@db1.example.org", "10.0.0.1", "fe80::1", "me@h-1_x"] {
            assert_eq!(good.parse::<SshHost>().unwrap().as_str(), good);
        }
        for bad in
            ["", "-oProxyCommand=id", "me@-oProxyCommand=id", "a b", "a;id", "$(id)", "@h", "me@", "a\nb"]
        {
            assert!(bad.parse::<SshHost>().unwrap_err().contains("not the name of a host"), "{bad}");
            assert!(serde_json::from_value::<SshHost>(bad.into()).is_err(), "{bad}");
        }
        let host: SshHost = "me@db1.example.org".parse().unwrap();
        assert_eq!(host.agent_name().unwrap().as_str(), "db1-example-org");
    }

    #[test]
    fn arguments_are_words_of_a_shell() {
        let word = "it's $HOME `id` \"x\"";
        let echoed =
            Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(word))).output().unwrap();
        assert_eq!(String::from_utf8(echoed.stdout).unwrap(), word);
        assert_eq!(Ssh::new(Some("ssh -F /x")).words, ["ssh", "-F", "/x"]);
        assert_eq!(Ssh::new(None).words, ["ssh"]);
    }
}

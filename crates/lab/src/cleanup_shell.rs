//! A shell that outlives this process: it undoes changes to other processes when its standard input closes, which
//! also a SIGKILL does.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

/// A shell that waits. When this is dropped, the shell learns that there is nothing to undo, and exits.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
}

/// The common beginning of every guard script: it collects lines until the end of its input, and exits on request.
const WAIT: &str = "all=
while read -r one; do
  [ \"$one\" = done ] && exit
  all=\"$all $one\"
done
";

/// Continues the stopped processes that were announced.
pub(crate) const CONTINUE: &str = "for one in $all; do kill -CONT \"$one\"; done";

/// Restores the CPUs `$1` of the process `$2` and its descendants. It does so twice, as the process may fork
/// meanwhile.
pub(crate) const AFFINITY: &str = "put() {
  taskset -acp \"$1\" \"$2\"
  for child in $(cat /proc/\"$2\"/task/*/children); do put \"$1\" \"$child\"; done
}
put \"$1\" \"$2\"
put \"$1\" \"$2\"";

impl Guard {
    /// Starts the shell.
    pub(crate) fn start(script: &str, args: &[String]) -> Result<Self, String> {
        let text = format!("exec 2>/dev/null\n{WAIT}{script}");
        let mut command = Command::new("sh");
        command.arg("-c").arg(text).arg("kelvin-squeeze").args(args).stdin(Stdio::piped());
        let child = apart(&mut command)
            .spawn()
            .map_err(|e| format!("cannot start a shell that would undo it if kelvin were killed: {e}"))?;
        Ok(Self { child })
    }

    /// Adds a process to the list.
    pub(crate) fn tell(&mut self, process: u32) -> Result<(), String> {
        let written = self.child.stdin.as_mut().map(|pipe| writeln!(pipe, "{process}"));
        written.transpose().map(drop).map_err(|e| format!("the shell that would undo it has exited: {e}"))
    }
}

#[cfg(test)]
impl Guard {
    /// Lets the shell act as after a kill of this process, and waits for its end.
    pub(crate) fn abandon(&mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().is_ok());
    }
}

/// Starts the command in a separate process group: Ctrl-C is meant for Kelvin, and the shell has to outlive it.
pub(crate) fn apart(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null())
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut pipe) = self.child.stdin.take() {
            // If it has already exited, there is nothing to report.
            let _gone = pipe.write_all(b"done\n");
        }
        let _ended = self.child.wait();
    }
}

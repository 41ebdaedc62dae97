//! What managed servers of every engine need of this host: commands run as the server's user, files in its directory, and the
//! processes that work there.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use super::account::Account;
use crate::{Error, ErrorClass, Result};

/// A unix socket's path may have 107 bytes; 16 are for the file's name.
const LONGEST_SOCKET_DIRECTORY: usize = 90;

/// Where an instance in this directory has its socket.
pub(crate) fn socket_directory(directory: &Path, account: &Account) -> PathBuf {
    let near = directory.join("run");
    if near.as_os_str().as_bytes().len() <= LONGEST_SOCKET_DIRECTORY {
        return near;
    }
    let digest = Sha256::digest(directory.as_os_str().as_bytes());
    let short = digest.iter().take(8).fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    PathBuf::from(format!("/tmp/kelvin-{}-{short:016x}", account.uid))
}

/// Replaces a file in the server's directory as the server's user: root following a link there could be led to
/// overwrite anything. The file changes completely or not at all, whatever is killed or full meanwhile.
pub(crate) fn write_as(account: &Account, file: &Path, text: &str, directory: &Path) -> Result<()> {
    // The length distinguishes truncated text from complete text.
    const REPLACE: &str =
        r#"umask 077 && cat > "$1.new" && [ "$(wc -c < "$1.new")" -eq "$2" ] && mv -f "$1.new" "$1""#;
    let mut shell = account.command(Path::new("sh"), directory);
    shell.args(["-c", REPLACE, "sh"]).arg(file).arg(text.len().to_string());
    run(shell, Some(text), &format!("writing {}", file.display())).map(drop)
}

pub(crate) fn io_error(path: &Path, error: &std::io::Error) -> Error {
    Error::usage(format!("{}: {error}", path.display()))
}

/// Runs a harmless command the way the server will be run: the user may be unable to reach the directory or to
/// execute the binaries, both of which the server would report in riddles.
pub(crate) fn can_work_in(account: &Account, program: &Path, server: &str, directory: &Path) -> Result<()> {
    let outcome = account.command(program, directory).arg("--version").output();
    match outcome {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(Error::usage(format!(
            "user {} cannot access {} or execute {}",
            account.uid,
            directory.display(),
            program.display()
        ))
        .with_help(format!(
            "{server} does not run as root: this user needs search permission (chmod o+x) on every parent \
             directory; grant it or choose another directory"
        ))),
    }
}

/// Bytes of the files below `directory`; what cannot be read, or vanishes meanwhile, counts nothing.
pub(crate) fn size(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Runs a command to its end and returns what it said; a failure becomes an error with that.
pub(crate) fn run(mut command: Command, input: Option<&str>, doing: &str) -> Result<String> {
    let failed = |error: std::io::Error| Error::new(ErrorClass::Server, format!("{doing}: {error}"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command.spawn().map_err(failed)?;
    if let (Some(text), Some(mut stdin)) = (input, child.stdin.take()) {
        // A command that ended early has more to say about it than the broken pipe.
        let _ = stdin.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() {
        return Ok(said);
    }
    Err(Error::new(ErrorClass::Server, format!("{doing} failed ({})", output.status))
        .with_help(last_lines(&said)))
}

pub(crate) fn log_tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    format!("the last lines of {}:\n{}", log.display(), last_lines(&text))
}

pub(crate) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

/// Whether the process is a server in that data directory, and not another one that got the same number after
/// a crash or a reboot. A server works in its data directory.
pub(crate) fn is_ours(pid: u32, data: &Path) -> bool {
    let Ok(data) = data.canonicalize() else { return false };
    match std::fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(directory) => directory == data,
        Err(_) if Path::new("/proc/self").exists() => false,
        // Without /proc the process number has to do.
        Err(_) => i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok()),
    }
}

/// Any process that works in that data directory: a server's children outlive its crash for a moment.
pub(crate) fn any_process(data: &Path) -> Option<u32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|pid| is_ours(*pid, data))
}

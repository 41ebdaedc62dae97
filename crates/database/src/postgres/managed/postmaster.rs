//! The server process: what its `postmaster.pid` says and whether that is true.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::managed::program::is_ours;

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Postmaster {
    pub(crate) pid: u32,
    /// When it started.
    pub(crate) since: SystemTime,
    /// Directory of its unix socket and the number in the socket's name; not known while it starts.
    pub(crate) socket: Option<(PathBuf, u16)>,
}

/// The server that runs on `data`; `None` when there is none, whatever an old `postmaster.pid` says.
pub(crate) fn running(data: &Path) -> Option<Postmaster> {
    let text = std::fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let postmaster = parse(&text)?;
    is_ours(postmaster.pid, data).then_some(postmaster)
}

/// The process number is the first line (negative for a single-user backend), its start the third, in
/// seconds since 1970, its port the fourth and its first socket's directory the fifth.
fn parse(text: &str) -> Option<Postmaster> {
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok().filter(|pid| *pid > 1)?;
    let since = lines.nth(1)?.trim().parse().ok()?;
    let port = lines.next().and_then(|line| line.trim().parse().ok());
    let directory = lines.next().map(PathBuf::from).filter(|directory| directory.is_absolute());
    Some(Postmaster {
        pid,
        since: SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(since))?,
        socket: directory.zip(port),
    })
}

/// Whether a server answers at the socket: it is asked for TLS, and says no in one byte before any login.
pub(crate) fn answers(socket: &Path) -> bool {
    const REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
    let ask = || -> std::io::Result<u8> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.set_write_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(&REQUEST)?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        Ok(answer[0])
    };
    matches!(ask(), Ok(b'N' | b'S'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_or_broken_pid_file_is_no_server() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(running(data.path()), None);
        let me = std::process::id();
        for text in ["", "x", "-5\n/d\n1\n", &format!("{me}\n/data\n1700000000\n5432\n"), "99999999\n/d\n1\n"]
        {
            std::fs::write(data.path().join("postmaster.pid"), text).unwrap();
            assert_eq!(running(data.path()), None, "{text:?}");
        }
        let starting = parse("12\n/data\n1700000000\n5432\n").unwrap();
        assert_eq!((starting.pid, starting.socket), (12, None));
        let ready = parse("12\n/data\n1700000000\n5432\n/run/x\n\n  1  2\nready   \n").unwrap();
        assert_eq!(ready.socket, Some(("/run/x".into(), 5432)));
    }
}

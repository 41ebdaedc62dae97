//! Programs that do the copying.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::postgres::managed::installed;
use crate::snapshot::SnapshotJob;
use crate::{Error, ErrorClass, Result};

/// How often a program that was asked to end is examined before it is ended: for ten seconds.
const LOOKS_BEFORE_KILL: u32 = 1000;

/// The directory of these programs, of the nearest PostgreSQL from version `oldest` to `newest`. They may be installed
/// without a server, and a directory of links to a server's programs need not hold all of them.
pub(crate) fn directory(oldest: u32, newest: u32, names: &[&str]) -> Option<PathBuf> {
    let complete = |directory: &PathBuf| names.iter().all(|name| directory.join(name).is_file());
    let servers = installed().into_iter().flat_map(|one| {
        let real = one.directory.join("postgres").canonicalize().ok();
        let real = real.and_then(|program| program.parent().map(|parent| (one.major, parent.to_owned())));
        [Some((one.major, one.directory)), real].into_iter().flatten()
    });
    let usual = (oldest..=newest).flat_map(|version| {
        [format!("/usr/lib/postgresql/{version}/bin"), format!("/usr/pgsql-{version}/bin")]
            .map(|directory| (version, PathBuf::from(directory)))
    });
    let fits =
        |(version, directory): &(u32, PathBuf)| (oldest..=newest).contains(version) && complete(directory);
    servers.chain(usual).filter(fits).min_by_key(|(version, _)| *version).map(|(_, directory)| directory)
}

/// Runs to the end, or until somebody asks to stop; calls `each` five times a second. A failure has the program's first
/// words.
pub(crate) fn run(
    mut command: Command,
    name: &str,
    job: &mut SnapshotJob<'_>,
    each: &mut dyn FnMut(&mut SnapshotJob<'_>),
) -> Result<()> {
    let failed = |error: std::io::Error| Error::new(ErrorClass::Server, format!("{name}: {error}"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let said = child.stderr.take();
    std::thread::scope(|scope| {
        // A pipe that nobody reads would hold the program up.
        let said = scope.spawn(move || {
            let mut text = Vec::new();
            if let Some(mut pipe) = said {
                // Unreadable output is omitted.
                let _ = std::io::Read::read_to_end(&mut pipe, &mut text);
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        let (mut looks, mut asked) = (0_u32, 0_u32);
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break status;
            }
            if (job.stop)() {
                // Asked first: it ends its own helpers (pg_restore's sessions), which would otherwise work on. It may have
                // ended by itself.
                asked += 1;
                let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
                if let (1, Some(pid)) = (asked, pid) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
                } else if asked > LOOKS_BEFORE_KILL {
                    let _ = child.kill();
                }
            }
            looks += 1;
            if looks.is_multiple_of(20) {
                each(job);
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        };
        let said = said.join().unwrap_or_default();
        if status.success() {
            return Ok(());
        }
        let first: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).take(4).collect();
        let class = if said.contains("No space left") { ErrorClass::DiskFull } else { ErrorClass::Server };
        Err(Error::new(class, format!("{name} failed ({status}): {}", first.join("; "))))
    })
}

//! Programs that do the copying.

use std::process::{Command, Stdio};

use super::SnapshotJob;
use crate::{Error, ErrorClass, Result};

/// How often a program that was asked to end is polled before it is killed: for ten seconds.
const LOOKS_BEFORE_KILL: u32 = 1000;

/// Runs the program to its end, or until a stop is requested; calls `each` five times a second. An error includes the
/// beginning of the program's output.
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
        // A pipe that is not read would block the program.
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
                // Terminated first: it ends its helpers (pg_restore's sessions), which would otherwise continue. It may
                // already have exited.
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

//! `verify_dump`: saves the received and the expected data.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of file pairs of a worker: a target that is wrong everywhere must not fill the disk.
const MOST: u32 = 100;

#[derive(Debug, Clone)]
pub(super) struct Dump {
    pub(super) directory: PathBuf,
    /// Shared with the other threads that verify for the same worker.
    left: Arc<AtomicU32>,
}

impl Dump {
    pub(super) fn new() -> Self {
        Self { directory: PathBuf::from("."), left: Arc::new(AtomicU32::new(MOST)) }
    }

    /// Writes `NAME.OFFSET.received` and, if known, `NAME.OFFSET.expected`. Returns an addition to the error message.
    pub(super) fn keep(
        &self,
        target: Option<&PathBuf>,
        offset: u64,
        received: &[u8],
        expected: Option<&[u8]>,
    ) -> String {
        let one_less = |left: u32| left.checked_sub(1);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_err() {
            return format!("; not kept: {MOST} bad blocks were already kept");
        }
        let name = target
            .and_then(|path| Path::new(path).file_name())
            .map_or_else(|| "target".into(), |name| name.to_string_lossy());
        let file = |kind: &str| self.directory.join(format!("{name}.{offset}.{kind}"));
        let written = std::fs::write(file("received"), received)
            .and_then(|()| expected.map_or(Ok(()), |expected| std::fs::write(file("expected"), expected)));
        match (written, expected) {
            (Ok(()), Some(_)) => {
                format!("; kept as {}.{offset}.received and .expected", self.directory.join(&*name).display())
            }
            (Ok(()), None) => format!(
                "; kept as {}.{offset}.received (the expected data is unknown)",
                self.directory.join(&*name).display()
            ),
            (Err(error), _) => format!("; cannot be kept in {}: {error}", self.directory.display()),
        }
    }
}

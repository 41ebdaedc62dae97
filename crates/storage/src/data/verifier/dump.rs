//! `verify_dump`: keeps what was read and what was expected.

use std::path::{Path, PathBuf};

/// Pairs of files that a worker writes at most: a target that is wrong throughout must not fill the disk.
const MOST: u32 = 100;

#[derive(Debug)]
pub(super) struct Dump {
    pub(super) directory: PathBuf,
    left: u32,
}

impl Dump {
    pub(super) fn new() -> Self {
        Self { directory: PathBuf::from("."), left: MOST }
    }

    /// Writes `NAME.OFFSET.received` and, where it is known, `NAME.OFFSET.expected`; what to add to the problem.
    pub(super) fn keep(
        &mut self,
        target: Option<&PathBuf>,
        offset: u64,
        received: &[u8],
        expected: Option<&[u8]>,
    ) -> String {
        if self.left == 0 {
            return format!("; not kept: {MOST} were already");
        }
        self.left -= 1;
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
                "; kept as {}.{offset}.received (what was expected cannot be told)",
                self.directory.join(&*name).display()
            ),
            (Err(error), _) => format!("; cannot be kept in {}: {error}", self.directory.display()),
        }
    }
}

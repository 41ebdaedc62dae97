//! The upkeep of an SQLite database.

use super::SqliteEngine;
use crate::{Engine, Error, Home, Result, Session};

impl Home for SqliteEngine {
    fn product(&self) -> Result<String> {
        self.connect()?.query("SELECT 'SQLite ' || sqlite_version()")?.text(0, 0).map(str::to_owned)
    }

    fn unlimited(&self) -> Result<Box<dyn Session>> {
        self.connect()
    }

    fn tables(&self) -> Result<Vec<String>> {
        self.connect()?
            .query(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1",
            )?
            .texts(0)
    }

    fn upkeep(&self, vacuum: bool, analyze: bool) -> Vec<(&'static str, &'static str)> {
        let steps = [(vacuum, ("vacuum", "VACUUM")), (analyze, ("analyze", "ANALYZE"))];
        steps.into_iter().filter(|(asked, _)| *asked).map(|(_, step)| step).collect()
    }

    /// Its build has analyzed; nothing is to be frozen.
    fn ready_for_a_snapshot(&self) -> Result<()> {
        Ok(())
    }

    fn prewarm(&self) -> Result<String> {
        // Closing the file takes the locks of this process's sessions away: there must be none.
        let bytes = std::fs::File::open(self.path())
            .and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()))
            .map_err(|error| Error::usage(format!("{} cannot be read: {error}", self.path().display())))?;
        Ok(format!("read {:.0} MB into the page cache", bytes as f64 / 1e6))
    }

    fn files_are_of_a_version(&self) -> bool {
        false
    }

    fn caution(&self) -> Option<&'static str> {
        Some(
            "SQLite runs in WAL mode with synchronous=NORMAL: a commit survives a crash of the process, but \
             not a power failure; PostgreSQL's defaults wait for the disk",
        )
    }
}

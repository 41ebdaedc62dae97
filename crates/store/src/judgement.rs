//! The judgements that the store holds: of runs when they ended, and of groups on their runs.

use std::collections::BTreeMap;

use rusqlite::params;

use crate::error::{Error, Result};
use crate::run::RunId;
use crate::state::Judgement;
use crate::store::Store;

/// The version of the rules by which runs are judged. Incremented whenever they change: judgements by older rules are
/// made again.
pub(crate) const RULES: i64 = 2;

impl Store {
    /// Stores the judgement of a run that has ended, for the lists, which do not read every run completely.
    pub fn keep_judgement(&self, run: RunId, judgement: &Judgement) -> Result<()> {
        let body = serde_json::to_string(judgement).map_err(|e| Error::Event(e.to_string()))?;
        self.connection()
            .execute(
                "INSERT OR REPLACE INTO judgement (run, rules, body) VALUES (?, ?, ?)",
                params![run.0, RULES, body],
            )
            .map_err(|e| Error::sqlite(self.path(), e))?;
        Ok(())
    }

    /// The judgements of the runs when they ended, by their numbers. Runs stored by an older Kelvin, or killed, are
    /// missing.
    pub(crate) fn kept_judgements(&self) -> Result<BTreeMap<i64, Judgement>> {
        let to = |e| Error::sqlite(self.path(), e);
        let mut statement =
            self.connection().prepare("SELECT run, body FROM judgement WHERE rules = ?").map_err(to)?;
        let mut rows = statement.query([RULES]).map_err(to)?;
        let mut found = BTreeMap::new();
        while let Some(row) = rows.next().map_err(to)? {
            let (run, body): (i64, String) = (row.get(0).map_err(to)?, row.get(1).map_err(to)?);
            let judgement = serde_json::from_str(&body)
                .map_err(|e| Error::damaged(self.path(), format!("the stored state of run {run}: {e}")))?;
            found.insert(run, judgement);
        }
        Ok(found)
    }

    /// Objections of groups to their runs, by the runs' numbers.
    pub(crate) fn voids(&self) -> Result<BTreeMap<i64, String>> {
        let to = |e| Error::sqlite(self.path(), e);
        let mut statement =
            self.connection().prepare("SELECT run, void FROM member WHERE void IS NOT NULL").map_err(to)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(to)?;
        rows.collect::<rusqlite::Result<_>>().map_err(to)
    }
}

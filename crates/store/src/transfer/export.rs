//! A file of some runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use kelvin_measure::{redact, redact_json};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use super::content;
use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::run::RunId;
use crate::schema::{self, beside};
use crate::state::Liveness;
use crate::store::Store;
use crate::writer_process;

/// What to export, and who does it.
#[derive(Debug, Clone, Default)]
pub struct Exporter {
    /// The runs.
    pub runs: BTreeSet<RunId>,
    /// Groups, which are exported with all of their runs.
    pub groups: BTreeSet<GroupId>,
    /// The machine's name.
    pub host: String,
    /// The version of this program.
    pub kelvin_version: String,
}

impl Exporter {
    /// Writes a new file, which only its owner may read: a store with these runs and groups, under their numbers. Passwords are
    /// looked for once more. Returns the runs.
    ///
    /// # Errors
    /// A file that is there already; a run or group that is not there; a run that is still being written; a run that its group
    /// leaves out, without its group: it would seem to count. Nothing stays of a file that could not be finished.
    pub fn write(&self, store: &Store, file: &Path) -> Result<Vec<RunId>> {
        let snapshot =
            store.connection().unchecked_transaction().map_err(|e| Error::sqlite(store.path(), e))?;
        let runs = self.decide(store)?;
        let made = File::options().write(true).create_new(true).mode(0o600).open(file);
        made.map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Exists { path: file.to_path_buf() },
            _ => Error::io("make", file, e),
        })?;
        let written = self.fill(store, file, &runs);
        drop(snapshot);
        if written.is_err() {
            for left in [file.to_path_buf(), beside(file, "-journal")] {
                let _ = std::fs::remove_file(left);
            }
        }
        written.map(|()| runs.into_iter().collect())
    }

    /// All runs that go along, those of the groups included.
    fn decide(&self, store: &Store) -> Result<BTreeSet<RunId>> {
        let mut runs = self.runs.clone();
        for group in &self.groups {
            if store.group(*group)?.is_none() {
                return Err(Error::Export(format!("there is no group {group}; `kelvin groups` lists them")));
            }
            runs.extend(store.members(*group)?.into_iter().map(|member| member.run));
        }
        if runs.is_empty() {
            return Err(Error::Export("the selection contains no runs".into()));
        }
        let known: BTreeMap<RunId, Liveness> =
            store.runs()?.into_iter().map(|run| (run.id, run.liveness)).collect();
        let voids = store.voids()?;
        for run in &runs {
            match known.get(run) {
                None => return Err(store.no_such_run(&run.to_string())),
                Some(Liveness::Running) => {
                    return Err(Error::Export(format!(
                        "run {run} is still running; export it when it has finished"
                    )));
                }
                Some(_) => {}
            }
            let group = store.membership(*run)?.map(|member| member.group);
            if let Some(group) =
                group.filter(|group| !self.groups.contains(group) && voids.contains_key(&run.0))
            {
                return Err(Error::Export(format!(
                    "run {run} is void because of its group {group}, and would appear to count without the \
                     group; export group:{group}"
                )));
            }
        }
        Ok(runs)
    }

    fn fill(&self, store: &Store, file: &Path, runs: &BTreeSet<RunId>) -> Result<()> {
        let to = |e| Error::sqlite(file, e);
        let mut conn = schema::connect(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::fill(&mut conn, file)?;
        let transaction = conn.transaction().map_err(to)?;
        self.copy((store.connection(), store.path()), (&transaction, file), runs)?;
        let name = store.path().file_name().unwrap_or_default().to_string_lossy();
        transaction
            .execute(
                "INSERT INTO export (exported_ms, host, store, kelvin_version, digest) VALUES (?, ?, ?, ?, ?)",
                params![
                    writer_process::now_ms(),
                    self.host,
                    name,
                    self.kelvin_version,
                    content::digest(&transaction, file)?
                ],
            )
            .map_err(to)?;
        transaction.commit().map_err(to)?;
        // Full pages make a smaller file.
        conn.execute_batch("VACUUM").map_err(to)?;
        conn.close().map_err(|(_, e)| to(e))
    }

    fn copy(
        &self,
        from: (&Connection, &Path),
        to: (&Connection, &Path),
        runs: &BTreeSet<RunId>,
    ) -> Result<()> {
        for group in &self.groups {
            content::copy(from, to, &content::GROUP, group.0, safe)?;
        }
        for run in runs {
            content::copy(from, to, &content::RUN, run.0, safe)?;
            for table in content::MEASURED.iter().chain(&content::BESIDE) {
                content::copy(from, to, table, run.0, safe)?;
            }
            content::copy_origin(from, to, *run)?;
            let group: Option<i64> = from
                .0
                .query_row("SELECT run_group FROM member WHERE run = ?", [run.0], |row| row.get(0))
                .optional()
                .map_err(|e| Error::sqlite(from.1, e))?;
            if group.is_some_and(|group| self.groups.contains(&GroupId(group))) {
                content::copy(from, to, &content::MEMBER, run.0, safe)?;
            }
        }
        Ok(())
    }
}

/// A value without a password. The process that wrote a run means nothing elsewhere.
fn safe(column: &str, value: Value) -> Result<Value> {
    let Value::Text(text) = value else { return Ok(value) };
    Ok(match column {
        "writer" => Value::Null,
        "target" | "label" | "spec_toml" | "command" | "void" | "name" => Value::Text(redact(&text)),
        "kinds" | "notes" | "environment" | "body" => {
            let damaged =
                |e: serde_json::Error| Error::Export(format!("the store contains invalid JSON: {e}"));
            let before: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
            let mut after = before.clone();
            redact_json(&mut after);
            // Written anew only where there was one: a run must stay the same, to the last character.
            Value::Text(if after == before { text } else { after.to_string() })
        }
        _ => Value::Text(text),
    })
}

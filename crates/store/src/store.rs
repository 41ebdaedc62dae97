//! The store: begin a run, list the runs, find, load and delete one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kelvin_measure::event::{Event, RatePeriod, Status};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::file_identity::{FileIdentity, LostStore};
use crate::run::{NewRun, PointSummary, RunId, RunSummary};
use crate::run_names::{back_from_last, refuse_label};
use crate::schema;
use crate::state::{Judgement, Liveness, RunState, broken_condition, broken_invariant, failed_audit};
use crate::writer::RunWriter;
use crate::writer_process::{self, WriterProcess};
use kelvin_measure::labels::SCENARIO;
use kelvin_measure::{redact, redact_json};

/// What the list of runs is made of: it must not read every counter of every run.
const LISTED: &str = "SELECT run, body FROM event WHERE listed = 1 AND run >= ? ORDER BY run, seq";

/// The runs whose resources were cut. The result is among a run's last events, which is where it is looked for: no
/// index has it.
const SQUEEZED: &str = "SELECT id FROM run WHERE EXISTS (SELECT 1 FROM event WHERE event.run = run.id AND event.seq > \
                        (SELECT max(seq) - 16 FROM event AS last WHERE last.run = run.id) AND event.name = 'squeeze')";

/// A file of runs. Several processes may use one at the same time.
#[derive(Debug)]
pub struct Store {
    conn: Connection,
    path: PathBuf,
    pub(crate) identity: FileIdentity,
}

impl Store {
    /// Opens a store for reading and writing, makes it when there is none, and brings an older one to the
    /// present version.
    ///
    /// # Errors
    /// A file that is not a store, is damaged, or was written by a newer Kelvin is refused and not changed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let conn = schema::open(&path)?;
        Self::opened(conn, path)
    }

    /// Opens a store for reading; works on read-only media too.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_path_buf();
        let conn = schema::open_read_only(&path)?;
        Self::opened(conn, path)
    }

    fn opened(conn: Connection, path: PathBuf) -> Result<Self> {
        let identity = FileIdentity::at_path(&path)?;
        Ok(Self { conn, path, identity })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.conn
    }

    /// Begins a run, with a separate connection, so that another thread can write it.
    ///
    /// # Errors
    /// A label that reads like a run's number, "last", "last-N" or a name of several runs is refused, and so is a file that is
    /// not the one that was opened.
    pub fn begin_run(&self, run: &NewRun) -> Result<RunWriter> {
        run.label.as_deref().map(refuse_label).transpose()?;
        let notes: Vec<String> = run.notes.iter().map(|note| redact(note)).collect();
        let mut environment = run.environment.clone();
        redact_json(&mut environment);
        let json = |value: serde_json::Result<String>| value.map_err(|e| Error::Event(e.to_string()));
        // The names of series are statements of scripts.
        let mut kinds = serde_json::to_value(&run.kinds).map_err(|e| Error::Event(e.to_string()))?;
        redact_json(&mut kinds);
        if let Some(lost) = LostStore::rescue(self.identity, &self.conn, &self.path) {
            return Err(lost.error(&self.path));
        }
        let conn = schema::open(&self.path)?;
        conn.execute(
            "INSERT INTO run (workload, target, label, spec_toml, command, seed, random_algorithm, \
             kelvin_version, kinds, headline, headline_per, counter_names, notes, environment, started, writer, \
             committed_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                run.workload,
                redact(&run.target),
                run.label.as_deref().map(redact),
                redact(&run.spec_toml),
                redact(&run.command),
                run.seed.to_string(),
                run.random_algorithm,
                run.kelvin_version,
                kinds.to_string(),
                run.headline,
                run.headline_per.word(),
                json(serde_json::to_string(&run.counter_names))?,
                json(serde_json::to_string(&notes))?,
                environment.to_string(),
                run.started.to_string(),
                json(serde_json::to_string(&WriterProcess::this()))?,
                writer_process::now_ms(),
            ],
        )
        .map_err(|e| Error::sqlite(&self.path, e))?;
        let id = RunId(conn.last_insert_rowid());
        RunWriter::new(conn, &self.path, FileIdentity::at_path(&self.path)?, id, run.kinds.len())
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> Result<Vec<RunSummary>> {
        self.runs_after(&[])
    }

    /// The same for a caller that has read the list before: of the runs that had ended then, only what can change is read
    /// again, which is the label and whether the run counts.
    pub fn runs_after(&self, known: &[RunSummary]) -> Result<Vec<RunSummary>> {
        let to = |e| Error::sqlite(&self.path, e);
        let mut statement = self
            .conn
            .prepare(
                "SELECT id, label, workload, target, started, headline, headline_per, writer, committed_ms FROM run \
                 ORDER BY id",
            )
            .map_err(to)?;
        let mut rows = statement.query([]).map_err(to)?;
        let mut runs = BTreeMap::new();
        while let Some(row) = rows.next().map_err(to)? {
            let id: i64 = row.get(0).map_err(to)?;
            let summary = RunSummary {
                id: RunId(id),
                label: row.get(1).map_err(to)?,
                workload: row.get(2).map_err(to)?,
                target: row.get(3).map_err(to)?,
                started: self.timestamp(&row.get::<_, String>(4).map_err(to)?)?,
                headline: row.get(5).map_err(to)?,
                status: Status::Partial,
                headline_per: self.per(&row.get::<_, String>(6).map_err(to)?)?,
                liveness: self.liveness(row, 7)?,
                points: Vec::new(),
                tenants: Vec::new(),
                held: None,
                squeezed: false,
                errors: 0,
                failed: 0,
                judgement: None,
            };
            runs.insert(id, summary);
        }
        let mut settled = BTreeSet::new();
        for one in known.iter().filter(|one| one.liveness != Liveness::Running) {
            let Some(run) = runs.get_mut(&one.id.0).filter(|run| run.started == one.started) else {
                continue;
            };
            if run.liveness != Liveness::Running {
                *run = RunSummary { label: run.label.take(), ..one.clone() };
                settled.insert(one.id.0);
            }
        }
        self.summarise(&mut runs, &settled)?;
        for run in runs.values_mut().filter(|run| run.workload == SCENARIO && !settled.contains(&run.id.0)) {
            run.tenants = self.tenants_of(run)?;
            run.points.clear();
        }
        let mut squeezed = self.conn.prepare(SQUEEZED).map_err(to)?;
        let mut rows = squeezed.query([]).map_err(to)?;
        while let Some(row) = rows.next().map_err(to)? {
            if let Some(run) = runs.get_mut(&row.get(0).map_err(to)?) {
                run.squeezed = true;
            }
        }
        Ok(runs.into_values().collect())
    }

    /// Adds what the events say. Those of `settled` runs are known.
    fn summarise(&self, runs: &mut BTreeMap<i64, RunSummary>, settled: &BTreeSet<i64>) -> Result<()> {
        let to = |e| Error::sqlite(&self.path, e);
        let mut statement = self.conn.prepare(LISTED).map_err(to)?;
        let first = runs.keys().find(|run| !settled.contains(run)).copied().unwrap_or(i64::MAX);
        let mut rows = statement.query([first]).map_err(to)?;
        let mut broken: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        let mut errors: BTreeMap<i64, String> = BTreeMap::new();
        let mut damaged: BTreeMap<i64, String> = BTreeMap::new();
        while let Some(row) = rows.next().map_err(to)? {
            let Some(run) = runs.get_mut(&row.get(0).map_err(to)?) else { continue };
            let body: String = row.get(1).map_err(to)?;
            if settled.contains(&run.id.0) {
                continue;
            }
            let broken = broken.entry(run.id.0).or_default();
            let event = match serde_json::from_str(&body) {
                Ok(event) => event,
                // One run that cannot be read must not hide the others.
                Err(error) => {
                    damaged.entry(run.id.0).or_insert_with(|| error.to_string());
                    continue;
                }
            };
            match event {
                Event::Audit { lines, .. } => broken.extend(lines.iter().filter_map(failed_audit)),
                Event::Invariant { point, invariant } => {
                    broken.extend(broken_invariant(&invariant));
                    for summary in run.points.iter_mut().filter(|summary| summary.point == point) {
                        summary.void |= !invariant.holds;
                    }
                }
                Event::Check { line, .. } => broken.extend(broken_condition(&line)),
                Event::Errors(count) => {
                    run.errors += count.count;
                    run.failed += count.failed();
                }
                Event::MaximumRate(found) => run.held = found.highest_held(),
                Event::Finished { status, error } => {
                    run.status = status;
                    errors.extend(error.map(|error| (run.id.0, error)));
                    run.liveness = Liveness::Ended;
                }
                Event::Window(window) => run.points.extend(PointSummary::from_window(&window)),
                _ => {}
            }
        }
        let kept = self.kept_judgements()?;
        let voids = self.voids()?;
        for (id, run) in runs {
            // What does not hold is known without looking for findings; that nothing puts a run in doubt is not.
            let broken = broken.remove(id).filter(|broken| !broken.is_empty());
            let known = run.judgement.take();
            let end = || Judgement::of_end(run.status, run.liveness, errors.get(id).map(String::as_str));
            let found =
                if settled.contains(id) && run.status != Status::Complete { known.clone() } else { end() }
                    .or_else(|| kept.get(id).cloned())
                    .or_else(|| broken.map(Judgement::from_reasons))
                    .or(known);
            run.judgement = match (found, voids.get(id)) {
                (Some(found), void) => Some(found.with_void(void.map(String::as_str))),
                (None, void) => void.map(|void| Judgement::from_reasons(vec![void.clone()])),
            };
            if let Some(why) = damaged.get(id) {
                let reasons =
                    vec![format!("the store is damaged: an event of this run is unreadable ({why})")];
                run.judgement = Some(Judgement { state: RunState::Failed, reasons });
            }
        }
        Ok(())
    }

    /// Finds a run by its number, "last", "last-N" (N runs before the last), or its label; of several runs
    /// with one label the newest is taken.
    pub fn find(&self, wanted: &str) -> Result<RunId> {
        let to = |e| Error::sqlite(&self.path, e);
        let found: Option<i64> = if let Some(back) = back_from_last(wanted) {
            self.conn
                .query_row(BACK_FROM_LAST, params![back, SHARE_NOTE], |row| row.get(0))
                .optional()
                .map_err(to)?
        } else if let Ok(id) = wanted.parse::<i64>() {
            self.conn
                .query_row("SELECT id FROM run WHERE id = ?", [id], |row| row.get(0))
                .optional()
                .map_err(to)?
        } else {
            self.conn
                .query_row("SELECT id FROM run WHERE label = ? ORDER BY id DESC LIMIT 1", [wanted], |row| {
                    row.get(0)
                })
                .optional()
                .map_err(to)?
        };
        found.map(RunId).ok_or_else(|| self.no_such_run(wanted))
    }

    /// A number that changes when another connection has written to the file.
    pub fn data_version(&self) -> Result<i64> {
        self.conn
            .query_row("PRAGMA data_version", [], |row| row.get(0))
            .map_err(|e| Error::sqlite(&self.path, e))
    }

    /// What was known of a run when it began, and whether its writer lives.
    pub(crate) fn info(&self, id: RunId) -> Result<(NewRun, Liveness)> {
        let row = self
            .conn
            .query_row(
                "SELECT workload, target, label, spec_toml, command, seed, random_algorithm, kelvin_version, \
                 kinds, headline, headline_per, counter_names, notes, environment, started, writer, committed_ms \
                 FROM run WHERE id = ?",
                [id.0],
                |row| Ok(self.read_run(row)),
            )
            .optional()
            .map_err(|e| Error::sqlite(&self.path, e))?;
        row.ok_or_else(|| self.no_such_run(&id.to_string()))?
    }

    fn read_run(&self, row: &Row<'_>) -> Result<(NewRun, Liveness)> {
        let text = |i| row.get::<_, String>(i).map_err(|e| Error::sqlite(&self.path, e));
        let info = NewRun {
            workload: text(0)?,
            target: text(1)?,
            label: row.get(2).map_err(|e| Error::sqlite(&self.path, e))?,
            spec_toml: text(3)?,
            command: text(4)?,
            seed: text(5)?.parse().map_err(|_| Error::damaged(&self.path, "a seed is not a number"))?,
            random_algorithm: text(6)?,
            kelvin_version: text(7)?,
            kinds: self.json(&text(8)?)?,
            headline: text(9)?,
            headline_per: self.per(&text(10)?)?,
            counter_names: self.json(&text(11)?)?,
            notes: self.json(&text(12)?)?,
            environment: self.json(&text(13)?)?,
            started: self.timestamp(&text(14)?)?,
        };
        Ok((info, self.liveness(row, 15)?))
    }

    /// Gives a run a label, or takes its label away.
    ///
    /// # Errors
    /// A label that [`Store::begin_run`] refuses, and a run that is not there.
    pub fn set_label(&self, id: RunId, label: Option<&str>) -> Result<()> {
        label.map(refuse_label).transpose()?;
        let changed = self
            .conn
            .execute("UPDATE run SET label = ? WHERE id = ?", params![label.map(redact), id.0])
            .map_err(|e| Error::sqlite(&self.path, e))?;
        if changed == 0 { Err(self.no_such_run(&id.to_string())) } else { Ok(()) }
    }

    /// Deletes a run. Its number is not given again.
    ///
    /// # Errors
    /// A run that is still being written is not deleted.
    pub fn delete(&mut self, id: RunId) -> Result<()> {
        let missing = self.no_such_run(&id.to_string());
        let running = self.runs()?.iter().any(|r| r.id == id && r.liveness == Liveness::Running);
        if running {
            return Err(Error::Running(id.0));
        }
        let to = |e| Error::sqlite(&self.path, e);
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(to)?;
        for table in
            ["event", "second", "total", "reading", "waits", "member", "history", "judgement", "origin"]
        {
            transaction.execute(&format!("DELETE FROM {table} WHERE run = ?"), [id.0]).map_err(to)?;
        }
        if transaction.execute("DELETE FROM run WHERE id = ?", [id.0]).map_err(to)? == 0 {
            return Err(missing);
        }
        transaction.commit().map_err(to)
    }

    fn liveness(&self, row: &Row<'_>, writer_column: usize) -> Result<Liveness> {
        let to = |e| Error::sqlite(&self.path, e);
        let writer: Option<String> = row.get(writer_column).map_err(to)?;
        let committed: i64 = row.get(writer_column + 1).map_err(to)?;
        let Some(writer) = writer else { return Ok(Liveness::Killed) };
        let writer: WriterProcess = self.json(&writer)?;
        Ok(if writer.is_alive(committed, writer_process::now_ms()) {
            Liveness::Running
        } else {
            Liveness::Killed
        })
    }

    pub(crate) fn no_such_run(&self, wanted: &str) -> Error {
        Error::NoSuchRun { path: self.path.clone(), wanted: wanted.into() }
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, text: &str) -> Result<T> {
        serde_json::from_str(text).map_err(|e| Error::damaged(&self.path, e.to_string()))
    }

    fn per(&self, word: &str) -> Result<RatePeriod> {
        [RatePeriod::Minute, RatePeriod::Second]
            .into_iter()
            .find(|per| per.word() == word)
            .ok_or_else(|| Error::damaged(&self.path, format!("a result has an unknown scope {word:?}")))
    }

    pub(crate) fn timestamp(&self, text: &str) -> Result<jiff::Timestamp> {
        text.parse().map_err(|_| Error::damaged(&self.path, format!("{text:?} is not a valid time")))
    }
}

/// What begins the note of a run that is one host's share of a fleet's run.
pub const SHARE_NOTE: &str = "the share of agent ";

/// A run by how many are newer. Collected shares of a fleet's run are not counted: they are newer than the whole, and no run
/// that somebody made.
const BACK_FROM_LAST: &str = "SELECT id FROM run WHERE NOT (EXISTS (SELECT 1 FROM origin WHERE origin.run = run.id) \
    AND EXISTS (SELECT 1 FROM json_each(run.notes) AS note WHERE substr(note.value, 1, length(?2)) = ?2)) \
    ORDER BY id DESC LIMIT 1 OFFSET ?1";

#[cfg(test)]
mod tests {
    use super::{LISTED, SQUEEZED, Store};

    #[test]
    fn the_list_reads_no_more_than_it_shows() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("k.db")).unwrap();
        let plan: Vec<String> = store
            .conn
            .prepare(&format!("EXPLAIN QUERY PLAN {LISTED}"))
            .unwrap()
            .query_map([0], |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(plan, ["SEARCH event USING INDEX event_of_list (run>?)"]);
    }

    #[test]
    fn squeezed_runs_are_found_by_their_last_events() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("k.db")).unwrap();
        let plan: Vec<String> = store
            .conn
            .prepare(&format!("EXPLAIN QUERY PLAN {SQUEEZED}"))
            .unwrap()
            .query_map([], |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(plan.iter().any(|step| step.contains("(run=? AND seq>?)")), "{plan:?}");
        let scans = plan.iter().filter(|step| step.starts_with("SCAN")).count();
        assert_eq!(scans, 1, "only the runs themselves: {plan:?}");
    }
}

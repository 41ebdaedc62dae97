//! Import of runs from another file. Every possible conflict is checked before the first row is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::{ImportSummary, ImportedGroup, ImportedRun, content};
use crate::error::{Error, Result};
use crate::group::{GroupId, GroupMember, StoredGroup};
use crate::run::RunId;
use crate::run_names::refuse_label;
use crate::schema;
use crate::state::Liveness;
use crate::store::Store;
use crate::writer_process;

/// A file from any source, whose whole content has been read once.
#[derive(Debug)]
pub struct ImportSource {
    store: Store,
    /// Machine and name of the store that it was exported from.
    from: (Option<String>, String),
    runs: Vec<RunId>,
    groups: Vec<(StoredGroup, Vec<GroupMember>)>,
}

/// The rows to be written.
#[derive(Default)]
struct ImportPlan {
    /// Runs that the store has, by their numbers in the file.
    there: BTreeMap<RunId, RunId>,
    /// Groups that the store has, by their numbers in the file.
    groups: BTreeMap<GroupId, GroupId>,
    /// Runs that take a place in a group, by their numbers in the file.
    members: BTreeSet<RunId>,
}

impl Store {
    /// Adds the runs and groups of an export, or of another store, under new numbers, in one transaction. An existing
    /// run is not changed, and not added again.
    ///
    /// # Errors
    /// When the file and this store differ about a run or a group. The store is not changed then.
    pub fn import(&mut self, source: &ImportSource) -> Result<ImportSummary> {
        if source.store.identity.is_same_file(self.identity) {
            let why = "it is the store itself; name the destination store with --store".into();
            return Err(Error::Import { path: source.store.path().to_path_buf(), why });
        }
        let path = self.path().to_path_buf();
        // From here on no other process writes, so that the decisions stay valid.
        let transaction = Transaction::new_unchecked(self.connection(), TransactionBehavior::Immediate)
            .map_err(|e| Error::sqlite(&path, e))?;
        let plan = self.plan(source)?;
        let imported = plan.write(source, &transaction, &path)?;
        transaction.commit().map_err(|e| Error::sqlite(&path, e))?;
        Ok(imported)
    }

    fn plan(&self, source: &ImportSource) -> Result<ImportPlan> {
        let refused = |why: String| Error::Import { path: source.store.path().to_path_buf(), why };
        let mut plan = ImportPlan::default();
        for run in &source.runs {
            if let Some(there) = self.same_run(source, *run)? {
                plan.there.insert(*run, there);
            }
        }
        let known = self.groups()?;
        for (group, members) in &source.groups {
            let same = known.iter().find(|known| known.info == group.info).map(|known| known.id);
            plan.groups.extend(same.map(|same| (group.id, same)));
            let taken: BTreeMap<u32, RunId> = match same {
                Some(same) => self.members(same)?.into_iter().map(|m| (m.slot.place, m.run)).collect(),
                None => BTreeMap::new(),
            };
            for member in members {
                let here = plan.there.get(&member.run);
                let stands = here.map(|run| self.membership(*run)).transpose()?.flatten();
                if let (Some(run), Some(stands)) = (here, stands) {
                    if Some(stands.group) != same {
                        return Err(refused(format!(
                            "run {} of its group {} is run {run} of this store, where it is in group {}",
                            member.run, group.id, stands.group
                        )));
                    }
                    continue;
                }
                if let Some(other) = taken.get(&member.slot.place) {
                    return Err(refused(format!(
                        "run {} of its group {} would take the place of run {other} of this store in the \
                        same group",
                        member.run, group.id
                    )));
                }
                plan.members.insert(member.run);
            }
        }
        Ok(plan)
    }

    /// The run of this store that a run of the file is; none where there is none.
    fn same_run(&self, source: &ImportSource, run: RunId) -> Result<Option<RunId>> {
        let (to, path) = (|e| Error::sqlite(self.path(), e), source.store.path());
        let key = "workload, target, seed, started";
        let of: [String; 4] = source
            .store
            .connection()
            .query_row(&format!("SELECT {key} FROM run WHERE id = ?"), [run.0], |row| {
                Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
            })
            .map_err(|e| Error::sqlite(path, e).of_import(path))?;
        let mut same = self
            .connection()
            .prepare("SELECT id FROM run WHERE (workload, target, seed, started) = (?, ?, ?, ?) ORDER BY id")
            .map_err(to)?;
        let found: Vec<i64> =
            same.query_map(of, |row| row.get(0)).map_err(to)?.collect::<rusqlite::Result<_>>().map_err(to)?;
        let Some(first) = found.first() else { return Ok(None) };
        let digest = content::digest_of_run(source.store.connection(), path, run)
            .map_err(|error| error.of_import(path))?;
        for there in &found {
            if content::digest_of_run(self.connection(), self.path(), RunId(*there))? == digest {
                return Ok(Some(RunId(*there)));
            }
        }
        Err(Error::Import {
            path: path.to_path_buf(),
            why: format!(
                "its run {run} and run {first} of this store have the same workload, target, seed and start, \
                 but different content; remove run {first} with kelvin rm {first} if the file is correct"
            ),
        })
    }
}

impl ImportPlan {
    fn write(&self, source: &ImportSource, to: &Transaction<'_>, path: &Path) -> Result<ImportSummary> {
        let from = (source.store.connection(), source.store.path());
        let to = (&**to, path);
        let mut imported =
            ImportSummary { host: source.from.0.clone(), runs: Vec::new(), groups: Vec::new() };
        for (group, _) in &source.groups {
            let there = self.groups.get(&group.id).copied();
            let new = if let Some(there) = there {
                there
            } else {
                let new = content::copy(from, to, &content::GROUP, group.id.0, |column, value| {
                    Ok(if column == "id" { Value::Null } else { value })
                })?;
                GroupId(new.ok_or_else(|| gone(from.1, "group", group.id.0))?)
            };
            imported.groups.push(ImportedGroup { number: group.id, group: new, was_there: there.is_some() });
        }
        for run in &source.runs {
            let there = self.there.get(run).copied();
            let new = match there {
                Some(there) => there,
                None => add(source, from, to, *run)?,
            };
            if self.members.contains(run) {
                let groups = &imported.groups;
                content::copy(from, to, &content::MEMBER, run.0, |column, value| {
                    Ok(match (column, value) {
                        ("run", _) => Value::Integer(new.0),
                        ("run_group", Value::Integer(number)) => {
                            let group = groups.iter().find(|group| group.number.0 == number);
                            group.map_or(Value::Null, |group| Value::Integer(group.group.0))
                        }
                        (_, value) => value,
                    })
                })?;
            }
            // For an existing run, this store's entries take precedence.
            for table in content::BESIDE.iter().filter(|_| there.is_none()) {
                content::copy(from, to, table, run.0, |column, value| {
                    Ok(if column == "run" { Value::Integer(new.0) } else { value })
                })?;
            }
            imported.runs.push(ImportedRun { number: *run, run: new, was_there: there.is_some() });
        }
        Ok(imported)
    }
}

/// Adds a run with its measurements, and its origin.
fn add(
    source: &ImportSource,
    from: (&Connection, &Path),
    to: (&Connection, &Path),
    run: RunId,
) -> Result<RunId> {
    let new = content::copy(from, to, &content::RUN, run.0, |column, value| {
        Ok(if matches!(column, "id" | "writer") { Value::Null } else { value })
    })?;
    let new = new.ok_or_else(|| gone(from.1, "run", run.0))?;
    for table in &content::MEASURED {
        content::copy(from, to, table, run.0, |column, value| {
            Ok(if column == "run" { Value::Integer(new) } else { value })
        })?;
    }
    // A run that was imported there, too, keeps its first origin.
    let origin = source.store.origin(run)?;
    let (host, store, number) = match origin {
        Some(origin) => (origin.host, origin.store, origin.number),
        None => (source.from.0.clone(), source.from.1.clone(), run),
    };
    to.0.execute(
        "INSERT INTO origin (run, host, store, number, imported_ms) VALUES (?, ?, ?, ?, ?)",
        params![new, host, store, number.0, writer_process::now_ms()],
    )
    .map_err(|e| Error::sqlite(to.1, e))?;
    Ok(RunId(new))
}

/// In a store that is not an export a run may disappear while it is read.
fn gone(file: &Path, what: &str, number: i64) -> Error {
    Error::Import { path: file.to_path_buf(), why: format!("its {what} {number} was removed meanwhile") }
}

impl ImportSource {
    /// Opens an export or a store, and reads everything in it.
    ///
    /// # Errors
    /// When the file is damaged, is no store of this version, or holds a run that is still being written or cannot be read.
    pub fn open(file: &Path) -> Result<Self> {
        Self::read(file).map_err(|error| error.of_import(file))
    }

    fn read(file: &Path) -> Result<Self> {
        let store = Store::open_read_only(file)?;
        check(store.connection(), file)?;
        let to = |e| Error::sqlite(file, e);
        let export: Option<(String, String, String)> = store
            .connection()
            .query_row("SELECT host, store, digest FROM export", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()
            .map_err(to)?;
        let from = match export {
            Some((host, name, digest)) => {
                if content::digest(store.connection(), file)? != digest {
                    let detail = "its content does not match its SHA-256 checksum".to_owned();
                    return Err(Error::damaged(file, detail));
                }
                (Some(host), name)
            }
            None => (None, file.file_name().unwrap_or_default().to_string_lossy().into_owned()),
        };
        let runs = readable(&store)?;
        let mut groups = Vec::new();
        for group in store.groups()? {
            let members = store.members(group.id)?;
            if let Some(member) = members.iter().find(|member| !runs.contains(&member.run)) {
                return Err(Error::damaged(
                    file,
                    format!("group {} contains run {}, which is missing", group.id, member.run),
                ));
            }
            groups.push((group, members));
        }
        store.history()?;
        store.kept_judgements()?;
        Ok(Self { store, from, runs, groups })
    }
}

/// Checks that a file's tables are those of a store, and complete: nothing that another program added is executed.
fn check(conn: &Connection, path: &Path) -> Result<()> {
    use rusqlite::config::DbConfig;
    let to = |e| Error::sqlite(path, e);
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(to)?;
    let expected = Connection::open_in_memory().map_err(to)?;
    expected.execute_batch(schema::SCHEMA).map_err(to)?;
    let tables = |conn: &Connection| {
        let mut statement =
            conn.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        rows.collect::<rusqlite::Result<Vec<(String, String, String, Option<String>)>>>()
    };
    if tables(conn).map_err(to)? != tables(&expected).map_err(to)? {
        return Err(Error::damaged(path, "its tables are not those of a store"));
    }
    let whole: String = conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(to)?;
    if whole == "ok" { Ok(()) } else { Err(Error::damaged(path, whole)) }
}

/// The runs of a file, each of which was checked to be completely readable.
fn readable(store: &Store) -> Result<Vec<RunId>> {
    let mut runs = Vec::new();
    for run in store.runs()? {
        if run.liveness == Liveness::Running {
            let why = format!("its run {} is still running; import it when it has finished", run.id);
            return Err(Error::Import { path: store.path().to_path_buf(), why });
        }
        run.label.as_deref().map(refuse_label).transpose()?;
        for event in store.load(run.id)?.events() {
            event?;
        }
        runs.push(run.id);
    }
    if runs.is_empty() {
        return Err(Error::Import { path: store.path().to_path_buf(), why: "it contains no run".into() });
    }
    Ok(runs)
}

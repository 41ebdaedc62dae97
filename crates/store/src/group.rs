//! Groups of runs: repetitions of one specification, the two sides of an A/B comparison, the cells of a study. A group
//! is begun before its first run, and each run enters it as soon as it has its number, so that the measurements of a
//! killed kelvin are in its group.

use std::fmt;

use rusqlite::{OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RunId;
use crate::error::{Error, Result};
use crate::judgement::RULES;
use crate::state::Judgement;
use crate::store::Store;
use kelvin_measure::{redact, redact_json};

/// Number of a group in its store: 1, 2, 3…
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupId(pub i64);

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The relation between the runs of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupKind {
    /// The same, again and again.
    Repeat,
    /// Two or more specifications in turn.
    Ab,
    /// The cells of a study.
    Study,
    /// The cells of a sweep over the options of I/O jobs.
    Sweep,
}

impl GroupKind {
    /// Its name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Ab => "ab",
            Self::Study => "study",
            Self::Sweep => "sweep",
        }
    }
}

/// Properties of a group at its beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct NewGroup {
    /// The relation between its runs.
    pub kind: GroupKind,
    /// The user's name for it, or the study's.
    pub name: Option<String>,
    /// When it began.
    pub created: jiff::Timestamp,
    /// The plan, as JSON; no password.
    pub body: Value,
}

/// A stored group.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredGroup {
    /// Its number.
    pub id: GroupId,
    /// Its properties at the beginning.
    pub info: NewGroup,
}

/// The position of a run in its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSlot {
    /// Its order in time within the group, from 0. A run that replaces another has a separate place.
    pub place: u32,
    /// The block, from 0: the stretch of the group in which every treatment is run once.
    pub block: u32,
    /// Its treatment: "A", "B", a cell's name; empty if there is one treatment only.
    pub treatment: String,
}

/// A run of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    /// The run.
    pub run: RunId,
    /// The group.
    pub group: GroupId,
    /// Its position.
    pub slot: GroupSlot,
    /// Its state and why it does not count, as far as stored: its judgement when it ended, and the objection of its
    /// group. `None` when it counts, and for a killed run, for which [`crate::RunSummary::judgement`] and
    /// `kelvin_diagnose::judge` have the state.
    pub void: Option<String>,
}

/// Without their "Z", times of different precision sort as they follow each other.
const HISTORY: &str = "SELECT history.run, branch, testbed FROM history LEFT JOIN run ON run.id = history.run \
                       ORDER BY rtrim(run.started, 'Z'), history.run";

impl Store {
    /// Begins a group. Text that looks like a password in a URL is removed.
    pub fn begin_group(&self, group: &NewGroup) -> Result<GroupId> {
        let mut body = group.body.clone();
        redact_json(&mut body);
        self.connection()
            .execute(
                "INSERT INTO run_group (kind, name, created_ms, body) VALUES (?, ?, ?, ?)",
                params![
                    group.kind.as_str(),
                    group.name.as_deref().map(redact),
                    group.created.as_millisecond(),
                    body.to_string()
                ],
            )
            .map_err(|e| Error::sqlite(self.path(), e))?;
        Ok(GroupId(self.connection().last_insert_rowid()))
    }

    /// Puts a run that was begun into a group.
    pub fn enter_group(&self, group: GroupId, run: RunId, slot: &GroupSlot) -> Result<()> {
        self.connection()
            .execute(
                "INSERT INTO member (run, run_group, place, block, treatment) VALUES (?, ?, ?, ?, ?)",
                params![run.0, group.0, slot.place, slot.block, slot.treatment],
            )
            .map_err(|e| Error::sqlite(self.path(), e))?;
        Ok(())
    }

    /// Says why a run of a group does not count for a reason that is not in its events.
    pub fn set_void(&self, run: RunId, void: &str) -> Result<()> {
        self.connection()
            .execute("UPDATE member SET void = ? WHERE run = ?", params![void, run.0])
            .map_err(|e| Error::sqlite(self.path(), e))?;
        Ok(())
    }

    /// Deletes a group. Its runs stay, unless they are deleted, too.
    pub fn delete_group(&self, group: GroupId) -> Result<()> {
        let to = |e| Error::sqlite(self.path(), e);
        self.connection().execute("DELETE FROM member WHERE run_group = ?", [group.0]).map_err(to)?;
        self.connection().execute("DELETE FROM run_group WHERE id = ?", [group.0]).map_err(to)?;
        Ok(())
    }

    /// One group; none when there is none of this number.
    pub fn group(&self, id: GroupId) -> Result<Option<StoredGroup>> {
        Ok(self.groups_where("WHERE id = ?", params![id.0])?.pop())
    }

    /// Every group, in the order of their numbers.
    pub fn groups(&self) -> Result<Vec<StoredGroup>> {
        self.groups_where("", params![])
    }

    /// The comparisons that were made for the advice on a run, in the order of their numbers.
    pub fn groups_of_advice(&self, run: RunId) -> Result<Vec<StoredGroup>> {
        self.groups_where("WHERE json_extract(body, '$.advice.run') = ?", params![run.0])
    }

    /// Adds what came of a group to its plan.
    pub fn set_answer(&self, group: GroupId, answer: &Value) -> Result<()> {
        self.connection()
            .execute(
                "UPDATE run_group SET body = json_set(body, '$.answer', json(?)) WHERE id = ?",
                params![answer.to_string(), group.0],
            )
            .map_err(|e| Error::sqlite(self.path(), e))?;
        Ok(())
    }

    /// The runs of a group in order of time, including those that do not count.
    pub fn members(&self, group: GroupId) -> Result<Vec<GroupMember>> {
        self.members_where("WHERE run_group = ? ORDER BY place", params![group.0])
    }

    /// The position of a run; `None` when it is in no group.
    pub fn membership(&self, run: RunId) -> Result<Option<GroupMember>> {
        Ok(self.members_where("WHERE run = ?", params![run.0])?.pop())
    }

    /// Enters a run into the history under its branch and testbed.
    pub fn enter_history(&self, run: RunId, branch: &str, testbed: &str) -> Result<()> {
        self.connection()
            .execute(
                "INSERT INTO history (run, branch, testbed) VALUES (?, ?, ?)",
                params![run.0, branch, testbed],
            )
            .map_err(|e| Error::sqlite(self.path(), e))?;
        Ok(())
    }

    /// Branch and testbed of a run; none when it is not in the history.
    pub fn in_history(&self, run: RunId) -> Result<Option<(String, String)>> {
        self.connection()
            .query_row("SELECT branch, testbed FROM history WHERE run = ?", [run.0], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .optional()
            .map_err(|e| Error::sqlite(self.path(), e))
    }

    /// Every run of the history with its branch and testbed, in the order in which they began: an imported run may be
    /// older than those before it.
    pub fn history(&self) -> Result<Vec<(RunId, String, String)>> {
        let to = |e| Error::sqlite(self.path(), e);
        let mut statement = self.connection().prepare(HISTORY).map_err(to)?;
        let rows =
            statement.query_map([], |row| Ok((RunId(row.get(0)?), row.get(1)?, row.get(2)?))).map_err(to)?;
        rows.collect::<rusqlite::Result<Vec<_>>>().map_err(to)
    }

    fn groups_where(&self, condition: &str, params: impl rusqlite::Params) -> Result<Vec<StoredGroup>> {
        let to = |e| Error::sqlite(self.path(), e);
        let sql = format!("SELECT id, kind, name, created_ms, body FROM run_group {condition} ORDER BY id");
        let mut statement = self.connection().prepare(&sql).map_err(to)?;
        let rows = statement.query_map(params, |row| Ok(self.read_group(row))).map_err(to)?;
        rows.map(|row| row.map_err(to)?).collect()
    }

    fn read_group(&self, row: &Row<'_>) -> Result<StoredGroup> {
        let to = |e| Error::sqlite(self.path(), e);
        let damaged = |what: &str| Error::damaged(self.path(), what);
        let kind: String = row.get(1).map_err(to)?;
        let known = [GroupKind::Repeat, GroupKind::Ab, GroupKind::Study, GroupKind::Sweep];
        let kind = known.into_iter().find(|k| k.as_str() == kind);
        let body: String = row.get(4).map_err(to)?;
        Ok(StoredGroup {
            id: GroupId(row.get(0).map_err(to)?),
            info: NewGroup {
                kind: kind.ok_or_else(|| damaged("a group is of an unknown kind"))?,
                name: row.get(2).map_err(to)?,
                created: jiff::Timestamp::from_millisecond(row.get(3).map_err(to)?)
                    .map_err(|_| damaged("a group has no time"))?,
                body: serde_json::from_str(&body).map_err(|_| damaged("a group's plan is not valid JSON"))?,
            },
        })
    }

    fn members_where(&self, condition: &str, params: impl rusqlite::Params) -> Result<Vec<GroupMember>> {
        let to = |e| Error::sqlite(self.path(), e);
        let sql = format!(
            "SELECT run, run_group, place, block, treatment, void, \
             (SELECT body FROM judgement WHERE judgement.run = member.run AND rules = {RULES}) \
             FROM member {condition}"
        );
        let mut statement = self.connection().prepare(&sql).map_err(to)?;
        let rows = statement
            .query_map(params, |row| {
                let (void, kept): (Option<String>, Option<String>) = (row.get(5)?, row.get(6)?);
                // An unreadable run is reported where the run itself is read.
                let kept = kept.and_then(|kept| serde_json::from_str(&kept).ok());
                let judged = kept.unwrap_or_else(|| Judgement::from_reasons(Vec::new()));
                Ok(GroupMember {
                    run: RunId(row.get(0)?),
                    group: GroupId(row.get(1)?),
                    slot: GroupSlot { place: row.get(2)?, block: row.get(3)?, treatment: row.get(4)? },
                    void: judged.with_void(void.as_deref()).why_not(),
                })
            })
            .map_err(to)?;
        rows.collect::<rusqlite::Result<Vec<_>>>().map_err(to)
    }
}

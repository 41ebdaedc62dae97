//! Autovacuum's work from its beginning to its end.
//!
//! Its workers say in `pg_stat_activity` what they do ("autovacuum: VACUUM ANALYZE public.stock") and since when. What lasts
//! shorter than the sampling interval is in the tables' counters, and is reported at the next edge.

use std::collections::{BTreeMap, HashMap};

use kelvin_database::{Error, Rows};
use kelvin_measure::Nanos;
use kelvin_measure::observation::{Observation, Occurrence};

use super::link::{Link, Once};
use super::sql;
use crate::watch::Feed;

/// What a worker does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Task {
    /// "autovacuum" or "autoanalyze".
    pub(super) kind: &'static str,
    /// Schema and name.
    pub(super) relation: String,
    /// A vacuum that analyzes too.
    pub(super) analyzes: bool,
}

/// Reads what a worker says of itself.
pub(super) fn task(text: &str) -> Option<Task> {
    let work = text.strip_prefix("autovacuum: ")?;
    let (kind, analyzes, rest) = if let Some(rest) = work.strip_prefix("VACUUM ANALYZE ") {
        ("autovacuum", true, rest)
    } else if let Some(rest) = work.strip_prefix("VACUUM ") {
        ("autovacuum", false, rest)
    } else if let Some(rest) = work.strip_prefix("ANALYZE ") {
        ("autoanalyze", false, rest)
    } else {
        return None;
    };
    let relation = rest.strip_suffix(" (to prevent wraparound)").unwrap_or(rest).to_owned();
    Some(Task { kind, relation, analyzes })
}

#[derive(Debug)]
struct Running {
    task: Task,
    id: u32,
    from: Nanos,
    /// The last sample that contained it.
    look: u64,
}

/// How often a table was vacuumed and analyzed, and when last (seconds since 1970).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Times {
    vacuums: i64,
    analyzes: i64,
    last_vacuum: Option<f64>,
    last_analyze: Option<f64>,
}

/// Follows autovacuum.
#[derive(Debug, Default)]
pub(super) struct Vacuums {
    ask: Once,
    running: HashMap<i64, Running>,
    look: u64,
    /// Ended since the last stock-taking, by kind and relation.
    seen: HashMap<(&'static str, String), i64>,
    before: Option<HashMap<String, Times>>,
}

impl Vacuums {
    /// A worker of this process number was seen; `ago` is how long it has been at it, in seconds.
    pub(super) fn worker(&mut self, pid: i64, text: &str, ago: f64, feed: &mut Feed) {
        let Some(task) = task(text) else { return };
        if let Some(running) = self.running.get_mut(&pid) {
            if running.task == task {
                running.look = self.look;
                return;
            }
            // It went on to the next table between two samples.
            self.end(pid, feed.now(), feed);
        }
        let now = feed.now();
        let from = now.saturating_sub((ago.max(0.0) * 1e9) as Nanos);
        let id = feed.occurrence();
        feed.send(Observation::Occurrence(occurrence(id, &task, from, None)));
        self.running.insert(pid, Running { task, id, from, look: self.look });
    }

    /// The sample is complete: those not in it have ended between `previous` and now.
    pub(super) fn looked(&mut self, previous: Nanos, feed: &mut Feed) {
        let now = feed.now();
        let gone = self.running.iter().filter(|(_, running)| running.look != self.look);
        let gone: Vec<i64> = gone.map(|(pid, _)| *pid).collect();
        for pid in gone {
            self.end(pid, previous + now.saturating_sub(previous) / 2, feed);
        }
        self.look += 1;
    }

    fn end(&mut self, pid: i64, to: Nanos, feed: &mut Feed) {
        let Some(Running { task, id, from, .. }) = self.running.remove(&pid) else { return };
        feed.send(Observation::Occurrence(occurrence(id, &task, from, Some(to.max(from)))));
        if task.analyzes {
            *self.seen.entry(("autoanalyze", task.relation.clone())).or_default() += 1;
        }
        *self.seen.entry((task.kind, task.relation)).or_default() += 1;
    }

    /// Reports those that the counters have and no sample has seen. `clock` is the server's time now.
    pub(super) fn take_stock(&mut self, link: &mut Link, clock: f64, feed: &mut Feed) -> Result<(), String> {
        let rows = self.ask.run(link, |_| sql::vacuums())?;
        let mut times = HashMap::with_capacity(rows.len());
        let mut read = || -> Result<(), Error> {
            for row in 0..rows.len() {
                let moment = |column| rows.optional(row, column, Rows::float);
                let one = Times {
                    vacuums: rows.int(row, 1)?,
                    analyzes: rows.int(row, 2)?,
                    last_vacuum: moment(3)?,
                    last_analyze: moment(4)?,
                };
                times.insert(rows.text(row, 0)?.to_owned(), one);
            }
            Ok(())
        };
        read().map_err(|error| error.to_string())?;
        let Some(before) = self.before.replace(times.clone()) else { return Ok(()) };
        let now = feed.now();
        for (relation, kind, at) in unseen(&before, &times, &self.seen) {
            let ago = at.map_or(0.0, |at| (clock - at).max(0.0));
            let at = now.saturating_sub((ago * 1e9) as Nanos);
            let task = Task { kind, relation, analyzes: false };
            let id = feed.occurrence();
            feed.send(Observation::Occurrence(occurrence(id, &task, at, Some(at))));
        }
        self.seen.clear();
        Ok(())
    }

    /// The load has ended, or the connection: what goes on is not followed further.
    pub(super) fn lost(&mut self, at: Nanos, feed: &mut Feed) {
        let all: Vec<i64> = self.running.keys().copied().collect();
        for pid in all {
            self.end(pid, at, feed);
        }
        self.before = None;
    }
}

fn occurrence(id: u32, task: &Task, from: Nanos, to: Option<Nanos>) -> Occurrence {
    Occurrence {
        id,
        kind: task.kind.into(),
        subject: task.relation.clone(),
        from,
        to,
        figures: BTreeMap::new(),
    }
}

/// What was counted more often than it was seen: relation, kind and when it ended. The last time is all that the server
/// keeps, so several of one table are reported as one.
fn unseen(
    before: &HashMap<String, Times>,
    after: &HashMap<String, Times>,
    seen: &HashMap<(&'static str, String), i64>,
) -> Vec<(String, &'static str, Option<f64>)> {
    let mut found = Vec::new();
    for (relation, now) in after {
        let then = before.get(relation).copied().unwrap_or_default();
        for (kind, grown, last) in [
            ("autovacuum", now.vacuums - then.vacuums, now.last_vacuum),
            ("autoanalyze", now.analyzes - then.analyzes, now.last_analyze),
        ] {
            if grown > seen.get(&(kind, relation.clone())).copied().unwrap_or(0) {
                found.push((relation.clone(), kind, last));
            }
        }
    }
    found.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workers_say_is_read() {
        let read = |text: &str| task(text).map(|task| (task.kind, task.relation, task.analyzes));
        assert_eq!(
            read("autovacuum: VACUUM public.stock"),
            Some(("autovacuum", "public.stock".into(), false))
        );
        assert_eq!(
            read("autovacuum: VACUUM ANALYZE public.order_line"),
            Some(("autovacuum", "public.order_line".into(), true))
        );
        assert_eq!(read("autovacuum: ANALYZE a.b"), Some(("autoanalyze", "a.b".into(), false)));
        assert_eq!(
            read("autovacuum: VACUUM pg_toast.pg_toast_1 (to prevent wraparound)"),
            Some(("autovacuum", "pg_toast.pg_toast_1".into(), false))
        );
        assert_eq!(read("autovacuum: BRIN summarize public.t 1"), None);
        assert_eq!(read("VACUUM public.stock"), None);
        assert_eq!(read(""), None);
    }

    #[test]
    fn only_what_nobody_saw_is_made_up_for() {
        let times =
            |vacuums, analyzes| Times { vacuums, analyzes, last_vacuum: Some(5.0), last_analyze: Some(6.0) };
        let map = |entries: &[(&str, Times)]| -> HashMap<String, Times> {
            entries.iter().map(|(name, times)| ((*name).to_owned(), *times)).collect()
        };
        let before = map(&[("a", times(1, 1)), ("b", times(4, 4))]);
        let after = map(&[("a", times(3, 1)), ("b", times(0, 0)), ("c", times(0, 1))]);
        let seen = HashMap::from([(("autovacuum", "a".to_owned()), 1)]);
        assert_eq!(
            unseen(&before, &after, &seen),
            [("a".to_owned(), "autovacuum", Some(5.0)), ("c".to_owned(), "autoanalyze", Some(6.0))]
        );
        assert!(unseen(&after, &after, &seen).is_empty());
    }
}

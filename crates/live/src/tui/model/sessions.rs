//! Activity of the database's sessions.

use kelvin_measure::declare;
use std::collections::HashMap;

use kelvin_diagnose::{Class, is_client};
use kelvin_measure::observation::{WaitGroup, WaitKind, WaitSamples};

/// Wait classes that the view distinguishes, in stacking order.
pub(crate) const CLASSES: usize = 9;

/// A class: its letter in the chart, its name in the legend, and its short name.
pub(crate) const NAMES: [(char, &str, &str); CLASSES] = [
    ('C', "CPU", "CPU"),
    ('G', "log", "log"),
    ('R', "data reads", "read"),
    ('W', "data writes", "write"),
    ('K', "locks", "lock"),
    ('L', "latches", "latch"),
    ('N', "client", "client"),
    ('X', "idle in transaction", "idle"),
    ('O', "other", "other"),
];

/// The class of a state, as an index of [`NAMES`]; none if it is not a session of the load.
fn class(group: &WaitGroup) -> Option<usize> {
    is_client(group).then(|| match Class::from_wait_group(group) {
        Some(Class::Cpu) => 0,
        Some(Class::Log) => 1,
        Some(Class::DataReads) => 2,
        Some(Class::DataWrites) => 3,
        Some(Class::Locks) => 4,
        Some(Class::Latch) => 5,
        None if group.kind == WaitKind::Client => 6,
        None if group.kind == WaitKind::IdleInTransaction => 7,
        _ => 8,
    })
}

/// A statement and the sessions that executed it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    /// Its text, or the database's id of it until the text is known.
    pub(crate) text: String,
    /// Average number of sessions that executed it.
    pub(crate) sessions: f64,
    /// The class of most of its samples, as an index of [`NAMES`].
    pub(crate) mostly: usize,
}

/// Session samples, totalled over the point.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    groups: Vec<WaitGroup>,
    looks: u64,
    by_query: HashMap<Option<i64>, [u64; CLASSES]>,
    rows: HashMap<String, u64>,
    texts: HashMap<i64, String>,
}

impl Sessions {
    /// Adds wait groups that are seen for the first time.
    pub(super) fn declare(&mut self, first: u32, groups: &[WaitGroup]) {
        declare(&mut self.groups, first, groups);
    }

    /// Adds samples and returns the number of sessions per class, totalled over the samples.
    pub(super) fn take(&mut self, waits: &WaitSamples) -> [f64; CLASSES] {
        let mut seen = [0.0; CLASSES];
        self.looks += u64::from(waits.looks);
        for (group, count) in &waits.seen {
            let Some(group) = self.groups.get(*group as usize) else { continue };
            let Some(class) = class(group) else { continue };
            seen[class] += f64::from(*count);
            self.by_query.entry(group.query).or_default()[class] += u64::from(*count);
        }
        for (relation, count) in &waits.rows {
            *self.rows.entry(relation.clone()).or_default() += u64::from(*count);
        }
        seen
    }

    /// Adds texts of statements.
    pub(super) fn texts<'a>(&mut self, statements: impl Iterator<Item = (i64, &'a str)>) {
        self.texts.extend(statements.map(|(query, text)| (query, one_line(text))));
    }

    /// Starts a new point.
    pub(super) fn restart(&mut self) {
        self.looks = 0;
        self.by_query.clear();
        self.rows.clear();
    }

    /// Whether sessions were sampled.
    pub(crate) fn any(&self) -> bool {
        self.looks > 0
    }

    /// Average number of sessions by class over the point.
    pub(crate) fn average(&self) -> [f64; CLASSES] {
        let mut sums = [0.0; CLASSES];
        for classes in self.by_query.values() {
            sums.iter_mut().zip(classes).for_each(|(sum, count)| *sum += *count as f64);
        }
        sums.map(|sum| sum / self.looks.max(1) as f64)
    }

    /// The statements with the most sessions over the point.
    pub(crate) fn top(&self, most: usize) -> Vec<Statement> {
        let mut top: Vec<(&Option<i64>, &[u64; CLASSES], u64)> = self
            .by_query
            .iter()
            .filter(|(query, _)| query.is_some())
            .map(|(query, classes)| (query, classes, classes.iter().sum()))
            .collect();
        // Ties are broken by the id, so that lines do not swap.
        top.sort_by_key(|(query, _, sum)| (std::cmp::Reverse(*sum), **query));
        let statement = |(query, classes, sum): (&Option<i64>, &[u64; CLASSES], u64)| {
            let number = query.unwrap_or_default();
            let mostly = (0..CLASSES).max_by_key(|&class| (classes[class], CLASSES - class)).unwrap_or(0);
            Statement {
                text: self.texts.get(&number).cloned().unwrap_or_else(|| format!("query {number}")),
                sessions: sum as f64 / self.looks.max(1) as f64,
                mostly,
            }
        };
        top.into_iter().take(most).map(statement).collect()
    }

    /// The relation with the most row lock waits.
    pub(crate) fn hottest(&self) -> Option<&str> {
        self.rows.iter().max_by_key(|(name, count)| (**count, *name)).map(|(name, _)| name.as_str())
    }
}

/// Text without line breaks and repeated blanks, truncated to the width of a wide terminal.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(100).collect();
    words.join(" ").chars().take(240).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(backend: &str, class: &str, event: &str) -> WaitGroup {
        kelvin_observe::postgres::wait_group(backend, class, event, Some(7))
    }

    #[test]
    fn the_logs_latches_are_the_log_and_background_processes_are_no_load() {
        let of =
            |class_: &str, event: &str| class(&group("client backend", class_, event)).map(|c| NAMES[c].0);
        assert_eq!(of("LWLock", "WALWrite"), Some('G'));
        assert_eq!(of("LWLock", "WALInsert"), Some('G'));
        assert_eq!(of("IO", "WALSync"), Some('G'));
        assert_eq!(of("IO", "WalSync"), Some('G'));
        assert_eq!(of("LWLock", "BufferContent"), Some('L'));
        assert_eq!(of("IO", "DataFileRead"), Some('R'));
        assert_eq!(of("IO", "AioIoCompletion"), Some('R'));
        assert_eq!(of("Client", "ClientRead"), Some('N'));
        assert_eq!(of("IO", "DataFileExtend"), Some('W'));
        assert_eq!(of("Idle in transaction", ""), Some('X'));
        assert_eq!(of("Nobody knows", ""), Some('O'));
        assert_eq!(class(&group("checkpointer", "IO", "DataFileWrite")), None);
        assert_eq!(class(&group("autovacuum worker", "CPU", "")), None);
    }

    #[test]
    fn averages_are_over_the_looks() {
        let mut sessions = Sessions::default();
        sessions.declare(1, &[group("client backend", "CPU", ""), group("client backend", "Lock", "tuple")]);
        let waits = |looks, seen| WaitSamples { looks, seen, ..WaitSamples::default() };
        assert_eq!(sessions.take(&waits(10, vec![(1, 15), (2, 30), (99, 5)]))[0], 15.0);
        sessions.take(&waits(10, vec![(1, 5)]));
        let average = sessions.average();
        assert_eq!((average[0], average[4]), (1.0, 1.5));
        assert_eq!(sessions.top(3), [Statement { text: "query 7".into(), sessions: 2.5, mostly: 4 }]);
        sessions.texts(std::iter::once((7, "update  warehouse\n set w_ytd = $1")));
        assert_eq!(sessions.top(1)[0].text, "update warehouse set w_ytd = $1");
        sessions.restart();
        assert!(!sessions.any() && sessions.top(3).is_empty());
    }
}

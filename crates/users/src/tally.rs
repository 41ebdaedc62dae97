//! Counts errors by second, transaction type, class and code, so that a thousand failures in a second are one
//! row in the store.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use kelvin_database::Error;
use kelvin_measure::event::ErrorCount;
use kelvin_measure::observation::{Observation, PreparedStatement};
use kelvin_measure::{Event, Nanos, second_from};

use crate::UserReport;

type Key = (i64, Option<u16>, String, String, bool);

/// Limit of the notes of a point; further notes are only counted. If 10,000 users lose the server at the same
/// time, 10,000 notes are useless.
const MOST_NOTES: u64 = 200;

/// The errors of one point.
#[derive(Debug)]
pub struct Tally {
    point: u32,
    open: Nanos,
    pending: BTreeMap<Key, (u64, String)>,
    notes: Vec<Event>,
    /// Executions with the generic plan and with custom plans, by statement.
    plans: BTreeMap<String, (u64, u64)>,
    noted: u64,
    all: u64,
    failed: u64,
    last: Option<Error>,
}

impl Tally {
    /// The tally of a point without errors, whose window opens at `open`.
    pub fn new(point: u32, open: Nanos) -> Self {
        Self {
            point,
            open,
            pending: BTreeMap::new(),
            notes: Vec::new(),
            plans: BTreeMap::new(),
            noted: 0,
            all: 0,
            failed: 0,
            last: None,
        }
    }

    /// Takes the users' reports.
    pub fn take(&mut self, reports: &Receiver<UserReport>) {
        for report in reports.try_iter() {
            match report {
                UserReport::Failure { at, kind, retried, error } => {
                    self.all += 1;
                    self.failed += u64::from(kind.is_some() && !retried);
                    let key =
                        (self.second(at), kind, error.class().to_string(), error.code().to_string(), retried);
                    let entry = self.pending.entry(key).or_insert_with(|| (0, error.message().to_owned()));
                    entry.0 += 1;
                    self.last = Some(error);
                }
                UserReport::Plans(statements) => {
                    for one in statements {
                        let Some(text) = kelvin_observe::comparable(&one.text) else { continue };
                        let sums = self.plans.entry(text).or_default();
                        *sums = (sums.0 + one.generic, sums.1 + one.custom);
                    }
                }
                UserReport::Note { at, text } => {
                    self.noted += 1;
                    if self.noted <= MOST_NOTES {
                        self.notes.push(Event::Note { point: self.point, second: self.second(at), text });
                    }
                }
            }
        }
    }

    /// The events of the seconds before `second`.
    pub fn complete(&mut self, second: i64) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.notes);
        let later = self.pending.split_off(&(second, None, String::new(), String::new(), false));
        for ((second, kind, class, code, retried), (count, message)) in
            std::mem::replace(&mut self.pending, later)
        {
            let point = self.point;
            events.push(Event::Errors(ErrorCount {
                point,
                second,
                kind,
                class,
                code,
                message,
                retried,
                count,
            }));
        }
        events
    }

    /// How prepared statements were planned; `None` if no user reported it.
    pub fn prepared_statements(&mut self) -> Option<Event> {
        let of = |(text, (generic, custom))| PreparedStatement { text, generic, custom };
        let statements: Vec<_> = std::mem::take(&mut self.plans).into_iter().map(of).collect();
        let is_known = !statements.is_empty();
        is_known.then_some(Event::Observed(Observation::PreparedStatements { point: self.point, statements }))
    }

    /// A sentence with the number of omitted notes; `None` if there are none.
    pub fn notes_left_out(&self) -> Option<String> {
        let more = self.noted.saturating_sub(MOST_NOTES);
        (more > 0).then(|| format!("{more} more notes of this kind were omitted"))
    }

    /// Errors so far, of any kind.
    pub fn errors(&self) -> u64 {
        self.all
    }

    /// Errors so far that ended a transaction.
    pub fn final_errors(&self) -> u64 {
        self.failed
    }

    /// The message of the newest error.
    pub fn last_message(&self) -> Option<String> {
        self.last.as_ref().map(Error::to_string)
    }

    fn second(&self, at: Nanos) -> i64 {
        second_from(self.open, at)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use kelvin_database::{ErrorClass, PreparedPlans};

    use super::*;

    #[test]
    fn errors_of_a_second_and_code_become_one_event() {
        let (reporter, reports) = mpsc::channel();
        for (at, retried) in [(0, true), (999_999_999, true), (1_000_000_000, false)] {
            let error = Error::new(ErrorClass::Deadlock, "deadlock detected").with_code("40P01");
            reporter.send(UserReport::Failure { at, kind: Some(0), retried, error }).unwrap();
        }
        let mut tally = Tally::new(0, 0);
        tally.take(&reports);
        let events = tally.complete(1);
        let [Event::Errors(count)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((count.second, count.count, count.retried, count.code.as_str()), (0, 2, true, "40P01"));
        assert_eq!(tally.complete(i64::MAX).len(), 1);
        assert_eq!((tally.errors(), tally.final_errors()), (3, 1));
    }

    #[test]
    fn plans_of_a_statement_are_summed_over_sessions() {
        let (reporter, reports) = mpsc::channel();
        let mut tally = Tally::new(3, 0);
        assert!(tally.prepared_statements().is_none());
        for generic in [7, 8] {
            let text = "select v from t where id = $1".into();
            reporter.send(UserReport::Plans(vec![PreparedPlans { text, generic, custom: 5 }])).unwrap();
        }
        tally.take(&reports);
        let text = "select v from t where id = ?".into();
        let seen = tally.prepared_statements();
        let Some(Event::Observed(Observation::PreparedStatements { point: 3, statements })) = seen else {
            panic!("{seen:?}")
        };
        assert_eq!(statements, [PreparedStatement { text, generic: 15, custom: 10 }]);
    }
}

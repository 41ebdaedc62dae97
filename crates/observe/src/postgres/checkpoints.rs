//! Checkpoints from their beginning to their end.
//!
//! The views say when one has ended: the control file has another last checkpoint, and the checkpointer's counters have
//! grown. That one has begun shows in the checkpointer itself, which otherwise waits in its main loop (class Activity), so
//! its beginning is known to one look. Roles that may not see it have the control file's time of the beginning, in
//! whole seconds, once the checkpoint is over. Where the server's log can be read it comes first: it has both ends, and the
//! reason.

use std::collections::BTreeMap;

use kelvin_database::{Error, Rows};
use kelvin_measure::Nanos;
use kelvin_measure::observation::{Observation, Occurrence};

use super::link::{Link, Once};
use super::server_log::CheckpointLine;
use super::sql;
use crate::watch::Feed;

/// Consecutive samples that must find the checkpointer busy before an unfinished checkpoint is reported: it is also
/// woken for less.
const LOOKS_TO_BELIEVE: u32 = 3;

/// Readings to wait for counters that come later than the control file (servers before 15 publish them by the way of
/// another process).
const READINGS_TO_WAIT: u32 = 2;

/// What the server says of its checkpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CheckpointCounters {
    /// Server's time, seconds since 1970.
    pub(super) clock: f64,
    /// Where the last checkpoint's record is in the log.
    place: i64,
    /// When the last checkpoint began, seconds since 1970.
    began: f64,
    timed: f64,
    requested: f64,
    buffers: f64,
    write_ms: f64,
    sync_ms: f64,
}

impl CheckpointCounters {
    fn read(rows: &Rows) -> Result<Self, Error> {
        let number = |column| rows.float(0, column);
        Ok(Self {
            clock: number(0)?,
            place: rows.int(0, 1)?,
            began: number(2)?,
            timed: number(3)?,
            requested: number(4)?,
            buffers: number(5)?,
            write_ms: number(6)?,
            sync_ms: number(7)?,
        })
    }

    fn counted(&self) -> f64 {
        self.timed + self.requested
    }
}

#[derive(Debug)]
struct UnderWay {
    /// Its number, once it was reported.
    id: Option<u32>,
    from: Nanos,
    looks: u32,
    /// When the checkpointer was idle again.
    to: Option<Nanos>,
    /// The log has reported its start, and will report its end: subject, and whether the log's size was the reason.
    logged: Option<(&'static str, bool)>,
}

/// Follows the checkpoints.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    ask: Once,
    under_way: Option<UnderWay>,
    /// Figures as they were when the last checkpoint was over.
    settled: Option<CheckpointCounters>,
    /// When they were last read.
    read_at: Nanos,
    waited: u32,
    /// Whether the log can be read: it reports the ends.
    has_log: bool,
    /// The log has reported an end that the counters have not shown yet.
    reported_by_log: bool,
    /// One is over, and the checkpointer still clears up behind it.
    clearing_up: bool,
}

impl Checkpoints {
    /// From now on there is a log to read, or none any more.
    pub(super) fn has_log(&mut self, has_log: bool) {
        self.has_log = has_log;
    }

    /// A line of the log, written between `previous` and now.
    pub(super) fn logged(
        &mut self,
        line: &CheckpointLine,
        previous: Nanos,
        now: Nanos,
        number: &mut dyn FnMut() -> u32,
    ) -> Occurrence {
        let middle = previous + (now - previous) / 2;
        match *line {
            CheckpointLine::Starting { timed, for_log } => {
                let subject = if timed { "timed" } else { "requested" };
                // Looks may have found the checkpointer at work before.
                let seen = self.under_way.take().filter(|one| one.to.is_none() && one.logged.is_none());
                let from = seen.as_ref().map_or(middle, |one| one.from);
                let id = seen.and_then(|one| one.id).unwrap_or_else(number);
                self.under_way = Some(UnderWay {
                    id: Some(id),
                    from,
                    looks: 0,
                    to: None,
                    logged: Some((subject, for_log)),
                });
                occurrence(id, subject, from, None)
            }
            CheckpointLine::Complete { buffers, write_ms, sync_ms, total_ms, distance } => {
                let one = self.under_way.take();
                let earliest = middle.saturating_sub((total_ms * 1e6) as Nanos);
                // One that started since the last sample, or before observation started.
                let from =
                    one.as_ref().map(|one| one.from).filter(|from| *from < previous).unwrap_or(earliest);
                let (subject, for_log) =
                    one.as_ref().and_then(|one| one.logged).unwrap_or(("requested", false));
                let id = one.and_then(|one| one.id).unwrap_or_else(number);
                let mut ended = occurrence(id, subject, from, Some(middle.max(from)));
                let named = [
                    ("buffers", buffers),
                    ("write_ms", write_ms),
                    ("sync_ms", sync_ms),
                    ("total_ms", total_ms),
                ];
                ended.figures.extend(named.map(|(name, value)| (name.to_owned(), value)));
                ended.figures.extend(distance.map(|bytes| ("log_bytes".to_owned(), bytes)));
                if for_log {
                    ended.figures.insert("forced_by_log_size".into(), 1.0);
                }
                self.reported_by_log = true;
                self.clearing_up = true;
                ended
            }
        }
    }

    /// What a session sample found the checkpointer doing: `busy` when it was not in its main loop. `previous` is
    /// when the look before was. True when the figures are worth reading now.
    pub(super) fn take_sample(&mut self, busy: bool, previous: Nanos, now: Nanos) -> bool {
        self.clearing_up &= busy;
        match (&mut self.under_way, busy) {
            (Some(one), _) if one.logged.is_some() => false,
            (None, false) => false,
            (None, true) if self.clearing_up => false,
            (None, true) => {
                // It began somewhere between the two looks.
                let from = previous + (now - previous) / 2;
                self.under_way = Some(UnderWay { id: None, from, looks: 1, to: None, logged: None });
                false
            }
            (Some(one), true) => {
                one.looks += 1;
                one.to = None;
                one.id.is_none() && one.looks >= LOOKS_TO_BELIEVE
            }
            (Some(one), false) => {
                let ended = one.to.is_none();
                one.to.get_or_insert(previous + (now - previous) / 2);
                ended
            }
        }
    }

    /// Reads the counters, and reports what has started or ended. Returns the server's time.
    pub(super) fn read(&mut self, link: &mut Link, feed: &mut Feed) -> Result<f64, String> {
        let rows = self.ask.run(link, sql::checkpoints)?;
        let figures = CheckpointCounters::read(rows).map_err(|error| error.to_string())?;
        let now = feed.now();
        for occurrence in self.judge(figures, now, &mut || feed.occurrence()) {
            feed.send(Observation::Occurrence(occurrence));
        }
        Ok(figures.clock)
    }

    /// What follows from new figures.
    fn judge(
        &mut self,
        new: CheckpointCounters,
        now: Nanos,
        number: &mut dyn FnMut() -> u32,
    ) -> Vec<Occurrence> {
        let mut occurrences = Vec::new();
        let last_read = std::mem::replace(&mut self.read_at, now);
        let Some(old) = self.settled else {
            self.settled = Some(new);
            return occurrences;
        };
        if new.place != old.place {
            if std::mem::take(&mut self.reported_by_log) {
                self.waited = 0;
                self.settled = Some(new);
                return occurrences;
            }
            let complete = new.counted() > old.counted() && !self.has_log;
            if !complete && self.waited < READINGS_TO_WAIT {
                self.waited += 1;
                return occurrences;
            }
            self.waited = 0;
            let one = self.under_way.take();
            // To whole seconds, so no earlier than the reading that did not have it yet.
            let ago = ((new.clock - new.began).max(0.0) * 1e9) as Nanos;
            let began = now.saturating_sub(ago).max(last_read).min(now);
            let from = one.as_ref().map_or(began, |one| one.from);
            let to = one.as_ref().and_then(|one| one.to).unwrap_or(now).max(from);
            let id = one.and_then(|one| one.id).unwrap_or_else(&mut *number);
            let mut ended = occurrence(id, kind(&old, &new), from, Some(to));
            ended.figures = grown(&old, &new);
            occurrences.push(ended);
            self.settled = Some(new);
            self.clearing_up = true;
        } else if let Some(one) = self.under_way.as_mut().filter(|one| one.logged.is_none()) {
            let subject = kind(&old, &new);
            match (one.id, one.to) {
                (None, None) if one.looks >= LOOKS_TO_BELIEVE && !self.has_log => {
                    occurrences.push(occurrence(*one.id.insert(number()), subject, one.from, None));
                }
                // It was something else; if it was reported, it has ended anyway.
                (id, Some(to)) => {
                    occurrences.extend(id.map(|id| occurrence(id, subject, one.from, Some(to))));
                    self.under_way = None;
                }
                (_, None) => {}
            }
        }
        occurrences
    }

    /// The connection was lost: what was under way has no end that we could see.
    pub(super) fn lost(&mut self) {
        *self = Self { ask: std::mem::take(&mut self.ask), ..Self::default() };
    }
}

fn occurrence(id: u32, subject: &str, from: Nanos, to: Option<Nanos>) -> Occurrence {
    Occurrence { id, kind: "checkpoint".into(), subject: subject.into(), from, to, figures: BTreeMap::new() }
}

/// The counter that grew says whose wish it was. One under way whose counter is not published yet is of those that do not
/// pause between writes, which are the requested ones.
fn kind(old: &CheckpointCounters, new: &CheckpointCounters) -> &'static str {
    if new.timed > old.timed && new.requested <= old.requested { "timed" } else { "requested" }
}

fn grown(old: &CheckpointCounters, new: &CheckpointCounters) -> BTreeMap<String, f64> {
    let mut figures = BTreeMap::new();
    let differences = [
        ("buffers", new.buffers - old.buffers),
        ("write_ms", new.write_ms - old.write_ms),
        ("sync_ms", new.sync_ms - old.sync_ms),
    ];
    // After a reset of the statistics they say nothing.
    if new.counted() > old.counted() && differences.iter().all(|(_, value)| *value >= 0.0) {
        figures.extend(differences.map(|(name, value)| (name.to_owned(), value)));
        // Two within one reading, seen as one.
        if new.counted() - old.counted() > 1.5 {
            figures.insert("checkpoints".into(), new.counted() - old.counted());
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use kelvin_measure::SECOND;

    use super::*;

    fn figures(clock: f64, place: i64, timed: f64, requested: f64) -> CheckpointCounters {
        let counted = timed + requested;
        CheckpointCounters {
            clock,
            place,
            began: clock - 3.0,
            timed,
            requested,
            buffers: 100.0 * counted,
            write_ms: 10.0 * counted,
            sync_ms: counted,
        }
    }

    fn judge(checkpoints: &mut Checkpoints, new: CheckpointCounters, now: Nanos) -> Vec<Occurrence> {
        let mut next = 7;
        checkpoints.judge(new, now, &mut || {
            next += 1;
            next
        })
    }

    #[test]
    fn one_that_was_watched_from_its_beginning_is_reported_twice_under_one_number() {
        let mut seen = Checkpoints::default();
        assert_eq!(judge(&mut seen, figures(1000.0, 5, 1.0, 1.0), SECOND), []);
        let tenth = SECOND / 10;
        assert!(!seen.take_sample(true, 10 * tenth, 11 * tenth));
        assert!(!seen.take_sample(true, 11 * tenth, 12 * tenth));
        assert!(seen.take_sample(true, 12 * tenth, 13 * tenth));
        let reported = judge(&mut seen, figures(1000.3, 5, 2.0, 1.0), 13 * tenth);
        assert_eq!((reported.len(), reported[0].to, reported[0].subject.as_str()), (1, None, "timed"));
        assert!(!seen.take_sample(true, 13 * tenth, 14 * tenth), "reported already");
        assert!(seen.take_sample(false, 14 * tenth, 15 * tenth));
        let ended = judge(&mut seen, figures(1000.5, 6, 2.0, 1.0), 15 * tenth);
        assert_eq!((ended[0].id, ended[0].from), (reported[0].id, 10 * tenth + tenth / 2));
        assert_eq!(ended[0].to, Some(14 * tenth + tenth / 2));
        assert_eq!(ended[0].figures["buffers"], 100.0);
        assert_eq!(ended[0].figures["write_ms"], 10.0);
    }

    #[test]
    fn one_that_nobody_saw_lies_between_two_readings() {
        let mut seen = Checkpoints::default();
        judge(&mut seen, figures(1000.0, 5, 1.0, 1.0), 10 * SECOND);
        let reported = judge(&mut seen, figures(1001.0, 6, 1.0, 2.0), 11 * SECOND);
        // It says that it began 3 s ago, and 1 s ago it had not ended.
        assert_eq!((reported[0].from, reported[0].to), (10 * SECOND, Some(11 * SECOND)));
        assert_eq!(reported[0].subject, "requested");
    }

    #[test]
    fn counters_that_come_late_are_waited_for_and_a_reset_gives_no_figures() {
        let mut seen = Checkpoints::default();
        judge(&mut seen, figures(1000.0, 5, 1.0, 1.0), SECOND);
        let mut late = figures(1001.0, 6, 1.0, 1.0);
        assert_eq!(judge(&mut seen, late, 2 * SECOND), []);
        late = figures(1002.0, 6, 1.0, 2.0);
        assert_eq!(judge(&mut seen, late, 3 * SECOND)[0].figures["sync_ms"], 1.0);
        let reset = figures(1003.0, 7, 0.0, 0.0);
        assert_eq!(judge(&mut seen, reset, 4 * SECOND), []);
        assert_eq!(judge(&mut seen, reset, 5 * SECOND), []);
        let reported = judge(&mut seen, reset, 6 * SECOND);
        assert!(reported[0].figures.is_empty(), "{reported:?}");
    }

    #[test]
    fn the_log_comes_first_and_the_figures_do_not_say_it_again() {
        let mut seen = Checkpoints::default();
        seen.has_log(true);
        let mut next = 40;
        let mut number = || {
            next += 1;
            next
        };
        judge(&mut seen, figures(1000.0, 5, 1.0, 1.0), SECOND);
        let begun = seen.logged(
            &CheckpointLine::Starting { timed: false, for_log: true },
            SECOND,
            SECOND + 10,
            &mut number,
        );
        assert_eq!((begun.id, begun.from, begun.to), (41, SECOND + 5, None));
        for look in 1..9 {
            assert!(!seen.take_sample(true, SECOND + look, SECOND + look + 1));
        }
        // The control file is ahead of the log's line.
        assert_eq!(judge(&mut seen, figures(1002.0, 6, 1.0, 2.0), 2 * SECOND), []);
        let complete = CheckpointLine::Complete {
            buffers: 7.0,
            write_ms: 3.0,
            sync_ms: 2.0,
            total_ms: 6.0,
            distance: None,
        };
        let ended = seen.logged(&complete, 2 * SECOND, 2 * SECOND + 10, &mut number);
        assert_eq!((ended.id, ended.from, ended.to), (41, SECOND + 5, Some(2 * SECOND + 5)));
        assert_eq!((ended.figures["buffers"], ended.figures["forced_by_log_size"]), (7.0, 1.0));
        assert!(
            !seen.take_sample(true, 2 * SECOND, 2 * SECOND + 1) && seen.under_way.is_none(),
            "it clears up"
        );
        assert_eq!(judge(&mut seen, figures(1003.0, 6, 1.0, 2.0), 3 * SECOND), []);
        // A line that never comes: the figures' turn.
        for later in [4, 5] {
            assert_eq!(judge(&mut seen, figures(1004.0, 7, 2.0, 2.0), later * SECOND), []);
        }
        let last = judge(&mut seen, figures(1006.0, 7, 2.0, 2.0), 6 * SECOND);
        assert_eq!((last.len(), last[0].subject.as_str(), last[0].figures["buffers"]), (1, "timed", 100.0));
    }

    #[test]
    fn a_checkpointer_that_was_only_woken_is_no_checkpoint() {
        let mut seen = Checkpoints::default();
        judge(&mut seen, figures(1000.0, 5, 1.0, 1.0), SECOND);
        assert!(!seen.take_sample(true, SECOND, SECOND + 1));
        assert!(seen.take_sample(false, SECOND + 1, SECOND + 2));
        assert_eq!(judge(&mut seen, figures(1001.0, 5, 1.0, 1.0), 2 * SECOND), []);
        assert!(seen.under_way.is_none());
    }
}

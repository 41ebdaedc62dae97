//! The arrivals of an open loop, and their service.

use kelvin_measure::event::{ArrivalSchedule, RatePeriod};
use kelvin_measure::labels::{self, WorkloadLabels};
use kelvin_store::{Point, PointStatistics};
use serde::Serialize;

use kelvin_measure::text::{rate, whole};

/// The schedule of an open loop and how well it was kept, over the measured window.
#[derive(Debug, Clone, Serialize)]
pub struct ScheduleReport {
    /// Requested transactions per second; `None` if the window did not close.
    pub asked_per_second: Option<f64>,
    /// Transactions that were due within the window.
    pub due: u64,
    /// Arrivals that never started because the queue was full.
    pub refused: u64,
    /// Transactions of the window that still waited for an idle user when the load ended.
    pub waiting: u64,
    /// Transactions that waited for an idle user when the window closed, and started soon afterwards if
    /// possible.
    pub waiting_at_close: u64,
    /// Transactions due exactly when the load ended, which did not start; at most one per user.
    pub cut_off: u64,
    /// The longest queue that a user found; none if the window did not close.
    pub longest_queue: Option<u64>,
    /// Committed and rolled-back transactions per second.
    pub achieved_per_second: Option<f64>,
    /// Achieved rate divided by the requested one.
    pub achieved_ratio: Option<f64>,
    /// Whether transactions were refused or the queue grew.
    pub overloaded: bool,
    /// Unanswered arrivals, as text; `None` if everything that was due was served.
    pub shortfall: Option<String>,
}

impl ScheduleReport {
    /// For a point of an open loop.
    pub(super) fn of(point: &Point, figures: &PointStatistics, words: &WorkloadLabels) -> Self {
        let window = point.window.as_ref().and_then(|w| w.schedule);
        let seen = figures.arrivals.unwrap_or_default();
        let schedule = window.unwrap_or(ArrivalSchedule {
            rate: f64::NAN,
            due: seen.due,
            refused: seen.refused,
            waiting: seen.waiting.unwrap_or(0),
            ..ArrivalSchedule::default()
        });
        let ArrivalSchedule { due, refused, waiting, .. } = schedule;
        let overloaded = schedule.overloaded();
        let asked = window.map(|s| s.rate);
        let achieved = figures.transactions_per(RatePeriod::Second);
        Self {
            asked_per_second: asked,
            due,
            refused,
            waiting,
            waiting_at_close: schedule.waited(),
            cut_off: schedule.cut_off,
            longest_queue: window.map(|s| s.longest),
            achieved_per_second: achieved,
            achieved_ratio: asked
                .zip(achieved)
                .filter(|(asked, _)| *asked > 0.0)
                .map(|(asked, got)| got / asked),
            overloaded,
            shortfall: shortfall(&schedule, point.users, words),
        }
    }

    /// "1,000/s requested, 998.4/s achieved (99.8 %)".
    pub(crate) fn describe(&self) -> String {
        let ratio = self.achieved_ratio.map_or_else(String::new, |r| format!(" ({:.1} %)", 100.0 * r));
        format!(
            "{}/s requested, {}/s achieved{ratio}",
            rate(self.asked_per_second),
            rate(self.achieved_per_second)
        )
    }
}

fn shortfall(schedule: &ArrivalSchedule, count: u32, words: &WorkloadLabels) -> Option<String> {
    let ArrivalSchedule { due, refused, waiting, .. } = *schedule;
    let overloaded = schedule.overloaded();
    if refused == 0 && waiting == 0 && !overloaded {
        return None;
    }
    let units = |n: u64| words.unit.form_for(n);
    // A worker of I/O jobs has its own schedule: a late I/O does not wait for another worker.
    let waited = if words.unit == WorkloadLabels::for_workload(labels::IO).unit {
        "had not started when the window closed".to_owned()
    } else {
        format!("still waited for an idle {} when the load ended", words.who.one)
    };
    if !overloaded {
        return Some(format!(
            "{} {} {waited}; the response times count {} as longer than all others",
            whole(waiting),
            units(waiting),
            if waiting == 1 { "it" } else { "them" }
        ));
    }
    let mut parts = Vec::new();
    if refused > 0 {
        parts.push(format!("{} were refused because the queue was full", whole(refused)));
    }
    if waiting > 0 {
        parts.push(format!("{} {waited}", whole(waiting)));
    }
    let soon = schedule.waited().saturating_sub(waiting);
    if soon > 0 {
        let who = words.who.one;
        parts.push(format!(
            "{} waited for an idle {who} when the window closed and started after it",
            whole(soon)
        ));
    }
    let without = if refused + waiting > 0 {
        "; the response times count those that never started as longer than all others"
    } else {
        ""
    };
    Some(format!(
        "{} did not keep up with {}: of {} {} due, {}{without}",
        words.system,
        words.users(count, &whole(count.into())),
        whole(due),
        units(due),
        parts.join(" and ")
    ))
}

#[cfg(test)]
mod tests {
    use super::{ArrivalSchedule, WorkloadLabels, labels};

    fn shortfall(due: u64, refused: u64, waiting: u64, count: u32, words: &WorkloadLabels) -> Option<String> {
        super::shortfall(
            &ArrivalSchedule { due, refused, waiting, ..ArrivalSchedule::default() },
            count,
            words,
        )
    }

    #[test]
    fn unserved_arrivals_are_reported_by_reason() {
        let tproc = WorkloadLabels::for_workload("tproc-c");
        assert_eq!(shortfall(1000, 0, 0, 8, tproc), None);
        let mild = shortfall(1000, 0, 1, 8, tproc).unwrap();
        assert!(mild.starts_with("1 transaction still waited for an idle user"), "{mild}");
        let hard = shortfall(1000, 200, 30, 8, tproc).unwrap();
        assert!(hard.starts_with("the database did not keep up with 8 virtual users: of 1,000"), "{hard}");
        assert!(hard.contains("200 were refused") && hard.contains("30 still waited"), "{hard}");
        let late = shortfall(1000, 0, 30, 2, WorkloadLabels::for_workload(labels::IO)).unwrap();
        assert_eq!(
            late,
            "the storage did not keep up with 2 workers: of 1,000 I/Os due, 30 had not started when the \
             window closed; the response times count those that never started as longer than all others"
        );
        let drained = ArrivalSchedule { due: 1000, waiting_at_close: Some(90), ..ArrivalSchedule::default() };
        let drained = super::shortfall(&drained, 8, tproc).unwrap();
        assert!(
            drained.ends_with("90 waited for an idle user when the window closed and started after it"),
            "{drained}"
        );
    }
}

//! Snapshots beside other steps (`async`): a scenario of Kelvin's does one step after another, so that each snapshot is put into
//! the wait that is under way when it is due.

use std::collections::BTreeMap;

use crate::conversion::{ConvertedAction, ConvertedStep, Tenant};

/// Seconds that are no wait.
const ROUNDING: f64 = 1e-6;

/// Snapshots that were ordered and go on while later steps are done.
#[derive(Debug)]
pub(crate) struct Background {
    /// How many steps come before the first of them.
    pub(crate) position: usize,
    /// The command of each.
    pub(crate) snapshots: Vec<ConvertedStep>,
    /// Seconds between two of them.
    pub(crate) interval: f64,
}

/// Puts the snapshots among the steps; how many would come after the last step, and are left out.
pub(crate) fn interleave(
    steps: Vec<ConvertedStep>,
    mut ordered: Vec<Background>,
    tenants: &[Tenant],
) -> (Vec<ConvertedStep>, usize) {
    if ordered.is_empty() {
        return (steps, 0);
    }
    let mut timeline = Timeline { now: 0.0, due: Vec::new(), done: Vec::with_capacity(steps.len()) };
    let mut ends: BTreeMap<usize, f64> = BTreeMap::new();
    for (position, step) in steps.into_iter().enumerate() {
        timeline.order(&mut ordered, position);
        match step.action {
            ConvertedAction::Pause(seconds) => {
                let end = timeline.now + seconds;
                timeline.go_on(&step, end);
                timeline.pause(&step, end);
                continue;
            }
            ConvertedAction::WaitFor(tenant, _) => {
                if let Some(end) = ends.get(&tenant) {
                    timeline.go_on(&step, *end);
                    timeline.now = timeline.now.max(*end);
                }
            }
            ConvertedAction::Start { tenant, runtime, stagger } => {
                timeline.now += stagger.unwrap_or(0.0);
                let lasts = runtime.or_else(|| tenants.get(tenant)?.runtime);
                ends.extend(lasts.map(|lasts| (tenant, timeline.now + lasts)));
            }
            ConvertedAction::Repeat { count, interval, .. } => timeline.now += f64::from(count) * interval,
            _ => {}
        }
        timeline.done.push(step);
    }
    timeline.order(&mut ordered, usize::MAX);
    // Those of the very end are still made.
    let end = timeline.now + ROUNDING;
    let (on_time, late): (Vec<_>, Vec<_>) = timeline.due.into_iter().partition(|(at, _)| *at <= end);
    timeline.done.extend(on_time.into_iter().map(|(_, step)| step));
    (timeline.done, late.len())
}

struct Timeline {
    /// Seconds since the first step, as far as steps have a length.
    now: f64,
    /// Snapshots with their times, the first one first.
    due: Vec<(f64, ConvertedStep)>,
    done: Vec<ConvertedStep>,
}

impl Timeline {
    /// Takes what is ordered before a step.
    fn order(&mut self, ordered: &mut Vec<Background>, position: usize) {
        let now = self.now;
        for background in ordered.extract_if(.., |one| one.position <= position) {
            let interval = background.interval;
            let timed = background.snapshots.into_iter().enumerate();
            self.due.extend(timed.map(|(number, step)| (now + number as f64 * interval, step)));
        }
        self.due.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    }

    /// Waits until a time, as part of a step.
    fn pause(&mut self, part_of: &ConvertedStep, until: f64) {
        if until - self.now > ROUNDING {
            let action = ConvertedAction::Pause(until - self.now);
            self.done.push(ConvertedStep { action, ..part_of.clone() });
            self.now = until;
        }
    }

    /// Makes the snapshots that are due before a time, each at its own.
    fn go_on(&mut self, part_of: &ConvertedStep, end: f64) {
        while self.due.first().is_some_and(|(at, _)| *at < end) {
            let (at, snapshot) = self.due.remove(0);
            self.pause(part_of, at);
            self.done.push(snapshot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(action: ConvertedAction) -> ConvertedStep {
        ConvertedStep { source: "test.Wait", line: 1, action }
    }

    fn run(number: u32) -> ConvertedStep {
        step(ConvertedAction::Run { command: number.to_string(), timeout: None, may_fail: false })
    }

    #[test]
    fn snapshots_come_at_their_times_in_waits() {
        let start = ConvertedAction::Start { tenant: 0, runtime: Some(100.0), stagger: None };
        let steps = vec![
            step(start),
            step(ConvertedAction::Pause(30.0)),
            step(ConvertedAction::Mark("x".into())),
            step(ConvertedAction::WaitFor(0, 400.0)),
        ];
        let snapshots = (1..=6).map(run).collect();
        let (steps, late) =
            interleave(steps, vec![Background { position: 1, snapshots, interval: 20.0 }], &[]);
        let said: Vec<String> = steps
            .iter()
            .map(|step| match &step.action {
                ConvertedAction::Run { command, .. } => format!("run {command}"),
                ConvertedAction::Pause(seconds) => format!("{seconds}"),
                ConvertedAction::Mark(_) => "mark".into(),
                ConvertedAction::WaitFor(..) => "wait for".into(),
                _ => "start".into(),
            })
            .collect();
        let expected = [
            "start", "run 1", "20", "run 2", "10", "mark", "10", "run 3", "20", "run 4", "20", "run 5",
            "wait for", "run 6",
        ];
        assert_eq!((said.as_slice(), late), (expected.map(str::to_owned).as_slice(), 0));
    }
}

//! Where a study is, in a line for whoever waits.

use super::{Attempt, Estimate, State, Study, StudyPlan};

/// "run 7 of 54 · block 1 of 6 · commit=off · about 38 min left".
pub(super) fn line(study: &Study, plan: &StudyPlan, state: &State, attempt: &Attempt) -> String {
    let left = state.missing();
    let estimate = Estimate::of(study, &state.seconds);
    format!(
        "run {} of {} · block {} of {} · {} · about {} left",
        plan.runs.len() - left + 1,
        plan.runs.len(),
        attempt.block + 1,
        study.design.blocks,
        attempt.treatment,
        duration(estimate.seconds(left))
    )
}

/// A length of time for a person, rounded up to what matters: "45 s", "12 min", "3 h 20 min", "2 d 4 h".
pub fn duration(seconds: f64) -> String {
    let seconds = if seconds.is_finite() { seconds.max(0.0).ceil() as u64 } else { 0 };
    let minutes = seconds.div_ceil(60);
    match minutes {
        _ if seconds < 100 => format!("{seconds} s"),
        0..60 => format!("{minutes} min"),
        60..2880 => format!("{} h {:02} min", minutes / 60, minutes % 60),
        _ => format!("{} d {} h", minutes / 1440, (minutes % 1440).div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn times_read_well() {
        let read = [0.0, 0.2, 99.0, 100.0, 3_540.0, 3_541.0, 12_000.0, 200_000.0].map(duration);
        assert_eq!(read, ["0 s", "1 s", "99 s", "2 min", "59 min", "1 h 00 min", "3 h 20 min", "2 d 8 h"]);
    }
}

//! Whether the percentiles that are shown rest on enough I/Os.

use kelvin_measure::text;
use kelvin_storage::probe::{BEYOND, JobFacts, JobRun, StorageFacts};

use super::IoFindingDefinition;
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-few-samples",
    question: "Are there enough I/Os for the percentiles shown?",
    find,
};

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let Some(run) = &facts.run else { return Vec::new() };
    facts.jobs.iter().zip(&run.jobs).filter_map(|(job, run)| of_job(job, run)).collect()
}

fn of_job(job: &JobFacts, run: &JobRun) -> Option<Finding> {
    let counted = run.completion.iter().filter_map(|(direction, times)| Some((direction, (*times)?.count)));
    // The direction with the fewest I/Os has the least certain tail.
    let (direction, count) = counted.filter(|(_, count)| *count > 0).min_by_key(|(_, count)| *count)?;
    let beyond = |percent: f64| count as f64 * (1.0 - percent / 100.0);
    let guessed: Vec<f64> =
        job.percentiles.iter().copied().filter(|percent| beyond(*percent) + 1e-6 < BEYOND).collect();
    let first = guessed.first()?;
    let all: Vec<String> = guessed.iter().map(|percent| format!("{percent}")).collect();
    let needed = BEYOND / (1.0 - guessed.last()?.min(99.9999) / 100.0);
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: None,
        title: format!(
            "Percentiles of job {} from {first} up are based on fewer than ten of its {} {direction}s",
            job.name,
            text::rounded(count as f64)
        ),
        evidence: vec![
            EvidenceLine::new(format!("{direction}s"), text::rounded(count as f64)),
            EvidenceLine::new("percentiles with fewer than ten I/Os beyond them", all.join(", ")),
        ],
        effect: Effect::unknown(
            "this limits the precision of the percentiles; it does not affect \
        performance",
        ),
        below_precision: false,
        threshold: "n · (1 − p) < 10: fewer than ten of n I/Os lie beyond the percentile p".into(),
        next: format!(
            "Measure until there are {} I/Os, or do not quote these percentiles.",
            text::rounded(needed.round())
        ),
    })
}

#[cfg(test)]
mod tests {
    use kelvin_storage::probe::TimeSummary;

    use super::super::staged::{after, reading, run, severities};
    use super::*;

    #[test]
    fn a_tail_of_few_is_no_percentile() {
        let with = |count| {
            let mut facts = reading(after());
            let times = TimeSummary { count, mean: 1e5, median: 100_000, p99: None };
            run(&mut facts).jobs[0].completion = kelvin_storage::PerDirection([Some(times), None, None]);
            facts
        };
        assert_eq!(severities(&ABOUT, &with(10_001)), []);
        assert_eq!(severities(&ABOUT, &with(9_000)), [Severity::Note]);
        let found = find(&with(500)).remove(0);
        assert_eq!(
            found.title,
            "Percentiles of job mixed from 99 up are based on fewer than ten of its 500 reads"
        );
        assert_eq!(found.next, "Measure until there are 10,000 I/Os, or do not quote these percentiles.");
        assert_eq!(severities(&ABOUT, &after()), []);
    }
}

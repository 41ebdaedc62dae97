//! Whether bandwidth was steady.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::{JobFacts, JobRun, StorageFacts};

use super::super::not_steady::{FEWEST, THRESHOLD, judge};
use super::{IoFindingDefinition, is_null};
use crate::{Effect, EffectBasis, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-not-steady",
    question: "Was bandwidth steady, or did it fall off a cliff?",
    find,
};

/// A level that is lower than the previous one by this share is a cliff: a cache is full, or cells have to be erased.
const CLIFF: f64 = 0.3;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let Some(run) = &facts.run else { return Vec::new() };
    facts.jobs.iter().zip(&run.jobs).filter_map(|(job, run)| of_job(job, run)).collect()
}

fn of_job(job: &JobFacts, run: &JobRun) -> Option<Finding> {
    if is_null(job) || run.ios.0 == [0; 3] {
        return None;
    }
    if run.series.len() < FEWEST {
        // Without values per second, the steadiness is unknown.
        return (run.step > 0.0).then(|| too_short(job, run));
    }
    let found = judge(&run.series, run.step)?;
    let mut evidence = found.evidence("MB/s", |round| text::number(round / 1e6));
    let cliff = cliff(run).filter(|_| job.does[Direction::Write]);
    let title = match cliff {
        Some(Cliff { before, after, moved }) => {
            evidence.push(EvidenceLine::new(
                "level before and after the cliff",
                format!("{} and {}", text::disk_rate(before), text::disk_rate(after)),
            ));
            format!(
                "Job {} fell from {} to {} after {}",
                job.name,
                text::disk_rate(before),
                text::disk_rate(after),
                text::storage(moved)
            )
        }
        None => found.title(&format!("Bandwidth of job {}", job.name)),
    };
    Some(Finding {
        id: ABOUT.id,
        severity: found.severity,
        point: None,
        title,
        evidence,
        effect: found.effect(EffectBasis::Figure),
        below_precision: false,
        threshold: THRESHOLD.into(),
        next:
            "Measure for longer, or until it is steady (`steadystate=`); before measuring writes to an SSD, \
            fill it twice, then write at random until the rate is steady."
                .into(),
    })
}

struct Cliff {
    before: f64,
    after: f64,
    moved: f64,
}

/// The first place where the level fell for good.
fn cliff(run: &JobRun) -> Option<Cliff> {
    let points =
        kelvin_stats::change_points::find(&run.series, &kelvin_stats::change_points::Options::default());
    let point = points.into_iter().find(|point| point.after < (1.0 - CLIFF) * point.before)?;
    let moved: f64 = run.series.iter().take(point.index).map(|rate| rate * run.step).sum();
    Some(Cliff { before: point.before, after: point.after, moved })
}

fn too_short(job: &JobFacts, run: &JobRun) -> Finding {
    Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: None,
        title: format!("Job {} is too short to show whether its bandwidth was steady", job.name),
        evidence: vec![EvidenceLine::new("whole seconds measured", run.series.len().to_string())],
        effect: Effect::unknown(
            "in a run this short, a steady level cannot be distinguished from a changing one",
        ),
        below_precision: false,
        threshold: format!("{FEWEST} s: five rounds of 2 s"),
        next: "Measure for longer (`runtime=` with `time_based=1`): at least 60 s for a result to be quoted."
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, run, severities};
    use super::*;

    fn with(series: Vec<f64>) -> StorageFacts {
        let mut facts = after();
        run(&mut facts).jobs[0].series = series;
        facts
    }

    fn scattered(level: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..120).map(|i| level(i) * (1.0 + 0.02 * ((i * 37 % 11) as f64 / 5.0 - 1.0))).collect()
    }

    #[test]
    fn a_level_that_holds_is_nothing_and_few_seconds_are_a_note() {
        assert_eq!(severities(&ABOUT, &after()), []);
        assert_eq!(severities(&ABOUT, &with(vec![1e8; 4])), [Severity::Note]);
        let mut uncounted = with(vec![]);
        assert_eq!(severities(&ABOUT, &uncounted), [Severity::Note]);
        run(&mut uncounted).jobs[0].step = 0.0;
        assert_eq!(severities(&ABOUT, &uncounted), []);
    }

    #[test]
    fn a_cliff_is_reported_with_the_bytes_before_it() {
        let fallen = with(scattered(|i| if i < 50 { 400e6 } else { 100e6 }));
        assert_eq!(severities(&ABOUT, &fallen), [Severity::Red]);
        let title = find(&fallen).remove(0).title;
        assert_eq!(title, "Job mixed fell from 400 MB/s to 100 MB/s after 19 GiB");
        let mut read = fallen;
        read.jobs[0].does.0[1] = false;
        let title = find(&read).remove(0).title;
        assert!(title.starts_with("Bandwidth of job mixed was not steady"), "{title}");
    }
}

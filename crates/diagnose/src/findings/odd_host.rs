//! Whether one host of a fleet saw another database than the others.

use kelvin_measure::event::HostTimes;
use kelvin_measure::text::{latency, percent};
use kelvin_stats::rank::median;

use super::FindingDefinition;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "odd-host",
    question: "Did one host of the fleet measure different times than the others?",
    find,
};

/// Of two hosts nobody knows which is the odd one.
const FEWEST: usize = 3;

/// How far its mean is from the median of all, as a share of that.
const MOST_APART: f64 = 0.1;

/// And in standard errors of its mean: times that follow each other are alike, so that the plain error is too small.
const ERRORS_APART: f64 = 5.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(of_point).collect()
}

fn of_point(point: &PointEvidence) -> Option<Finding> {
    let hosts: Vec<(&str, HostTimes)> =
        point.hosts.iter().filter_map(|(name, load)| Some((name.as_str(), load.times?))).collect();
    if hosts.len() < FEWEST {
        return None;
    }
    let means: Vec<f64> = hosts.iter().map(|(_, times)| times.mean).collect();
    let usual = median(&means).filter(|usual| *usual > 0.0)?;
    let differs = |(_, times): &&(&str, HostTimes)| {
        let apart = (times.mean - usual).abs();
        let error = times.deviation / (times.count as f64).sqrt();
        apart > MOST_APART * usual && apart > ERRORS_APART * error
    };
    // Where several differ, none of them is the odd one.
    let [&(name, own)] = hosts.iter().filter(differs).collect::<Vec<_>>()[..] else { return None };
    let ratio = own.mean / usual;
    let slower = ratio > 1.0;
    let by = if slower { ratio - 1.0 } else { 1.0 - ratio };
    let mut facts = vec![
        EvidenceLine::new(format!("mean time of {name}"), latency(own.mean)),
        EvidenceLine::new("median of the means of all hosts", latency(usual)),
        EvidenceLine::new(format!("transactions of {name}"), own.count.to_string()),
    ];
    if let Some((_, load)) = point.hosts.iter().find(|(host, _)| host == name) {
        let share = point.window.as_ref().and_then(|window| load.cpu_share(window.elapsed));
        facts.extend(share.map(|share| {
            EvidenceLine::new(format!("CPUs of {name} used by its load generator"), percent(share))
        }));
    }
    // What it would have done in the others' time, as far as the users of a closed loop wait for nothing else.
    let all: u64 = hosts.iter().map(|(_, times)| times.count).sum();
    let open_loop = point.window.as_ref().is_some_and(|window| window.schedule.is_some());
    let lost = (ratio - 1.0) * own.count as f64;
    let share = (slower && !open_loop && all > 0).then(|| lost / (all as f64 + lost));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: Some(point.point),
        title: format!(
            "Host {name} measured times {} {} than the other hosts",
            percent(by),
            if slower { "longer" } else { "shorter" }
        ),
        evidence: facts,
        effect: Effect::up_to_or(
            share,
            EffectBasis::Figure,
            "it affects the times of its own transactions, but not the total number",
        ),
        below_precision: false,
        threshold: "at least three hosts, and one whose mean differs from the median of all means by more \
            than 10 % and by more than five of its standard errors"
            .into(),
        next: "Compare its network path, CPU frequency and load with those of the others; run without it, \
            and check whether the throughput per host increases."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::{Event, HostLoad};
    use kelvin_measure::{Source, SourceId};

    use super::*;
    use crate::scene::{Scene, severities};

    fn evidence(means: &[f64], count: u64) -> Evidence {
        let mut evidence = Scene::healthy().evidence();
        for (number, mean) in (1_u16..).zip(means) {
            let source = Source { host: Some(format!("load{number}")), ..Source::default() };
            evidence.event_from(SourceId::LOCAL, &Event::Source { id: SourceId(number), source });
            let load = HostLoad {
                point: 0,
                first_user: 4 * u32::from(number - 1),
                users: 4,
                client_headline: count,
                times: Some(HostTimes { count, mean: *mean, deviation: *mean }),
                client_cpu: Some(5_000_000_000),
                cpus: 2.0,
                late: Some(0),
                clock: None,
                lost: None,
                elapsed: None,
            };
            evidence.event_from(SourceId(number), &Event::HostLoad(Box::new(load)));
        }
        crate::findings::check_words(&evidence);
        evidence
    }

    #[test]
    fn the_one_host_that_differs_is_named() {
        let found = find(&evidence(&[1e6, 1.01e6, 1.3e6, 0.99e6], 100_000));
        assert_eq!(severities(&found), [Severity::Amber]);
        assert!(found[0].title.starts_with("Host load3 measured times 29"), "{found:?}");
        // Its 100,000 would have been 130,000 of 430,000.
        assert!((found[0].effect.high().unwrap() - 0.07).abs() < 0.01, "{found:?}");
        let faster = find(&evidence(&[1e6, 0.7e6, 1e6], 100_000));
        assert!(
            faster[0].title.contains("shorter than the other hosts") && faster[0].effect.high().is_none()
        );
    }

    #[test]
    fn alike_or_too_few_hosts_or_times_are_no_finding() {
        assert_eq!(find(&evidence(&[1e6, 1.05e6, 0.97e6], 100_000)), []);
        assert_eq!(find(&evidence(&[1e6, 2e6], 100_000)), [], "of two nobody knows which");
        assert_eq!(find(&evidence(&[1e6, 1e6, 1.3e6], 100)), [], "0.3 ms with an error of 0.13 ms");
        assert_eq!(find(&evidence(&[1e6, 2e6, 3e6], 100_000)), [], "all differ");
        assert_eq!(find(&Scene::healthy().evidence()), []);
    }
}

//! Whether throughput settled within the window.

use kelvin_stats::mser::mser5;
use kelvin_stats::steady::{DRIFT, RANGE, ROUNDS, Rounds, rounds};
use kelvin_stats::student::describe;
use kelvin_stats::trend::{Trend, trend};

use super::FindingDefinition;
use crate::load::process_cores_over;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity, Span};
use kelvin_measure::text::{latency, percent};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "not-steady", question: "Was throughput steady when it was measured?", find };

/// Seconds that five rounds need to be worth the name.
pub(super) const FEWEST: usize = 10;

/// A round of SNIA's takes a minute. Rounds of a few seconds scatter more; until a window has rounds of this many
/// seconds, it takes twice the bounds to call it red.
const LONG_ROUND: f64 = 12.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let values = point.throughput();
    if values.len() < FEWEST {
        return point.window.as_ref().map(|_| too_short(point.point, values.len()));
    }
    let found = judge(&values, 1.0)?;
    let speeds = evidence.window(point.point).map(|window| speeds(evidence, window, &found.rounds.rounds));
    Some(finding(point.point, &found, &speeds.unwrap_or_default()))
}

/// The CPU time of a transaction, in seconds, of a process in the first round and in the last.
struct CpuPerTransaction {
    process: &'static str,
    first: f64,
    last: f64,
}

/// Of client and server, where each is known. The load does the same in each round, so that what changes both is the CPUs' own speed.
fn speeds(evidence: &Evidence, window: Span, rounds: &[f64]) -> Vec<CpuPerTransaction> {
    let (Some(first), Some(last)) = (rounds.first(), rounds.last()) else { return Vec::new() };
    let round = (window.to - window.from) / rounds.len() as u64;
    let of = |process: &'static str| {
        let cores = |from| process_cores_over(evidence, Span { from, to: from + round }, process);
        let (before, after) = (cores(window.from)? / first, cores(window.to - round)? / last);
        (before > 0.0 && after > 0.0).then_some(CpuPerTransaction { process, first: before, last: after })
    };
    ["client", "server"].into_iter().filter_map(of).collect()
}

/// Whether the CPUs became faster or slower: client and server took less, or more, CPU time for each transaction, and that is most of what
/// throughput changed by.
fn speed_changed(found: &Unsteady, speeds: &[CpuPerTransaction]) -> bool {
    const MOST: f64 = 0.5;
    let change = found.rounds.drift.ln_1p();
    let follows = |one: &CpuPerTransaction| (one.first / one.last).ln() / change >= MOST;
    // Without a drift beyond the bound the quotient is of two small numbers.
    let drifted = found.rounds.drift.abs() > DRIFT && change.is_finite();
    speeds.len() == 2 && drifted && speeds.iter().all(follows)
}

/// A series that did not keep its level.
pub(super) struct Unsteady {
    pub(super) severity: Severity,
    pub(super) rounds: Rounds,
    pub(super) trend: Trend,
    /// How far the rounds may lie apart by chance, of their mean.
    chance: f64,
    /// Number of values in the series, if more than half of them would have to be dropped.
    unsettled: Option<usize>,
}

/// Whether a series of values that stand for `step` seconds each left its level by more than chance.
pub(super) fn judge(values: &[f64], step: f64) -> Option<Unsteady> {
    let (found, trend) = (rounds(values)?, trend(values)?);
    let each = values.len() / ROUNDS;
    let chance = spread_by_chance(values, each)? / found.mean;
    let beyond = |times: f64, p: f64| {
        let ranges = found.range > RANGE * times && found.range > chance;
        let drifts = found.drift.abs() > DRIFT * times && trend.p < p;
        ranges || drifts
    };
    let unsettled = mser5(values).is_some_and(|cut| !cut.settled);
    let strict = if each as f64 * step >= LONG_ROUND { 1.0 } else { 2.0 };
    let severity = if beyond(strict, 0.001) {
        Severity::Red
    } else if beyond(1.0, 0.01) || unsettled && trend.p < 0.01 {
        Severity::Amber
    } else {
        return None;
    };
    Some(Unsteady { severity, rounds: found, trend, chance, unsettled: unsettled.then_some(values.len()) })
}

impl Unsteady {
    /// The evidence; `rounds` is the unit of the rounds' figures.
    pub(super) fn evidence(&self, rounds: &str, figure: impl Fn(f64) -> String) -> Vec<EvidenceLine> {
        let each: Vec<String> = self.rounds.rounds.iter().map(|round| figure(*round)).collect();
        let mut evidence = vec![
            EvidenceLine::new(format!("{rounds} in five rounds"), each.join(", ")),
            EvidenceLine::new(
                "largest minus smallest round mean",
                format!(
                    "{} of the mean (up to {} by chance)",
                    percent(self.rounds.range),
                    percent(self.chance)
                ),
            ),
            EvidenceLine::new("fitted line, first round to last", percent(self.rounds.drift)),
            EvidenceLine::new(
                "slope, second by second",
                format!("{} over the window, p = {:.4}", percent(self.trend.change), self.trend.p),
            ),
        ];
        if let Some(seconds) = self.unsettled {
            let found = format!(
                "more than half of the {seconds} s would have to be dropped before the rest is level"
            );
            evidence.push(EvidenceLine::new("MSER-5", found));
        }
        evidence
    }

    /// How far the level that it began or ended with may lie from the figure: the rounds' range, or the line's way.
    pub(super) fn effect(&self, of: EffectBasis) -> Effect {
        Effect::up_to(self.rounds.range.max(self.rounds.drift.abs()).max(self.trend.change.abs()), of)
    }

    /// In one sentence, of a figure such as "Throughput".
    pub(super) fn title(&self, figure: &str) -> String {
        if self.rounds.range > RANGE {
            format!("{figure} was not steady: rounds differ by {} of their mean", percent(self.rounds.range))
        } else if self.rounds.drift.abs() > DRIFT {
            let way = if self.rounds.drift > 0.0 { "rose" } else { "fell" };
            format!("{figure} {way} by {} within the window", percent(self.rounds.drift.abs()))
        } else {
            format!("{figure} did not become steady within the window")
        }
    }
}

/// The threshold and its source.
pub(super) const THRESHOLD: &str = "SNIA Solid State Storage Performance Test Specification: five rounds may \
    differ by 20 % of their mean, and the line fitted to them may change by 10 %; larger deviations must be \
    significant (studentized range at 1 %; t test of the slope with autocorrelation). Red if rounds take 12 \
    s or more, or beyond twice these limits";

fn finding(point: u32, found: &Unsteady, speeds: &[CpuPerTransaction]) -> Finding {
    let mut evidence = found.evidence("transactions per second", |round| format!("{round:.0}"));
    evidence.extend(speeds.iter().map(|one| {
        EvidenceLine::new(
            format!("CPU time of the {} per transaction, first and last round", one.process),
            format!("{}, {}", latency(one.first * 1e9), latency(one.last * 1e9)),
        )
    }));
    let next = if speed_changed(found, speeds) {
        "The speed of the CPUs probably changed: the CPU time of client and server for the same work \
        differs. Check the frequency, the temperature, other processes on the same cores and, in a virtual \
        machine, the other guests of its host; run again when they are idle, or use `kelvin ab`, whose sides \
        alternate."
    } else {
        "Look at the other findings and at the timeline for what changed (checkpoint, vacuum, caches, other \
        processes or tenants); lengthen ramp-up and window until the rounds agree."
    };
    Finding {
        id: ABOUT.id,
        severity: found.severity,
        point: Some(point),
        title: found.title("Throughput"),
        evidence,
        effect: found.effect(EffectBasis::Throughput),
        below_precision: false,
        threshold: THRESHOLD.into(),
        next: next.into(),
    }
}

fn too_short(point: u32, seconds: usize) -> Finding {
    Finding {
        id: ABOUT.id,
        severity: Severity::Note,
        point: Some(point),
        title: "The window is too short to show whether throughput was steady".into(),
        evidence: vec![EvidenceLine::new("whole seconds in the window", seconds.to_string())],
        effect: Effect::unknown(
            "in a window this short, a steady level cannot be distinguished from a changing one",
        ),
        below_precision: false,
        threshold: format!("{FEWEST} s: five rounds of 2 s"),
        next: "Measure for longer (`--duration`): at least 60 s, several minutes for a result to be quoted."
            .into(),
    }
}

/// How far apart the means of five rounds lie by chance at most, in one of a hundred windows: the studentized range for
/// five means (tables of Harter, Annals of Mathematical Statistics 31, 1960) times the error of a round's mean, from the
/// scatter of the seconds within the rounds.
fn spread_by_chance(values: &[f64], each: usize) -> Option<f64> {
    let used = &values[values.len() - each * ROUNDS..];
    let mut variance = 0.0;
    for round in used.chunks_exact(each) {
        variance += describe(round)?.sd?.powi(2) / ROUNDS as f64;
    }
    let freedom = ROUNDS * (each - 1);
    let quantile = match freedom {
        ..=9 => 8.42,
        10..=14 => 6.14,
        15..=19 => 5.56,
        20..=29 => 5.29,
        30..=59 => 5.05,
        _ => 4.82,
    };
    Some(quantile * (variance / each as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, severities};

    fn found(window: &[u64]) -> Vec<Severity> {
        let scene = Scene { window: window.to_vec(), ..Scene::healthy() };
        severities(&find(&scene.evidence()))
    }

    #[test]
    fn a_fall_in_the_middle_is_red_and_a_small_one_amber() {
        assert_eq!(found(&Scene::healthy().window), []);
        let mut fallen = Scene::healthy().window;
        fallen.iter_mut().skip(8).take(6).for_each(|count| *count /= 2);
        assert_eq!(found(&fallen), [Severity::Red]);
        let mut dip = Scene::healthy().window;
        dip.iter_mut().skip(8).take(4).for_each(|count| *count = *count * 3 / 4);
        assert_eq!(found(&dip), [Severity::Amber]);
    }

    #[test]
    fn a_long_window_is_held_to_the_rule_itself() {
        let steady: Vec<u64> = (0..120).map(|i| 1000 + i * 37 % 11 * 8).collect();
        assert_eq!(found(&steady), []);
        let falling: Vec<u64> = (0..120).map(|i| 1150 - i * 3 / 2 + i * 37 % 11 * 8).collect();
        assert_eq!(found(&falling), [Severity::Red]);
    }

    #[test]
    fn cpus_that_became_faster_are_named() {
        use crate::findings::staged::Staged;
        // The window is from 6 s to 26 s; throughput rises by half.
        let rising = |client: fn(u64) -> f64| {
            let staged =
                Staged::new().throughput(|second| if second < 4 { 1000 } else { 1000 + 32 * second as u64 });
            let staged = staged.metric_by("host.process.client.cpu.user", client);
            ["client.cpu.system", "server.cpu.system"]
                .into_iter()
                .fold(staged, |staged, name| staged.metric(&format!("host.process.{name}"), 0.0))
                .metric("host.process.server.cpu.user", 1.0)
        };
        let found = find(&rising(|_| 0.4).done());
        assert!(found[0].next.starts_with("The speed of the CPUs probably changed"), "{found:#?}");
        let lines = found[0].evidence.iter().filter(|line| line.what.starts_with("CPU time of the")).count();
        assert_eq!(lines, 2);
        // A dip in the middle, with the same CPU time at both ends.
        let dip = Staged::new().throughput(|second| if (4..16).contains(&second) { 500 } else { 1000 });
        let dip = ["client", "server"].into_iter().fold(dip, |dip, name| {
            let name = format!("host.process.{name}.cpu");
            dip.metric(&format!("{name}.user"), 0.5).metric(&format!("{name}.system"), 0.0)
        });
        let found = find(&dip.done());
        assert!(found[0].next.starts_with("Look at the other findings"), "{found:#?}");
        // The client took as much for each: another cause.
        let found = find(&rising(|second| 0.4 + 0.02 * second.saturating_sub(10) as f64).done());
        assert!(found[0].next.starts_with("Look at the other findings"), "{found:#?}");
    }

    #[test]
    fn scatter_alone_is_none_and_few_seconds_are_said_to_be_few() {
        let mut random = kelvin_stats::bootstrap::Resampler::new(5);
        let mut reds = 0;
        for _ in 0..200 {
            // A tenth of scatter from second to second, as a small shared machine has it.
            let window: Vec<u64> = (0..20).map(|_| (1000.0 + 100.0 * random.normal()) as u64).collect();
            reds += usize::from(found(&window).contains(&Severity::Red));
        }
        assert_eq!(reds, 0, "of 200");
        assert_eq!(found(&[1000; 8]), [Severity::Note]);
        assert_eq!(found(&[1000; 20]), []);
    }
}

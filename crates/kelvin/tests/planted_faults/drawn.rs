//! `cargo xtask faults`: every fault with random parameters, so that no threshold fits a single case, and healthy runs. Each
//! run is printed with its findings and appended to a file. Runs in the file are not repeated, so that the work can be done
//! in slices. Fails if less than nine of ten are right, or if a finding is red without its fault. A weak fault is right if
//! its finding is not red, or if its effect, against the same load without the fault, is at least three times the runs'
//! precision.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kelvin_measure::Random;

use super::Found;
use super::plants::{self, Fault};
use super::results::{Outcome, Results};
use super::speed::SpeedGauge;

/// Findings about other users of the machine, after which a run is repeated. All other red findings count, even where the
/// tests would repeat the run.
const MACHINE: [&str; 2] = ["steal", "noisy-neighbour"];

/// Draws parameters, and collects their text.
struct Draw {
    random: Random,
    shown: Vec<String>,
}

impl Draw {
    /// Draws an integer; the text is `what` with the number in place of `#`.
    fn number(&mut self, what: &str, low: i64, high: i64) -> i64 {
        let number = self.random.range(low, high);
        self.shown.push(what.replace('#', &number.to_string()));
        number
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let word = words[self.random.range(0, words.len() as i64 - 1) as usize];
        self.shown.push(word.into());
        word
    }
}

type Planted = (&'static str, fn(&mut Draw) -> Fault);

const FAULTS: [Planted; 23] = [
    ("forced-checkpoints", |draw| plants::forced_checkpoints(draw.number("max_wal_size #MB", 48, 80))),
    ("autovacuum", |draw| plants::autovacuum_in_window(draw.number("threshold # rows", 20, 200))),
    ("fsync-off", |_| plants::fsync_off()),
    ("hot-rows", |draw| plants::hot_rows(draw.number("# users", 12, 24))),
    ("missing-index", |draw| plants::missing_index(draw.one_of(&["item", "stock"]))),
    ("cpu-hog", |draw| plants::cpu_hog(draw.number("# processes", 3, 6), draw.number("after # s", 0, 8))),
    ("throttled-client", |draw| plants::throttled_client(draw.number("0.# CPUs", 12, 24))),
    ("slow-log", |draw| plants::slow_log(1000 * draw.number("# ms a flush", 8, 25))),
    ("tiny-buffers", |draw| plants::tiny_buffers(draw.number("# MB", 1, 3))),
    ("slow-network", |draw| plants::slow_network(draw.number("# ms each way", 2, 5))),
    ("short-ramp-up", |draw| plants::short_ramp_up(draw.number("# users", 15, 25))),
    ("lock-holder", |draw| plants::lock_holder(1000 * draw.number("# s", 4, 10))),
    ("spill", |draw| plants::spill(draw.number("# rows", 5_000, 30_000))),
    ("storm", |draw| plants::storm(draw.number("# sessions/s", 150, 300))),
    ("held-snapshot", |draw| {
        plants::held_snapshot(draw.number("after # s", 6, 10), draw.number("for # s", 14, 20))
    }),
    ("dropped-statistics", |draw| plants::dropped_statistics(draw.number("# states", 2, 4))),
    ("duplicate-indexes", |draw| plants::duplicate_indexes(draw.number("# indexes", 3, 8))),
    ("packed-pages", |draw| plants::packed_pages(draw.number("# indexes", 4, 8))),
    ("jit", |draw| plants::compiled(draw.number("# rows", 20, 500))),
    ("throttled-server", |draw| plants::throttled_server(draw.number("0.# CPUs", 20, 50))),
    // The findings of these faults are at most amber.
    ("generic-plan", |draw| {
        plants::generic_plan(draw.number("# states", 2, 4), draw.number("a row in #", 500, 2000))
    }),
    ("lock-queue", |draw| {
        let users = draw.number("# users", 6, 12);
        plants::lock_queue(users, draw.number("# keys", 1, 2), draw.number("# ms", 2, 20))
    }),
    ("dropped-dependency", |draw| plants::dropped_dependency(draw.number("# values", 50, 200))),
];

/// Faults that have degrees, so weak that they should cost next to nothing.
const WEAK: [Planted; 15] = [
    ("forced-checkpoints", |draw| plants::forced_checkpoints(draw.number("max_wal_size #MB", 400, 800))),
    ("autovacuum", |draw| plants::autovacuum_in_window(draw.number("threshold # rows", 5_000, 20_000))),
    ("hot-rows", |draw| plants::hot_rows(draw.number("# users", 2, 3))),
    ("missing-index", |draw| plants::missing_index(draw.one_of(&["warehouse", "district"]))),
    ("cpu-hog", |draw| plants::small_cpu_hog(draw.number("0.0# CPUs", 2, 6))),
    ("throttled-client", |draw| plants::throttled_client(draw.number("0.# CPUs", 80, 99))),
    ("slow-log", |draw| plants::slow_log(draw.number("# µs a flush", 10, 60))),
    ("tiny-buffers", |draw| plants::tiny_buffers(draw.number("# MB", 96, 192))),
    ("lock-holder", |draw| plants::lock_holder(draw.number("# ms", 50, 200))),
    ("spill", |draw| plants::spill(draw.number("# rows", 20, 200))),
    ("storm", |draw| plants::storm(draw.number("# sessions/s", 2, 8))),
    ("held-snapshot", |draw| plants::held_snapshot(draw.number("after # s", 6, 10), 1)),
    ("duplicate-indexes", |draw| plants::duplicate_indexes(draw.number("# indexes", 1, 1))),
    ("packed-pages", |draw| plants::packed_pages(draw.number("# indexes", 1, 1))),
    ("throttled-server", |draw| plants::throttled_server(draw.number("#/100 CPUs", 185, 198))),
];

/// The caller's options, which `cargo xtask faults` sets.
struct Options {
    draws: u64,
    healthy: u64,
    seed: u64,
    only: Option<String>,
    /// No run starts later.
    end: Option<Instant>,
    /// Whether each fault is compared with the same load without it.
    strength: bool,
    /// Whether the faults are weak.
    weak: bool,
    interrupted: Arc<AtomicBool>,
}

/// The value of an option; `None` if empty.
fn option(name: &str) -> Option<String> {
    std::env::var(format!("KELVIN_FAULTS_{name}")).ok().filter(|text| !text.is_empty())
}

/// Whether these are the runs of `cargo xtask faults`, which do not compare the formats of a run: the tests do.
pub(crate) fn is_drawing() -> bool {
    option("RESULTS").is_some()
}

fn number(name: &str, default: u64) -> u64 {
    option(name).map_or(default, |text| text.parse().unwrap())
}

impl Options {
    fn from_environment() -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted)).unwrap();
        }
        let only = option("ONLY");
        let names: Vec<&str> = FAULTS.iter().map(|(name, _)| *name).collect();
        for name in only.iter().flat_map(|only| only.split(',')) {
            let known = name == HEALTHY || names.contains(&name);
            assert!(known, "there is no fault {name:?}; there are {HEALTHY}, {}", names.join(", "));
        }
        let minutes = |text: String| Duration::from_secs(60 * text.parse::<u64>().unwrap());
        Self {
            draws: number("DRAWS", 2),
            healthy: number("HEALTHY", if option("WEAK").is_some() { 0 } else { 60 }),
            seed: number("SEED", 1),
            only,
            end: option("MINUTES").map(|text| Instant::now() + minutes(text)),
            strength: option("STRENGTH").is_some() || option("WEAK").is_some(),
            weak: option("WEAK").is_some(),
            interrupted,
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name))
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn is_over(&self) -> bool {
        self.is_interrupted() || self.end.is_some_and(|end| Instant::now() >= end)
    }
}

/// The name of healthy runs in the list of faults.
const HEALTHY: &str = "healthy";

/// Whether other processes used the machine.
fn is_disturbed(found: &Found, planted: &[&str]) -> bool {
    found.red().iter().any(|id| MACHINE.contains(id) && !planted.contains(id))
}

/// How much the speed of the CPUs may change in a healthy run. Throughput follows it and may change twice as much.
const STEADY: f64 = 0.1;

/// Makes a run, and repeats it at most twice if the machine was busy. A healthy run counts whatever its findings; it is
/// repeated only after a change of the CPUs' speed, which the run itself does not measure.
fn run(outcome: Outcome, planted: &Fault, strength: bool) -> Outcome {
    let since = Instant::now();
    let (mut attempts, mut disturbed) = (0, 0);
    let found = loop {
        let gauge = SpeedGauge::start();
        let found = planted.found();
        let change = gauge.change();
        let busy = if planted.is_healthy() { change > STEADY } else { is_disturbed(&found, planted.red()) };
        attempts += 1;
        disturbed += u64::from(busy);
        if !busy || attempts == 3 {
            break found;
        }
        println!(
            "{}: repeated; the CPUs' speed changed by {:.0} %, red: {:?}",
            outcome.label(),
            change * 100.0,
            found.red()
        );
    };
    let owned = |ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let amber = planted.expected_amber();
    let is_own = |id: &str| planted.red().contains(&id) || amber == Some(id);
    let own = found.findings.iter().find(|finding| is_own(finding.id));
    let mut outcome = Outcome {
        expected: owned(planted.red().to_vec()),
        expected_amber: amber.map(str::to_owned),
        red: owned(found.red()),
        amber: owned(found.amber()),
        attempts,
        disturbed,
        per_second: found.per_second(),
        precision: found.precision(),
        effect: own.map(|finding| finding.effect.describe()),
        ..outcome
    };
    if strength && let Some(control) = planted.control() {
        outcome.control_per_second = control.per_second();
        outcome.control_precision = control.precision();
    }
    if !outcome.is_right() {
        found.explain();
    }
    outcome.seconds = since.elapsed().as_secs_f64();
    println!("{}", outcome.line());
    outcome
}

/// The healthy runs of one round, with a separate server for each workload.
fn healthy_round(options: &Options, round: u64, results: &mut Results) {
    let kinds = plants::HEALTHY.len() as u64;
    for (index, workload) in plants::HEALTHY.iter().enumerate() {
        let numbers = (0..options.healthy).filter(|run| run % kinds == index as u64);
        let of_round = |run: &u64| (run / kinds) % options.draws.max(1) == round;
        let open: Vec<Outcome> = numbers
            .filter(of_round)
            .map(|run| Outcome::planned(options.seed, HEALTHY, run, (*workload).to_owned()))
            .filter(|outcome| !results.has(outcome))
            .collect();
        let mut planted = None;
        for outcome in open {
            if options.is_over() {
                return;
            }
            let planted = planted.get_or_insert_with(|| plants::healthy(workload));
            results.add(run(outcome, planted, false));
        }
    }
}

#[test]
#[ignore = "takes an hour: cargo xtask faults"]
fn faults_with_random_parameters() {
    let options = Options::from_environment();
    let mut results = Results::open(option("RESULTS").map(Into::into));
    for round in 0..options.draws.max(1) {
        if options.wants(HEALTHY) {
            healthy_round(&options, round, &mut results);
        }
        let faults = if options.weak { &WEAK[..] } else { &FAULTS };
        for (index, (name, plant)) in faults.iter().enumerate() {
            if round >= options.draws || !options.wants(name) || options.is_over() {
                continue;
            }
            let of_round = |parameters: String| Outcome {
                is_weak: options.weak,
                ..Outcome::planned(options.seed, name, round, parameters)
            };
            if results.has(&of_round(String::new())) {
                continue;
            }
            let random = Random::part(options.seed, index as u64, round);
            let mut parameters = Draw { random, shown: Vec::new() };
            let planted = plant(&mut parameters);
            let planned = of_round(parameters.shown.join(", "));
            results.add(run(planned, &planted, options.strength));
        }
    }
    print!("{}", results.summary());
    assert!(!options.is_interrupted(), "interrupted");
    let (faults, weak, clean) = (results.faults(), results.weak(), results.tally(HEALTHY));
    assert!(faults.runs + weak.runs + clean.runs > 0, "nothing was run");
    assert!(faults.right * 10 >= faults.runs * 9, "{} of {} faults were named", faults.right, faults.runs);
    assert!(
        weak.right * 10 >= weak.runs * 9,
        "{} of {} weak faults were amber or silent",
        weak.right,
        weak.runs
    );
    let wrong = (faults.wrong, weak.wrong, clean.wrong);
    assert_eq!(wrong, (0, 0, 0), "runs with a wrong red finding: with faults, with weak ones, healthy");
}

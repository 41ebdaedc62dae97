//! `cargo xtask faults`: every fault with parameters drawn at random, so that no threshold fits one case only, and healthy
//! runs. Each run is printed with its findings, and how often they were right. Fails if that is less often than nine times of ten,
//! or if a finding is red without its fault.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use kelvin_measure::Random;
use kelvin_stats::proportion::interval;

use super::plants::{self, Fault};

/// Parameters that are drawn, and their text.
struct Draw {
    random: Random,
    shown: Vec<String>,
}

impl Draw {
    /// A whole number; `what` has a `#` in its place.
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

const FAULTS: [Planted; 20] = [
    ("forced-checkpoints", |draw| plants::forced_checkpoints(draw.number("max_wal_size #MB", 48, 80))),
    ("autovacuum", |draw| plants::autovacuum_in_window(draw.number("threshold # rows", 20, 200))),
    ("fsync-off", |_| plants::fsync_off()),
    ("hot-rows", |draw| plants::hot_rows(draw.number("# users", 12, 24))),
    ("missing-index", |draw| plants::missing_index(draw.one_of(&["item", "stock"]))),
    ("cpu-hog", |draw| plants::cpu_hog(draw.number("# processes", 3, 6), draw.number("after # s", 0, 8))),
    ("throttled-client", |draw| plants::throttled_client(draw.number("0.# CPUs", 12, 24))),
    ("slow-log", |draw| plants::slow_log(draw.number("# ms a flush", 8, 25))),
    ("tiny-buffers", |draw| plants::tiny_buffers(draw.number("# MB", 1, 3))),
    ("slow-network", |draw| plants::slow_network(draw.number("# ms each way", 2, 5))),
    ("short-ramp-up", |draw| plants::short_ramp_up(draw.number("# users", 15, 25))),
    ("lock-holder", |draw| plants::lock_holder(draw.number("# s", 4, 10))),
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
];

/// How often the findings of a fault's runs were right.
#[derive(Default)]
struct Tally {
    runs: u64,
    right: u64,
    /// With a red finding that is not the fault's.
    wrong: u64,
    /// Attempts, of which some were repeated.
    attempts: u64,
    /// Attempts with a red finding about the machine.
    invalid: u64,
}

impl Tally {
    fn row(&self, name: &str) -> String {
        let (low, high) = interval(self.right, self.runs, 0.95);
        format!(
            "{name:<20} {:>3} of {:<3} right ({:>3.0} % to {:>3.0} %), {} with a wrong red finding; {} of {} attempts \
             on a busy machine",
            self.right,
            self.runs,
            low * 100.0,
            high * 100.0,
            self.wrong,
            self.invalid,
            self.attempts
        )
    }

    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.right += other.right;
        self.wrong += other.wrong;
        self.attempts += other.attempts;
        self.invalid += other.invalid;
    }
}

fn asked(name: &str) -> Option<String> {
    std::env::var(format!("KELVIN_FAULTS_{name}")).ok().filter(|text| !text.is_empty())
}

fn number(name: &str, default: u64) -> u64 {
    asked(name).map_or(default, |text| text.parse().unwrap())
}

/// Runs one. With a fault it is repeated where the machine was busy, twice at most. A healthy one counts as it is: what repeats it would be
/// the red finding that it must not have.
fn run(name: &str, draw: u64, planted: &Fault, shown: &str, tally: &mut Tally) {
    let since = Instant::now();
    for attempt in 1..=3 {
        let found = planted.found();
        let invalid = found.is_spoilt(planted.red());
        tally.attempts += 1;
        tally.invalid += u64::from(invalid);
        if invalid && attempt < 3 && !planted.red().is_empty() {
            println!("{name} {draw} ({shown}): repeated, the machine was busy: {:?}", found.red());
            continue;
        }
        let red = found.red();
        let right = red == planted.red();
        tally.runs += 1;
        tally.right += u64::from(right);
        tally.wrong += u64::from(red.iter().any(|id| !planted.red().contains(id)));
        println!(
            "{name} {draw} ({shown}): {}; red: {}; amber: {}; {:.0} s",
            if right { "right" } else { "WRONG" },
            red.join(", "),
            found.amber().join(", "),
            since.elapsed().as_secs_f64()
        );
        if !right {
            found.explain();
        }
        return;
    }
}

#[test]
#[ignore = "takes an hour: cargo xtask faults"]
fn faults_with_random_parameters() {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).unwrap();
    }
    let ended = || stop.load(Ordering::Relaxed);
    let (draws, healthy, seed) = (number("DRAWS", 2), number("HEALTHY", 60), number("SEED", 1));
    let only = asked("ONLY");
    let chosen = |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name));
    if let Some(only) = &only {
        let known = |name: &str| name == "healthy" || FAULTS.iter().any(|(fault, _)| *fault == name);
        let names: Vec<&str> = FAULTS.iter().map(|(name, _)| *name).collect();
        for name in only.split(',') {
            assert!(known(name), "there is no fault {name:?}; there are healthy, {}", names.join(", "));
        }
    }
    let mut tallies: BTreeMap<usize, Tally> = BTreeMap::new();
    for draw in 0..draws {
        for (index, (name, plant)) in FAULTS.iter().enumerate().filter(|(_, (name, _))| chosen(name)) {
            if ended() {
                break;
            }
            let mut parameters = Draw { random: Random::part(seed, index as u64, draw), shown: Vec::new() };
            let planted = plant(&mut parameters);
            run(name, draw, &planted, &parameters.shown.join(", "), tallies.entry(index).or_default());
        }
    }
    let mut clean = Tally::default();
    if chosen("healthy") {
        for (index, workload) in plants::HEALTHY.iter().enumerate() {
            let share = (0..healthy).filter(|run| *run as usize % plants::HEALTHY.len() == index).count();
            let planted = (share > 0 && !ended()).then(|| plants::healthy(workload));
            for draw in 0..share as u64 {
                if let Some(planted) = planted.as_ref().filter(|_| !ended()) {
                    run("healthy", draw, planted, workload, &mut clean);
                }
            }
        }
    }
    let mut all = Tally::default();
    println!("\nseed {seed}; 95 % intervals (Clopper and Pearson)");
    for (index, tally) in &tallies {
        println!("{}", tally.row(FAULTS[*index].0));
        all.add(tally);
    }
    println!("{}\n{}", all.row("all faults"), clean.row("healthy runs"));
    assert!(!ended(), "interrupted");
    assert!(all.runs + clean.runs > 0, "nothing was run");
    assert!(all.right * 10 >= all.runs * 9, "{} of {} faults were named", all.right, all.runs);
    assert_eq!((all.wrong, clean.wrong), (0, 0), "runs with a wrong red finding: with faults, healthy");
}

//! The amount of a job's work: the totals of random jobs are compared with those of the installed fio. Includes earlier
//! trials that found differences.
//!
//! By default a few cases with a fixed seed; `KELVIN_TOTALS=CASES,SEED` compares others
//! (`cargo xtask bench fio-totals`).

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "functions of tests")]

mod both;
mod cases;
mod trials;

use std::collections::BTreeMap;

use kelvin_measure::Random;
use rustix::process::{Resource, Rlimit, setrlimit};

use both::{Both, Totals};
use cases::{Case, Draw};

/// Jobs per fio process, which takes a third of a second to start.
const BATCH: usize = 40;

/// Maximum file size of a case in bytes: many times the size that any case needs.
const LARGEST: u64 = 64 << 20;
/// Default cases and seed: a few seconds.
const EVERY_DAY: &str = "40,1";

#[test]
fn totals_are_those_of_fio() {
    let asked = std::env::var("KELVIN_TOTALS").unwrap_or_else(|_| EVERY_DAY.into());
    let (count, seed) = asked.split_once(',').unwrap();
    let (count, seed): (usize, u64) = (count.parse().unwrap(), seed.parse().unwrap());
    let Some(both) = Both::new() else {
        eprintln!("there is no fio 3.33 here: nothing was compared");
        return;
    };
    // A case that fills the filesystem ends this process, not the machine.
    let limit = Rlimit { current: Some(LARGEST), maximum: Some(LARGEST) };
    setrlimit(Resource::Fsize, limit).unwrap();
    let mut draw = Draw(Random::part(seed, 0, 0));
    let (mut refused, mut different, mut options) = (0, 0, BTreeMap::<&str, usize>::new());
    let mut done = 0;
    while done < count {
        let cases: Vec<Case> = (0..BATCH.min(count - done)).map(|_| draw.case()).collect();
        for (case, (kelvin, fio)) in cases.iter().zip(both.all(&cases)) {
            done += 1;
            refused += usize::from(kelvin.is_refused());
            for (option, _) in &case.lines {
                *options.entry(option).or_default() += 1;
            }
            if case.differs(&kelvin, &fio).is_some() {
                different += 1;
                let print = |which: &str, case: &Case, kelvin: &Totals, fio: &Totals| {
                    eprintln!(
                        "case {done}, {which}: {:?}\nthere={:?}\n{}kelvin {kelvin:?}\nfio    {fio:?}\n",
                        case.differs(kelvin, fio),
                        case.there,
                        case.text("job", ".")
                    );
                };
                print("as it was drawn", case, &kelvin, &fio);
                let small = both.shrink(case);
                let (kelvin, fio) = both.one(&small);
                print("made small", &small, &kelvin, &fio);
            }
        }
    }
    eprintln!(
        "{done} cases with seed {seed}: {different} differ; {refused} are refused by both\noptions: {options:?}"
    );
    assert_eq!(different, 0);
}

impl Case {
    /// The differences, as text.
    fn differs(&self, kelvin: &Totals, fio: &Totals) -> Option<String> {
        // Where Kelvin refuses a job, fio reports an error or does nothing.
        if kelvin.is_refused() || fio.did_nothing() && fio.failed.is_none() {
            let both = kelvin.did_nothing() && fio.did_nothing();
            return (!both).then(|| "one refuses".into());
        }
        if kelvin.failed.is_some() || fio.failed.is_some() {
            return (kelvin.failed.is_some() != fio.failed.is_some()).then(|| "one fails".into());
        }
        let exact = self.exact();
        let pairs: Vec<_> = if exact.directions {
            kelvin.directions.iter().copied().zip(fio.directions).collect()
        } else {
            vec![(kelvin.sum(), fio.sum())]
        };
        let slack = self.slack();
        let near = |a: u64, b: u64| a.abs_diff(b) <= slack;
        let exact_ios = pairs.iter().all(|((a, _), (b, _))| a == b);
        let exact_bytes = pairs.iter().all(|((_, a), (_, b))| a == b);
        if exact.ios && !exact_ios {
            return Some("I/Os".into());
        }
        // With drawn sizes, the same number of I/Os has varying bytes, or reaches the end of the region earlier.
        let so_many = self.get("number_ios").is_some() && (exact_ios || self.draws_lengths());
        let near_bytes = so_many || pairs.iter().all(|((_, a), (_, b))| near(*a, *b));
        (exact.bytes && !exact_bytes || !near_bytes).then(|| "bytes".into())
    }

    /// Bytes by which two draws of the same job may differ, if the sizes of its I/Os or files are drawn.
    fn slack(&self) -> u64 {
        let number = |name: &str| self.get(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(1);
        let times = number("loops") * number("numjobs") * number("nrfiles");
        let largest = self.largest_block() + self.largest_file();
        largest * times
    }

    pub(crate) fn largest_block(&self) -> u64 {
        let text = ["bs", "bsrange", "bssplit"].iter().find_map(|option| self.get(option)).unwrap_or("4k");
        let numbers = text.split([',', '-', ':', '/']).filter_map(|number| number.strip_suffix('k'));
        numbers.filter_map(|number| number.parse::<u64>().ok()).max().unwrap_or(4) * 1024
    }

    /// The maximum of a `filesize=` range.
    fn largest_file(&self) -> u64 {
        let range = self.get("filesize").and_then(|size| size.split_once('-'));
        range.and_then(|(_, high)| high.strip_suffix('k')?.parse::<u64>().ok()).unwrap_or(0) * 1024
    }
}

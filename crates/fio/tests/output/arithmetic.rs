//! Figures of outcomes made by hand, counted by hand.

use kelvin_fio::output::read::parse_json;
use kelvin_fio::output::{json, merged};
use kelvin_fio::{Direction, PerDirection};
use proptest::prelude::*;

use crate::support::{SECOND, direction, job, jobs, options, outcome, reader, target, worker};

#[test]
fn percentiles_means_and_rates() {
    // 1,000 I/Os of 4 KiB in two seconds: 101 µs to 1,100 µs.
    let mut one = worker(0);
    let mut only = target("/data/f", None);
    only.directions[Direction::Write] = direction(1000, 101_000, 1000);
    one.targets.push(only);
    one.runtime[Direction::Write] = 2 * SECOND;
    let outcome = outcome(jobs(vec![job("a")]), vec![one]);
    let parsed: serde_json::Value = serde_json::from_str(&json(&outcome, &options(), true)).unwrap();
    let write = &parsed["jobs"][0]["write"];
    assert_eq!(write["iops"], 500.0);
    assert_eq!(write["bw_bytes"], 2_048_000);
    assert_eq!(write["bw"], 2000);
    assert_eq!(write["io_kbytes"], 4000);
    assert_eq!(write["runtime"], 2000);
    let times = &write["clat_ns"];
    assert_eq!(times["mean"], 600_500.0);
    // Of 1 … n: sqrt(n (n + 1) / 12) µs.
    assert_eq!(times["stddev"], 288_819.436_096);
    assert_eq!((times["min"].as_u64(), times["max"].as_u64()), (Some(101_000), Some(1_100_000)));
    for (percent, micros) in [("1.000000", 110.0), ("50.000000", 600.0), ("99.000000", 1090.0)] {
        let found = times["percentile"][percent].as_f64().unwrap();
        assert!((found / 1000.0 / micros - 1.0).abs() < 0.008, "{percent}: {found}");
    }
    let bins: u64 = times["bins"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(bins, 1000);
    // 500 I/Os a second of 601.5 µs.
    let depth = parsed["jobs"][0]["kelvin"]["depth_effective"].as_f64().unwrap();
    assert!((depth - 0.300_75).abs() < 1e-6, "{depth}");
    assert_eq!(parsed["jobs"][0]["kelvin"]["percentiles_of_too_few"]["write"][0], "99.500000");
    assert_eq!(parsed["jobs"][0]["usr_cpu"], 10.0);
    // 899 of the 1,000 end between 101 µs and 1 ms.
    let classes = |unit: &str| -> f64 {
        parsed["jobs"][0][unit].as_object().unwrap().values().map(|share| share.as_f64().unwrap()).sum()
    };
    assert!((classes("latency_us") - 89.9).abs() < 0.5, "{}", classes("latency_us"));
    assert!((classes("latency_us") + classes("latency_ms") - 100.0).abs() < 1e-4);
}

#[test]
fn workers_join_the_group_before_them_only_when_asked_to_and_of_the_same_group() {
    let mut together = job("t");
    together.course.group_reporting = true;
    let mut workers = vec![reader(0), reader(0), reader(1), reader(1)];
    workers[2].group = 1;
    workers[3].group = 1;
    let jobs = jobs(vec![together, job("apart")]);
    let outcome = outcome(jobs, workers);
    let entries = merged(&outcome);
    assert_eq!(entries.iter().map(|entry| entry.workers.len()).collect::<Vec<_>>(), [2, 1, 1]);
    let both = &entries[0].directions[Direction::Read];
    assert_eq!((both.sums.ios, both.runtime), (4000, 2 * SECOND));
    assert_eq!((both.bandwidth.count, both.bandwidth.mean, both.bandwidth.least), (6, 8000.0, 7960.0));
}

#[test]
fn a_target_of_several_workers_has_the_sum_of_their_depths() {
    let mut all = job("t");
    all.course.group_reporting = true;
    let outcome = outcome(jobs(vec![all]), vec![reader(0), reader(0)]);
    let entries = merged(&outcome);
    let targets = entries[0].targets();
    assert_eq!(targets.len(), 1);
    // Each: 1,000 I/Os a second of 250.9 µs.
    assert!((targets[0].depth.unwrap() - 2.0 * 0.2509).abs() < 1e-9);
    assert_eq!(entries[0].effective_depth(), targets[0].depth);
    // Where no times were taken there is none, instead of 0.
    let mut untimed = reader(0);
    for sums in &mut untimed.targets[0].directions.0 {
        (sums.total, sums.completion) = Default::default();
    }
    let outcome = crate::support::outcome(jobs(vec![job("u")]), vec![untimed]);
    assert_eq!(merged(&outcome)[0].effective_depth(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// What is written is what is read again, and Little's law holds between what is written.
    #[test]
    fn what_is_written_is_read_again(
        counts in prop::collection::vec((1_u64..300, 1_u64..5_000_000, 0_u64..10_000), 1..5),
        runtime in 1_000_000_u64..100_000_000_000,
    ) {
        let mut one = worker(0);
        one.measured = runtime;
        one.runtime = PerDirection::all(runtime);
        for (place, (count, first, step)) in counts.iter().enumerate() {
            let mut next = target(&format!("/data/{place}"), None);
            next.directions[Direction::ALL[place % 3]] = direction(*count, *first, *step);
            one.targets.push(next);
        }
        let outcome = outcome(jobs(vec![job("a")]), vec![one]);
        let entries = merged(&outcome);
        let text = json(&outcome, &options(), true);
        let parsed = parse_json(&text, None).unwrap();
        let read = &parsed.results[0].jobs[0];
        prop_assert!(parsed.stray.is_empty());
        let mut little = 0.0;
        for (word, line) in &read.lines {
            let way = Direction::ALL.into_iter().find(|way| way.word() == word).unwrap();
            let written = &entries[0].directions[way];
            prop_assert_eq!(line.ios, written.sums.ios);
            prop_assert_eq!(line.bytes, written.sums.bytes);
            prop_assert!((line.iops / written.iops() - 1.0).abs() < 1e-3);
            prop_assert_eq!(line.completion.count, line.completion.bins.iter().map(|bin| bin.1).sum::<u64>());
            little += line.iops * line.total.mean / 1e9;
        }
        let depth = read.kelvin.as_ref().unwrap().depth.unwrap();
        prop_assert!((little - depth).abs() <= depth * 1e-3 + 1e-5, "{little} and {depth}");
        let sum: f64 = read.kelvin.as_ref().unwrap().targets.iter().filter_map(|target| target.depth).sum();
        prop_assert!((sum - depth).abs() < 1e-4 + depth * 1e-6);
    }
}

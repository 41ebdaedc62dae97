//! How often intervals and change points are wrong: what `docs/statistics.md` states. `cargo xtask bench lab` runs it.
//!
//! `dependent history RECORD HISTORIES`, `dependent usl SWEEPS`, `dependent within RUNS`.

#![allow(clippy::print_stdout, reason = "a program for a person")]

use std::error::Error;

use kelvin_stats::bootstrap::Resampler;
use kelvin_stats::change_points::{self, ChangePoint, Options};
use kelvin_stats::dependence::autoregressive;
use kelvin_stats::ess::conservative_precision;
use kelvin_stats::usl::{Point, Usl};

/// Users of a sweep.
const USERS: [f64; 7] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["history", record, histories] => {
            history(&recorded(&std::fs::read_to_string(record)?)?, histories.parse()?);
        }
        ["usl", sweeps] => usl(sweeps.parse()?),
        ["within", runs] => within(runs.parse()?),
        _ => return Err("dependent history RECORD HISTORIES | usl SWEEPS | within RUNS".into()),
    }
    Ok(())
}

fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of as f64
}

fn find(values: &[f64]) -> Vec<ChangePoint> {
    change_points::find(values, &Options::default())
}

/// Each series of the record as logarithms around their mean.
fn recorded(text: &str) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    let mut series: Vec<(String, Vec<f64>)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.split_once(',').ok_or("a line of the record is not a series and a value")?;
        let value = value.parse::<f64>()?.ln();
        match series.last_mut().filter(|(last, _)| last == name) {
            Some((_, values)) => values.push(value),
            None => series.push((name.into(), vec![value])),
        }
    }
    let around = |(_, values): (String, Vec<f64>)| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.into_iter().map(|value| value - mean).collect()
    };
    Ok(series.into_iter().map(around).collect())
}

/// Moving blocks of the record: each of one series, from a place drawn, laid one behind another.
fn blocks(series: &[Vec<f64>], length: usize, count: usize, random: &mut Resampler) -> Vec<f64> {
    let mut values = Vec::new();
    while values.len() < count {
        let one = &series[random.below(series.len())];
        let start = random.below(one.len() - length + 1);
        values.extend(&one[start..start + length]);
    }
    values.truncate(count);
    values.into_iter().map(f64::exp).collect()
}

/// Entries around 100 that scatter by 1 and follow an AR(1), on levels in per cent of them.
fn noise(levels: &[(f64, usize)], phi: f64, random: &mut Resampler) -> Vec<f64> {
    let levels: Vec<f64> =
        levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count)).collect();
    let noise = autoregressive(levels.len(), phi, random);
    noise.iter().zip(levels).map(|(noise, level)| 100.0 + level + noise).collect()
}

fn history(series: &[Vec<f64>], histories: usize) {
    println!("histories without a change in which one is found, %, of {histories} each");
    println!("| entries | φ = 0 | 0.2 | 0.3 | 0.5 | 0.7 | 0.8 | 0.9 | record, blocks of 5 | of 10 | of 20 |");
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for entries in [20, 30, 50, 100, 300] {
        let rate = |history: &dyn Fn(&mut Resampler) -> Vec<f64>| {
            let mut random = Resampler::new(1_000_003);
            let alarms = (0..histories).filter(|_| !find(&history(&mut random)).is_empty()).count();
            format!(" {:.1} |", percent(alarms, histories))
        };
        let mut row: String = [0.0, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9]
            .map(|phi| rate(&|random| noise(&[(0.0, entries)], phi, random)))
            .concat();
        row += &[5, 10, 20].map(|length| rate(&|random| blocks(series, length, entries, random))).concat();
        println!("| {entries} |{row}");
    }
    println!(
        "\nsteps found within two and within five entries of where they are, %; in standard deviations of the entries"
    );
    println!("| φ | step | entries before, behind | within two | within five |\n|---|---|---|---|---|");
    for (phi, step, before, behind) in [
        (0.0, 3.0, 40, 30),
        (0.0, 3.0, 60, 4),
        (0.0, 2.0, 40, 20),
        (0.0, 1.0, 40, 30),
        (0.0, 3.0, 10, 10),
        (0.0, 5.0, 12, 8),
        (0.0, 5.0, 6, 6),
        (0.5, 5.0, 50, 50),
        (0.5, 5.0, 90, 10),
        (0.5, 3.33, 50, 50),
        (0.5, 2.5, 50, 50),
        (0.8, 5.0, 50, 50),
    ] {
        let mut random = Resampler::new(1_000_033);
        let (mut two, mut five) = (0, 0);
        for _ in 0..histories {
            let found = find(&noise(&[(0.0, before), (-step, behind)], phi, &mut random));
            let within = |entries: usize| found.iter().any(|point| point.index.abs_diff(before) <= entries);
            (two, five) = (two + usize::from(within(2)), five + usize::from(within(5)));
        }
        println!(
            "| {phi} | {step} | {before}, {behind} | {:.1} | {:.1} |",
            percent(two, histories),
            percent(five, histories)
        );
    }
}

fn within(runs: usize) {
    println!(
        "95 % intervals of a mean within one run, %: stated of {runs} each, and covering of those stated"
    );
    println!("| seconds | φ = 0 | 0.3 | 0.5 | 0.8 | 0.9 |\n|---|---|---|---|---|---|");
    for seconds in [16, 20, 30, 60, 120, 300] {
        let cell = |phi: f64| {
            let mut random = Resampler::new(1_000_039);
            let (mut stated, mut covers) = (0, 0);
            for _ in 0..runs {
                let found = conservative_precision(&autoregressive(seconds, phi, &mut random));
                let Some((mean, half)) = found.and_then(|found| Some((found.mean, found.half_width(0.95)?)))
                else {
                    continue;
                };
                stated += 1;
                covers += usize::from(mean.abs() <= half);
            }
            format!(" {:.0}, {:.1} |", percent(stated, runs), percent(covers, stated))
        };
        println!("| {seconds} |{}", [0.0, 0.3, 0.5, 0.8, 0.9].map(cell).concat());
    }
}

/// A way in which throughputs scatter.
#[derive(Clone, Copy)]
enum Errors {
    /// In proportion to the throughput.
    Proportional(f64),
    /// As much at every number of users, as a part of the throughput of eight.
    Equal(f64),
}

fn usl(studies: usize) {
    println!("95 % intervals that hold the truth, %, of {studies} sweeps over 1 to 64 users each");
    println!(
        "| repeats | errors | σ | κ | of λ | of σ | of κ | width of σ's, median |\n|---|---|---|---|---|---|---|---|"
    );
    for repeats in [1, 3, 5] {
        for (errors, words) in [
            (Errors::Proportional(0.02), "2 % of the throughput"),
            (Errors::Equal(0.02), "equal, 2 % of that of 8 users"),
        ] {
            for (sigma, kappa) in [(0.03, 4e-4), (0.03, 0.0), (0.0, 4e-4), (0.0, 0.0)] {
                let [lambda, of_sigma, of_kappa, width] =
                    covered([1000.0, sigma, kappa], errors, repeats, studies);
                println!(
                    "| {repeats} | {words} | {sigma} | {kappa} | {lambda:.1} | {of_sigma:.1} | {of_kappa:.1} | {width:.4} |"
                );
            }
        }
    }
}

/// How often the intervals of λ, σ and κ hold the truth, in per cent, and the median width of σ's.
fn covered(truth: [f64; 3], errors: Errors, repeats: usize, studies: usize) -> [f64; 4] {
    let mut random = Resampler::new(1_000_037);
    let law =
        |users: f64| truth[0] * users / (1.0 + truth[1] * (users - 1.0) + truth[2] * users * (users - 1.0));
    let (mut held, mut widths) = ([0; 3], Vec::new());
    for study in 0..studies {
        let mut measured = |users: f64| {
            let error = match errors {
                Errors::Proportional(part) => part * law(users),
                Errors::Equal(part) => part * law(8.0),
            };
            Point { users, throughput: (law(users) + error * random.normal()).max(1.0) }
        };
        let points: Vec<Point> =
            USERS.iter().flat_map(|users| std::iter::repeat_n(*users, repeats)).map(&mut measured).collect();
        let Some(found) = Usl::fit(&points).ok().and_then(|law| law.intervals(0.95, 400, study as u64))
        else {
            continue;
        };
        for (held, (interval, truth)) in
            held.iter_mut().zip([found.lambda, found.sigma, found.kappa].iter().zip(truth))
        {
            *held += usize::from(interval.low <= truth && truth <= interval.high);
        }
        widths.push(found.sigma.high - found.sigma.low);
    }
    widths.sort_by(f64::total_cmp);
    let [lambda, sigma, kappa] = held.map(|held| percent(held, studies));
    [lambda, sigma, kappa, widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN)]
}

//! What no test and no interval can do better, to hold against what `docs/statistics.md` says ours do. `cargo xtask bench lab
//! bounds` runs it.
//!
//! `bounds DRAWS`.

#![allow(clippy::print_stdout, reason = "a program for a person")]

use std::error::Error;

use kelvin_stats::bootstrap::Resampler;
use kelvin_stats::dependence::autoregressive;
use kelvin_stats::student::quantile;
use kelvin_stats::trend::trend;
use statrs::distribution::{ContinuousCDF, Normal};

fn main() -> Result<(), Box<dyn Error>> {
    let draws = std::env::args().nth(1).ok_or("bounds DRAWS")?.parse()?;
    steps(draws);
    repeats(draws);
    Ok(())
}

fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of as f64
}

/// The likelihood-ratio test of one step, with φ known, that calls 5 % of histories changed that are not.
fn steps(histories: usize) {
    println!(
        "a step after 50 of 100 entries, φ known, 5 % false alarms: how often the best test finds it, %"
    );
    println!("| φ | step | at all | within two | within five |\n|---|---|---|---|---|");
    for (phi, step) in [(0.5, 2.5), (0.5, 3.33), (0.8, 5.0)] {
        let mut random = Resampler::new(1_000_081);
        let mut of_noise: Vec<f64> =
            (0..histories).map(|_| largest_step(&autoregressive(100, phi, &mut random), phi).0).collect();
        of_noise.sort_by(f64::total_cmp);
        let critical = of_noise[histories * 95 / 100];
        let mut counts = [0; 3];
        for _ in 0..histories {
            let mut values = autoregressive(100, phi, &mut random);
            values.iter_mut().skip(50).for_each(|value| *value -= step);
            let (ratio, at) = largest_step(&values, phi);
            for (count, within) in counts.iter_mut().zip([100, 2, 5]) {
                *count += usize::from(ratio > critical && at.abs_diff(50) <= within);
            }
        }
        let [all, two, five] = counts.map(|count| percent(count, histories));
        println!("| {phi} | {step} | {all:.1} | {two:.1} | {five:.1} |");
    }
}

/// What the sum of squares of what is new falls by, over what is left, with a step at the best place; and that place.
fn largest_step(values: &[f64], phi: f64) -> (f64, usize) {
    let (n, rest, part) = (values.len(), (1.0 - phi * phi).sqrt(), 1.0 - phi);
    let mut news: Vec<f64> = values.windows(2).map(|pair| pair[1] - phi * pair[0]).collect();
    news.insert(0, rest * values[0]);
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut mean = vec![part; n];
    mean[0] = rest;
    let (means, of_mean) = (product(&mean, &mean), product(&mean, &news));
    let all = product(&news, &news) - of_mean * of_mean / means;
    let falls = (2..=n - 2).map(|cut| {
        let step: Vec<f64> = (0..n)
            .map(|i| match i.cmp(&cut) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 1.0,
                std::cmp::Ordering::Greater => part,
            })
            .collect();
        let shared = product(&mean, &step);
        let fall = product(&step, &news) - shared * of_mean / means;
        (fall * fall / (product(&step, &step) - shared * shared / means), cut)
    });
    let best = falls.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0));
    (best.0 / (all - best.0), best.1)
}

/// Runs of a group, their correlation, and the half-width that is asked for, in standard deviations of a run: 2 % of 1 %, as
/// logarithms.
const RUNS: usize = 6;
const PHI: f64 = 0.5;
const ASKED: f64 = 1.98;

/// Steps of the grid over the scatter √Σ(x − x̄)².
const SCATTERS: usize = 600;
const SCATTER: f64 = 0.01;

/// One shape of six runs: their distances from the mean over their scatter.
struct Shape {
    /// How much more likely it is with the correlation than without.
    likelier: f64,
    /// The scatter, with the correlation, is a chi with five degrees of freedom over this.
    scale: f64,
    /// The scatter beyond which the runs drift, which are then not called known.
    drifts: f64,
}

/// Of every rule that widens an interval with the scatter of the runs, by whatever their shape says: the largest part of what
/// Student's interval calls known of independent runs, given how often its intervals cover, of those it calls known, where
/// the runs depend on each other. By Neyman and Pearson's lemma, shape by shape. The interval may even be centred where the
/// generalised mean is with the φ that only the simulation knows.
fn repeats(draws: usize) {
    println!(
        "\nsix runs, ± 2 % asked, deviation 1 %: the most that is known without correlation, of what is by Student's"
    );
    println!("| of what is called known at φ = {PHI} is covered | known at φ = 0 at most |\n|---|---|");
    let mut random = Resampler::new(1_000_099);
    let shapes: Vec<Shape> = (0..draws).map(|_| shape(&autoregressive(RUNS, 0.0, &mut random))).collect();
    let normal = Normal::standard();
    // A chi with five degrees of freedom.
    let middle = |i: usize| (i as f64 + 0.5) * SCATTER;
    let density: Vec<f64> =
        (0..SCATTERS).map(|i| middle(i).powi(4) * (-middle(i).powi(2) / 2.0).exp()).collect();
    let all: f64 = density.iter().sum();
    let mut below = vec![0.0];
    for part in density {
        below.push(below[below.len() - 1] + part / all);
    }
    let until = |scatter: f64| below[((scatter / SCATTER) as usize).min(SCATTERS)];
    let (n, freedom) = (RUNS as f64, RUNS as f64 - 1.0);
    let student = ASKED * (n * freedom).sqrt() / quantile(0.975, freedom).unwrap_or(f64::NAN);
    let by_student: f64 = shapes.iter().map(|shape| until(student.min(shape.drifts))).sum();
    let likelier: f64 = shapes.iter().map(|shape| shape.likelier).sum::<f64>() / draws as f64;
    // Of the generalised mean.
    let information = (2.0 + (n - 2.0) * (1.0 - PHI)) * (1.0 - PHI) / (1.0 - PHI * PHI);
    // What is called known up to a scatter: its part, and the part that is and is not covered.
    let known = |shape: &Shape, most: f64| {
        let end = ((most.min(shape.drifts) * shape.scale / SCATTER) as usize).min(SCATTERS);
        let missed = |i: usize| {
            let half = ASKED * middle(i) / (most * shape.scale);
            2.0 * normal.cdf(-half * information.sqrt()) * (below[i + 1] - below[i])
        };
        (below[end], (0..end).map(missed).sum::<f64>())
    };
    let choices: Vec<Vec<(f64, f64, f64)>> = shapes
        .iter()
        .map(|shape| {
            let scatters = (1..88).map(|i| f64::from(i) * 0.05).filter(|most| *most <= student);
            scatters
                .map(|most| {
                    let (known, missed) = known(shape, most);
                    let weight = shape.likelier / likelier;
                    (until(most.min(shape.drifts)), weight * known, weight * missed)
                })
                .collect()
        })
        .collect();
    for covers in [0.90, 0.91, 0.92, 0.93] {
        let (mut low, mut high) = (0.0, 50.0);
        let (mut kept, mut covered) = (0.0, 0.0);
        for _ in 0..20 {
            let price: f64 = f64::midpoint(low, high);
            let worth = |one: &(f64, f64, f64)| one.0 - price * (one.2 - (1.0 - covers) * one.1);
            let best = choices.iter().filter_map(|of| {
                of.iter().filter(|one| worth(one) > 0.0).max_by(|a, b| worth(a).total_cmp(&worth(b)))
            });
            let sums = best.fold((0.0, 0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2));
            (kept, covered) = (100.0 * sums.0 / by_student, 1.0 - sums.2 / sums.1);
            if covered < covers { low = price } else { high = price }
        }
        println!("| {:.1} % | {kept:.1} % |", 100.0 * covered);
    }
}

fn shape(values: &[f64]) -> Shape {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let scatter = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>().sqrt();
    let shape: Vec<f64> = values.iter().map(|value| (value - mean) / scatter).collect();
    let news: Vec<f64> = shape.windows(2).map(|pair| pair[1] - PHI * pair[0]).collect();
    let rest = 1.0 - PHI * PHI;
    // The quadratic form of the inverse correlation matrix, less what the generalised mean takes.
    let (ends, sum) = (shape[0] + shape[RUNS - 1], shape.iter().sum::<f64>());
    let information = (2.0 + (RUNS as f64 - 2.0) * (1.0 - PHI)) * (1.0 - PHI) / rest;
    let toward = (1.0 - PHI) * ((1.0 - PHI) * sum + PHI * ends) / rest;
    let form = (shape[0].powi(2) * rest + news.iter().map(|new| new * new).sum::<f64>()) / rest;
    let form = form - toward * toward / information;
    let small: Vec<f64> = shape.iter().map(|value| (0.01 * value).exp()).collect();
    let drifts = trend(&small).filter(|found| found.p < 0.05);
    Shape {
        likelier: form.powf(-(RUNS as f64 - 1.0) / 2.0),
        scale: form.sqrt(),
        drifts: drifts.map_or(f64::INFINITY, |found| 0.01 * ASKED / found.change.abs()),
    }
}

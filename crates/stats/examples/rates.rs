//! The rates that docs/statistics.md states: `cargo run --release -p kelvin-stats --example rates`.

#![allow(clippy::print_stdout)]

use kelvin_stats::bootstrap::Resampler;
use kelvin_stats::compare::{ChangeVerdict, ComparedSamples, compare};
use kelvin_stats::power;
use kelvin_stats::sequential::Boundary;
use kelvin_stats::student::{describe, mean_interval, quantile};

const STUDIES: u32 = 10_000;

fn main() {
    planned();
    println!("\nchanged, %: mean of three, pairs, independent (six runs a side, noise 1 %)");
    for cv in [0.005, 0.01, 0.02] {
        for effect in [0.0, -0.03] {
            verdicts(cv, 0.0, effect);
        }
    }
    verdicts(0.01, 0.03, 0.0);
    verdicts(0.01, 0.03, -0.03);
    looks();
    until();
}

fn percent(count: u32, of: u32) -> f64 {
    100.0 * f64::from(count) / f64::from(of)
}

fn planned() {
    println!("runs a side to find 1, 2, 3, 5 % in nine of ten studies");
    for cv in [0.005, 0.01, 0.02, 0.03] {
        let runs = [0.01, 0.02, 0.03, 0.05].map(|effect| power::runs_a_side(cv, -effect, 0.9, 0.95));
        println!("CV {cv}: {runs:?}");
    }
}

/// Runs that scatter by `cv`, in blocks that scatter by `drift`; B is A, changed by `effect`.
fn verdicts(cv: f64, drift: f64, effect: f64) {
    let mut random = Resampler::new(42);
    let [mut three, mut pairs, mut independent] = [0; 3];
    for _ in 0..STUDIES {
        let mut blocks = |n: usize| (0..n).map(|_| (drift * random.normal()).exp()).collect::<Vec<f64>>();
        // The three and three are run one side after the other: they share no block.
        let (six, first, second) = (blocks(6), blocks(3), blocks(3));
        let mut side = |blocks: &[f64], level: f64| -> Vec<f64> {
            blocks.iter().map(|block| block * level * (cv * random.normal()).exp()).collect()
        };
        let (a, b) = (side(&six, 1.0), side(&six, 1.0 + effect));
        let changed = |sides| compare(sides, 0.01, 0.95).is_some_and(|c| c.verdict == ChangeVerdict::Changed);
        pairs += u32::from(changed(ComparedSamples::Paired { a: &a, b: &b }));
        independent += u32::from(changed(ComparedSamples::Independent { a: &a, b: &b }));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let ratio = mean(&side(&second, 1.0 + effect)) / mean(&side(&first, 1.0));
        three += u32::from((ratio - 1.0).abs() > 0.01);
    }
    let [three, pairs, independent] = [three, pairs, independent].map(|count| percent(count, STUDIES));
    println!("CV {cv}, blocks {drift}, effect {effect}: {three:.1} {pairs:.1} {independent:.1}");
}

fn looks() {
    println!(
        "\nfalse alarms of the paired t test over several looks, %: by the normal theory's bounds, by ours, by 5 % each"
    );
    for looks in [vec![6, 8, 10, 12], vec![4, 5, 6, 7, 8, 9, 10], (4..=20).collect(), vec![6, 12]] {
        let boundaries = [Boundary::normal(&looks, 0.05), Boundary::new(&looks, 0.05), None];
        let rates = boundaries.map(|boundary| {
            let nominal = |look: usize| boundary.as_ref().map_or(0.05, |b| b.nominal(look));
            let critical = |(look, n): (usize, &u32)| {
                quantile(1.0 - nominal(look).max(1e-12) / 2.0, f64::from(*n) - 1.0).unwrap_or(f64::INFINITY)
            };
            let critical: Vec<f64> = looks.iter().enumerate().map(critical).collect();
            let mut random = Resampler::new(19);
            let mut alarms = 0;
            for _ in 0..10 * STUDIES {
                let differences: Vec<f64> = (0..looks[looks.len() - 1]).map(|_| random.normal()).collect();
                let t = |n: u32| {
                    let seen = describe(&differences[..n as usize])?;
                    Some((seen.mean / seen.sd? * f64::from(n).sqrt()).abs())
                };
                let stops = looks.iter().zip(&critical).any(|(n, critical)| t(*n) > Some(*critical));
                alarms += u32::from(stops);
            }
            percent(alarms, 10 * STUDIES)
        });
        println!("{looks:?}: {:.2} {:.2} {:.2}", rates[0], rates[1], rates[2]);
    }
}

fn until() {
    println!(
        "\nhow often a 95 % interval holds the truth that ended the runs by being within 1 %, from six on, %"
    );
    for cv in [0.005, 0.01, 0.015, 0.02, 0.03] {
        let mut random = Resampler::new(9);
        let mut covered = 0;
        for _ in 0..STUDIES {
            let mut values: Vec<f64> = Vec::new();
            while values.len() < 60 {
                values.push(100.0 * (1.0 + cv * random.normal()));
                let Some((low, high)) = mean_interval(&values, 0.95) else { continue };
                if values.len() >= 6 && (high - low) / 2.0 <= 0.01 * f64::midpoint(low, high) {
                    break;
                }
            }
            covered += u32::from(
                mean_interval(&values, 0.95).is_some_and(|(low, high)| low <= 100.0 && 100.0 <= high),
            );
        }
        println!("CV {cv}: {:.1}", percent(covered, STUDIES));
    }
}

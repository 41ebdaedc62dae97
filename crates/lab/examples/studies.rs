//! Counts on recorded noise how often A/B comparisons are wrong. `cargo xtask bench lab` runs it.
//!
//! `studies false-alarms RECORD STUDIES` and `studies power RECORD STUDIES PER-CENT POWER`.

#![allow(clippy::print_stdout, reason = "a program for a person")]

use std::error::Error;

use kelvin_lab::BenchError;
use kelvin_lab::ab::Plan;
use kelvin_lab::simulated::Noise;
use kelvin_lab::simulated::studies::{Counted, count, plan};
use kelvin_stats::rank::median;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let noise =
        |file: &str| -> Result<Noise, Box<dyn Error>> { Ok(Noise::parse(&std::fs::read_to_string(file)?)?) };
    match words.as_slice() {
        ["false-alarms", file, studies] => Ok(false_alarms(&noise(file)?, studies.parse()?)?),
        ["power", file, studies, percent, power] => {
            let effect = percent.parse::<f64>()? / 100.0;
            Ok(found(&noise(file)?, studies.parse()?, effect, power.parse()?)?)
        }
        _ => Err("studies false-alarms RECORD STUDIES | studies power RECORD STUDIES PER-CENT POWER".into()),
    }
}

fn false_alarms(noise: &Noise, studies: u32) -> Result<(), BenchError> {
    let sampling = 2.0 * (0.05 * 0.95 / f64::from(studies)).sqrt();
    println!(
        "{studies} studies of A against A, each; at most {:.1} % may say \"changed\" (5 % and two standard errors)",
        100.0 * (0.05 + sampling)
    );
    println!("| plan | \"changed\" | means of three differ by more than 1 % |\n|---|---|---|");
    for (name, plan) in [
        ("6 blocks", plan()),
        ("6 blocks, no control", Plan { control: false, ..plan() }),
        ("12 blocks", Plan { blocks: 12, ..plan() }),
        ("20 blocks, may end early", Plan { blocks: 20, stop_early: true, ..plan() }),
        ("planned for 3 % by a pilot", Plan { effect: Some(0.03), ..plan() }),
    ] {
        let counted = count(&plan, noise, 0.0, studies, 1)?;
        println!(
            "| {name} | {} | {} |",
            share(counted.changed, studies),
            share(counted.means_of_three, studies)
        );
    }
    Ok(())
}

fn found(noise: &Noise, studies: u32, effect: f64, power: f64) -> Result<(), BenchError> {
    let planned = Plan { effect: Some(effect), power, most: 400, ..plan() };
    let counted = count(&planned, noise, effect, studies, 2)?;
    println!(
        "a slowdown of {:.1} % planted in {studies} studies that the tool planned for a power of {power}:",
        100.0 * effect
    );
    println!("found: {}", share(counted.changed, studies));
    println!("means of three, more than 1 % lower: {}", share(counted.means_of_three, studies));
    let blocks = middle(&counted.blocks);
    println!("blocks planned: median {blocks:.0}, from {} to {}", least(&counted), most(&counted));
    // What a fixed number of blocks would have found, to hold the planned one against.
    let at = |blocks: u32| -> Result<f64, BenchError> {
        let fixed = Plan { blocks, ..plan() };
        Ok(f64::from(count(&fixed, noise, effect, studies, 3)?.changed) / f64::from(studies))
    };
    let (mut low, mut high) = (4_u32, 4_u32);
    while at(high)? < power && high < 400 {
        low = high;
        high *= 2;
    }
    while high - low > 1 {
        let middle = u32::midpoint(low, high);
        if at(middle)? < power { low = middle } else { high = middle }
    }
    println!(
        "blocks needed: {high} of a fixed number find it with that power; planned over needed {:.2}",
        blocks / f64::from(high)
    );
    Ok(())
}

fn middle(blocks: &[u32]) -> f64 {
    median(&blocks.iter().map(|&n| f64::from(n)).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

fn least(counted: &Counted) -> u32 {
    counted.blocks.iter().min().copied().unwrap_or(0)
}

fn most(counted: &Counted) -> u32 {
    counted.blocks.iter().max().copied().unwrap_or(0)
}

/// "12 of 200 (6.0 %)".
fn share(part: u32, of: u32) -> String {
    format!("{part} of {of} ({:.1} %)", 100.0 * f64::from(part) / f64::from(of))
}

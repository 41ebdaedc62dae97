//! Counts how often A/B comparisons on recorded noise are wrong. `cargo xtask bench lab` runs it.
//!
//! `studies mm4 RUNS`: the p99 of simulated open loops, compared with the same arrivals followed to their end.
//!
//! `studies false-alarms RECORD STUDIES`, `studies power RECORD STUDIES PER-CENT POWER`, and on generated noise
//! `studies carry-over STUDIES SEED` and `studies dependence STUDIES SEED`.

#![allow(clippy::print_stdout, reason = "a program for a person")]

use std::error::Error;

use kelvin_lab::ab::{AbPlan, Side};
use kelvin_lab::repeat::{self, GroupRun, RepeatPlan, RepeatSummary, Steady};
use kelvin_lab::simulated::queue::Servers;
use kelvin_lab::simulated::studies::{Counted, Draw, Setting, count, dependent, plan, white};
use kelvin_lab::simulated::{Noise, Simulated, Simulation, figure};
use kelvin_lab::{BenchError, Planned};
use kelvin_run::Spec;
use kelvin_run::spec::WorkloadName;
use kelvin_stats::bootstrap::Resampler;
use kelvin_stats::compare::{ChangeVerdict, ComparedSamples, compare};
use kelvin_stats::rank::median;
use kelvin_stats::student::mean_interval;
use kelvin_store::{GroupId, GroupSlot, RunId, Store};

/// Seeds that differ from those of the tests.
const SEEDS: u64 = 7_000_000;

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
        ["mm4", runs] => mm4(runs.parse()?),
        ["carry-over", studies, seed] => Ok(carry_over(studies.parse()?, seed.parse()?)?),
        ["dependence", studies, seed] => {
            repeats(studies.parse()?, seed.parse()?);
            until(studies.parse()?, seed.parse()?)?;
            groups(studies.parse()?, seed.parse()?);
            Ok(())
        }
        _ => Err("studies mm4 RUNS | studies carry-over STUDIES SEED | studies dependence STUDIES SEED | studies false-alarms RECORD STUDIES | studies power RECORD STUDIES PER-CENT POWER".into()),
    }
}

/// M/M/4 at four utilisations, over 10 and 60 s.
fn mm4(runs: u64) -> Result<(), Box<dyn Error>> {
    println!(
        "{runs} runs each of M/M/4, 500 arrivals a second, ramp-up 30 s; bias: mean of reported over followed; coverage: of \
         the steady state's p99"
    );
    println!(
        "| utilisation | window | waited at the close | p99 not known | at least | bias | worst | steady state, ms | \
         coverage | no upper end | high/low |\n|---|---|---|---|---|---|---|---|---|---|---|"
    );
    let place = tempfile::tempdir()?;
    for utilisation in [0.50, 0.75, 0.88, 0.94] {
        for window in [10, 60] {
            let load = Servers { servers: 4, rate: 500.0, utilisation, ramp_up: 30, window };
            let store = Store::open(place.path().join(format!("{utilisation}-{window}.db")))?;
            let (mut waited, mut none, mut bounds, mut covered, mut open, mut intervals) = (0, 0, 0, 0, 0, 0);
            let (mut ratios, mut widths) = (Vec::new(), Vec::new());
            for seed in 1..=runs {
                let found = load.run(SEEDS + seed, &store).map_err(|error| error.to_string())?;
                waited += u64::from(found.waited > 0);
                match found.p99 {
                    None => none += 1,
                    Some(p99) => {
                        bounds += u64::from(p99.at_least);
                        ratios.push(p99.value / found.followed);
                    }
                }
                let Some(interval) = found.interval else { continue };
                intervals += 1;
                let known = load.p99();
                covered += u64::from(interval.low <= known && interval.high.is_none_or(|high| known <= high));
                open += u64::from(interval.high.is_none());
                widths.extend(interval.high.map(|high| high / interval.low));
            }
            let percent = |n: u64, of: u64| format!("{:.1} %", 100.0 * n as f64 / of.max(1) as f64);
            let mean = ratios.iter().sum::<f64>() / ratios.len().max(1) as f64;
            let worst = ratios.iter().map(|ratio| (ratio - 1.0).abs()).fold(0.0, f64::max);
            println!(
                "| {:.0} % | {window} s | {} | {none} | {bounds} | {:+.2} % | {:.2} % | {:.1} | {} | {} | {} |",
                100.0 * utilisation,
                percent(waited, runs),
                100.0 * (mean - 1.0),
                100.0 * worst,
                load.p99() / 1e6,
                percent(covered, intervals),
                percent(open, intervals),
                median(&widths).map_or("–".to_owned(), |width| format!("{width:.2}")),
            );
        }
    }
    Ok(())
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
        ("6 blocks, no control", AbPlan { control: false, ..plan() }),
        ("12 blocks", AbPlan { blocks: 12, ..plan() }),
        ("20 blocks, may end early", AbPlan { blocks: 20, stop_early: true, ..plan() }),
        ("planned for 3 % by a pilot", AbPlan { effect: Some(0.03), ..plan() }),
    ] {
        let draw = |random: &mut Resampler, n| noise.draw(random, n);
        let setting = Setting { noise: &draw, slower: 0.0, carry_over: 0.0, studies, seed: 1 };
        let counted = count(&plan, &setting)?;
        println!(
            "| {name} | {} | {} |",
            share(counted.changed, studies),
            share(counted.means_of_three, studies)
        );
    }
    Ok(())
}

fn found(noise: &Noise, studies: u32, effect: f64, power: f64) -> Result<(), BenchError> {
    let planned = AbPlan { effect: Some(effect), power, most: 400, ..plan() };
    let draw = |random: &mut Resampler, n| noise.draw(random, n);
    let setting = Setting { noise: &draw, slower: effect, carry_over: 0.0, studies, seed: 2 };
    let counted = count(&planned, &setting)?;
    println!(
        "a slowdown of {:.1} % planted in {studies} studies that the tool planned for a power of {power}:",
        100.0 * effect
    );
    println!("found: {}", share(counted.changed, studies));
    println!("means of three, more than 1 % lower: {}", share(counted.means_of_three, studies));
    let blocks = middle(&counted.blocks);
    println!("blocks planned: median {blocks:.0}, from {} to {}", least(&counted), most(&counted));
    // The power of a fixed number of blocks, for comparison with the planned number.
    let at = |blocks: u32| -> Result<f64, BenchError> {
        let fixed = AbPlan { blocks, ..plan() };
        Ok(f64::from(count(&fixed, &Setting { seed: 3, ..setting })?.changed) / f64::from(studies))
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

/// Carry-over from a run to the next run of its side, periodic disturbances, and the power without either.
fn carry_over(studies: u32, seed: u64) -> Result<(), BenchError> {
    println!("{studies} studies each; independent noise of 1 % where nothing else is said");
    println!("| plan | setting | interval covers | \"changed\" | sign flips p <= 5 % | control differs |");
    println!("|---|---|---|---|---|---|");
    let row = |name: &str, plan: &AbPlan, what: &str, setting: &Setting<'_>| -> Result<(), BenchError> {
        let counted = count(plan, setting)?;
        let [covered, changed, flipped, control] =
            [counted.covered, counted.changed, counted.flipped, counted.control_differs]
                .map(|part| share(part, studies));
        println!("| {name} | {what} | {covered} | {changed} | {flipped} | {control} |");
        Ok(())
    };
    let white = white(0.01);
    let still = Setting { noise: &white, slower: 0.0, carry_over: 0.0, studies, seed };
    for blocks in [6, 12, 20] {
        let (name, with) = (format!("{blocks} blocks"), AbPlan { blocks, ..plan() });
        for (what, carry_over) in [("A and A", 0.0), ("w = 1 %", 0.01), ("w = 2 %", 0.02)] {
            row(&name, &with, what, &Setting { carry_over, ..still })?;
        }
        row(&name, &with, "3 % planted", &Setting { slower: 0.03, ..still })?;
        row(&name, &with, "3 % planted, w = 2 %", &Setting { slower: 0.03, carry_over: 0.02, ..still })?;
        let without = AbPlan { control: false, ..with };
        row(&format!("{name}, no control"), &without, "w = 2 %", &Setting { carry_over: 0.02, ..still })?;
    }
    let third = Side { name: "C".into(), ..plan().sides.remove(0) };
    let three = AbPlan { sides: [plan().sides, vec![third]].concat(), ..plan() };
    row("6 blocks, three sides", &three, "w = 2 %", &Setting { carry_over: 0.02, ..still })?;
    for period in [2_usize, 3, 4, 5, 6] {
        let round = move |random: &mut Resampler, n: usize| -> Vec<f64> {
            let runs = 0..n;
            runs.map(|run| (0.003 * random.normal()).exp() * if run % period == 0 { 1.03 } else { 1.0 })
                .collect()
        };
        let noise: Draw<'_> = &round;
        let what = format!("3 % each {period} runs, 0.3 % noise");
        row("6 blocks", &plan(), &what, &Setting { noise, ..still })?;
        row(
            "12 blocks, no control",
            &AbPlan { control: false, blocks: 12, ..plan() },
            &what,
            &Setting { noise, ..still },
        )?;
    }
    Ok(())
}

/// The values of runs as rows of a group.
fn rows(values: &[f64]) -> Vec<GroupRun> {
    let row = |(place, value): (u32, &f64)| GroupRun {
        run: RunId(i64::from(place)),
        slot: GroupSlot { place, block: place, treatment: String::new() },
        void: None,
        figures: vec![figure("tps", *value)],
        steady: Steady::Unknown,
        noise: None,
        failed: 0,
    };
    (0..).zip(values).map(row).collect()
}

/// `--repeat 6`: how many results are called known, and in how many of those the interval covers the true mean.
fn repeats(studies: u32, seed: u64) {
    println!("{studies} groups of 6 runs each, deviation 1 %, asked: ± 2 %; Student's interval beside it");
    println!(
        "| φ | earlier groups | known | of them the interval covers | known by Student's | of them still | of them covers |"
    );
    println!("|---|---|---|---|---|---|---|");
    let spec = Spec::new(WorkloadName::TprocC);
    for phi in [0.0, 0.3, 0.5, 0.8] {
        for earlier in [0, 1, 5, 10, 20] {
            let mut random = Resampler::new(seed);
            let (mut known, mut covered, mut before, mut still, mut covered_before) = (0, 0, 0, 0, 0);
            for _ in 0..studies {
                let mut series = || dependent(0.01, phi)(&mut random, 6);
                let plan = RepeatPlan {
                    earlier: (0..earlier).map(|_| series()).collect(),
                    ..RepeatPlan::fixed(&spec, 6)
                };
                let values = series();
                let summary = RepeatSummary::of(&plan, &rows(&values));
                let Some((low, high)) = summary.spread.and_then(|spread| spread.interval) else { continue };
                let yes = summary.answer.correct;
                known += u32::from(yes);
                covered += u32::from(yes && low <= 1.0 && 1.0 <= high);
                let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
                let Some((low, high)) = mean_interval(&logs, 0.95) else { continue };
                let drifts = summary.drift.is_some_and(|drift| drift.matters);
                let yes_before = !drifts && ((high - low) / 2.0).exp_m1() <= 0.02;
                before += u32::from(yes_before);
                still += u32::from(yes && yes_before);
                covered_before += u32::from(yes_before && low <= 0.0 && 0.0 <= high);
            }
            println!(
                "| {phi} | {earlier} | {} | {} | {} | {} | {} |",
                share(known, studies),
                share(covered, known),
                share(before, studies),
                share(still, before),
                share(covered_before, before)
            );
        }
    }
    println!();
}

/// `--until`: why it ended, and whether the interval covers the true mean.
fn until(studies: u32, seed: u64) -> Result<(), BenchError> {
    println!(
        "| φ | deviation | `--until 'ci<1%'` says yes | of them covers | runs in the mean |\n|---|---|---|---|---|"
    );
    let spec = Spec::new(WorkloadName::TprocC);
    for (phi, sd) in [(0.0, 0.01), (0.0, 0.015), (0.5, 0.01), (0.8, 0.01)] {
        let plan = RepeatPlan::until(&spec, 6, 30, 0.01);
        let mut random = Resampler::new(seed);
        let (mut yes, mut covered, mut runs) = (0, 0, 0);
        for _ in 0..studies / 4 {
            let values = dependent(sd, phi)(&mut random, 30);
            let mut places = values.iter();
            let mut bench =
                Simulated::new(|_: &Planned<'_>| Ok(Simulation::of(places.next().copied().unwrap_or(1.0))));
            let ran = repeat::run(&plan, &spec, GroupId(1), &mut bench, &|_| String::new())?;
            let summary = RepeatSummary::of(&plan, &ran.rows);
            let Some((low, high)) = summary.spread.and_then(|spread| spread.interval) else { continue };
            yes += u32::from(summary.answer.correct);
            covered += u32::from(summary.answer.correct && low <= 1.0 && 1.0 <= high);
            runs += ran.rows.len();
        }
        println!(
            "| {phi} | {sd} | {} | {} | {:.1} |",
            share(yes, studies / 4),
            share(covered, yes),
            runs as f64 / f64::from(studies / 4)
        );
    }
    println!();
    Ok(())
}

/// `compare` and `gate` on 6 runs and then 6 more of the same thing.
fn groups(studies: u32, seed: u64) {
    println!("6 runs and then 6 more, deviation 1 %; a regression of more than 3 % fails the gate");
    println!(
        "| φ | candidate | changed by Welch's | changed | undetermined | gate failed by Welch's | gate fails |"
    );
    println!("|---|---|---|---|---|---|---|");
    for phi in [0.0, 0.3, 0.5, 0.8] {
        for slower in [0.0, 0.03, 0.06] {
            let mut random = Resampler::new(seed);
            let mut counts = [0; 5];
            for _ in 0..studies {
                let all = dependent(0.01, phi)(&mut random, 12);
                let (a, b) = all.split_at(6);
                let b: Vec<f64> = b.iter().map(|value| value * (1.0 - slower)).collect();
                let of = |sides: ComparedSamples<'_>| compare(sides, 0.01, 0.95);
                let (Some(before), Some(now)) = (
                    of(ComparedSamples::Independent { a, b: &b }),
                    of(ComparedSamples::Consecutive { a, b: &b }),
                ) else {
                    continue;
                };
                let seen = [
                    before.verdict == ChangeVerdict::Changed,
                    now.verdict == ChangeVerdict::Changed,
                    now.verdict == ChangeVerdict::Undetermined,
                    before.ratio.high < 0.97,
                    now.ratio.high < 0.97,
                ];
                for (count, seen) in counts.iter_mut().zip(seen) {
                    *count += u32::from(seen);
                }
            }
            let [welch, changed, undetermined, failed, fails] = counts.map(|count| share(count, studies));
            let candidate =
                if slower == 0.0 { "the same".into() } else { format!("{} % slower", 100.0 * slower) };
            println!("| {phi} | {candidate} | {welch} | {changed} | {undetermined} | {failed} | {fails} |");
        }
    }
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
    format!("{part} of {of} ({:.1} %)", 100.0 * f64::from(part) / f64::from(of.max(1)))
}

//! Whether rates are kept, and whether Poisson starts are exponentially distributed.

use std::fs;

use anyhow::{Context, Result, ensure};

use super::super::options::Options;
use super::super::table::{Line, whole};
use super::super::{interrupt, median};
use super::{IoBench, figure, flags, line, text};

/// I/Os per second of the Poisson row.
const RATE: f64 = 2000.0;

/// The selected rows of this file.
pub(super) fn rows(place: &IoBench, options: &Options, chosen: &[&str]) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    if chosen.contains(&"rate") {
        lines.push(rate(place, options, ("rate_iops", "10000"), "/read/iops", 10_000.0)?);
        lines.push(rate(place, options, ("rate", "20m"), "/read/bw_bytes", f64::from(20 << 20))?);
    }
    if chosen.contains(&"poisson") {
        lines.push(poisson(place, options)?);
    }
    Ok(lines)
}

/// A rate that the machine can keep.
fn rate(place: &IoBench, options: &Options, flag: (&str, &str), pointer: &str, wanted: f64) -> Result<Line> {
    let file = text(&place.filled("cached", 16)?)?;
    let seconds = options.seconds.to_string();
    let mut found = [Vec::new(), Vec::new()];
    for round in 1..=options.rounds {
        for turn in 0..2 {
            interrupt::check()?;
            let program = (turn + round) % 2;
            let all = [
                ("rw", "randread"),
                ("bs", "4k"),
                ("ioengine", "io_uring"),
                ("iodepth", "32"),
                ("time_based", "1"),
                ("runtime", &seconds),
                ("filename", &file),
                flag,
            ];
            found[program].push(figure(&place.run(program, &flags("rate", &all))?.1, pointer)?);
        }
    }
    let worst = found[0].iter().map(|rate| (rate / wanted - 1.0).abs()).fold(0.0, f64::max);
    let [kelvin, fio] = found.map(median);
    Ok(line(
        &format!("{}={}", flag.0, flag.1),
        "rate; worst of all rounds",
        format!("{} (off by at most {:.2} %)", whole(kelvin), worst * 100.0),
        format!("{} (fio)", whole(fio)),
        "within 0.5 %".into(),
        worst <= 0.005,
    ))
}

/// Tests the gaps between starts, from the log of issued I/Os, against the exponential distribution
/// (Kolmogorov–Smirnov).
fn poisson(place: &IoBench, options: &Options) -> Result<Line> {
    let file = text(&place.filled("cached", 16)?)?;
    let log = place.path("issued.log");
    let seconds = options.seconds.max(2).to_string();
    let all = [
        ("rw", "randread"),
        ("bs", "4k"),
        ("ioengine", "io_uring"),
        ("iodepth", "32"),
        ("time_based", "1"),
        ("runtime", seconds.as_str()),
        ("filename", &file),
        ("rate_iops", "2000"),
        ("rate_process", "poisson"),
        ("write_iolog", &text(&log)?),
    ];
    place.run(0, &flags("poisson", &all))?;
    let output = fs::read_to_string(&log)?;
    // Log version 3: microseconds since the start, file, action, offset, length.
    let starts = output.lines().filter(|line| line.contains(" read "));
    let starts = starts.map(|line| line.split(' ').next().and_then(|word| word.parse::<f64>().ok()));
    let starts: Vec<f64> = starts.collect::<Option<_>>().context("a line of the iolog has no time")?;
    ensure!(starts.len() > 1000, "only {} starts in the iolog", starts.len());
    let mut gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) * RATE / 1e6).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let distance = gaps.iter().enumerate().fold(0.0_f64, |worst, (rank, gap)| {
        let expected = 1.0 - (-gap).exp();
        worst.max((expected - rank as f64 / n).abs()).max((expected - (rank + 1) as f64 / n).abs())
    });
    // Critical value of 1 %. Times are whole microseconds, which changes each gap by at most one.
    let bound = 1.63 / n.sqrt() + RATE / 1e6;
    Ok(line(
        "rate_process=poisson, 2,000 per second",
        &format!("maximum distance from the exponential distribution, {} gaps", gaps.len()),
        format!("{distance:.4}"),
        String::new(),
        format!("≤ {bound:.4} (K-S, 1 %)"),
        distance <= bound,
    ))
}

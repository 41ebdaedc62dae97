//! If the device is the limit, both programs must report the same results.

use anyhow::Result;

use super::super::options::Options;
use super::super::table::{Line, whole};
use super::super::{interrupt, median};
use super::{IoBench, figure, flags, line, text};

/// Maximum deviation from 1 of the median of the rounds' ratios.
const WITHIN: f64 = 0.05;

/// Reads and writes of a real file, in interleaved pairs.
pub(super) fn rows(place: &IoBench, options: &Options, chosen: &[&str]) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    if !chosen.contains(&"same") {
        return Ok(lines);
    }
    let file = text(&place.filled("real", 1024)?)?;
    let seconds = options.seconds.to_string();
    for rw in ["randread", "read", "randwrite", "write"] {
        for depth in ["1", "32"] {
            interrupt::check()?;
            let direction = if rw.ends_with("read") { "read" } else { "write" };
            let pointers = [
                format!("/{direction}/iops"),
                format!("/{direction}/bw_bytes"),
                format!("/{direction}/clat_ns/percentile/50.000000"),
                format!("/{direction}/clat_ns/percentile/99.000000"),
            ];
            let mut figures = vec![[Vec::new(), Vec::new()]; pointers.len()];
            for round in 1..=options.rounds {
                for turn in 0..2 {
                    let program = (turn + round) % 2;
                    let all = [
                        ("rw", rw),
                        ("bs", "4k"),
                        ("ioengine", "io_uring"),
                        ("direct", "1"),
                        ("iodepth", depth),
                        ("norandommap", "1"),
                        ("time_based", "1"),
                        ("runtime", &seconds),
                        ("filename", &file),
                    ];
                    let (_, job) = place.run(program, &flags("same", &all))?;
                    for (pointer, figures) in pointers.iter().zip(&mut figures) {
                        figures[program].push(figure(&job, pointer)?);
                    }
                }
            }
            let names = ["I/Os per second", "bytes per second", "clat p50, ns", "clat p99, ns"];
            for (name, [kelvin, fio]) in names.into_iter().zip(figures) {
                let ratio = median(kelvin.iter().zip(&fio).map(|(own, other)| own / other).collect());
                let work = format!("{rw}, depth {depth}");
                let met = (ratio - 1.0).abs() <= WITHIN;
                let mut line = line(
                    &work,
                    name,
                    whole(median(kelvin)),
                    format!("{} (fio)", whole(median(fio))),
                    "0.95 to 1.05".into(),
                    met,
                );
                line.ratio = format!("{ratio:.3}");
                lines.push(line);
            }
        }
    }
    Ok(lines)
}

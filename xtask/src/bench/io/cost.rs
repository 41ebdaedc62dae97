//! CPU time per I/O, and time to the first I/O.

use anyhow::Result;

use super::super::options::Options;
use super::super::table::{Line, us};
use super::super::{interrupt, median};
use super::{IoBench, PROGRAMS, figure, flags, line, text};

/// A row: flags for both programs and for one alone, and the maximum for Kelvin in microseconds.
struct Row {
    name: &'static str,
    work: &'static str,
    common: Vec<(&'static str, &'static str)>,
    /// fio's options for the row.
    fio: Vec<(&'static str, &'static str)>,
    file: File,
    most: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum File {
    Hole,
    Cached,
    None,
}

const RANDOM_READS: [(&str, &str); 3] = [("rw", "randread"), ("bs", "4k"), ("time_based", "1")];
const BATCHES: [(&str, &str); 3] =
    [("iodepth", "32"), ("iodepth_batch_submit", "16"), ("iodepth_batch_complete_min", "16")];
/// Options that are Kelvin's defaults.
const REGISTERED: [(&str, &str); 2] = [("fixedbufs", "1"), ("registerfiles", "1")];

fn table() -> Vec<Row> {
    let uring = [("ioengine", "io_uring")];
    let direct = [("direct", "1")];
    let row = |name,
               work,
               common: Vec<&[(&'static str, &'static str)]>,
               fio: &[(&'static str, &'static str)],
               file,
               most| {
        let common = common.concat();
        Row { name, work, common, fio: fio.to_vec(), file, most }
    };
    vec![
        row(
            "batch",
            "hole, O_DIRECT, depth 32, batch 16",
            vec![&uring, &direct, &BATCHES],
            &REGISTERED,
            File::Hole,
            0.55,
        ),
        row(
            "defaults",
            "the same, each tool's defaults",
            vec![&uring, &direct, &[("iodepth", "32")]],
            &[],
            File::Hole,
            0.65,
        ),
        row(
            "depth-1",
            "hole, O_DIRECT, depth 1",
            vec![&uring, &direct, &[("iodepth", "1")]],
            &[],
            File::Hole,
            1.0,
        ),
        row(
            "page-cache",
            "page cache, 16 MiB, batch 16",
            vec![&uring, &[("invalidate", "0")], &BATCHES],
            &REGISTERED,
            File::Cached,
            0.65,
        ),
        row("null", "null engine", vec![&[("ioengine", "null"), ("size", "8g")]], &[], File::None, 0.06),
        row(
            "logs",
            "hole, batch 16, averaged and histogram logs",
            vec![&uring, &direct, &BATCHES, &[("log_avg_msec", "100"), ("log_hist_msec", "100")]],
            &REGISTERED,
            File::Hole,
            0.60,
        ),
    ]
}

/// The selected rows of this file.
pub(super) fn rows(place: &IoBench, options: &Options, chosen: &[&str]) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let rows: Vec<Row> = table().into_iter().filter(|row| chosen.contains(&row.name)).collect();
    let mut costs = vec![[Vec::new(), Vec::new()]; rows.len()];
    let seconds = options.seconds.to_string();
    for round in 1..=options.rounds {
        for (row, costs) in rows.iter().zip(&mut costs) {
            interrupt::check()?;
            let file = match row.file {
                File::Hole => Some(place.hole()?),
                File::Cached => Some(place.filled("cached", 16)?),
                File::None => None,
            };
            for turn in 0..2 {
                let program = (turn + round) % 2;
                let mut all = flags(row.name, &RANDOM_READS);
                all.extend(flags(row.name, &row.common).split_off(1));
                all.push(format!("--runtime={seconds}"));
                if program == 1 {
                    all.extend(flags(row.name, &row.fio).split_off(1));
                }
                if let Some(file) = &file {
                    // Read once, so that every program finds the file in the page cache.
                    if row.file == File::Cached {
                        std::fs::read(file)?;
                    }
                    all.push(format!("--filename={}", text(file)?));
                }
                if row.name == "logs" {
                    for log in ["bw", "iops", "lat", "hist"] {
                        let prefix = place.path(&format!("log-{}", PROGRAMS[program]));
                        all.push(format!("--write_{log}_log={}", text(&prefix)?));
                    }
                }
                let (cost, job) = place.run(program, &all)?;
                let each = cost.cpu * 1e6 / figure(&job, "/read/total_ios")?;
                println!("round {round}: {}: {} {each:.3} µs", row.name, PROGRAMS[program]);
                costs[program].push(each);
            }
        }
    }
    for (row, [kelvin, fio]) in rows.iter().zip(&costs) {
        let own = median(kelvin.clone());
        let write = |figure: f64| if figure < 0.2 { format!("{figure:.3} µs") } else { us(figure) };
        lines.push(line(
            row.work,
            "CPU per I/O",
            write(own),
            format!("{} (fio)", write(median(fio.clone()))),
            format!("≤ {} µs", row.most),
            own <= row.most,
        ));
    }
    if chosen.contains(&"start") {
        lines.push(start(place, options)?);
    }
    Ok(lines)
}

/// The duration of a process with a job of one I/O, an upper bound of the time to the first I/O.
fn start(place: &IoBench, options: &Options) -> Result<Line> {
    let hole = text(&place.hole()?)?;
    let mut walls = [Vec::new(), Vec::new()];
    for round in 1..=options.rounds.max(10) {
        for turn in 0..2 {
            let program = (turn + round) % 2;
            let job = [
                ("rw", "randread"),
                ("bs", "4k"),
                ("ioengine", "io_uring"),
                ("direct", "1"),
                ("number_ios", "1"),
                ("filename", hole.as_str()),
            ];
            walls[program].push(place.run(program, &flags("start", &job))?.0.wall);
        }
    }
    let [kelvin, fio] = walls.map(median);
    Ok(line(
        "start, one I/O, end",
        "wall-clock time",
        format!("{:.1} ms", kelvin * 1e3),
        format!("{:.1} ms (fio)", fio * 1e3),
        "≤ 30 ms".into(),
        kelvin <= 0.030,
    ))
}

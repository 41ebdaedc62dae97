//! Loading of 10 warehouses, and optionally more: elapsed time, client CPU, disk space, and the duration of the
//! consistency checks.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::mariadb::Mariadb;
use super::median;
use super::options::Options;
use super::server::Bench;

/// The targets of the load.
const TARGETS: [&str; 3] = ["postgres", "sqlite", "mariadb"];

/// The number of warehouses that is always loaded, as the reference for others.
const FEW: u32 = 10;
/// Maximum ratio of load times when the number of warehouses grows tenfold.
const MOST_OF_TEN_TIMES: f64 = 11.0;
/// Maximum disk space in bytes for a warehouse while it is loaded and checked: rows and indexes, the WAL or redo log,
/// and files of sorts. Only one target has data at a time.
const SPACE_OF_A_WAREHOUSE: u64 = 180 << 20;
/// Disk space in bytes of an empty server.
const SPACE_OF_A_SERVER: u64 = 1 << 30;
/// Maximum ratio of MariaDB's load time, at its default settings, to PostgreSQL's.
const MOST_OF_MARIADB: f64 = 2.5;

/// Settings for repeatable CPU-bound runs, as the peers used, with this machine's memory: the server is measured as in
/// section 2 of FIELD.md.
pub(crate) const SETTINGS: [(&str, &str); 8] = [
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("shared_buffers", "3GB"),
    ("max_wal_size", "20GB"),
    ("checkpoint_timeout", "60min"),
    ("autovacuum", "off"),
    ("bgwriter_lru_maxpages", "0"),
    ("maintenance_work_mem", "1GB"),
];

/// Loads and prints. `words` are targets, `--rounds` and `--warehouses`.
pub(crate) fn load(words: &[&str]) -> Result<()> {
    let (warehouses, words) = warehouses(words)?;
    let options = Options::parse(&words, 3, 1)?;
    let targets = options.chosen(&TARGETS)?;
    let mut bench = Bench::new()?;
    let (needed, free) = (space_for(warehouses, targets.len()), free_space(&bench.path(""))?);
    if free < needed {
        bail!(
            "{warehouses} warehouses need {} of disk space in {}; {} are free",
            gigabytes(needed),
            bench.path("").display(),
            gigabytes(free)
        );
    }
    let mut urls = Vec::new();
    let mut mariadb = None;
    for &target in &targets {
        urls.push(match target {
            "postgres" => {
                bench.start_server(&SETTINGS)?;
                bench.url.clone().context("no server")?
            }
            "mariadb" => mariadb.insert(Mariadb::start(&bench.path(""))?).url(),
            _ => format!("sqlite:{}", bench.path("tpcc.db").display()),
        });
    }
    let sizes: Vec<u32> = if warehouses == FEW { vec![FEW] } else { vec![FEW, warehouses] };
    let mut rows = vec![Row::default(); targets.len() * sizes.len()];
    for round in 1..=options.rounds {
        for (row, (size, (target, url))) in rows
            .iter_mut()
            .zip(sizes.iter().flat_map(|size| targets.iter().zip(&urls).map(move |target| (*size, target))))
        {
            row.measure(&bench, url, size)?;
            println!("round {round}: {size} warehouses into {target}: {}", row.last());
        }
    }
    println!(
        "\n| target | warehouses | load, s | client CPU of the load, s | disk space, GB | twelve conditions, s |"
    );
    println!("|---|---|---|---|---|---|");
    let names = sizes.iter().flat_map(|size| targets.iter().map(move |target| (*target, *size)));
    for ((target, size), row) in names.zip(&rows) {
        let [load, cpu, space, check] = row.medians();
        println!("| {target} | {size} | {load:.2} | {cpu:.2} | {space:.1} | {check:.2} |");
    }
    let took = |target: &str, size: usize| {
        let number = targets.iter().position(|one| *one == target)?;
        rows.get(size * targets.len() + number).map(|row| row.medians()[0])
    };
    for &target in &targets {
        if let (Some(few), Some(many)) = (took(target, 0), took(target, 1)) {
            let (ratio, most) =
                (many / few, MOST_OF_TEN_TIMES * f64::from(warehouses) / 10.0 / f64::from(FEW));
            println!(
                "{target}: {warehouses} warehouses take {ratio:.1} x the time of {FEW} (at most {most:.1})"
            );
        }
    }
    if let (Some(postgres), Some(mariadb)) = (took("postgres", 0), took("mariadb", 0)) {
        let ratio = mariadb / postgres;
        println!("MariaDB at its defaults / PostgreSQL: {ratio:.2} (at most {MOST_OF_MARIADB})");
    }
    Ok(())
}

/// The number of warehouses, and the other arguments.
fn warehouses<'a>(words: &[&'a str]) -> Result<(u32, Vec<&'a str>)> {
    let mut others = words.to_vec();
    let Some(place) = others.iter().position(|word| *word == "--warehouses") else {
        return Ok((FEW, others));
    };
    others.remove(place);
    if place == others.len() {
        bail!("--warehouses needs a number");
    }
    let number = others.remove(place);
    match number.parse() {
        Ok(warehouses) if warehouses > 0 => Ok((warehouses, others)),
        _ => bail!("--warehouses takes a whole number above 0, not {number:?}"),
    }
}

fn space_for(warehouses: u32, targets: usize) -> u64 {
    u64::from(warehouses.max(FEW)) * SPACE_OF_A_WAREHOUSE + targets as u64 * SPACE_OF_A_SERVER
}

/// Free bytes in the file system of `path`.
fn free_space(path: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(path).with_context(|| format!("no free space of {}", path.display()))?;
    Ok(found.f_bavail * found.f_frsize)
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// By round: load seconds, client CPU seconds, disk space of the load in gigabytes, and seconds of the checks.
#[derive(Clone, Default)]
struct Row(Vec<[f64; 4]>);

impl Row {
    fn measure(&mut self, bench: &Bench, url: &str, warehouses: u32) -> Result<()> {
        let size = warehouses.to_string();
        let words = ["tproc-c", "--warehouses", &size, "--target", url];
        let before = free_space(&bench.path(""))?;
        let load = bench.kelvin(&[&["build", "--no-check"], &words[..]].concat())?;
        let space = before.saturating_sub(free_space(&bench.path(""))?);
        let check = bench.kelvin(&[&["check"], &words[..]].concat())?;
        bench.kelvin(&[&["drop", "--yes"], &words[..]].concat())?;
        for file in ["tpcc.db", "tpcc.db-wal", "tpcc.db-shm"] {
            let _ = std::fs::remove_file(bench.path(file));
        }
        self.0.push([load.wall, load.cpu, space as f64 / 1e9, check.wall]);
        Ok(())
    }

    fn last(&self) -> String {
        let [load, cpu, space, check] = self.0.last().copied().unwrap_or_default();
        format!("{load:.2} s, client CPU {cpu:.2} s; {space:.1} GB; conditions {check:.2} s")
    }

    fn medians(&self) -> [f64; 4] {
        [0, 1, 2, 3].map(|column| median(self.0.iter().map(|round| round[column]).collect()))
    }
}

//! Building TPROC-H's data on PostgreSQL, compared with `COPY` in two sessions from files of the same rows in memory.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::load::SETTINGS;
use super::server::Bench;
use super::{interrupt, median};

/// Maximum ratio of the build's duration to that of `COPY`.
const MOST: f64 = 1.3;
/// Maximum memory of the client in megabytes.
const MOST_MEGABYTES: f64 = 300.0;

const TABLES: [&str; 8] =
    ["lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation", "region"];

/// The files, and the session that loads each: each session gets half of the lines.
const FILES: [(&str, &str, usize); 9] = [
    ("lineitem", "where l_orderkey % 2 = 0", 0),
    ("lineitem", "where l_orderkey % 2 = 1", 1),
    ("orders", "", 0),
    ("partsupp", "", 1),
    ("part", "", 1),
    ("customer", "", 1),
    ("supplier", "", 1),
    ("nation", "", 1),
    ("region", "", 1),
];

/// Builds and copies in alternation, and prints seconds.
pub(crate) fn tproc_h(words: &[&str]) -> Result<()> {
    let mut options = (3_usize, "1");
    for pair in words.chunks(2) {
        match pair {
            ["--rounds", rounds] => options.0 = rounds.parse().context("--rounds takes a number")?,
            ["--scale", scale] => options.1 = *scale,
            [name @ ("--rounds" | "--scale")] => bail!("{name} takes a value"),
            other => bail!("there is no option {}", other.join(" ")),
        }
    }
    if options.0 == 0 {
        bail!("--rounds takes a number from 1 on");
    }
    let (rounds, scale) = options;
    let mut bench = Bench::new()?;
    bench.start_server(&[&SETTINGS[..], &[("track_commit_timestamp", "on")]].concat())?;
    let url = bench.url.clone().context("no server")?;
    let files = Files::new()?;
    bench.kelvin(&["build", "tproc-h", "--scale", scale, "--target", &url, "--no-check"])?;
    let statements = files.prepare(&bench)?;
    let mut rows: [Vec<f64>; 5] = Default::default();
    bench.kelvin(&["drop", "tproc-h", "--target", &url, "--yes"])?;
    for round in 1..=rounds {
        bench.psql("checkpoint")?;
        let (built, loaded, megabytes) = build(&bench, &url, scale)?;
        bench.kelvin(&["drop", "tproc-h", "--target", &url, "--yes"])?;
        bench.psql("checkpoint")?;
        let (copied, all) = files.copy(&bench, &statements)?;
        bench.psql(&format!("drop table {}", TABLES.join(", ")))?;
        println!(
            "round {round}: load {loaded:.2} s, COPY {copied:.2} s, ratio {:.2}; with indexes and statistics {built:.2} s and \
             {all:.2} s, ratio {:.2}; {megabytes:.0} MB",
            loaded / copied,
            built / all
        );
        for (row, value) in rows.iter_mut().zip([loaded, copied, built, all, megabytes]) {
            row.push(value);
        }
    }
    let [loaded, copied, built, all, megabytes] = rows.map(median);
    println!("\n| scale factor {scale} | Kelvin, s | COPY, s | ratio |");
    println!("|---|---|---|---|");
    println!("| load (at most {MOST}) | {loaded:.2} | {copied:.2} | {:.2} |", loaded / copied);
    println!("| with indexes and statistics | {built:.2} | {all:.2} | {:.2} |", built / all);
    println!("memory of the client: {megabytes:.0} MB (at most {MOST_MEGABYTES:.0})");
    if loaded / copied > MOST || megabytes > MOST_MEGABYTES {
        bail!("a goal is missed");
    }
    Ok(())
}

/// Builds the data. Returns its seconds, the seconds until the last part was loaded, and the client's peak memory in
/// megabytes.
fn build(bench: &Bench, url: &str, scale: &str) -> Result<(f64, f64, f64)> {
    let began: f64 = bench.psql("select extract(epoch from clock_timestamp())")?.parse()?;
    let since = Instant::now();
    let mut command = Command::new(bench.program());
    command.args(["build", "tproc-h", "--scale", scale, "--target", url, "--no-check", "-q"]);
    bench.environment(&mut command);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    let mut most = 0.0_f64;
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        interrupt::check()?;
        most = most.max(peak(child.id()).unwrap_or(0.0));
        std::thread::sleep(Duration::from_millis(20));
    };
    let built = since.elapsed().as_secs_f64();
    if !ended.success() {
        bail!("the build failed: {ended}");
    }
    let last = "select extract(epoch from max(pg_xact_commit_timestamp(xmin))) from kelvin_tproc_h_loaded";
    let loaded = bench.psql(last)?.parse::<f64>()? - began;
    Ok((built, loaded, most))
}

/// Peak resident memory of a process in megabytes.
fn peak(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024.0 / 1e6)
}

/// Files with the rows, in memory; removed when dropped.
struct Files(PathBuf);

impl Files {
    fn new() -> Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let directory = PathBuf::from(format!("/dev/shm/kelvin-bench-{}", std::process::id()));
        std::fs::create_dir(&directory)?;
        let files = Self(directory);
        // The server writes the files as its own user.
        std::fs::set_permissions(&files.0, std::fs::Permissions::from_mode(0o777))?;
        Ok(files)
    }

    fn path(&self, number: usize) -> String {
        self.0.join(number.to_string()).display().to_string()
    }

    /// Writes the files of the tables. Returns the statements that create the tables, the indexes of lineitem, and the
    /// indexes of the other tables.
    fn prepare(&self, bench: &Bench) -> Result<[Vec<String>; 3]> {
        bench.psql("drop schema if exists saved cascade")?;
        bench.psql("create schema saved")?;
        let mut made = Vec::new();
        for table in TABLES {
            bench.psql(&format!("create table saved.{table} (like public.{table})"))?;
            made.push(format!("create table public.{table} (like saved.{table})"));
        }
        for (number, (table, part, _)) in FILES.iter().enumerate() {
            bench.psql(&format!("copy (select * from {table} {part}) to '{}'", self.path(number)))?;
        }
        let mut indexes = [Vec::new(), Vec::new()];
        for table in TABLES {
            let made = bench.psql(&format!(
                "select format('alter table %s add constraint %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) \
                 from pg_constraint where conrelid = '{table}'::regclass and contype = 'p' union all \
                 select indexdef from pg_indexes where schemaname = 'public' and tablename = '{table}' \
                 and indexname not in (select conname from pg_constraint)"
            ))?;
            let session = &mut indexes[usize::from(table != "lineitem")];
            session.extend(made.lines().map(str::to_owned));
            session.push(format!("vacuum (analyze, freeze) {table}"));
        }
        let [lines, others] = indexes;
        Ok([made, lines, others])
    }

    /// Seconds of `COPY` alone, and including indexes and statistics.
    fn copy(&self, bench: &Bench, [made, lines, others]: &[Vec<String>; 3]) -> Result<(f64, f64)> {
        let since = Instant::now();
        for statement in made {
            bench.psql(statement)?;
        }
        let copy = |session: usize| -> Vec<String> {
            let files = FILES.iter().enumerate().filter(|(_, file)| file.2 == session);
            files.map(|(number, file)| format!("copy {} from '{}'", file.0, self.path(number))).collect()
        };
        run_concurrently(bench, &copy(0), &copy(1))?;
        let copied = since.elapsed().as_secs_f64();
        run_concurrently(bench, lines, others)?;
        bench.psql("checkpoint")?;
        Ok((copied, since.elapsed().as_secs_f64()))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the statements of two sessions concurrently.
fn run_concurrently(bench: &Bench, first: &[String], second: &[String]) -> Result<()> {
    let all = |statements: &[String]| -> Result<()> {
        statements.iter().try_for_each(|statement| bench.psql(statement).map(drop))
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| all(second));
        all(first)?;
        other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

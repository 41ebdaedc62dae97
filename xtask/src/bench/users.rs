//! `cargo xtask bench users`: virtual users on one thread each, compared with users on event loops.
//!
//! Against a server that only answers the protocol, it measures the generator's cost; against PostgreSQL, from how
//! many users event loops cost less.

mod blank_server;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::driver::{Competitor, mariadb_data, pgbench_data, tproc_c_data, words};
use super::load::SETTINGS;
use super::options::Options;
use super::process::timed;
use super::server::{Bench, build};
use super::table::{range, us, whole};
use super::{interrupt, median};
use blank_server::BlankServer;

const GROUNDS: [&str; 2] = ["threads", "loops"];
const NAMES: [&str; 3] = ["blank", "postgres", "mariadb"];

/// Users, and for an open loop transactions per second.
const BLANK: [(u32, Option<u32>); 6] =
    [(1, None), (8, None), (64, None), (512, None), (10_000, None), (10_000, Some(2000))];

/// Users against PostgreSQL, around the point where both cost the same.
const FEW: [u32; 4] = [2, 4, 8, 16];

/// Users against MariaDB: enough to show a call that blocks its event loop.
const MANY: u32 = 64;

/// Maximum memory of ten thousand users in MB (2²⁰ bytes): 1 GiB.
const MOST_MEMORY: f64 = 1024.0;

/// The results of one run.
#[derive(Debug, Clone, Copy)]
struct Figures {
    /// Client CPU per transaction, in microseconds.
    cpu: f64,
    pace: f64,
    /// Peak memory in MB (2²⁰ bytes).
    memory: Option<f64>,
}

/// By work: the results of all rounds on threads and on event loops.
type Table = BTreeMap<(usize, String), [Vec<Figures>; 2]>;

/// Runs the benchmark and prints the results, also after an interrupt.
pub(crate) fn users(options: &Options) -> Result<()> {
    let chosen = options.chosen(&NAMES)?;
    let mut bench = Bench::new()?;
    let mut table = Table::new();
    let measured = measure(&mut bench, &chosen, options, &mut table);
    print(&table, options);
    measured
}

fn measure(bench: &mut Bench, chosen: &[&str], options: &Options, table: &mut Table) -> Result<()> {
    if chosen.contains(&"blank") {
        let program = build(&["-p", "kelvin-run", "--example", "users"])?.join("release/examples/users");
        let program = program.canonicalize().context("no example named users")?;
        for round in 1..=options.rounds {
            for (index, (users, rate)) in BLANK.into_iter().enumerate() {
                for turn in 0..GROUNDS.len() {
                    let ground = (turn + round) % GROUNDS.len();
                    let found = drive(&program, bench, GROUNDS[ground], users, options.seconds, rate)?;
                    let open = rate.map_or_else(String::new, |rate| format!(", {rate}/s"));
                    let name =
                        format!("blank server, {users} user{}{open}", if users == 1 { "" } else { "s" });
                    note(table, round, (index, name), ground, found);
                }
            }
        }
    }
    if chosen.contains(&"postgres") {
        bench.start_server(&SETTINGS)?;
        let tables = pgbench_data(bench)?;
        let works = [
            ("select-only", "pgbench -S -M prepared -n", tables.clone()),
            ("tpcb-like", "pgbench -M prepared -n", tables),
            ("TPROC-C functions", "tproc-c --all-warehouses --calls functions", tproc_c_data(bench)?),
        ];
        for round in 1..=options.rounds {
            for (work, (name, flags, url)) in works.iter().enumerate() {
                for (index, users) in FEW.into_iter().enumerate() {
                    let place = (BLANK.len() + work * FEW.len() + index, format!("{name}, {users} users"));
                    both(bench, table, round, &place, (flags, users, url), options.seconds)?;
                }
            }
        }
    }
    if chosen.contains(&"mariadb") {
        bench.start_mariadb()?;
        let url = mariadb_data(bench)?;
        for round in 1..=options.rounds {
            for (index, calls) in ["functions", "statements"].into_iter().enumerate() {
                let place = (100 + index, format!("MariaDB, TPROC-C {calls}, {MANY} users"));
                let flags = format!("tproc-c --all-warehouses --calls {calls}");
                both(bench, table, round, &place, (&flags, MANY, &url), options.seconds)?;
            }
        }
    }
    Ok(())
}

/// One round with this number of users, on threads and on event loops in turn.
fn both(
    bench: &Bench,
    table: &mut Table,
    round: usize,
    place: &(usize, String),
    (flags, users, url): (&str, u32, &str),
    seconds: u32,
) -> Result<()> {
    for turn in 0..GROUNDS.len() {
        let ground = (turn + round) % GROUNDS.len();
        let flags = format!("{flags} --users {users} --users-on {}", GROUNDS[ground]);
        let found = Competitor::Kelvin(words(&flags)).run(bench, url, seconds)?;
        let found = Figures { cpu: found.client, pace: found.pace, memory: None };
        note(table, round, place.clone(), ground, found);
    }
    Ok(())
}

fn note(table: &mut Table, round: usize, place: (usize, String), ground: usize, found: Figures) {
    let memory = found.memory.map_or_else(String::new, |memory| format!(", {memory:.0} MiB"));
    println!(
        "round {round}: {}: {}: {}, {}/s{memory}",
        place.1,
        GROUNDS[ground],
        us(found.cpu),
        whole(found.pace)
    );
    table.entry(place).or_default()[ground].push(found);
}

/// Runs the example against a separate server.
fn drive(
    program: &Path,
    bench: &Bench,
    ground: &str,
    users: u32,
    seconds: u32,
    rate: Option<u32>,
) -> Result<Figures> {
    interrupt::check()?;
    let server = BlankServer::start(program, &bench.path("blank"))?;
    let mut arguments = vec!["drive".into(), server.socket().display().to_string(), ground.into()];
    arguments.extend([users.to_string(), seconds.to_string()]);
    arguments.extend(rate.map(|rate| rate.to_string()));
    let cost = timed(program, &arguments, &[])?;
    let found: Value = serde_json::from_str(&cost.stdout).context("the example printed no JSON")?;
    let of = |name: &str| found[name].as_f64().with_context(|| format!("the example printed no {name}"));
    if of("errors")? > 0.0 || found["broken"].as_array().is_some_and(|broken| !broken.is_empty()) {
        bail!("the run of {users} users on {ground} is not valid: {}", cost.stdout.trim_end());
    }
    Ok(Figures { cpu: of("client_cpu_us")?, pace: of("tps")?, memory: Some(of("peak_memory_mb")?) })
}

fn print(table: &Table, options: &Options) {
    println!(
        "\nMedians of up to {} interleaved rounds of {} s. Ratios are loops to threads, of the medians, \
         with the range over the rounds.\n",
        options.rounds, options.seconds
    );
    println!(
        "| work | CPU per transaction on threads | on loops | ratio | transactions per second on threads | \
         on loops | ratio | peak memory on threads | on loops |\n|---|---|---|---|---|---|---|---|---|"
    );
    for ((_, name), [threads, loops]) in table {
        let of =
            |figures: &[Figures], pick: fn(&Figures) -> f64| figures.iter().map(pick).collect::<Vec<_>>();
        let ratio = |pick: fn(&Figures) -> f64| {
            let (threads, loops) = (of(threads, pick), of(loops, pick));
            let each: Vec<f64> = loops.iter().zip(&threads).map(|(own, other)| own / other).collect();
            let (low, high) = range(&each);
            format!("{:.2} ({low:.2} to {high:.2})", median(loops) / median(threads))
        };
        let memory = |figures: &[Figures]| {
            let all: Vec<f64> = figures.iter().filter_map(|figures| figures.memory).collect();
            if all.is_empty() { String::new() } else { format!("{:.0} MiB", median(all)) }
        };
        let cpu = |figures: &[Figures]| us(median(of(figures, |f| f.cpu)));
        let pace = |figures: &[Figures]| whole(median(of(figures, |f| f.pace)));
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} |",
            cpu(threads),
            cpu(loops),
            ratio(|f| f.cpu),
            pace(threads),
            pace(loops),
            ratio(|f| f.pace),
            memory(threads),
            memory(loops)
        );
    }
    let most = table
        .iter()
        .filter(|((_, name), _)| name.contains("10000 users"))
        .flat_map(|(_, [_, loops])| loops.iter().filter_map(|figures| figures.memory))
        .reduce(f64::max);
    if let Some(most) = most {
        let verdict = if most < MOST_MEMORY { "met" } else { "**missed**" };
        println!("\n10,000 users on loops took at most {most:.0} MiB (target: under 1 GiB): {verdict}.");
    }
}

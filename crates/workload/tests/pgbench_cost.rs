//! CPU cost compared with pgbench's. Not run by default:
//! `cargo test --release -p kelvin-workload --test pgbench_cost -- --ignored --nocapture`.
#![allow(clippy::print_stdout, reason = "the figures are the point")]
#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

mod pgbench_support;

use std::process::Command;
use std::time::Instant;

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice};
use kelvin_workload::progress::Quiet;
use kelvin_workload::{Stop, UserRange, Workload};
use pgbench_support::{Server, binaries, pgbench};

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
#[ignore = "a measurement"]
fn initialisation() {
    let server = Server::start();
    let engine = server.unix();
    let scale = std::env::var("SCALE").map_or(20, |s| s.parse().unwrap());
    let (mut ours, mut client, mut server_side) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        let workload = Pgbench::new(Options { scale: Some(scale), ..Options::default() }).unwrap();
        workload.drop_data(&engine).unwrap();
        ours.push(seconds(|| workload.build(&engine, &Quiet, &Stop::new()).unwrap()));
        for (steps, times) in [("dtgvp", &mut client), ("dtGvp", &mut server_side)] {
            times.push(seconds(|| {
                let output = pgbench(&server, &["-i", "-q", "-I", steps, "-s", &scale.to_string()]);
                assert!(output.status.success());
            }));
        }
    }
    println!("scale {scale}: ours {ours:.2?} s, pgbench -i {client:.2?} s, server side {server_side:.2?} s");
    let best = median(client).min(median(server_side));
    println!("ours is {:.2} times as fast as pgbench's faster mode", best / median(ours));
}

const PIPELINE: &str = "\
\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
\\startpipeline
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
\\endpipeline
";

/// The variable in which [`transactions`] passes parameters to a measured client: server, work, repetitions.
const PARAMETERS: &str = "KELVIN_PGBENCH_COST";

/// One client process, started by [`transactions`]; does nothing on its own.
#[test]
#[ignore = "a part of a measurement"]
fn client() {
    let Ok(parameters) = std::env::var(PARAMETERS) else { return };
    let parameters: Vec<&str> = parameters.split('|').collect();
    let [directory, port, scale, name, clients, count] = parameters.as_slice() else {
        panic!("{parameters:?}")
    };
    let engine = PostgresEngine::new(Config::unix(
        std::path::Path::new(directory),
        port.parse().unwrap(),
        "postgres",
        "postgres",
    ));
    let choice = if *name == "pipeline" {
        ScriptChoice { name: "pipeline".into(), weight: 1, text: Some(PIPELINE.into()) }
    } else {
        ScriptChoice::builtin(name).unwrap()
    };
    let options = Options {
        scale: Some(scale.parse().unwrap()),
        scripts: vec![choice],
        query_mode: QueryMode::Prepared,
        ..Options::default()
    };
    let count: u32 = count.parse().unwrap();
    let workload = Pgbench::new(options).unwrap();
    let users = workload.users(UserRange::all(clients.parse().unwrap()), 1, &kelvin_measure::Clock::real());
    let ready: Vec<_> = users
        .into_iter()
        .map(|mut user| {
            let mut session = engine.connect().unwrap();
            user.prepare(session.as_mut()).unwrap();
            (user, session)
        })
        .collect();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for (mut user, mut session) in ready {
            scope.spawn(move || {
                for _ in 0..count {
                    user.next();
                    user.execute(session.as_mut()).unwrap();
                }
            });
        }
    });
    println!("tps = {}", f64::from(count) * clients.parse::<f64>().unwrap() / start.elapsed().as_secs_f64());
}

/// CPU microseconds per transaction, and transactions per second.
#[derive(Clone, Copy)]
struct Cost {
    cpu: f64,
    tps: f64,
}

/// Runs a client under `perf stat`.
fn cost(mut command: Command, transactions: f64) -> Cost {
    let mut perf = Command::new("perf");
    perf.args(["stat", "-x", ",", "-e", "task-clock", "-o", "/dev/stderr"]);
    perf.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        perf.env(name, value.unwrap());
    }
    let output = perf.output().or_else(|_| command.output()).unwrap();
    let (out, counts) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{counts}");
    let of = |event: &str| {
        let line = counts.lines().find(|line| line.contains(event)).unwrap_or("");
        line.split(',').next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN)
    };
    let tps = out.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap();
    Cost { cpu: of("task-clock") * 1e3 / transactions, tps: tps.split(' ').next().unwrap().parse().unwrap() }
}

fn medians(costs: &[Cost]) -> Cost {
    let of = |field: fn(&Cost) -> f64| median(costs.iter().map(field).collect());
    Cost { cpu: of(|c| c.cpu), tps: of(|c| c.tps) }
}

/// Kelvin's clients compared with pgbench with one and two threads, interleaved.
/// `SERVER=directory,port,scale` selects a running server, `ONLY=work,clients` a single line, `ROUNDS` the
/// number of rounds.
#[test]
#[ignore = "a measurement"]
fn transactions() {
    let named = std::env::var("SERVER").ok();
    let own = named.is_none().then(|| {
        let server = Server::start();
        Pgbench::new(Options::default()).unwrap().build(&server.unix(), &Quiet, &Stop::new()).unwrap();
        server
    });
    let place =
        named.unwrap_or_else(|| own.as_ref().map(|s| format!("{},1", pgbench_support::place(s))).unwrap());
    let place: Vec<&str> = place.split(',').collect();
    let [directory, port, scale] = place.as_slice() else { panic!("{place:?}") };
    let rounds: usize = std::env::var("ROUNDS").map_or(5, |rounds| rounds.parse().unwrap());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, PIPELINE.as_bytes()).unwrap();
    for (name, clients, count) in [
        ("select-only", 1, 40_000),
        ("select-only", 4, 15_000),
        ("select-only", 64, 1_000),
        ("tpcb-like", 4, 3_000),
        ("pipeline", 4, 6_000),
    ] {
        if std::env::var("ONLY").is_ok_and(|only| only != format!("{name},{clients}")) {
            continue;
        }
        let transactions = f64::from(clients * count);
        let (mut ours, mut one, mut two) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["client", "--exact", "--ignored", "--nocapture"]);
            command.env(PARAMETERS, format!("{directory}|{port}|{scale}|{name}|{clients}|{count}"));
            ours.push(cost(command, transactions));
            for (threads, costs) in [("1", &mut one), ("2", &mut two)] {
                if threads == "2" && clients == 1 {
                    continue;
                }
                let mut command = Command::new(binaries().join("pgbench"));
                command.args(["-h", directory, "-p", port, "-U", "postgres", "-n", "-M", "prepared"]);
                command.args(["-c", &clients.to_string(), "-j", threads, "-t", &count.to_string()]);
                match name {
                    "pipeline" => command.arg("-f").arg(file.path()),
                    name => command.args(["-b", name]),
                };
                if name == "pipeline" {
                    command.args(["-D", &format!("scale={scale}")]);
                }
                command.arg("postgres");
                costs.push(cost(command, transactions));
            }
        }
        let ours = medians(&ours);
        println!("{name}, {clients} clients: {:.1} µs, {:.0} tps", ours.cpu, ours.tps);
        for (threads, costs) in [(1, &one), (2, &two)].into_iter().filter(|(_, costs)| !costs.is_empty()) {
            let theirs = medians(costs);
            println!(
                "    pgbench -j {threads}: {:.1} µs ({:.2}×), {:.0} tps ({:.2}×)",
                theirs.cpu,
                ours.cpu / theirs.cpu,
                theirs.tps,
                ours.tps / theirs.tps
            );
        }
    }
}

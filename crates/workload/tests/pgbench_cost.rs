//! Costs beside pgbench's own. Not run by default: `cargo test --release -p kelvin-workload --test pgbench_cost -- --ignored --nocapture`.
#![allow(clippy::print_stdout, reason = "the figures are the point")]
#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

mod pgbench_support;

use std::time::Instant;

use kelvin_database::Engine;
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice};
use kelvin_workload::progress::Quiet;
use kelvin_workload::{Stop, Workload};
use pgbench_support::{Server, pgbench};

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
    let engine = server.engine();
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

/// Seconds of CPU, user and system, of this process's threads, or of its ended children.
fn cpu(who: &str) -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<u64> =
        stat.rsplit(") ").next().unwrap().split(' ').map(|f| f.parse().unwrap_or(0)).collect();
    let at = if who == "self" { 11 } else { 13 };
    (fields[at] + fields[at + 1]) as f64 / 100.0
}

#[test]
#[ignore = "a measurement"]
fn transactions() {
    let server = Server::start();
    let engine = server.engine();
    Pgbench::new(Options::default()).unwrap().build(&engine, &Quiet, &Stop::new()).unwrap();
    let pipeline = "\\set aid random(1, 100000 * :scale)\n\\set bid random(1, 1 * :scale)\n\\set tid random(1, 10 * :scale)\n\
        \\set delta random(-5000, 5000)\n\\startpipeline\nBEGIN;\n\
        UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
        SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
        UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
        UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
        INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
        END;\n\\endpipeline\n";
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, pipeline.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    for (name, count) in [("select-only", 60_000_u32), ("tpcb-like", 8_000), ("pipeline", 20_000)] {
        if std::env::var("ONLY").is_ok_and(|only| only != name) {
            continue;
        }
        let (choice, flag, value) = if name == "pipeline" {
            (ScriptChoice::file(&path).unwrap(), "-f", path.as_str())
        } else {
            (ScriptChoice::builtin(name).unwrap(), "-b", name)
        };
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..5 {
            let options = Options {
                scripts: vec![choice.clone()],
                query_mode: QueryMode::Prepared,
                ..Options::default()
            };
            let workload = Pgbench::new(options).unwrap();
            let mut user = workload.users(1, round, &kelvin_measure::Clock::real()).remove(0);
            let mut session = engine.connect().unwrap();
            user.prepare(session.as_mut()).unwrap();
            let before = cpu("self");
            let elapsed = seconds(|| {
                for _ in 0..count {
                    user.next();
                    user.execute(session.as_mut()).unwrap();
                }
            });
            ours.push(((cpu("self") - before) * 1e6 / f64::from(count), f64::from(count) / elapsed));
            let before = cpu("children");
            let elapsed = seconds(|| {
                let output = pgbench(
                    &server,
                    &["-n", "-M", "prepared", "-c", "1", "-t", &count.to_string(), flag, value],
                );
                assert!(output.status.success());
            });
            let cost = (cpu("children") - before) * 1e6 / f64::from(count);
            theirs.push((cost, f64::from(count) / elapsed));
        }
        let of = |values: &[(f64, f64)]| {
            (median(values.iter().map(|v| v.0).collect()), median(values.iter().map(|v| v.1).collect()))
        };
        let ((our_cpu, our_tps), (their_cpu, their_tps)) = (of(&ours), of(&theirs));
        println!(
            "{name}: client CPU {our_cpu:.1} µs against {their_cpu:.1} ({:.2}×), tps {our_tps:.0} against {their_tps:.0}",
            our_cpu / their_cpu
        );
    }
}

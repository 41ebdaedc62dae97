//! What the client itself costs, beside pgbench on the same server. By hand:
//! `cargo test --release -p kelvin-database --test postgres_cost -- --ignored --nocapture`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_database::{BulkTable, ColumnType, Decimal, Engine, Rows, Timestamp, TransactionControl, Value};
use support::Server;

/// CPU seconds of this thread, user and system.
fn cpu() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

fn pgbench(server: &Server, arguments: &str) -> (f64, f64) {
    let script = format!(
        "TIMEFORMAT='%U %S'; time {} -h {} -p {} -U kelvin -n {arguments} postgres",
        server.binary("pgbench").display(),
        server.socket_directory().display(),
        server.port
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let number = |line: &str| -> f64 {
        line.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|w| w.parse().ok()).unwrap_or(f64::NAN)
    };
    let transactions = out.lines().find(|l| l.contains("actually processed")).map_or(f64::NAN, number);
    assert!(transactions > 0.0, "{out}{err}");
    let tps = out.lines().find(|l| l.starts_with("tps")).map_or(f64::NAN, number);
    let seconds: f64 =
        err.lines().last().unwrap_or_default().split(' ').filter_map(|w| w.parse::<f64>().ok()).sum();
    (seconds / transactions * 1e6, tps)
}

#[test]
#[ignore = "a measurement: needs a quiet machine and a release build"]
fn cost() {
    let server = Server::start();
    let file = server.socket_directory().join("one.sql");
    std::fs::write(&file, "SELECT 1;\n").unwrap();
    let init = Command::new(server.binary("pgbench"))
        .args(["-i", "-q", "-h"])
        .arg(server.socket_directory())
        .args(["-p", &server.port.to_string(), "-U", "kelvin", "postgres"])
        .status()
        .unwrap();
    assert!(init.success());
    let mut s = server.session();
    let mut rows = Rows::new();
    let one = s.prepare("SELECT 1").unwrap();
    let account = s.prepare("SELECT abalance FROM pgbench_accounts WHERE aid = $1").unwrap();
    for round in 0..3 {
        for (name, statement, script) in [
            ("select 1", one, format!("-M prepared -T 3 -f {}", file.display())),
            ("pgbench -S", account, "-M prepared -T 3 -S".to_owned()),
        ] {
            let (began, used, mut count) = (Instant::now(), cpu(), 0_u64);
            while began.elapsed() < Duration::from_secs(3) {
                for i in 0..100 {
                    let value = [Value::Int(i + 1)];
                    let params = if statement == one { &[][..] } else { &value[..] };
                    s.execute(statement, params, &mut rows).unwrap();
                }
                count += 100;
            }
            let (wall, ours) = (began.elapsed().as_secs_f64(), cpu() - used);
            let (theirs, tps) = pgbench(&server, &script);
            println!(
                "{round} {name}: kelvin {:.2} µs CPU a query ({:.0}/s), pgbench {theirs:.2} µs ({tps:.0}/s)",
                ours / count as f64 * 1e6,
                count as f64 / wall
            );
        }
    }
    let (used, mut results) = (cpu(), Vec::new());
    for _ in 0..5_000 {
        s.queue_control(TransactionControl::Begin).unwrap();
        for i in 0..18 {
            s.queue(account, &[Value::Int(i)]).unwrap();
        }
        s.queue_control(TransactionControl::Commit).unwrap();
        s.flush(&mut results).unwrap();
    }
    println!("pipeline of 20: {:.2} µs CPU a statement", (cpu() - used) / 100_000.0 * 1e6);

    s.run("CREATE UNLOGGED TABLE c (a int4, b int4, n numeric(12,2), t varchar(24), at timestamptz)")
        .unwrap();
    let columns = [
        ("a", ColumnType::Int4),
        ("b", ColumnType::Int4),
        ("n", ColumnType::Decimal(2)),
        ("t", ColumnType::Text),
        ("at", ColumnType::Timestamp),
    ];
    let table = BulkTable { name: "c", columns: &columns };
    for _ in 0..2 {
        let (began, used) = (Instant::now(), cpu());
        let count = 2_000_000_i64;
        let mut load = s.bulk_load(&table).unwrap();
        for i in 0..count {
            load.row(&[
                Value::Int(i),
                Value::Int(i % 10),
                Value::Decimal(Decimal::new(i * 7 % 999_999, 2)),
                Value::Text("abcdefghijklmnopqrstuvwx"),
                Value::Timestamp(Timestamp(1_700_000_000_000_000)),
            ])
            .unwrap();
        }
        assert_eq!(load.finish().unwrap(), count as u64);
        let (wall, ours) = (began.elapsed().as_secs_f64(), cpu() - used);
        println!(
            "copy: {:.3} µs CPU a row of 5 columns ({:.2} M rows/s of client CPU), {:.2} M rows/s in all",
            ours / count as f64 * 1e6,
            count as f64 / ours / 1e6,
            count as f64 / wall / 1e6
        );
    }
}

/// CPU seconds of the server's process behind a session.
fn server_cpu(pid: i64) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

#[test]
#[ignore = "a measurement: needs a quiet machine"]
fn cost_without_prepared_statements() {
    let server = Server::start();
    let init = Command::new(server.binary("pgbench"))
        .args(["-i", "-q", "-h"])
        .arg(server.socket_directory())
        .args(["-p", &server.port.to_string(), "-U", "kelvin", "postgres"])
        .status()
        .unwrap();
    assert!(init.success());
    let connect = |prepared_statements| {
        let config = Config { prepared_statements, ..server.unix() };
        let mut session = PostgresEngine::new(config).connect().unwrap();
        let pid = session.query("SELECT pg_backend_pid()").unwrap().int(0, 0).unwrap();
        let select = session.prepare("SELECT abalance FROM pgbench_accounts WHERE aid = $1").unwrap();
        let update =
            session.prepare("UPDATE pgbench_accounts SET abalance = abalance + $2 WHERE aid = $1").unwrap();
        (session, pid, select, update)
    };
    let mut ways = [("named", connect(true)), ("unnamed", connect(false))];
    let (mut rows, mut results) = (Rows::new(), Vec::new());
    for round in 0..5 {
        for (name, (s, pid, select, update)) in &mut ways {
            let measure = |what: &str, count: i64, work: &mut dyn FnMut(i64)| {
                let (ours, theirs) = (cpu(), server_cpu(*pid));
                for i in 0..count {
                    work(i);
                }
                println!(
                    "{round} {what} {name}: {:.2} µs CPU of the client a statement, {:.1} µs of the server",
                    (cpu() - ours) / count as f64 * 1e6,
                    (server_cpu(*pid) - theirs) / count as f64 * 1e6
                );
            };
            measure("select", 30_000, &mut |i| {
                s.execute(*select, &[Value::Int(i + 1)], &mut rows).unwrap();
            });
            measure("select in a batch of 20", 60_000, &mut |i| {
                s.queue(*select, &[Value::Int(i + 1)]).unwrap();
                if i % 20 == 19 {
                    s.flush(&mut results).unwrap();
                }
            });
            measure("update", 10_000, &mut |i| {
                s.execute(*update, &[Value::Int(i + 1), Value::Int(1)], &mut rows).unwrap();
            });
        }
    }
}

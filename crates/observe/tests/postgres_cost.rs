//! What watching costs: CPU of the two watchers and of the server's processes behind them, beside 16 busy users.
//! `cargo test -p kelvin-observe --test postgres_cost -- --ignored --nocapture`
#![allow(clippy::print_stderr, reason = "a measurement")]

mod postgres_support;

use kelvin_observe::engine::WatchPlan;
use postgres_support::server::Server;
use postgres_support::{Busy, Watching};

/// User and system time of a process in milliseconds.
fn spent(path: &str) -> f64 {
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(") ").map_or(vec![], |(_, rest)| rest.split(' ').collect());
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    10.0 * (ticks(11) + ticks(12))
}

/// Time on a processor in milliseconds, exactly.
fn ran(path: &str) -> f64 {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse::<f64>().ok()).map_or(0.0, |nanos| nanos / 1e6)
}

#[test]
#[ignore = "a measurement"]
fn watching_sixteen_users() {
    let server =
        Server::start_with("shared_preload_libraries='pg_stat_statements'", "local all all trust\n", |_| {});
    let mut session = server.session();
    session.run("CREATE TABLE a (id int PRIMARY KEY, n int); INSERT INTO a SELECT i, 0 FROM generate_series(1, 100000) i").unwrap();
    for looks in [10, 100] {
        let plan = WatchPlan { looks, create_extension: true, ..WatchPlan::default() };
        let mut watching = Watching::start(server.unix(), &plan);
        let users: Vec<Busy> = (0..16)
            .map(|_| {
                Busy::running(
                    &server.unix(),
                    "UPDATE a SET n = n + 1 WHERE id = 1 + (random() * 99998)::int; SELECT pg_sleep(0.01)",
                )
            })
            .collect();
        watching.for_seconds(2.0);
        let pids = session
            .query("SELECT pid::int8, query FROM pg_stat_activity WHERE application_name = 'kelvin observer' ORDER BY query")
            .unwrap();
        assert_eq!(pids.len(), 2);
        let backends: Vec<i64> = (0..2).map(|row| pids.int(row, 0).unwrap()).collect();
        let threads: Vec<String> = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .flatten()
            .map(|entry| entry.path().display().to_string())
            .filter(|path| {
                std::fs::read_to_string(format!("{path}/comm")).is_ok_and(|name| name.starts_with("see "))
            })
            .collect();
        assert_eq!(threads.len(), 2);
        let read = || -> Vec<f64> {
            let servers = backends.iter().map(|pid| ran(&format!("/proc/{pid}/schedstat")));
            servers.chain(threads.iter().map(|path| ran(&format!("{path}/schedstat")))).collect()
        };
        let (before, own, began) = (read(), spent("/proc/self/stat"), std::time::Instant::now());
        watching.for_seconds(10.0);
        let seconds = began.elapsed().as_secs_f64();
        let each: Vec<f64> =
            read().iter().zip(&before).map(|(after, before)| (after - before) / seconds).collect();
        let own = (spent("/proc/self/stat") - own) / seconds;
        drop(users);
        watching.finish();
        assert!(watching.lost().is_empty(), "{:?}", watching.lost());
        let (server, client) = (each[0] + each[1], each[2] + each[3]);
        eprintln!(
            "{looks} looks a second: backends {:.2} + {:.2} ms/s, watchers {:.2} + {:.2} ms/s; the whole test process {own:.0} ms/s",
            each[0], each[1], each[2], each[3]
        );
        // One per cent of two processors at ten looks.
        assert!(server + client < 2.0 * f64::from(looks), "{server} + {client} ms a second");
    }
}

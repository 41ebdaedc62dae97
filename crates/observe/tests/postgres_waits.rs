//! Shares of waits against an independent sampling: a PL/pgSQL loop that looks at `pg_stat_activity` a hundred times a
//! second within the server.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod postgres_support;

use std::collections::HashMap;

use kelvin_observe::engine::WatchPlan;
use postgres_support::server::Server;
use postgres_support::{Busy, Watching};

/// It calls itself an observer, so that the watcher leaves it out as it leaves out the watcher.
const SAMPLER: &str = "SET application_name = 'kelvin observer'; DO $$ BEGIN FOR i IN 1..900 LOOP \
    PERFORM pg_stat_clear_snapshot(); \
    INSERT INTO sampled SELECT i, coalesce(wait_event_type, 'CPU'), count(*) FROM pg_stat_activity \
     WHERE backend_type = 'client backend' AND state = 'active' AND application_name <> 'kelvin observer' GROUP BY 2; \
    PERFORM pg_sleep(0.01); END LOOP; END $$";

/// Both are samples of the same states. A share p of n looks at which states have changed since the look before varies by
/// sqrt(p (1 - p) / n); states last up to 60 ms here, so n is the watcher's looks (every 20 ms) divided by three, and
/// sessions of the same look are not counted as independent. Four of these bound the difference: the shares
/// would have to differ by chance once in some ten thousand runs.
const FACTOR: f64 = 4.0;

#[test]
fn shares_of_waits_agree_with_a_sampling_of_100_a_second() {
    let server = Server::start();
    let mut session = server.session();
    session.run("CREATE UNLOGGED TABLE sampled (look int, class text, sessions int)").unwrap();
    session.run("CREATE TABLE hot (id int PRIMARY KEY, n int); INSERT INTO hot VALUES (1, 0)").unwrap();
    let mut watching = Watching::start(server.unix(), &WatchPlan { looks: 50, ..WatchPlan::default() });
    let mut users = vec![
        Busy::running(
            &server.unix(),
            "SELECT pg_sleep(0.013); SELECT sum(i) FROM generate_series(1, 100000) i",
        ),
        Busy::running(&server.unix(), "SELECT pg_sleep(0.047)"),
    ];
    for _ in 0..4 {
        users.push(Busy::running(
            &server.unix(),
            "BEGIN; UPDATE hot SET n = n + 1; SELECT pg_sleep(0.02); COMMIT; SELECT pg_sleep(0.011)",
        ));
    }
    watching.for_seconds(0.5);
    let (from, first) = (watching.clock.now(), watching.seen.len());
    let sampler = {
        let config = server.unix();
        std::thread::spawn(move || postgres_support::engine(config).connect().unwrap().run(SAMPLER).unwrap())
    };
    while !sampler.is_finished() {
        watching.for_seconds(0.05);
    }
    sampler.join().unwrap();
    let to = watching.clock.now();
    drop(users);
    watching.finish();
    assert!(watching.lost().is_empty(), "{:?}", watching.lost());
    assert!(first > 0);

    let groups = watching.groups();
    let mut ours: HashMap<String, f64> = HashMap::new();
    let mut looks = 0.0;
    for waits in
        watching.waits().into_iter().filter(|waits| waits.at > from + 1_000_000_000 && waits.at <= to)
    {
        looks += f64::from(waits.looks);
        for (group, seen) in &waits.seen {
            let group = groups[group];
            if group.backend == "client backend" && group.class != "Idle in transaction" {
                *ours.entry(group.class.clone()).or_default() += f64::from(*seen);
            }
        }
    }
    let rows = session.query("SELECT class, sum(sessions)::int8 FROM sampled GROUP BY 1").unwrap();
    let theirs: HashMap<String, f64> = (0..rows.len())
        .map(|row| (rows.text(row, 0).unwrap().to_owned(), rows.int(row, 1).unwrap() as f64))
        .collect();
    let share = |of: &HashMap<String, f64>, class: &str| {
        of.get(class).copied().unwrap_or(0.0) / of.values().sum::<f64>()
    };
    assert!(looks > 200.0, "{looks}");
    let classes: std::collections::BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for class in classes {
        let (one, other) = (share(&ours, class), share(&theirs, class));
        let bound = FACTOR * (other.max(0.01) * (1.0 - other) / (looks / 3.0)).sqrt();
        assert!(
            (one - other).abs() <= bound,
            "{class}: {one:.3} against {other:.3}, allowed {bound:.3}; {ours:?} {theirs:?}"
        );
    }
    for expected in ["Timeout", "Lock", "CPU"] {
        assert!(share(&ours, expected) > 0.04, "{expected} is missing: {ours:?}");
    }
}

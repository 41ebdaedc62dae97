//! Locks that are not of rows, on a real PostgreSQL: who holds them, who waits, and for what.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod postgres_support;

use kelvin_measure::observation::{Blocker, Observation, WaitKind};
use kelvin_observe::engine::WatchPlan;
use postgres_support::server::Server;
use postgres_support::{Busy, Watching, readings};

fn blockers(seen: &[Observation]) -> impl Iterator<Item = &Blocker> {
    let blocking = seen.iter().map(|one| match one {
        Observation::Blocking { blockers, .. } => blockers.as_slice(),
        _ => &[],
    });
    blocking.flatten()
}

#[test]
fn a_changed_table_and_an_advisory_lock_are_named_with_holder_and_waiters() {
    let server = Server::start();
    let mut holder = server.session();
    holder.run("CREATE TABLE stock (id int PRIMARY KEY); INSERT INTO stock VALUES (1)").unwrap();
    let mut watching = Watching::start(server.unix(), &WatchPlan { looks: 20, ..WatchPlan::default() });
    watching.until("reading", |seen| readings(seen) >= 1);
    for (hold, wait, lock, word) in [
        (
            "BEGIN; ALTER TABLE stock ADD COLUMN quantity int",
            "SELECT count(*) FROM stock",
            "table public.stock (for AccessShareLock)",
            "ALTER TABLE stock",
        ),
        (
            "BEGIN; SELECT pg_advisory_xact_lock(7)",
            "BEGIN; SELECT pg_advisory_xact_lock(7); COMMIT",
            "advisory lock",
            "pg_advisory_xact_lock",
        ),
    ] {
        holder.run(hold).unwrap();
        let users: Vec<Busy> = (0..2).map(|_| Busy::running(&server.unix(), wait)).collect();
        let seen_both = |seen: &[Observation]| blockers(seen).any(|one| one.lock == lock && one.waiters == 2);
        watching.until(lock, seen_both);
        holder.run("COMMIT").unwrap();
        drop(users);
        let one = blockers(&watching.seen).find(|one| one.lock == lock && one.waiters == 2).unwrap();
        assert_eq!((one.doing.as_str(), one.waiting.len()), ("Idle in transaction", 2), "{one:?}");
        assert!(one.statement.contains(word) && !one.waiting_statement.is_empty(), "{one:?}");
    }
    watching.finish();
    assert!(watching.lost().is_empty(), "{:?}", watching.lost());
    let groups = watching.groups();
    for event in ["relation", "advisory"] {
        let group = groups.values().find(|group| group.class == "Lock" && group.event == event);
        assert_eq!(group.map(|group| group.kind), Some(WaitKind::Lock), "{event}");
    }
}

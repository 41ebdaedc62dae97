//! What is found in recordings of a SQL Server: there was none to be had. The recordings are made from the documented columns of its
//! views, and go through the watchers as a server's answers would.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod activity;
mod recording;
mod run;
mod study;

use kelvin_diagnose::{BottleneckOutcome, Change, Severity, remedies};
use kelvin_measure::observation::CaptureTime;
use run::{Outcome, observe};

fn bound(outcome: &Outcome, class: &str) {
    let expected = BottleneckOutcome::Bound { class: class.into() };
    assert_eq!(outcome.verdict.outcome, expected, "{}", outcome.verdict.sentence);
}

#[test]
fn a_healthy_server_is_quiet_and_everything_of_it_is_seen() {
    let seen = observe("healthy");
    let loud: Vec<_> = seen.findings.iter().filter(|one| one.severity != Severity::Note).collect();
    assert!(loud.is_empty(), "{loud:#?}");
    assert_eq!(seen.evidence.absent(), []);
    bound(&seen, "CPU");
    assert!(seen.verdict.independent_counters[0].what.contains("by the server's own count"));
    let near = |name: &str, expected: f64| {
        let found = seen.mean(name);
        assert!((found - expected).abs() <= 0.02 * expected, "{name}: {found}, not {expected}");
    };
    for (name, expected) in [
        ("sqlserver.batch_requests", 1200.0),
        ("sqlserver.transactions.write", 920.0),
        ("sqlserver.log.writes", 800.0),
        ("sqlserver.log.bytes", 12e6),
        ("sqlserver.file.data.write_bytes", 2.4e6),
        ("sqlserver.schedulers.cpu", 3.8),
        ("sqlserver.numa.0.busy", 0.95),
        ("sqlserver.numa.0.connections", 8.0),
        ("sqlserver.load_waits.log", 0.4),
        ("sqlserver.load_waits.signal", 1.7335),
        ("sqlserver.sessions.active", 5.25),
    ] {
        near(name, expected);
    }
    // The server waits the same before the load and under it: nothing of it is the load's.
    assert!(seen.mean("sqlserver.server_waits.log") < 1e-3);
    let (statements, _) = seen.evidence.statements(0).unwrap();
    let calls: Vec<_> = statements.iter().map(|one| (one.text.as_str(), one.calls)).collect();
    assert_eq!(calls[0], ("EXEC dbo.neword", 15_000));
    assert!(
        calls.iter().any(|(text, calls)| text.starts_with("/* in neword */ SELECT") && *calls == 300_000)
    );
    assert!(!format!("{statements:?}").contains("hush"));
    let (relations, bytes) = seen.evidence.relations(CaptureTime::After).unwrap();
    assert_eq!((relations.len(), bytes), (4, 8_000_000_000));
    assert_eq!(
        (relations[3].name.as_str(), relations[3].table.as_deref()),
        ("dbo.customer.customer_i2", Some("dbo.customer"))
    );
    assert_eq!(seen.evidence.row_waits(0)[0].0, "dbo.warehouse");
    assert_eq!(
        seen.evidence.blockers(0)[0].1[0].doing,
        "CPU: UPDATE dbo.warehouse SET w_ytd = w_ytd + @h WHERE w_id = ?"
    );
}

/// FIELD.md 8, steps 1 to 3: the CPUs are full, 40 % of the waits are parallelism waits, and one statement is the cause.
#[test]
fn a_changed_plan_is_named_and_parallelism_waits_are_no_limit() {
    let seen = observe("slow-plan");
    bound(&seen, "CPU");
    assert_eq!(seen.finding("changed-plan").severity, Severity::Red);
    let facts = seen.facts("changed-plan");
    for part in
        ["COUNT(DISTINCT s_i_id)", "dbo.stock", "compatibility level 110, and is at 160", "2 ms on average"]
    {
        assert!(facts.contains(part), "no {part} in {facts}");
    }
    let parallel = seen.finding("parallelism-waits");
    assert_eq!(parallel.severity, Severity::Note);
    assert!(parallel.title.contains("40 %"), "{}", parallel.title);
    assert!(
        seen.facts("parallelism-waits").contains("runs in parallel: "),
        "{}",
        seen.facts("parallelism-waits")
    );
    assert!(seen.facts("top-statement-dominates").contains("dbo.stock"));
    for none in ["hot-page", "log-write-latency", "memory-grants", "worker-threads", "tempdb-contention"] {
        assert!(!seen.ids().contains(&none), "{none}");
    }
}

#[test]
fn a_slow_disk_is_the_limit_by_the_servers_own_count() {
    let seen = observe("slow-disk");
    bound(&seen, "data reads");
    assert!(seen.verdict.independent_counters[0].what.starts_with("pending I/Os"), "{:?}", seen.verdict);
    assert!(!seen.ids().contains(&"changed-plan") && !seen.ids().contains(&"hot-page"), "{:?}", seen.ids());
}

#[test]
fn a_hot_page_is_named_with_its_table_and_what_to_try() {
    let seen = observe("hot-page");
    bound(&seen, "latches");
    let found = seen.finding("hot-page");
    assert_eq!(found.severity, Severity::Red);
    assert!(found.title.contains("dbo.warehouse (warehouse_i1)"), "{}", found.title);
    assert!(found.next.contains("--fill-page") && found.next.contains("kelvin ab"), "{}", found.next);
    assert!(seen.facts("hot-page").contains("UPDATE dbo.warehouse"));
    assert!(!seen.ids().contains(&"tempdb-contention"));
    // By class: pages, the roots of indexes, and the spinlocks of a healthy server.
    for (name, mean) in [
        ("latch.buffer", 8.0),
        ("latch.access_methods_hobt_virtual_root", 0.005),
        ("latch.log_manager", 0.0),
        ("latch.other", 0.0),
        ("spinlock.lock_hash.spins", 5000.0),
        ("spinlock.lock_hash.backoffs", 0.3),
        ("spinlock.other.spins", 50.0),
    ] {
        let found = seen.mean(&format!("sqlserver.{name}"));
        assert!((found - mean).abs() <= 0.001 * mean, "{name}: {found}");
    }
}

#[test]
fn a_transaction_that_holds_the_version_store_is_named_with_what_ends_it() {
    let seen = observe("held-versions");
    let found = seen.finding("held-snapshot");
    assert_eq!(found.severity, Severity::Red, "{found:?}");
    assert_eq!(
        found.title,
        "A transaction held the version store for 18 s of the window (Report Server, session 77, idle in \
        transaction): no newer row version was removed"
    );
    assert!(!found.next.contains("acuum"), "{}", found.next);
    let facts = seen.facts("held-snapshot");
    assert!(facts.contains("version store: 80 MiB at the window's start, 370 MiB at its end"), "{facts}");
}

#[test]
fn shortages_have_a_finding_each() {
    let seen = observe("short-of-everything");
    for (id, severity) in [
        ("worker-threads", Severity::Red),
        ("memory-grants", Severity::Amber),
        ("tempdb-contention", Severity::Red),
        ("numa-skew", Severity::Amber),
        ("durability-off", Severity::Red),
        ("query-store-cost", Severity::Amber),
        ("data-write-burst", Severity::Amber),
        ("foreign-sessions", Severity::Amber),
    ] {
        assert_eq!(seen.finding(id).severity, severity, "{}", seen.facts(id));
    }
    let checkpoint = seen.finding("checkpoint-in-window");
    assert!(checkpoint.severity != Severity::Note && checkpoint.next.contains("TARGET_RECOVERY_TIME"));
    assert!(
        seen.facts("checkpoint-in-window").contains("90,000 pages written"),
        "{}",
        seen.facts("checkpoint-in-window")
    );
    assert!(seen.facts("worker-threads").contains("510 of 512"), "{}", seen.facts("worker-threads"));
    let tempdb = seen.facts("tempdb-contention");
    assert!(tempdb.contains("tempdb PFS page") && tempdb.contains("tempdb sys.sysschobjs"), "{tempdb}");
    assert!(seen.facts("numa-skew").contains("connections of the load on NUMA node 1: 64"));
    assert!(!seen.ids().contains(&"hot-page"));
}

#[test]
fn indexes_that_only_cost_are_named_with_their_statements_and_those_that_something_needs_are_not() {
    let seen = observe("wasteful");
    let duplicate = seen.finding("duplicate-index");
    assert!(
        duplicate
            .title
            .contains("dbo.orders.orders_date_again has the same columns as dbo.orders.orders_date:"),
        "{duplicate:?}"
    );
    // Of rows and the entries of five indexes: 5, 4 times 5 and 2.5 thousand a second.
    assert!(seen.facts("duplicate-index").contains("18 %"), "{}", seen.facts("duplicate-index"));
    let unused = seen.finding("unused-index");
    // 36 seconds from the first reading to the last.
    assert!(unused.title.contains("dbo.orders.orders_note was never used"), "{}", unused.title);
    let facts = format!("{}{}", seen.facts("duplicate-index"), seen.facts("unused-index"));
    for needed in ["PK_orders", "orders_customer", "orders_number", "dbo.archive"] {
        assert!(!facts.contains(needed), "{facts}");
    }
    let all = remedies(&seen.evidence, &seen.findings);
    let change = |id: &str| {
        let found = all.iter().find(|one| one.finding == id).unwrap_or_else(|| panic!("{all:#?}"));
        let Change::Statements { apply, undo, .. } = &found.change else { panic!("{found:#?}") };
        (apply.join("; "), undo.join("; "))
    };
    let (drop, again) = change("duplicate-index");
    assert_eq!(drop, "DROP INDEX IF EXISTS [orders_date_again] ON [dbo].[orders]");
    assert_eq!(
        again,
        "IF NOT EXISTS (SELECT 1 FROM sys.indexes WHERE object_id = OBJECT_ID(N'[dbo].[orders]') AND name = N'orders_date_again') \
         CREATE INDEX [orders_date_again] ON [dbo].[orders] ([o_date] DESC, [o_id]) ON [PRIMARY]"
    );
    let (_, again) = change("unused-index");
    assert!(again.ends_with("([o_note]) INCLUDE ([o_date]) WITH (FILLFACTOR = 80) ON [PRIMARY]"), "{again}");
    let statistics = all.iter().find(|one| one.finding == "missing-statistics").unwrap();
    let Change::Manual { how } = &statistics.change else { panic!("{statistics:#?}") };
    assert!(how.starts_with("UPDATE STATISTICS [dbo].[orders]; compare "), "{how}");
}

#[test]
fn spills_logins_latches_and_small_pages_are_named_in_the_servers_own_words() {
    let seen = observe("wasteful");
    let spilled = seen.facts("temporary-files");
    // 1,600 pages a second, 160 in each of ten executions.
    assert!(spilled.contains("to tempdb") && spilled.contains("1.2 MB per call"), "{spilled}");
    assert_eq!(seen.finding("temporary-files").severity, Severity::Amber);
    let logins = seen.finding("connection-storm");
    assert!(logins.title.starts_with("50") && logins.next.contains("sys.dm_exec_sessions"), "{logins:?}");
    assert_eq!((logins.severity, logins.effect.high()), (Severity::Amber, None));
    let latch = seen.finding("server-latch");
    assert!(latch.title.contains("the latch ACCESS_METHODS_DATASET_PARENT: 33 %"), "{}", latch.title);
    assert!(latch.next.contains("MAXDOP"), "{}", latch.next);
    assert!(seen.facts("server-latch").contains("1 s per second"), "{}", seen.facts("server-latch"));
    let memory = seen.finding("huge-pages-off");
    assert!(memory.severity == Severity::Note && memory.next.contains("834"), "{memory:?}");
    let stale = seen.facts("missing-statistics");
    assert!(
        stale.contains("400,000 changes since they were updated") && !stale.contains("archive"),
        "{stale}"
    );
}

#[test]
fn what_the_server_refuses_is_not_observed_and_all_else_is() {
    let seen = observe("refused");
    let absent: Vec<String> =
        seen.evidence.absent().iter().map(|one| format!("{}: {}", one.what, one.why)).collect();
    for (what, why) in [
        ("spills of statements", "2016 SP2"),
        ("definitions of indexes", "permission was denied"),
        ("foreign keys", "permission was denied"),
        ("writes of tables and indexes", "does not have permission"),
        ("ages of statistics", "Invalid column"),
        ("memory model", "Invalid column"),
    ] {
        assert!(absent.iter().any(|one| one.starts_with(what) && one.contains(why)), "{what}: {absent:?}");
    }
    for none in ["duplicate-index", "unused-index", "missing-statistics", "temporary-files", "huge-pages-off"]
    {
        assert!(!seen.ids().contains(&none), "{none}");
    }
    assert!(seen.evidence.statements(0).is_some() && seen.ids().contains(&"server-latch"));
    assert_eq!(seen.evidence.relations(CaptureTime::After).unwrap().0.len(), 8);
}

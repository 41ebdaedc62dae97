//! A real PostgreSQL under watch.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests, and one says what it skips")]

mod postgres_support;

use std::time::Duration;

use kelvin_measure::Nanos;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::{CaptureTime, Observation, Relation, StatementTotals};
use kelvin_observe::engine::WatchPlan;
use postgres_support::server::Server;
use postgres_support::{Busy, Watching, lock_samples, occurrences, readings, samples, waits};

#[test]
fn sessions_that_wait_for_a_row_are_seen_with_the_relation() {
    let server = Server::start();
    server
        .session()
        .run("CREATE TABLE stock (id int PRIMARY KEY, quantity int); INSERT INTO stock VALUES (1, 0)")
        .unwrap();
    const HOLD: &str =
        "BEGIN; UPDATE stock SET quantity = quantity + 1 WHERE id = 1; SELECT pg_sleep(0.1); COMMIT";
    let users: Vec<Busy> = (0..3).map(|_| Busy::running(&server.unix(), HOLD)).collect();
    let mut idle = server.session();
    idle.run("BEGIN; SELECT 1").unwrap();
    let _really_idle = server.session();
    let mut watching = Watching::start(server.unix(), &WatchPlan { looks: 20, ..WatchPlan::default() });
    watching.for_seconds(3.5);
    watching.until("looks", |seen| samples(seen) >= 60 && lock_samples(seen) >= 3);
    drop(users);
    watching.finish();
    assert!(watching.lost().is_empty(), "{:?}", watching.lost());
    let (found, looks) = watching.sessions_by(|group| {
        (group.backend == "client backend").then(|| (group.class.clone(), group.event.clone()))
    });
    let average = |class: &str, event: &str| {
        f64::from(found.get(&(class.into(), event.into())).copied().unwrap_or(0)) / f64::from(looks)
    };
    let possible = 20.0 * watching.clock.now() as f64 / 1e9;
    assert!(f64::from(looks) <= possible + 1.0, "{looks} of {possible}");
    // One sleeps with the row; the others wait for its transaction, or for each other in line.
    assert!(average("Timeout", "PgSleep") > 0.8, "{found:?}");
    assert!(average("Lock", "transactionid") > 0.8, "{found:?}");
    assert!(average("Lock", "transactionid") + average("Lock", "tuple") > 1.7, "{found:?}");
    // The first looks may come before it does.
    assert!(average("Idle in transaction", "ClientRead") > 0.8, "{found:?}");
    let total: f64 = found.values().map(|seen| f64::from(*seen)).sum::<f64>() / f64::from(looks);
    assert!(total < 4.3, "the idle one or the observers are in it: {found:?}");
    let mut rows = std::collections::HashMap::<&str, u32>::new();
    let mut lock_looks = 0;
    for waits in watching.waits() {
        lock_looks += waits.lock_looks;
        for (relation, sessions) in &waits.rows {
            *rows.entry(relation).or_default() += sessions;
        }
    }
    // One a second.
    assert!(f64::from(lock_looks) <= possible / 20.0 + 1.0, "{lock_looks}");
    assert_eq!(rows.keys().collect::<Vec<_>>(), [&"public.stock"]);
    // Two wait; the first sample may be taken before they do, and on a busy host they are late.
    assert!(rows["public.stock"] >= lock_looks, "{rows:?} in {lock_looks} looks");
    let blockers = watching.seen.iter().filter_map(|one| match one {
        Observation::Blocking { blockers, .. } => Some(blockers),
        _ => None,
    });
    let blockers: Vec<_> = blockers.flatten().collect();
    assert!(blockers.len() >= 2, "{blockers:?}");
    for one in &blockers {
        assert!((1..=2).contains(&one.waiting.len()) && !one.waiting.contains(&one.pid), "{one:?}");
        assert!(one.transaction_ms.is_some_and(|ms| (0.0..10_000.0).contains(&ms)), "{one:?}");
    }
    assert!(blockers.iter().any(|one| one.doing == "Timeout PgSleep"), "{blockers:?}");
    let active = watching.metric("postgres.sessions.active");
    assert!(active.iter().filter(|(_, value)| (2.5..=3.2).contains(value)).count() >= 2, "{active:?}");
    let idle = watching.metric("postgres.sessions.idle_in_transaction");
    assert!(idle.iter().any(|(_, value)| *value == 1.0), "{idle:?}");
}

#[test]
fn counters_settings_relations_and_checkpoints_agree_with_the_server() {
    // Without log_checkpoints, whose count of pages includes other kinds of pages.
    let server = Server::start_with("log_checkpoints=off", "local all all trust\n", |_| {});
    let mut session = server.session();
    session
        .run(
            "CREATE TABLE large (v text); ALTER TABLE large ALTER v SET STORAGE EXTERNAL; \
             CREATE TABLE a (id int, filler text); CREATE INDEX a_id ON a (id); \
             INSERT INTO a SELECT i, repeat('x', 100) FROM generate_series(1, 50000) i; ANALYZE a; \
             CREATE TABLE b (id int)",
        )
        .unwrap();
    session.run("CHECKPOINT").unwrap();
    session.run("SELECT pg_stat_force_next_flush()").unwrap();
    let mut watching = Watching::start(server.unix(), &WatchPlan::default());
    assert_eq!(watching.data.as_deref(), Some(server.data().as_path()));
    assert_eq!(watching.wal.as_deref(), Some(server.data().join("pg_wal").as_path()));
    let pid: u32 = std::fs::read_to_string(server.data().join("postmaster.pid"))
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(watching.server, Some(pid));
    watching.until("reading", |seen| readings(seen) >= 4);
    let truth = |session: &mut dyn kelvin_database::Session| -> [i64; 3] {
        session.run("SELECT pg_stat_force_next_flush()").unwrap();
        std::thread::sleep(Duration::from_millis(1100));
        let rows = session
            .query(
                "SELECT tup_inserted, (SELECT wal_bytes::int8 FROM pg_stat_wal), (SELECT buffers_checkpoint FROM pg_stat_bgwriter) \
                 FROM pg_stat_database WHERE datname = current_database()",
            )
            .unwrap();
        [0, 1, 2].map(|column| rows.int(0, column).unwrap())
    };
    let before = truth(session.as_mut());
    session.run("INSERT INTO b SELECT generate_series(1, 30000)").unwrap();
    let asked = watching.clock.now();
    session.run("CHECKPOINT").unwrap();
    let answered = watching.clock.now();
    let after = truth(session.as_mut());
    session.run("INSERT INTO large SELECT repeat('x', 20000)").unwrap();
    session.run("DELETE FROM a WHERE id % 2 = 0; SELECT pg_stat_force_next_flush()").unwrap();
    watching.until("checkpoint", |seen| occurrences(seen).any(|one| one.to.is_some()));
    watching.for_seconds(1.2);
    watching.finish();
    assert!(watching.lost().is_empty(), "{:?}", watching.lost());

    // The sum of the rates equals the server's count.
    let sum = |name: &str| -> f64 {
        let values = watching.metric(name);
        let mut last = values[0].0;
        let mut sum = 0.0;
        for (at, value) in &values[1..] {
            sum += f64::from(*value) * (at - last) as f64 / 1e9;
            last = *at;
        }
        sum
    };
    let inserted = sum("postgres.tuples.inserted");
    assert!(
        (inserted / (after[0] - before[0]) as f64 - 1.0).abs() < 0.03,
        "{inserted} of {before:?} {after:?}"
    );
    let logged = (after[1] - before[1]) as f64;
    // The deletion afterwards has its part.
    assert!(sum("postgres.wal.bytes") > 0.97 * logged, "{} of {logged}", sum("postgres.wal.bytes"));
    assert!(
        (sum("postgres.checkpoints.requested") - 1.0).abs() < 0.05,
        "{}",
        sum("postgres.checkpoints.requested")
    );
    assert!(watching.metric("postgres.blocks.read_ms").iter().all(|(_, value)| value.is_nan()));
    assert!(watching.absent().iter().any(|one| one.why.contains("track_io_timing is off")));

    assert_checkpoint(&watching, after[2] - before[2], (asked, answered));
    assert_settings(&watching);
    assert_relations(&watching, session.as_mut());
}

/// There is one checkpoint, of these buffers, between two times of the clock.
fn assert_checkpoint(watching: &Watching, buffers: i64, (asked, answered): (Nanos, Nanos)) {
    let checkpoints = watching.occurrences();
    let checkpoint = checkpoints.iter().find(|one| one.kind == "checkpoint" && one.to.is_some()).unwrap();
    assert_eq!(checkpoint.subject, "requested");
    assert_eq!(checkpoint.figures["buffers"], buffers as f64);
    assert!(checkpoint.figures["buffers"] > 100.0 && checkpoint.figures["write_ms"] >= 0.0);
    // It is seen by the reading before it and the one behind it, which come late where the machine stalls.
    let read: Vec<u64> = watching.metric("postgres.wal.bytes").iter().map(|(at, _)| *at).collect();
    let apart = read.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap() + 200_000_000;
    assert!(
        checkpoint.from + apart >= asked && checkpoint.from <= answered,
        "{checkpoint:?} {asked} {answered}"
    );
    let ended = checkpoint.to.unwrap();
    assert!(ended >= asked && ended <= answered + apart, "{checkpoint:?} {asked} {answered}");
    assert_eq!(checkpoints.iter().filter(|one| one.kind == "checkpoint" && one.to.is_some()).count(), 1);
}

fn assert_settings(watching: &Watching) {
    let settings = watching
        .seen
        .iter()
        .find_map(|one| if let Observation::Settings { values } = one { Some(values) } else { None });
    let settings = settings.unwrap();
    assert_eq!(settings["shared_buffers"], (64_u64 << 20).to_string());
    assert_eq!(settings["fsync"], "off");
    assert_eq!(settings["checkpoint_timeout"], "300000");
    assert_eq!(settings["jit"], "on", "what we set for ourselves is not the load's");
    assert_eq!(settings["huge_pages"], "try");
    assert!(settings["data_directory"].ends_with("/data") && settings["server_version_num"].len() == 6);
}

/// Sizes, rows and bloat of the relations are those of the server.
fn assert_relations(watching: &Watching, session: &mut dyn kelvin_database::Session) {
    let relations = |when: CaptureTime| -> Vec<Relation> {
        let found = watching.seen.iter().find_map(|one| match one {
            Observation::Relations { when: captured, relations, database_bytes } if *captured == when => {
                assert!(*database_bytes > 5_000_000);
                Some(relations.clone())
            }
            _ => None,
        });
        found.unwrap()
    };
    let (first, last) = (relations(CaptureTime::Before), relations(CaptureTime::After));
    let named = |all: &[Relation], name: &str| all.iter().find(|one| one.name == name).unwrap().clone();
    let (a, index, b) = (named(&first, "public.a"), named(&first, "public.a_id"), named(&first, "public.b"));
    assert_eq!((a.kind.as_str(), a.rows, a.analyzed), ("table", Some(50_000), Some(true)));
    assert_eq!((b.analyzed, b.bloat), (Some(false), None), "too small to estimate");
    assert_eq!((index.kind.as_str(), index.table.as_deref()), ("index", Some("public.a")));
    let size = session
        .query(
            "SELECT pg_relation_size('a') + pg_total_relation_size(reltoastrelid), pg_relation_size('a_id') \
             FROM pg_class WHERE oid = 'a'::regclass",
        )
        .unwrap();
    assert_eq!((a.bytes, index.bytes), (size.int(0, 0).unwrap() as u64, size.int(0, 1).unwrap() as u64));
    assert!(a.bloat.unwrap() < 0.05 && index.bloat.unwrap() < 0.1, "{a:?} {index:?}");
    let a = named(&last, "public.a");
    assert_eq!((a.rows, a.dead_rows), (Some(25_000), Some(25_000)));
    assert!((0.45..0.55).contains(&a.bloat.unwrap()), "{a:?}");
    let index = named(&last, "public.a_id").bloat.unwrap();
    assert!((0.45..0.6).contains(&index), "its entries stay until a vacuum: {index}");
    assert_eq!(first[0].name, "public.a", "the largest is first");
    // Ten pieces of 1996 bytes, and the rest.
    let pieces = |all: &[Relation], name: &str| named(all, name).pieces;
    assert_eq!((pieces(&first, "public.large"), pieces(&last, "public.large")), (Some(0), Some(11)));
    assert_eq!(pieces(&last, "public.b"), None, "no column of it can be large");
}

#[test]
fn a_checkpoint_that_takes_its_time_is_reported_when_it_begins_and_again_when_it_has_ended() {
    let figures = a_long_checkpoint("log_checkpoints=off");
    assert!(!figures.contains_key("total_ms"), "by the views: {figures:?}");
}

#[test]
fn the_servers_log_says_that_the_logs_size_forced_a_checkpoint() {
    let figures = a_long_checkpoint("log_checkpoints=on");
    assert_eq!(figures["forced_by_log_size"], 1.0);
    assert!(figures["total_ms"] >= figures["write_ms"] && figures["log_bytes"] > 1e6, "{figures:?}");
}

fn a_long_checkpoint(more: &str) -> std::collections::BTreeMap<String, f64> {
    let settings = "max_wal_size=32MB\nmin_wal_size=32MB\ncheckpoint_timeout=30s\ncheckpoint_completion_target=0.9\nautovacuum=off\nshared_buffers=128MB";
    let server = Server::start_with(&format!("{settings}\n{more}"), "local all all trust\n", |_| {});
    let mut session = server.session();
    session.run("CREATE TABLE a (id int, filler text)").unwrap();
    session.run("CHECKPOINT").unwrap();
    let mut watching = Watching::start(server.unix(), &WatchPlan::default());
    watching.until("reading", |seen| readings(seen) >= 2);
    for _ in 0..8 {
        session.run("INSERT INTO a SELECT i, repeat('x', 400) FROM generate_series(1, 8000) i").unwrap();
        watching.for_seconds(0.2);
    }
    watching.until("checkpoint's end", |seen| {
        occurrences(seen)
            .any(|one| one.kind == "checkpoint" && one.to.is_some_and(|to| to > one.from + 500_000_000))
    });
    watching.finish();
    let all = watching.occurrences();
    let ended = all.iter().find(|one| one.to.is_some_and(|to| to > one.from + 500_000_000)).unwrap();
    let begun = all.iter().find(|one| one.id == ended.id).unwrap();
    assert_eq!((begun.to, begun.from), (None, ended.from));
    assert_eq!(ended.subject, "requested", "for the log's size");
    assert!(ended.figures["buffers"] > 100.0);
    // Its own values: the writing took nearly all of the time between the two observed ends.
    let took = (ended.to.unwrap() - ended.from) as f64 / 1e6;
    let reported = ended.figures["write_ms"] + ended.figures["sync_ms"];
    assert!((took - reported).abs() < 400.0 + 0.1 * reported, "seen {took} ms, reported {reported} ms");
    ended.figures.clone()
}

#[test]
fn autovacuum_is_seen_at_work_and_what_is_too_short_is_made_up_for() {
    let settings = "autovacuum_naptime=1s\nautovacuum_vacuum_threshold=50\nautovacuum_vacuum_scale_factor=0\nautovacuum_analyze_threshold=50\n\
                    autovacuum_vacuum_cost_delay=20ms\nautovacuum_vacuum_cost_limit=200";
    let server = Server::start_with(settings, "local all all trust\n", |_| {});
    let mut session = server.session();
    session
        .run(
            "CREATE TABLE large (id int, filler text) WITH (autovacuum_enabled = off); \
             CREATE TABLE small (id int) WITH (autovacuum_enabled = off); \
             INSERT INTO large SELECT i, repeat('x', 500) FROM generate_series(1, 20000) i; DELETE FROM large WHERE id % 2 = 0; \
             INSERT INTO small SELECT generate_series(1, 100); DELETE FROM small",
        )
        .unwrap();
    let mut watching = Watching::start(server.unix(), &WatchPlan::default());
    watching.until("reading", |seen| readings(seen) >= 2);
    session.run("ALTER TABLE small SET (autovacuum_enabled = on)").unwrap();
    let done = "SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'small'";
    while session.query(done).unwrap().int(0, 0).unwrap() == 0 {
        watching.for_seconds(0.2);
    }
    session.run("ALTER TABLE large SET (autovacuum_enabled = on)").unwrap();
    let large = |one: &&kelvin_measure::observation::Occurrence| {
        one.kind == "autovacuum" && one.subject == "public.large"
    };
    watching.until("vacuum", |seen| occurrences(seen).any(|one| large(&one) && one.to.is_some()));
    watching.finish();
    let all = watching.occurrences();
    let begun = all.iter().find(|one| large(one)).unwrap();
    let ended = all.iter().find(|one| one.id == begun.id && one.to.is_some()).unwrap();
    assert_eq!(begun.to, None);
    assert!(ended.to.unwrap() - ended.from > 100_000_000, "{ended:?}");
    assert_eq!(ended.from, begun.from);
    let small = all.iter().find(|one| one.subject == "public.small" && one.to.is_some());
    let small = small.unwrap_or_else(|| panic!("{all:?}"));
    assert!(small.from < begun.from && small.to.unwrap() >= small.from, "{small:?} {begun:?}");
    let (workers, _) = watching.sessions_by(|group| (group.backend == "autovacuum worker").then_some(()));
    assert!(workers.contains_key(&()));
}

fn statement<'a>(seen: &'a [Observation], wanted: u32, text: &str) -> &'a StatementTotals {
    let all = seen.iter().find_map(|one| match one {
        Observation::Statements { point, statements, .. } if *point == wanted => Some(statements),
        _ => None,
    });
    let all = all.unwrap_or_else(|| panic!("no statements of point {wanted}: {seen:#?}"));
    all.iter().find(|one| one.text.contains(text)).unwrap_or_else(|| panic!("no {text} in {all:#?}"))
}

#[test]
fn a_hypothetical_index_is_taken_or_not() {
    use kelvin_observe::postgres::try_indexes;
    let server = Server::start();
    let mut session = server.session();
    session
        .run(
            "CREATE TABLE stock (id int, quantity int); \
             INSERT INTO stock SELECT i, i % 7 FROM generate_series(1, 20000) i; ANALYZE stock",
        )
        .unwrap();
    let by_id = "SELECT quantity FROM stock WHERE id = $1";
    let texts =
        [by_id, "UPDATE stock SET quantity = $1 WHERE id = $2", "SELECT no FROM such_table", "VACUUM"];
    let index = "CREATE INDEX IF NOT EXISTS stock_id ON public.stock (id)";
    assert_eq!(try_indexes(&mut *session, &[index], &texts).unwrap(), None, "HypoPG is not installed");
    let available = "SELECT count(*)::int8 FROM pg_available_extensions WHERE name = 'hypopg'";
    if session.query(available).unwrap().int(0, 0).unwrap() == 0 {
        eprintln!("skipped: the server has no HypoPG (Debian: postgresql-15-hypopg)");
        return;
    }
    session.run("CREATE EXTENSION hypopg").unwrap();
    let found = try_indexes(&mut *session, &[index], &texts).unwrap().unwrap();
    assert_eq!((found.planned, found.taken), (2, 2), "{found:?}");
    let (before, after) = found.costs.unwrap();
    assert!(before > 10.0 * after, "{found:?}");
    let other = "CREATE INDEX IF NOT EXISTS stock_quantity ON public.stock (quantity)";
    let found = try_indexes(&mut *session, &[other], &texts).unwrap().unwrap();
    assert_eq!((found.planned, found.taken, found.costs), (2, 0, None));
    let left = "SELECT count(*)::int8 FROM pg_indexes WHERE tablename = 'stock'";
    assert_eq!(session.query(left).unwrap().int(0, 0).unwrap(), 0);
}

#[test]
fn statements_are_reported_with_their_plans_and_a_dropped_index_changes_the_plan() {
    let server =
        Server::start_with("shared_preload_libraries='pg_stat_statements'", "local all all trust\n", |_| {});
    let mut session = server.session();
    session
        .run(
            "CREATE TABLE stock (id int PRIMARY KEY, quantity int, filler text); \
             INSERT INTO stock SELECT i, 0, repeat('x', 100) FROM generate_series(1, 20000) i; \
             CREATE TABLE empty (a interval); ANALYZE stock",
        )
        .unwrap();
    // Without permission nothing is created in an external database.
    let mut careful = Watching::start(server.unix(), &WatchPlan::default());
    careful.finish();
    assert!(careful.absent().iter().any(|one| one.why.contains("CREATE EXTENSION pg_stat_statements")));
    assert!(
        session.query("SELECT 1 FROM pg_extension WHERE extname = 'pg_stat_statements'").unwrap().is_empty()
    );

    let mut watching =
        Watching::start(server.unix(), &WatchPlan { create_extension: true, ..WatchPlan::default() });
    watching.until("reading", |seen| readings(seen) >= 2);
    let mut rows = kelvin_database::Rows::new();
    // Texts are available in the ramp-up, and are of the statements it ran.
    watching.stage(0, Phase::RampUp);
    watching.for_seconds(0.5);
    session.query("SELECT count(*) FROM stock WHERE quantity = 17").unwrap();
    let has_texts =
        |seen: &[Observation]| seen.iter().any(|one| matches!(one, Observation::StatementTexts { .. }));
    watching.until("statement's text", has_texts);
    for point in 0..2 {
        watching.stage(point, Phase::Measure);
        watching.for_seconds(0.5);
        let select = session.prepare("SELECT quantity FROM stock WHERE id = $1").unwrap();
        let update = session.prepare("UPDATE stock SET quantity = quantity + $1 WHERE id = $2").unwrap();
        for id in 1..=200 {
            session.execute(select, &[id.into()], &mut rows).unwrap();
            session.execute(update, &[1.into(), id.into()], &mut rows).unwrap();
        }
        session.run("INSERT INTO empty SELECT interval '1 day'; SELECT pg_sleep(0.3)").unwrap();
        watching.stage(point, Phase::Stop);
        let reports = |seen: &[Observation]| {
            seen.iter().filter(|one| matches!(one, Observation::Statements { .. })).count()
        };
        watching.until("statements", |seen| reports(seen) == point as usize + 1);
        session.run("ALTER TABLE stock DROP CONSTRAINT IF EXISTS stock_pkey").unwrap();
    }
    watching.finish();
    assert!(watching.lost().is_empty(), "{:?}", watching.lost());
    let texts = watching.seen.iter().filter_map(|one| match one {
        Observation::StatementTexts { texts } => Some(texts),
        _ => None,
    });
    let texts: Vec<_> = texts.flatten().collect();
    assert!(
        texts.iter().any(|(_, text)| text.starts_with("SELECT count(*) FROM stock WHERE quantity = $1")),
        "{texts:?}"
    );
    for text in ["SELECT quantity", "UPDATE stock"] {
        let (with, without) = (statement(&watching.seen, 0, text), statement(&watching.seen, 1, text));
        assert_eq!((with.calls, with.rows, without.calls), (200, 200, 200));
        assert!(without.total_ms > 3.0 * with.total_ms, "{with:?} {without:?}");
        let (old, new) = (with.plan.as_ref().unwrap(), without.plan.as_ref().unwrap());
        assert_ne!(old.hash, new.hash);
        assert_eq!(old.scans[0].node, "Index Scan");
        assert_eq!(
            (old.scans[0].relation.as_str(), old.scans[0].index.as_deref()),
            ("public.stock", Some("public.stock_pkey"))
        );
        assert_eq!((new.scans[0].node.as_str(), &new.scans[0].index), ("Seq Scan", &None));
        assert!(new.text.contains("Seq Scan on stock"), "{}", new.text);
    }
    let sleep = statement(&watching.seen, 0, "pg_sleep");
    assert!(sleep.total_ms >= 300.0 && sleep.calls == 1 && sleep.plan.is_some(), "{sleep:?}");
    // It cannot be planned from its text ("interval $1"), and does not affect the others.
    assert!(statement(&watching.seen, 0, "INSERT INTO empty").plan.is_none());
    for one in &watching.seen {
        if let Observation::Statements { statements, total_ms, .. } = one {
            let sum: f64 = statements.iter().map(|one| one.total_ms).sum();
            assert!(*total_ms >= sum - 1e-6 && *total_ms < 10.0 * sum);
            assert!(statements.iter().all(|one| !one.text.contains("kelvin observer")), "{statements:#?}");
        }
    }
    let written = session.query("SELECT sum(quantity) FROM stock").unwrap().int(0, 0).unwrap();
    assert_eq!(written, 400, "planning executes nothing");
    let prepared =
        session.query("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'").unwrap();
    assert_eq!(prepared.int(0, 0).unwrap(), 0);
}

#[test]
fn a_plain_role_sees_its_own_and_what_it_does_not_see_is_reported() {
    let server = Server::start_with("log_checkpoints=off", "local all all trust\n", |_| {});
    server
        .session()
        .run("CREATE ROLE plain LOGIN; CREATE TABLE secret (a int); INSERT INTO secret VALUES (1)")
        .unwrap();
    let mut plain = server.unix();
    plain.user = "plain".into();
    let mut watching = Watching::start(plain.clone(), &WatchPlan::default());
    let own = Busy::running(&plain, "SELECT pg_sleep(0.2)");
    let others = Busy::running(&server.unix(), "SELECT pg_sleep(0.2)");
    watching.until("waits", |seen| waits(seen) >= 2);
    server.session().run("CHECKPOINT").unwrap();
    watching.until("checkpoint", |seen| {
        occurrences(seen).any(|one| one.kind == "checkpoint" && one.to.is_some())
    });
    drop((own, others));
    watching.finish();
    assert!(watching.lost().is_empty(), "{:?}", watching.lost());
    let (found, looks) = watching.sessions_by(|group| Some(group.class.clone()));
    let sleeping = f64::from(found["Timeout"]) / f64::from(looks);
    assert!((0.8..=1.0).contains(&sleeping), "{found:?} in {looks}");
    let absent = watching.absent();
    assert!(absent.iter().any(|one| one.why.contains("pg_read_all_stats")), "{absent:?}");
    assert!(absent.iter().any(|one| one.why.contains("pg_read_all_settings")), "{absent:?}");
    assert!(absent.iter().any(|one| one.why.contains("shared_preload_libraries")), "{absent:?}");
    assert_eq!(
        (watching.server.is_some(), watching.data.is_some()),
        (true, true),
        "by the process that serves us"
    );
    assert!(absent.iter().any(|one| one.what == "reasons for checkpoints"), "{absent:?}");
    let relations = watching.seen.iter().find_map(|one| {
        if let Observation::Relations { relations, .. } = one { Some(relations) } else { None }
    });
    let secret = relations.unwrap().iter().find(|one| one.name == "public.secret").unwrap();
    assert_eq!((secret.analyzed, secret.bloat), (None, None));
    assert!(readings(&watching.seen) > 2);
}

#[test]
fn a_restart_is_reported_and_the_watching_continues() {
    let mut server = Server::start();
    let mut watching = Watching::start(server.unix(), &WatchPlan::default());
    watching.until("reading", |seen| readings(seen) >= 4);
    let before = watching.clock.now();
    server.kill();
    let losses = |seen: &[Observation]| seen.iter().filter(|one| matches!(one, Observation::Lost(_))).count();
    watching.until("losses", |seen| losses(seen) >= 2);
    watching.for_seconds(1.5);
    assert_eq!(watching.lost().len(), 2, "each watcher says it once: {:?}", watching.lost());
    server.restart();
    let back = watching.clock.now();
    watching.until("restart", |seen| occurrences(seen).any(|one| one.kind == "restart"));
    let already = (readings(&watching.seen), waits(&watching.seen));
    watching.until("more", |seen| readings(seen) > already.0 + 4 && waits(seen) > already.1 + 1);
    watching.finish();
    let restarts: Vec<_> = watching.occurrences().into_iter().filter(|one| one.kind == "restart").collect();
    assert_eq!(restarts.len(), 1);
    let second = 1_000_000_000;
    assert!(restarts[0].from + second / 2 > before && restarts[0].from < back, "{restarts:?} {before}");
    assert!(restarts[0].to.unwrap() < back + 60 * second, "{restarts:?} {back}");
    for name in ["postgres.transactions.commit", "postgres.wal.bytes", "postgres.blocks.hit"] {
        assert!(watching.metric(name).iter().all(|(_, value)| value.is_nan() || *value >= 0.0), "{name}");
    }
    // Samples during the outage do not count; one is taken immediately, and one may be in progress.
    let looks: u32 = watching.waits().iter().map(|waits| waits.looks).sum();
    let up = (watching.clock.now() - (back - before)) as f64 / 1e9;
    assert!(f64::from(looks) <= 10.0 * up + 2.0, "{looks} in {up} s");
}

#[test]
fn a_server_that_is_gone_holds_nobody() {
    let mut server = Server::start();
    let mut watching = Watching::start(server.unix(), &WatchPlan::default());
    watching.until("reading", |seen| readings(seen) >= 2);
    server.kill();
    watching.for_seconds(0.5);
    let began = std::time::Instant::now();
    watching.finish();
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
}

#[test]
fn a_connection_that_hangs_is_given_up_and_made_again() {
    let server = Server::start();
    let mut watching = Watching::start(server.unix(), &WatchPlan::default());
    watching.until("waits", |seen| waits(seen) >= 1);
    let mut session = server.session();
    let ours = "SELECT pid::int8 FROM pg_stat_activity WHERE application_name = 'kelvin observer' \
                AND query NOT LIKE '%pg_stat_database%'";
    let pid = session.query(ours).unwrap().int(0, 0).unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    let lost = |seen: &[Observation]| seen.iter().any(|one| matches!(one, Observation::Lost(_)));
    watching.until("loss", lost);
    let (already, figures) = (waits(&watching.seen), readings(&watching.seen));
    watching.until("more", |seen| waits(seen) > already + 1);
    assert!(figures > 5, "the other watcher looked on: {figures}");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    watching.finish();
    assert_eq!(watching.lost().len(), 1, "{:?}", watching.lost());
    assert!(
        watching.occurrences().iter().all(|one| one.kind != "restart"),
        "a lost connection is no restart"
    );
}

use kelvin_measure::event::{ArrivalSchedule, Event};
use kelvin_measure::invariant::Invariant;

use super::*;
use crate::scene::Scene;

fn of(scene: &Scene) -> BottleneckVerdict {
    let evidence = scene.evidence();
    verdict(&evidence, 0, &crate::findings_for(&evidence)).unwrap()
}

#[test]
fn a_full_host_is_bound_by_its_cpus() {
    let found = of(&Scene::healthy());
    assert_eq!(found.outcome, BottleneckOutcome::Bound { class: "CPU".into() }, "{found:#?}");
    // 2.0 seen, 1.0 of the load generator, 0.6 of processes waking up; 3.9 under way in all, 0.3 of them in the log.
    let cpu = &found.shares[0];
    assert!((3.5..3.7).contains(&cpu.sessions) && cpu.low < cpu.share && cpu.share < cpu.high, "{cpu:?}");
    let all: f64 = found.shares.iter().map(|share| share.sessions).sum();
    assert!((all - 3.9).abs() < 0.05, "{all}");
    assert!(found.independent_counters.iter().all(|counter| counter.agrees));
    assert!(found.next.contains("kelvin squeeze"));
}

#[test]
fn a_far_client_is_bound_by_the_network_also_on_a_full_host() {
    let mut scene =
        Scene::healthy().metric("host.process.server.run_delay", 0.2).metric("host.cpu.total.busy", 0.95);
    (scene.client_cpu, scene.client_delay) = (0.02, 0.02);
    scene.sessions = vec![("CPU", "", 0.5)];
    let found = of(&scene);
    assert_eq!(found.shares[0].class, "network", "{found:#?}");
    assert!((found.shares[0].sessions - 2.94).abs() < 0.05, "3.9 − 0.5 − 0.04 − 0.2 − 0.22: {found:#?}");
    let idle = scene.metric("host.cpu.total.busy", 0.3);
    assert_eq!(of(&idle).outcome, BottleneckOutcome::Bound { class: "network".into() });
}

#[test]
fn the_log_needs_an_independent_counter() {
    let mut scene = Scene::healthy().metric("host.cpu.total.busy", 0.4);
    scene.client_delay = 0.05;
    scene.sessions = vec![("IO", "WALSync", 0.9), ("LWLock", "WALWrite", 1.8), ("CPU", "", 0.4)];
    let found = of(&scene);
    assert!(
        matches!(&found.outcome, BottleneckOutcome::Undetermined { why } if why.contains("do not confirm")),
        "{found:#?}"
    );
    let scene = scene.metric("host.pressure.io.some", 0.6);
    assert_eq!(of(&scene).outcome, BottleneckOutcome::Bound { class: "log".into() });
    let mut device = scene.metric("host.pressure.io.some", 0.0);
    device.log_device = Some("vdb");
    for (column, value) in [("w_s", 300.0), ("w_await", 1.0), ("f_s", 300.0), ("f_await", 1.5)] {
        device = device.metric(&format!("host.disk.vdb.{column}"), value);
    }
    assert_eq!(of(&device).outcome, BottleneckOutcome::Bound { class: "log".into() });
}

#[test]
fn two_of_a_size_are_compound_and_many_undetermined() {
    let mut scene = Scene::healthy().metric("host.process.server.run_delay", 0.0);
    (scene.client_cpu, scene.client_delay) = (0.1, 0.0);
    scene.at_work = 4.0;
    scene.sessions = vec![("CPU", "", 1.7), ("Lock", "tuple", 1.6), ("IO", "WALSync", 0.5)];
    assert_eq!(
        of(&scene).outcome,
        BottleneckOutcome::Compound { classes: vec!["CPU".into(), "row locks".into()] }
    );
    scene.sessions = vec![
        ("CPU", "", 0.9),
        ("Lock", "tuple", 0.9),
        ("IO", "WALSync", 0.9),
        ("LWLock", "BufferContent", 0.9),
    ];
    assert!(matches!(of(&scene).outcome, BottleneckOutcome::Undetermined { .. }));
}

#[test]
fn what_must_not_be_judged_is_void() {
    let found = of(&Scene::healthy().metric("host.pages.swap_in", 50.0));
    assert!(
        matches!(&found.outcome, BottleneckOutcome::Void { reasons } if reasons[0].contains("swapped")),
        "{found:#?}"
    );
    let mut scene = Scene::healthy();
    let broken = Invariant::new("counts agree", false, "1, 2");
    scene.more = vec![Event::Invariant { point: 0, invariant: broken }];
    assert!(matches!(of(&scene).outcome, BottleneckOutcome::Void { .. }));
}

#[test]
fn with_many_failures_the_limit_is_undetermined() {
    let mut scene = Scene::healthy();
    scene.failed = 100;
    let found = of(&scene);
    assert!(
        matches!(&found.outcome, BottleneckOutcome::Undetermined { why } if why.contains("of the transactions failed")),
        "{found:#?}"
    );
    assert!(!found.shares.is_empty());
}

#[test]
fn without_sessions_the_host_is_all_there_is() {
    let mut scene = Scene::healthy();
    scene.sessions.clear();
    let found = of(&scene);
    assert!(
        matches!(&found.outcome, BottleneckOutcome::Undetermined { why } if why.contains("93 % of the CPUs")),
        "{found:#?}"
    );
    assert!(found.shares.is_empty() && !found.independent_counters.is_empty());
    let mut scene = scene.metric("host.process.client.cpu.user", 1.6);
    scene.environment["embedded"] = true.into();
    assert!(
        matches!(of(&scene).outcome, BottleneckOutcome::Undetermined { why } if why.contains("within the client"))
    );
    assert_eq!(verdict(&Evidence::default(), 0, &[]), None);
}

#[test]
fn users_who_think_most_of_the_time_decide_themselves() {
    let mut scene = Scene::healthy().metric("host.cpu.total.busy", 0.2);
    scene.users = 40;
    assert!(
        matches!(of(&scene).outcome, BottleneckOutcome::Undetermined { why } if why.contains("think times"))
    );
}

#[test]
fn a_schedule_that_was_kept_leaves_nothing_to_limit() {
    let mut scene = Scene::healthy();
    let schedule = |refused| ArrivalSchedule {
        rate: 1000.0,
        due: 20_000,
        refused,
        longest: 3,
        ..ArrivalSchedule::default()
    };
    scene.schedule = Some(schedule(0));
    assert!(
        matches!(of(&scene).outcome, BottleneckOutcome::Undetermined { why } if why.contains("arrival rate"))
    );
    scene.schedule = Some(schedule(300));
    assert_eq!(of(&scene).outcome, BottleneckOutcome::Bound { class: "CPU".into() });
}

/// The embedded default: four users, one of whom writes at a time, had the verdict "Undetermined" although the length
/// of the queue is known.
#[test]
fn trial_d9_the_queue_for_sqlites_one_writer_is_the_verdict() {
    let mut scene = Scene::healthy().without("host.process.server.").metric("sqlite.busy", 2.8);
    scene.sessions.clear();
    scene.environment["embedded"] = true.into();
    (scene.client_cpu, scene.client_delay) = (0.95, 0.05);
    let found = of(&scene);
    assert_eq!(
        found.outcome,
        BottleneckOutcome::Bound { class: "single writer".into() },
        "{}",
        found.sentence
    );
    assert!((found.shares[0].share - 2.8 / 3.9).abs() < 1e-6 && found.sentence.contains("72 %"), "{found:?}");
    let sum: f64 = found.shares.iter().map(|share| share.share).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{found:?}");

    // A single user never waits.
    let alone = of(&Scene { at_work: 0.98, users: 1, ..scene }.metric("sqlite.busy", 0.0));
    assert!(
        !matches!(&alone.outcome, BottleneckOutcome::Bound { class } if class.contains("writer")),
        "{alone:?}"
    );
}

#[test]
fn trial_d9_what_disagrees_does_not_read_as_if_it_agreed() {
    let mut scene = Scene::healthy().metric("host.cpu.total.busy", 1.0);
    scene.sessions = vec![("Lock", "transactionid", 3.5), ("CPU", "", 0.3)];
    let found = of(&scene);
    let room = found.independent_counters.iter().find(|counter| counter.what == "CPUs in use").unwrap();
    assert!(!room.agrees && !room.found.contains("there is room"), "{room:?}");
}

use kelvin_measure::event::ArrivalSchedule;

use super::*;
use crate::scene::{Scene, severities};
use crate::{Severity, findings_for};

fn price(scene: &Scene) -> NoisePrice {
    let evidence = scene.evidence();
    of_processes(&evidence, evidence.point(0).unwrap()).unwrap()
}

/// Others use `cpus` of the two, constantly; client and database 1.75.
fn beside(cpus: f64) -> Scene {
    let busy = f64::midpoint(1.75, cpus) + 0.012;
    Scene::healthy().metric("host.cpu.total.busy", busy as f32)
}

#[test]
fn trial_d5_without_a_calm_second_the_price_is_bound_by_what_others_could_have_taken() {
    let dear = price(&beside(0.2));
    assert_eq!(dear.low, 0.0, "{dear:?}");
    assert!((dear.high - 0.2 / 1.95).abs() < 0.001, "{dear:?}");
    assert!(dear.estimate < dear.high && dear.share() == "up to 10 %", "{dear:?}");
}

#[test]
fn trial_d5_nobody_pays_who_did_not_wait() {
    let mut idle =
        beside(0.2).metric("host.process.server.run_delay", 0.02).metric("host.cpu.total.busy", 0.5);
    idle.client_delay = 0.01;
    assert!(price(&idle).high < 0.02, "{:?}", price(&idle));
    let pressed = beside(0.2).metric("host.pressure.cpu.some", 0.03);
    assert!((price(&pressed).high - 0.03).abs() < 1e-6, "no task of all waited for longer");
}

#[test]
fn trial_d5_who_waits_for_a_lock_waits_for_the_holders_cpu() {
    let quiet = || {
        let mut scene = beside(0.5).metric("host.process.server.run_delay", 0.02);
        scene.client_delay = 0.01;
        scene
    };
    let mut locked = quiet();
    locked.sessions.push(("Lock", "transactionid", 1.5));
    assert!(price(&quiet()).high < 0.02 && price(&locked).high > 0.2);
}

#[test]
fn trial_d5_the_gate_is_on_the_price_and_not_on_a_share_of_cpus() {
    // 27 % of the CPUs counted and 30 % did not: both cost too much here, and 30 % for which no task waited cost
    // nothing.
    let hog = |cpus: f64| {
        Scene::healthy()
            .metric("host.process.server.cpu.user", (1.0 - cpus / 2.0) as f32)
            .metric("host.cpu.total.busy", 1.0)
    };
    let void = |scene: &Scene| {
        let evidence = scene.evidence();
        crate::verdict::void_reasons(evidence.point(0).unwrap(), &crate::findings::findings_for(&evidence))
    };
    for share in [0.27, 0.30] {
        let reasons = void(&hog(2.0 * share));
        assert!(
            reasons.iter().any(|why| why.starts_with("Foreign CPU explains up to")),
            "{share}: {reasons:?}"
        );
    }
    let mut nobody = hog(0.6).metric("host.process.server.run_delay", 0.01);
    nobody.client_delay = 0.01;
    assert_eq!(void(&nobody), [""; 0]);
}

#[test]
fn trial_d5_a_short_window_does_not_pass_because_it_knows_little() {
    let mut short = beside(0.6);
    short.window.truncate(3);
    // Its own throughput is known much less precisely than the price.
    short.window = vec![200, 1000, 1800];
    let found: Vec<_> =
        findings_for(&short.evidence()).into_iter().filter(|one| one.id == "noisy-neighbour").collect();
    assert_eq!(severities(&found), [Severity::Red]);
}

#[test]
fn trial_d5_accepted_noise_counts_and_keeps_its_price() {
    let mut accepted = beside(0.6);
    accepted.spec["accept-noise"] = true.into();
    let evidence = accepted.evidence();
    let found: Vec<_> =
        findings_for(&evidence).into_iter().filter(|one| one.id == "noisy-neighbour").collect();
    assert_eq!(severities(&found), [Severity::Amber]);
    assert!(found[0].title.contains("(accepted)"), "{}", found[0].title);
    assert!(
        crate::verdict::void_reasons(evidence.point(0).unwrap(), &crate::findings::findings_for(&evidence))
            .is_empty()
    );
    let words = accepted_noise([(&evidence, 0)]).unwrap();
    assert!(words.contains("(--accept-noise): foreign CPU explains up to 2"), "{words}");
    let both = accepted_noise([(&evidence, 0), (&evidence, 0)]).unwrap();
    assert!(both.contains("in 2 measured windows"), "{both}");
    assert_eq!(accepted_noise([(&beside(0.6).evidence(), 0)]), None);
}

#[test]
fn trial_d5_calm_seconds_give_the_price_an_interval() {
    // Every other second of the last ten others take a CPU and the throughput falls by 30 %.
    let noisy = |second: u64| second >= 10 && second.is_multiple_of(2);
    let mut scene = beside(0.02);
    scene.window = (0..20).map(|s| if noisy(s) { 700 } else { 1000 } + s * 37 % 11).collect();
    scene.spikes = Some(("host.cpu.total.busy", Box::new(move |s| noisy(s).then_some(0.5))));
    let found = price(&scene);
    // Five of twenty seconds cost 30 % each: 7.5 % lost work against 92.5 % completed work.
    assert!(found.low > 0.04 && found.high < 0.12, "{found:?}");
    assert!((found.estimate - 0.08).abs() < 0.02, "{found:?}");
}

#[test]
fn trial_d5_with_a_rate_times_stretch_by_what_stood_idle() {
    let mut open = Scene::healthy().metric("host.cpu.total.busy", 0.6);
    open.schedule = Some(ArrivalSchedule {
        rate: 1000.0,
        due: 20_000,
        refused: 0,
        waiting: 0,
        waiting_at_close: Some(0),
        cut_off: 0,
        longest: 3,
    });
    open = open.metric("host.process.server.cpu.user", 0.2).metric("host.process.server.run_delay", 3.0);
    // 0.126 of others beside 0.8 idle CPUs.
    assert!((price(&open).high - 0.126 / 0.926).abs() < 0.01, "{:?}", price(&open));
}

#[test]
fn trial_d5_what_the_hypervisor_took_is_part_of_the_price() {
    let evidence = beside(0.1).metric("host.cpu.total.steal", 0.1).evidence();
    let point = evidence.point(0).unwrap();
    let (steal, all) = (of_steal(&evidence, point).unwrap(), noise(&evidence, 0).unwrap());
    assert!(steal.high > 0.1 && all.high >= steal.high, "{steal:?} {all:?}");
}

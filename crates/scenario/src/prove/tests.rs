use std::path::Path;

use kelvin_diagnose::tenants::TenantSecond;
use kelvin_measure::event::Stretch;
use kelvin_measure::{Histogram, SECOND};

use super::*;

const THREE: &str = r#"
scenario = "three"
[tenants.shop]
workload = "script"
load = { rate = 100 }
script = { scripts = [{ name = "a", text = "select 1" }] }
[tenants.scan]
workload = "io"
copies = 2
io = { job = "[j]\nioengine=null\nsize=1m" }
[[steps]]
fill = "scan"
[[steps]]
start = "shop"
[[steps]]
wait = "20s"
[[steps]]
start = "scan"
for = "10s"
[[steps]]
wait-for = "scan"
[[steps]]
wait = "5s"
"#;

fn three() -> Scenario {
    Scenario::parse(THREE, "three.toml", Path::new(""), &[]).unwrap()
}

#[test]
fn without_a_neighbour_everything_else_keeps_its_time_and_who_began_the_clock_stays() {
    let proof = Proof::plan(&three(), 4).unwrap();
    let [whole, alone] = proof.variants.as_slice() else { panic!("{:?}", proof.variants) };
    assert_eq!((&whole.without, alone.without.as_deref()), (&None, Some("scan")));
    assert_eq!(alone.scenario.tenants.len(), 1);
    let steps: Vec<(Option<f64>, &str)> =
        alone.scenario.timeline.steps.iter().map(|step| (step.at, step.text.as_str())).collect();
    assert_eq!(
        steps,
        [
            (Some(0.0), "start shop"),
            (Some(0.0), "wait 20s"),
            (Some(20.0), "wait 10s"),
            (Some(30.0), "wait 5s")
        ]
    );
    assert_eq!(alone.scenario.timeline.seconds, 35.0);
    assert!(proof.kept()[0].contains("shop cannot be omitted"), "{:?}", proof.kept());
    let open = THREE.replace("for = \"10s\"", "").replace("wait-for = \"scan\"", "run = \"true\"");
    let open = Scenario::parse(&open, "x", Path::new(""), &[]).unwrap();
    assert!(Proof::plan(&open, 4).unwrap_err().contains("known times"));
}

/// A tenant at work from `from` to `to` with so many transactions a second.
fn series(name: &str, (from, to): (i64, i64), rate: impl Fn(i64) -> f64) -> TenantSeries {
    let mut tenant = TenantSeries { name: name.into(), ..TenantSeries::default() };
    tenant.stretches.push(Stretch {
        point: 0,
        from: from as u64 * SECOND,
        to: to as u64 * SECOND,
        users: 1,
        client_headline: 0,
        server_headline: None,
        schedule: None,
        poisson: false,
    });
    for second in from..to {
        let good = rate(second) as u64;
        let mut service = Histogram::new();
        (0..good).for_each(|n| service.record(1_000_000 + n * 1000));
        tenant.seconds.insert(second, TenantSecond { good, service, ..TenantSecond::default() });
    }
    tenant
}

fn prove(cost: f64) -> Proof {
    let mut proof = Proof::plan(&three(), 8).unwrap();
    let mut random = Random::part(3, 1, 1);
    while let Some(variants) = proof.next_round() {
        let round = variants.into_iter().map(|variant| {
            let level = 1000.0 + 20.0 * (random.exponential(1.0) - 1.0);
            let with = variant.without.is_none();
            let shop =
                series("shop", (0, 35), |s| if with && (20..30).contains(&s) { level * cost } else { level });
            let scans = ["scan-1", "scan-2"].map(|name| series(name, (20, 30), |_| 50.0));
            let tenants = if with { [vec![shop], scans.to_vec()].concat() } else { vec![shop] };
            (variant.without, tenants)
        });
        proof.take(round.collect::<Vec<_>>());
    }
    proof
}

#[test]
fn a_cost_is_shown_at_the_first_look_and_none_at_no_look() {
    let found = prove(0.7);
    assert_eq!(found.rounds(), 4);
    let effects = found.effects();
    assert_eq!(effects.len(), 1);
    let throughput = effects[0].throughput.unwrap();
    assert!(throughput.shown && (0.6..0.8).contains(&throughput.ratio), "{throughput:?}");
    let none = prove(1.0);
    assert_eq!(none.rounds(), 8);
    let throughput = none.effects()[0].throughput.unwrap();
    assert!(!throughput.shown && throughput.low > 0.9 && throughput.high < 1.1, "{throughput:?}");
}

#[test]
fn each_round_has_every_variant_and_random_values_of_its_own() {
    let mut proof = Proof::plan(&three(), 6).unwrap();
    let mut orders = Vec::new();
    for _ in 0..4 {
        let round = proof.next_round().unwrap();
        orders.push(round.iter().map(|variant| variant.without.is_none()).collect::<Vec<_>>());
        let seeds: Vec<u64> =
            round.iter().map(|variant| variant.scenario.tenants[0].spec.load.seed).collect();
        assert!(seeds.iter().all(|seed| *seed == seeds[0]));
        assert_eq!(seeds[0], 1 + proof.rounds() as u64);
        proof.take(Vec::new());
    }
    assert!(orders.iter().any(|order| order[0]) && orders.iter().any(|order| !order[0]), "{orders:?}");
}

//! Scenarios from the file to the report: a script on SQLite and concurrent I/O jobs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use kelvin_measure::Random;
use kelvin_measure::invariant::{GENERATOR_RAN, LOAD_GENERATOR};
use serde_json::Value;
use support::scenarios::{hit_databases, hits, seconds};
use support::{Place, undisturbed};

const TWO: &str = r#"
scenario = "two tenants"
accept-noise = true

[parameters.rate]
type = "number"
default = 40
min = 1

[tenants.shop]
workload = "script"
target = "sqlite:shop.db"
[tenants.shop.load]
users = 2
rate = "${rate}"
arrivals = "uniform"
[tenants.shop.script]
scripts = [{ name = "hit", text = "insert into hits (at) values (1);" }]

[tenants.crowd]
workload = "script"
target = "sqlite:crowd.db"
[tenants.crowd.load]
users = 1
think-time = "10ms"
[tenants.crowd.script]
scripts = [{ name = "hit", text = "insert into hits (at) values (1);" }]

[tenants.disk]
workload = "io"
[tenants.disk.io]
job = """
[reader]
filename=data
size=1m
bs=4k
rw=randread
ioengine=psync
rate_iops=100
"""

[[steps]]
mark = "cold caches"
[[steps]]
fill = "disk"
[[steps]]
start = ["shop", "crowd"]
[[steps]]
wait = "2s"
[[steps]]
start = "disk"
[[steps]]
wait = "1s"
[[steps]]
set = "shop"
rate = 120
[[steps]]
set = "crowd"
users = 3
note = "two more"
[[steps]]
wait = "1s"
[[steps]]
mark = "half"
annotate = true
[[steps]]
wait = "1s"
[[steps]]
stop = "disk"
[[steps]]
wait = "2s"

[[expect]]
tenant = "shop"
rate-held = "90%"
slo = "errors<1%"
[[expect]]
tenant = "disk"
during = "shop"
throughput-min = 50
throughput-max = 150
"#;

/// A place with the scenario and its databases.
fn place(text: &str) -> Place {
    let place = Place::new();
    hit_databases(&place, ["shop.db", "crowd.db"]);
    place.write("two.toml", text);
    place
}

#[test]
fn tenants_run_on_one_clock_and_steps_take_effect_at_their_seconds() {
    let run = || {
        let place = place(TWO);
        let output = place.run(&["run", "two.toml"]);
        (place, output)
    };
    let ((place, output), report) = undisturbed(run, |(place, _)| place.report("last"));
    let text = support::text(&output.stdout);
    let counts = output.status.code() == Some(0) || place.is_noise();
    assert!(counts, "{text}\n{}", support::text(&output.stderr));
    assert!(text.contains("shop") && text.contains("expected shop: rate held to 90%"), "{text}");
    let steps: Vec<(f64, &str)> = report["scenario"]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["at"].as_f64().unwrap() / 1e9, step["text"].as_str().unwrap()))
        .collect();
    let planned = [
        (0.0, "cold caches"),
        (0.0, "start shop, crowd"),
        (2.0, "start disk"),
        (3.0, "set shop: 120 arrivals/s"),
        (3.0, "two more"),
        (4.0, "half"),
        (5.0, "stop disk"),
        (7.0, "the end"),
    ];
    assert_eq!(steps.len(), planned.len(), "{steps:?}");
    for ((at, text), (planned_at, planned)) in steps.iter().zip(planned) {
        assert!(*text == planned && (planned_at..planned_at + 0.5).contains(at), "{steps:?}");
    }
    // The tenants' counts equal those of their databases.
    let ((shop, shops), (crowd, crowds)) = (seconds(&report, "shop"), seconds(&report, "crowd"));
    assert_eq!((shops, crowds), (hits(&place, "shop.db"), hits(&place, "crowd.db")));
    let broken = broken_invariants(&report);
    assert!(broken.is_empty(), "{broken:?}");
    // Tenants have no common total in any format: the rows of all types are those of one tenant.
    let markdown = place.expect(0, &["report", "last", "--format", "markdown"]);
    assert!(markdown.contains("| shop: all |") && !markdown.contains("| service: all |"), "{markdown}");
    let rows = place.expect(0, &["report", "last", "--format", "csv"]);
    let of_all: Vec<&str> = rows.lines().filter(|row| row.contains(",all,")).collect();
    let of_tenant = |row: &&str| ["shop", "crowd", "disk"].iter().any(|name| row.trim_end().ends_with(name));
    assert!(of_all.len() == 3 && of_all.iter().all(of_tenant), "{rows}");
    assert!(report["points"][0]["client_cpu_us_per_transaction"].is_null(), "{report}");
    // Each step happens at its time.
    let at = |text: &str| steps.iter().find(|step| step.1 == text).unwrap().0 as usize;
    let (changed, end) = (at("set shop: 120 arrivals/s"), at("the end"));
    let (before, after): (u64, u64) = (shop[..changed].iter().sum(), shop[changed..].iter().sum());
    let (expected_before, expected_after) = (40 * changed as u64, 120 * (end - changed) as u64);
    // Gaps below 0.2 s are tolerated: such a gap at a border moves that many arrivals into the next second.
    assert!(before.abs_diff(expected_before) <= 3 + 8, "{before} of {expected_before}: {shop:?}");
    assert!(after.abs_diff(expected_after) <= 3 + 24, "{after} of {expected_after}: {shop:?}");
    let (disk, _) = seconds(&report, "disk");
    assert_eq!(disk[..at("start disk")].iter().sum::<u64>(), 0, "{disk:?}");
    assert!(disk[at("start disk")..at("stop disk")].iter().sum::<u64>() > 200, "{disk:?}");
    assert!(disk[at("stop disk") + 1..].iter().sum::<u64>() == 0, "{disk:?}");
    let mean = |seconds: &[u64]| seconds.iter().sum::<u64>() as f64 / seconds.len() as f64;
    assert!(mean(&crowd[changed + 1..end]) > 1.5 * mean(&crowd[..changed]), "{crowd:?}");
}

/// The invariants that do not hold, without those that depend on other activity of the machine.
fn broken_invariants(report: &Value) -> Vec<&Value> {
    let of_time = |name: &str| [LOAD_GENERATOR, GENERATOR_RAN].iter().any(|check| name.ends_with(check));
    let all = report["points"][0]["invariants"].as_array().unwrap().iter();
    all.filter(|one| one["holds"] != true && !of_time(one["name"].as_str().unwrap())).collect()
}

/// A random valid timeline of at most four seconds in which loads start, change and stop.
fn any_timeline(random: &mut Random) -> String {
    const NAMES: [&str; 3] = ["shop", "crowd", "disk"];
    let mut below = |count: usize| (random.bits() % count as u64) as usize;
    let spans = ["100ms", "500ms", "1s"];
    // For each running load: whether it ends by itself.
    let (mut on, mut started) = ([None::<bool>; 3], [false; 3]);
    let mut steps = Vec::new();
    if below(2) == 0 {
        steps.push("{ fill = \"disk\" }".to_owned());
    }
    for number in 0..9 {
        let one = if number == 0 { 0 } else { below(3) };
        let name = NAMES[one];
        let step = match (below(7), on[one]) {
            (0..3, None) => {
                let ends = below(2) == 0;
                (on[one], started[one]) = (Some(ends), true);
                let lasts = if ends { ", for = \"1s\"" } else { "" };
                let apart = ["", ", stagger = \"700ms\""][below(2)];
                format!("{{ start = \"{name}\"{lasts}{apart} }}")
            }
            (3, Some(_)) => {
                on[one] = None;
                format!("{{ stop = \"{name}\" }}")
            }
            (4, Some(true)) => {
                on[one] = None;
                format!("{{ wait-for = \"{name}\" }}")
            }
            (_, Some(_)) if one == 0 => format!("{{ set = \"shop\", rate = {} }}", 10 + 50 * below(3)),
            (_, Some(_)) if one == 1 => format!("{{ set = \"crowd\", users = {} }}", 1 + below(3)),
            (5, _) => "{ repeat = 2, steps = [{ mark = \"round ${round}\" }, { wait = \"100ms\" }] }".into(),
            _ => format!("{{ wait = \"{}\" }}", spans[below(3)]),
        };
        steps.push(step);
    }
    for (name, _) in NAMES.iter().zip(started).filter(|(_, started)| !started) {
        steps.push(format!("{{ start = \"{name}\" }}"));
    }
    steps.push("{ wait = \"600ms\" }".to_owned());
    steps.join(",\n")
}

/// With any steps, the run ends and is stored, and the counts of tenants, databases and seconds agree.
#[test]
fn any_timeline_ends_and_its_sums_agree() {
    let run = |number: u64| {
        let timeline = any_timeline(&mut Random::part(17, 0x7469_6d65, number));
        let (tenants, _) = TWO.split_once("[[steps]]").unwrap();
        let tenants =
            tenants.split_once("[parameters.rate]").unwrap().1.split_once("[tenants.shop]").unwrap().1;
        let tenants =
            tenants.replace("${rate}", "40").replace("[tenants.disk]\n", "[tenants.disk]\ncopies = 2\n");
        let tenants = tenants.replace("filename=data", "filename=data${copy}").replace("=psync", "=null");
        let text = format!(
            "scenario = \"any {number}\"\naccept-noise = true\nsteps = [\n{timeline}\n]\n[tenants.shop]{tenants}"
        );
        let place = place(&text);
        place.expect(0, &["run", "two.toml", "--quiet"]);
        let report = place.report("last");
        assert_eq!(report["status"], "complete", "{timeline}");
        let broken = broken_invariants(&report);
        assert!(broken.is_empty(), "{broken:?} of\n{timeline}");
        for (tenant, file) in [("shop", "shop.db"), ("crowd", "crowd.db")] {
            assert_eq!(seconds(&report, tenant).1, hits(&place, file), "{tenant} of\n{timeline}");
        }
        let good = |seconds: &Value| -> u64 {
            let types = |second: &Value| -> u64 {
                second["good"].as_array().unwrap().iter().filter_map(Value::as_u64).sum()
            };
            seconds.as_array().unwrap().iter().map(types).sum()
        };
        let point = &report["points"][0];
        let sources: u64 =
            point["sources"].as_array().unwrap().iter().map(|source| good(&source["seconds"])).sum();
        assert!(sources > 0);
        assert_eq!(good(&point["seconds"]), sources, "{timeline}");
    };
    std::thread::scope(|scope| {
        for number in 0..4 {
            scope.spawn(move || run(number));
        }
    });
}

#[test]
fn an_end_by_ctrl_c_or_a_failing_step_keeps_what_was_measured() {
    let place =
        place(&TWO.replace("mark = \"half\"\nannotate = true", "run = \"echo no such disk >&2; false\""));
    place.expect(2, &["run", "two.toml"]);
    let text = place.expect(4, &["run", "two.toml", "--allow-shell"]);
    assert!(text.contains("no such disk"), "{text}");
    let report = place.report("last");
    assert_eq!(report["state"], "failed");
    let ((_, shops), (_, crowds)) = (seconds(&report, "shop"), seconds(&report, "crowd"));
    assert_eq!((shops, crowds), (hits(&place, "shop.db"), hits(&place, "crowd.db")));
    assert!(shops > 0 && crowds > 0);
}

#[test]
fn the_examples_are_sound_and_their_plan_is_five_minutes() {
    let place = Place::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/colocation");
    for (name, at) in [("io.toml", "2:30"), ("postgres.toml", "2:45")] {
        let text = place.expect(0, &["scenario", "plan", &format!("{examples}/{name}")]);
        assert!(text.contains("5 min") && text.contains(at) && text.contains("start dss"), "{text}");
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../xray/tests/scenarios/colocation");
    for command in [["run", &format!("{examples}/io.toml")], ["xray", folder]] {
        let refused = place.run(&[&command[..], &["--fleet", "lab"]].concat());
        let why = support::text(&refused.stderr);
        assert!(
            refused.status.code() == Some(2) && why.contains("--fleet: the tenants of this scenario"),
            "{why}"
        );
    }
    let refused = place.run(&["run", &format!("{examples}/io.toml"), "--param", "half=1s"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(support::text(&refused.stderr).contains("out of range"), "{refused:?}");
}

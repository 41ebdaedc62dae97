//! Tenants of a scenario on agents.

use super::support::scenarios::seconds;
use super::support::{text, undisturbed};
use super::*;

const SCENARIO: &str = r#"
scenario = "tenants on agents"
accept-noise = true

[tenants.near]
workload = "io"
[tenants.near.io]
job = "[reader]\nfilename=data\nsize=1m\nbs=4k\nrw=randread\nioengine=psync\nrate_iops=50"

[tenants.far]
workload = "io"
host = "g0"
[tenants.far.io]
job = "[reader]\nfilename=data\nsize=1m\nbs=4k\nrw=randread\nioengine=psync\nrate_iops=100"

[tenants.shop]
workload = "script"
target = "TARGET"
host = "g1"
[tenants.shop.load]
users = 2
rate = 40
arrivals = "uniform"
[tenants.shop.script]
scripts = [{ name = "hit", text = "insert into hits (at) values (1);" }]

[[steps]]
fill = "far"
[[steps]]
start = ["near", "shop"]
[[steps]]
wait = "4s"
[[steps]]
start = "far"
for = "3s"
[[steps]]
wait-for = "far"
[[steps]]
start = "far"
[[steps]]
wait = "2s"
[[steps]]
stop = ["far", "shop"]
[[steps]]
wait = "1s"
"#;

#[test]
fn tenants_on_agents_follow_the_steps_and_count_what_the_server_has() {
    let server = Server::start();
    let url = server.url();
    let below = std::fs::canonicalize(std::env::temp_dir()).unwrap();
    let allowed = ["--allow-path", below.to_str().unwrap(), "--allow-target", &url];
    let fleet = TestFleet::allowing(2, &allowed, "15s", &[]);
    let engine = PostgresEngine::new(server.instance.config());
    let mut session = engine.connect().unwrap();
    session.run("create table hits (at int)").unwrap();
    fleet.place.write("far.toml", SCENARIO.replace("TARGET", &url));
    let refused = fleet.place.run(&["run", "far.toml"]);
    let why = text(&refused.stderr);
    assert!(refused.status.code() == Some(2) && why.contains("runs on the agent g0"), "{why}");
    let run = || {
        session.run("truncate hits").unwrap();
        let output = fleet.place.run(&["run", "far.toml", "--fleet", "lab"]);
        assert_counts(&fleet.place, &output);
    };
    let ((), report) = undisturbed(run, |()| fleet.place.report("last"));
    let steps: Vec<(f64, String)> = report["scenario"]["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["at"].as_f64().unwrap() / 1e9, step["text"].as_str().unwrap().to_owned()))
        .collect();
    let at = |text: &str, which: usize| {
        let found = steps.iter().filter(|step| step.1.contains(text)).nth(which);
        found.unwrap_or_else(|| panic!("{text}: {steps:?}")).0 as usize
    };
    let (far, all) = seconds(&report, "far");
    let (begun, again, end) = (at("start far", 0), at("start far", 1), at("stop far", 0));
    assert!(begun >= 4 && again >= begun + 3, "{steps:?}");
    assert!(far[..begun].iter().sum::<u64>() == 0 && all > 300, "{far:?} {steps:?}");
    assert!((200..=330).contains(&far[begun..begun + 3].iter().sum::<u64>()), "{far:?} {steps:?}");
    assert!(far[again..end].iter().sum::<u64>() > 100, "{far:?} {steps:?}");
    let (measured, shop) = seconds(&report, "shop");
    let hits = session.query("select count(*) from hits").unwrap().int(0, 0).unwrap();
    assert_eq!(hits as u64, shop, "{steps:?}");
    assert!(seconds(&report, "near").1 > 200);
    // One row for each agent, over all its turns; this host has none.
    let hosts = report["points"][0]["generator"]["hosts"].as_array().unwrap();
    let of = |name: &str| hosts.iter().find(|host| host["host"] == name).unwrap();
    let measured: u64 = measured.iter().sum();
    assert_eq!((hosts.len(), of("g1")["headline_count"].as_u64()), (2, Some(measured)), "{hosts:?}");
    assert!(
        of("g0")["headline_count"].as_u64().unwrap() > 300 && of("g0")["start_us"].is_number(),
        "{hosts:?}"
    );
    let busy = |host: &Value| (0.0..1.0).contains(&host["cpu_cores"].as_f64().unwrap());
    assert!(hosts.iter().all(busy), "{hosts:?}");
    assert!(report["points"][0]["generator"]["start"].is_null(), "they start when their steps say");
    assert!(fleet.place.path("g0").join("data").is_file(), "g0 has its own file");
    assert_eq!(fleet.own_report("g1")["workload"], "script");
    fleet.wait_until_idle(2);
}

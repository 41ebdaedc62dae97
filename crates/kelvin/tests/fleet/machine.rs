//! What depends on the machine as much as on the code: `cargo xtask machine`.

use std::fmt::Write as _;

use super::*;

/// CPU time in seconds and the largest memory in KiB that a process had so far.
fn cost(pid: u32) -> Option<(f64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some((ticks / 100.0, peak.trim().trim_end_matches(" kB").parse().ok()?))
}

#[test]
#[ignore = "200 agents on one host: cargo xtask machine"]
fn two_hundred_agents_cost_the_controller_less_than_a_core() {
    let agents = 200;
    let server = Server::start_with(&[("max_connections", "260")]);
    let url = server.url();
    let fleet = TestFleet::start(agents, &[&url], "15s", &[]);
    fleet.place.write("null.sql", "\\sleep 100 ms\nselect 1;\n");
    let seconds = 30;
    let (users, duration) = (agents.to_string(), format!("{seconds}s"));
    let run = ["run", "script", "null.sql", "--target", &url, "--fleet", "lab", "--users", &users];
    let load = ["--ramp-up", "1s", "--duration", &duration, "--accept-noise"];
    let child = fleet.place.command(&[&run[..], &load].concat()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut first, mut last) = (None, None);
    let pid = child.id();
    while let Some(now) = cost(pid).filter(|(_, peak)| *peak > 0) {
        if first.is_none() && fleet.log("g0").contains("starts at") {
            first = Some((Instant::now(), now.0));
        }
        last = Some((Instant::now(), now));
        std::thread::sleep(Duration::from_millis(100));
    }
    let output = child.wait_with_output().unwrap();
    let (since, before) = first.unwrap();
    let (until, (after, peak)) = last.unwrap();
    let cores = (after - before) / (until - since).as_secs_f64();
    let run = fleet.place.report("last");
    let point = &run["points"][0];
    let mut found = String::new();
    write!(found, "controller {cores:.3} cores, {peak} KiB; {}", point["generator"]["start"]).unwrap();
    eprintln!("{found}");
    let hosts = point["generator"]["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), agents, "{}", text(&output.stdout));
    assert!(hosts.iter().all(|host| host["lost"].is_null()));
    let sum: u64 = hosts.iter().map(|host| host["headline_count"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), point["headline_count"].as_u64());
    assert!(cores < 1.0 && peak < 500 << 10, "{found}");
}

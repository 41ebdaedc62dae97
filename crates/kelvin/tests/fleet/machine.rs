//! Tests that depend on the machine as much as on the code: `cargo xtask machine`.

use std::fmt::Write as _;

use super::*;

/// CPU time in seconds and peak memory in KiB of a process.
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
    // 200 processes share the host's CPUs, so the spread of their starts is printed but not judged. Everything else is.
    let load = ["--ramp-up", "1s", "--duration", &duration, "--accept-noise", "--start-skew", "1s"];
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
    assert_eq!(run["state"], "counted", "{}", run["reasons"]);
    assert_eq!(hosts.len(), agents, "{}", text(&output.stdout));
    assert!(hosts.iter().all(|host| host["lost"].is_null()));
    let sum: u64 = hosts.iter().map(|host| host["headline_count"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), point["headline_count"].as_u64());
    assert!(cores < 1.0 && peak < 500 << 10, "{found}");
}

/// Pairs of one-minute runs in turn, at most `KELVIN_PAIRS`. The interval is examined after every five pairs, and the test
/// ends when it is conclusive. The interim analyses share the 5 % (Bonferroni), so the last interval holds at 95 % for any
/// number of them.
/// decides. The looks share the 5 % (Bonferroni), so that the interval printed last holds at 95 % however many there were.
#[test]
#[ignore = "pairs of runs of a minute: cargo xtask machine"]
fn two_agents_have_the_throughput_of_one_process() {
    let pairs: usize = std::env::var("KELVIN_PAIRS").map_or(5, |pairs| pairs.parse().unwrap());
    let data = Data::build(4);
    let url = data.copy("pairs");
    let fleet = TestFleet::start(2, &[&url], "15s", &[]);
    let load = ["--users", "8", "--ramp-up", "5s", "--duration", "60s", "--no-build"];
    let here = ["run", "tproc-c", "--accept-noise", "--target", &url];
    let mut measured = [Vec::new(), Vec::new()];
    let level = 1.0 - 0.05 / pairs.div_ceil(5) as f64;
    let mut last = None;
    for pair in 0..pairs {
        for turn in 0..2 {
            let side = (pair + turn) % 2;
            let args = match side {
                0 => [&here[..], &load].concat(),
                _ => TestFleet::args(&url, "g0,g1", &load),
            };
            // Each run starts from a fresh copy: after a run, deliveries skip districts, and the next run would be void.
            data.copy("pairs");
            data.engine("pairs").connect().unwrap().run("checkpoint").unwrap();
            let output = fleet.place.run(&args);
            assert_counts(&fleet.place, &output);
            let nopm = fleet.place.report("last")["points"][0]["headline_per_minute"].as_f64().unwrap();
            eprintln!("pair {pair}: {} {nopm:.0} NOPM", ["one process", "two agents"][side]);
            measured[side].push(nopm);
        }
        let done = pair + 1;
        if !done.is_multiple_of(5) && done < pairs {
            continue;
        }
        let found = kelvin_stats::student::paired_ratio(&measured[0], &measured[1], level).unwrap();
        eprintln!(
            "after {done} pairs: {:.4} ({:.4} to {:.4}) at {level}",
            found.ratio, found.low, found.high
        );
        let decided = (found.low >= 0.95 && found.high <= 1.05) || found.high < 0.95 || found.low > 1.05;
        last = Some(found);
        if decided {
            break;
        }
    }
    let found = last.unwrap();
    assert!(found.low >= 0.95 && found.high <= 1.05, "{found:?}");
}

/// A database in a file needs no server that accepts ten thousand connections.
#[test]
#[ignore = "10,000 users on one host: cargo xtask machine"]
fn the_bins_of_four_times_2500_users_are_the_sums_of_the_agents() {
    let file = Place::new();
    let url = format!("sqlite:{}", file.path("null.db").display());
    file.write("null.sql", "select 1;\n");
    let script = file.path("null.sql");
    file.expect(0, &["run", "script", script.to_str().unwrap(), "--target", &url, "--transactions", "1"]);
    let fleet = TestFleet::start(4, &[&url], "15s", &[]);
    fleet.place.write("null.sql", "\\sleep 1 s\nselect 1;\n");
    let run =
        ["run", "script", "null.sql", "--target", &url, "--fleet", "lab", "--hosts", "4", "--users", "10000"];
    let load = ["--ramp-up", "2s", "--duration", "10s", "--accept-noise", "--start-skew", "10s"];
    let since = Instant::now();
    let output = fleet.place.run(&[&run[..], &load].concat());
    eprintln!("{:?}: {}", since.elapsed(), text(&output.stdout));
    let point = &fleet.place.report("last")["points"][0];
    let hosts = point["generator"]["hosts"].as_array().unwrap();
    assert!(hosts.iter().all(|host| host["users"] == 2500 && host["lost"].is_null()), "{hosts:?}");
    sums::assert_bins_are_the_sums(&fleet, "last", &["g0", "g1", "g2", "g3"]);
}

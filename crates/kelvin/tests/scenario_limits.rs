//! Tenants with limits: separate processes in control groups, which are removed however the scenario ends.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../database/tests/mysql_support/mod.rs"]
mod mysql_support;
mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use support::scenarios::{hit_databases, hits, seconds};
use support::{Place, text, undisturbed, wait_until};

const LIMITED: &str = r#"
scenario = "limits"
accept-noise = true

[tenants.free]
workload = "script"
target = "sqlite:free.db"
[tenants.free.load]
users = 1
rate = 40
arrivals = "uniform"
[tenants.free.script]
scripts = [{ name = "hit", text = "insert into hits (at) values (1);" }]

[tenants.shop]
workload = "script"
target = "sqlite:shop.db"
[tenants.shop.load]
users = 2
rate = 60
arrivals = "uniform"
[tenants.shop.script]
scripts = [{ name = "hit", text = "insert into hits (at) values (1);" }]
[tenants.shop.limits]
cpus = "0"
memory = "256 MiB"

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
[tenants.disk.limits]
cpus = 0.5
memory = "256 MiB"

[[steps]]
fill = "disk"
[[steps]]
start = ["free", "shop", "disk"]
[[steps]]
wait = "${half}"
[[steps]]
set = "shop"
rate = 120
[[steps]]
set = "disk"
rate = 300
[[steps]]
wait = "${half}"

[parameters.half]
type = "duration"
default = "1s"
"#;

/// A directory with the scenario and its databases; `None`, with a message, if this host supports no limits.
fn place() -> Option<Place> {
    let place = Place::new();
    hit_databases(&place, ["free.db", "shop.db"]);
    place.write("limits.toml", LIMITED);
    let root = rustix::process::geteuid().is_root();
    let groups = std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(" - cgroup");
    if root && groups {
        return Some(place);
    }
    let refused = place.run(&["run", "limits.toml"]);
    let why = text(&refused.stderr);
    assert!(!refused.status.success() && why.contains("the limits of shop cannot be set"), "{why}");
    None
}

/// The control group directories of a process.
fn groups(process: u32) -> Vec<PathBuf> {
    fn below(directory: PathBuf, name: &str, depth: u32, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let is_group = entry.file_name().to_string_lossy().starts_with(name);
            if is_group {
                found.push(entry.path());
            } else if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below(entry.path(), name, depth - 1, found);
            }
        }
    }
    let mut found = Vec::new();
    below("/sys/fs/cgroup".into(), &format!("kelvin-{process}-"), 4, &mut found);
    found
}

fn processes(group: &std::path::Path) -> Vec<u32> {
    let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn journals(place: &Place) -> usize {
    std::fs::read_dir(place.path(".local/share/kelvin/settings")).map_or(0, Iterator::count)
}

/// A running scenario, and the processes in its groups.
fn at_work(place: &Place) -> (Child, Vec<u32>) {
    let mut command = place.command(&["run", "limits.toml", "--param", "half=60s", "--quiet"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let members = || {
        let mut all: Vec<u32> = groups(child.id()).iter().flat_map(|group| processes(group)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let before = hits(place, "shop.db");
    wait_until("both processes are at work", || members().len() == 2 && hits(place, "shop.db") > before);
    let found = members();
    (child, found)
}

fn kill(process: u32, signal: rustix::process::Signal) {
    let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    rustix::process::kill_process(process, signal).unwrap();
}

fn lives(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z')
}

#[test]
fn limited_tenants_do_the_same_and_leave_nothing_behind() {
    if place().is_none() {
        return;
    }
    let run = || {
        let place = place().unwrap();
        let shown = place.expect(0, &["run", "limits.toml"]);
        (place, shown)
    };
    let ((place, shown), report) = undisturbed(run, |(place, _)| place.report("last"));
    let sum = |tenant: &str| seconds(&report, tenant).1;
    for name in ["free", "shop"] {
        assert_eq!(sum(name), hits(&place, &format!("{name}.db")), "{name}: {shown}");
    }
    // 60 transactions per second, and twice as many after the step; three times for the reads.
    assert!(sum("shop").abs_diff(180) <= 15 && sum("disk").abs_diff(400) <= 40, "{report}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("shop: at most CPUs 0, memory 256 MiB (control groups, version"), "{notes}");
    assert!(notes.contains("disk: at most 0.5 CPUs, memory 256 MiB"), "{notes}");
    assert_eq!(journals(&place), 0);
}

/// The sessions of the tenants' processes and of the watchers belong to one run, although the server sees
/// several clients.
#[test]
fn the_sessions_of_a_limited_tenant_are_not_those_of_another_kelvin() {
    if place().is_none() {
        return;
    }
    let (place, server) = (Place::new(), support::Server::start());
    let tenant = |name: &str, limits: &str| {
        format!(
            "[tenants.{name}]\nworkload = \"script\"\ntarget = \"{}\"\n[tenants.{name}.load]\nusers = 2\n\
             [tenants.{name}.script]\nscripts = [{{ name = \"one\", text = \"select pg_sleep(0.02);\" }}]\n{limits}",
            server.url()
        )
    };
    let limits = "[tenants.apart.limits]\ncpus = 0.5\n";
    let steps = "[[steps]]\nstart = \"free\"\n[[steps]]\nwait = \"4s\"\n[[steps]]\nstart = \"apart\"\n\
                 [[steps]]\nwait = \"4s\"\n";
    let tenants = tenant("free", "") + &tenant("apart", limits);
    place.write("one.toml", format!("scenario = \"one server\"\n{tenants}{steps}"));
    place.expect(0, &["run", "one.toml"]);
    let report = place.report("last");
    // Two sleeping sessions, later four: those of the other process are clients of this run, too.
    let waits = &report["scenario"]["interference"][0]["waits"]["classes"];
    let sessions = |when: &str| -> f64 {
        let classes = waits.as_array().unwrap_or_else(|| panic!("{}", report["scenario"]));
        classes.iter().map(|class| class[when].as_f64().unwrap()).sum()
    };
    assert!(sessions("before") < 2.5 && sessions("after") > 3.0, "{waits}");
}

/// The limits of a server last as long as the scenario, and are removed even after a kill.
#[test]
fn a_servers_limits_hold_for_the_scenario_and_are_lifted_after_it() {
    if place().is_none() {
        return;
    }
    let (place, server) = (Place::new(), support::Server::start());
    let scenario = format!(
        "scenario = \"limited server\"\naccept-noise = true\n[tenants.oltp]\nworkload = \"script\"\n\
         target = \"{}\"\n[tenants.oltp.load]\nusers = 2\n[tenants.oltp.script]\n\
         scripts = [{{ name = \"busy\", text = \"select count(*) from generate_series(1, 30000);\" }}]\n\
         [tenants.oltp.server-limits]\ncpus = 0.25\n[[steps]]\nstart = \"oltp\"\n[[steps]]\nwait = \"${{long}}\"\n\
         [parameters.long]\ntype = \"duration\"\ndefault = \"3s\"\n",
        server.url()
    );
    place.write("server.toml", scenario);
    let postmaster = server.instance.pid();
    let before = std::fs::read_to_string(format!("/proc/{postmaster}/cgroup")).unwrap();
    let now = || std::fs::read_to_string(format!("/proc/{postmaster}/cgroup")).unwrap();
    place.expect(0, &["run", "server.toml"]);
    let report = place.report("last");
    let notes = report["notes"].to_string();
    assert!(notes.contains("oltp: its server at most 0.25 CPUs (control groups, version"), "{notes}");
    assert_eq!(now(), before);
    // After a kill the server stays in the group until the next start removes it.
    let mut child = place.command(&["run", "server.toml", "--param", "long=60s", "--quiet"]).spawn().unwrap();
    let name = format!("kelvin-{}-oltp.server", child.id());
    wait_until("the server is limited", || now().contains(&name));
    // Two users alone would keep both CPUs busy: the kernel throttles them.
    let held_up = || {
        let stats = groups(child.id())
            .into_iter()
            .filter_map(|group| std::fs::read_to_string(group.join("cpu.stat")).ok());
        let counts = stats.flat_map(|text| {
            text.lines()
                .filter_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok())
                .collect::<Vec<_>>()
        });
        counts.sum::<u64>() > 0
    };
    wait_until("the server is held up", held_up);
    kill(child.id(), rustix::process::Signal::KILL);
    child.wait().unwrap();
    assert!(now().contains(&name));
    place.expect(0, &["server", "restore"]);
    assert_eq!(now(), before);
    assert!(groups(child.id()).is_empty() && journals(&place) == 0);
}

/// Two PostgreSQL servers and a MariaDB server whose CPU time and I/O are limited, as tenants of one scenario.
#[test]
fn three_servers_are_tenants_and_the_limits_of_mariadb_hold() {
    if place().is_none() {
        return;
    }
    let (one, two, maria) =
        (support::Server::start(), support::Server::start(), mysql_support::Server::start());
    let urls = [one.url(), two.url(), format!("mysql://root@/kelvin?socket={}", maria.socket().display())];
    let quick = "select 1;";
    let busy = "select benchmark(300000, md5('a'));";
    let tenant = |name: &str, url: &str, script: &str| {
        format!(
            "[tenants.{name}]\nworkload = \"script\"\ntarget = \"{url}\"\n[tenants.{name}.load]\nusers = 2\n\
             think-time = \"10ms\"\n[tenants.{name}.script]\nscripts = [{{ name = \"one\", text = \"{script}\" }}]\n"
        )
    };
    let scenario = format!(
        "scenario = \"three servers\"\naccept-noise = true\n{}{}{}[tenants.maria.server-limits]\ncpus = 0.25\n\
         io = {{ read = \"20 MiB/s\", write-iops = 200 }}\n[[steps]]\nstart = [\"one\", \"two\"]\n\
         [[steps]]\nwait = \"1s\"\n[[steps]]\nstart = \"maria\"\n[[steps]]\nwait = \"4s\"\n",
        tenant("one", &urls[0], quick),
        tenant("two", &urls[1], quick),
        tenant("maria", &urls[2], busy)
    );
    let place = Place::new();
    place.write("three.toml", scenario);
    let child = place.command(&["run", "three.toml", "--quiet"]).stderr(Stdio::piped()).spawn().unwrap();
    let process = child.id();
    let says = |file: &str, part: &dyn Fn(&str) -> bool| {
        let files = groups(process).into_iter().map(|group| group.join(file));
        files.filter_map(|file| std::fs::read_to_string(file).ok()).any(|text| part(&text))
    };
    let held_up = |text: &str| {
        let count = text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok());
        count.is_some_and(|count| count > 0)
    };
    wait_until("the server is held up", || says("cpu.stat", &held_up));
    if Path::new("/sys/fs/cgroup/blkio").exists() {
        let line = |value: &'static str| move |text: &str| text.trim_end().ends_with(value);
        assert!(says("blkio.throttle.read_bps_device", &line(" 20971520")));
        assert!(says("blkio.throttle.write_iops_device", &line(" 200")));
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() || place.is_noise(), "{}", text(&output.stderr));
    let report = place.report("last");
    let notes = report["notes"].to_string();
    assert!(
        notes.contains("maria: its server at most 0.25 CPUs, 20 MiB/s read, 200 writes/s on "),
        "{notes}"
    );
    for name in ["one", "two", "maria"] {
        assert!(seconds(&report, name).1 > 0, "{name}");
    }
    assert!(groups(process).is_empty() && journals(&place) == 0);
    // The list of runs has the report's value for each.
    let listed = place.expect(0, &["runs", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let figures = |tenants: &serde_json::Value, name: &str, figure: &str| -> Vec<(String, f64)> {
        let each = tenants.as_array().unwrap().iter();
        each.map(|one| (one[name].as_str().unwrap().to_owned(), one[figure].as_f64().unwrap())).collect()
    };
    let sources = &report["points"][0]["sources"];
    let reported = figures(sources, "tenant", "transactions_per_second");
    assert_eq!(figures(&listed[0]["tenants"], "name", "per_second"), reported);
    // A comparison compares each tenant with itself. With one run per side, it reports no change.
    place.expect(0, &["run", "three.toml", "--quiet"]);
    let compared = place.expect(0, &["compare", "last-1", "last"]);
    let named = ["one", "two", "maria"].iter().all(|name| compared.contains(&format!("tenant {name}")));
    assert!(named && !compared.contains("transactions and I/Os per second"), "{compared}");
}

#[test]
fn a_tenant_that_dies_ends_the_scenario_and_its_group_is_removed() {
    let Some(place) = place() else { return };
    let (child, members) = at_work(&place);
    let scenario = child.id();
    kill(members[0], rustix::process::Signal::KILL);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let report = place.report("last");
    assert!(
        report["state"] == "failed" && report["error"].to_string().contains("its process ended (signal: 9")
    );
    assert!(groups(scenario).is_empty() && !lives(members[1]) && journals(&place) == 0);
}

#[test]
fn after_a_kill_the_tenants_end_and_a_later_start_removes_the_groups() {
    let Some(place) = place() else { return };
    let (mut child, members) = at_work(&place);
    let scenario = child.id();
    kill(scenario, rustix::process::Signal::KILL);
    child.wait().unwrap();
    let ended = || !members.iter().any(|process| lives(*process));
    wait_until("the tenants have ended", ended);
    assert!(!groups(scenario).is_empty() && journals(&place) == 1);
    // Any run removes leftover groups before it measures, and reports it.
    place.write("hit.sql", "insert into hits (at) values (1);\n");
    let run = ["run", "script", "hit.sql", "--target", "sqlite:free.db", "--duration", "1s"];
    let output = place.run(&[&run[..], &["--ramp-up", "0s", "--accept-noise"]].concat());
    let said = text(&output.stderr);
    let counts = output.status.success() || place.is_noise();
    assert!(counts && said.contains("left behind: control group"), "{said}");
    assert!(groups(scenario).is_empty() && journals(&place) == 0);
    // After Ctrl-C the measurements are stored, and nothing is left.
    let (child, _) = at_work(&place);
    let scenario = child.id();
    kill(scenario, rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(groups(scenario).is_empty() && journals(&place) == 0);
}

//! One run from several agents: separate processes, over a real NATS server, on a real PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::print_stderr,
    reason = "what agents printed explains a failure; a machine test prints what it measured"
)]

#[path = "fleet/io_jobs.rs"]
mod io_jobs;
#[path = "fleet/machine.rs"]
mod machine;
#[path = "fleet/placed.rs"]
mod placed;
#[path = "../../database/tests/support/port.rs"]
mod port;
#[path = "fleet/proxy.rs"]
mod proxy;
#[path = "fleet/recovery.rs"]
mod recovery;
#[path = "fleet/secrets.rs"]
mod secrets;
#[path = "fleet/sums.rs"]
mod sums;
mod support;
#[path = "fleet/tenants.rs"]
mod tenants;

use std::fs::File;
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use kelvin_database::Engine;
use kelvin_database::postgres::PostgresEngine;
use serde_json::Value;
use support::{Place, Server, nats_server, text, wait_until};

/// Agents on this host, with the NATS server between them.
struct TestFleet {
    place: Place,
    port: u16,
    names: Vec<String>,
    agents: Vec<Child>,
}

impl TestFleet {
    /// Starts `count` agents for these targets, which continue for `alone` without their controller.
    fn start(count: usize, targets: &[&str], alone: &str, hooks: &[&str]) -> Self {
        let allowed: Vec<&str> = targets.iter().flat_map(|target| ["--allow-target", target]).collect();
        Self::allowing(count, &allowed, alone, hooks)
    }

    /// Starts `count` agents with these flags, each in a separate directory.
    fn allowing(count: usize, allowed: &[&str], alone: &str, hooks: &[&str]) -> Self {
        let place = Place::new();
        let names: Vec<String> = (0..count).map(|number| format!("g{number}")).collect();
        let port = port::spare();
        let mut fleet = Self { place, port, names, agents: Vec::new() };
        fleet.up();
        for number in 0..count {
            std::fs::create_dir(fleet.place.path(&fleet.names[number])).unwrap();
            let hook = hooks.get(number).copied().unwrap_or_default();
            let agent = fleet.spawn(number, &["--fleet", "lab"], allowed, (alone, hook));
            fleet.agents.push(agent);
        }
        fleet.names.iter().for_each(|name| fleet.wait_for_agent(name));
        fleet
    }

    fn spawn(&self, number: usize, nats: &[&str], allowed: &[&str], (alone, hook): (&str, &str)) -> Child {
        let name = &self.names[number];
        let store = self.place.path(&format!("{name}.db"));
        let own = ["agent", "--name", name, "--alone", alone, "--store", store.to_str().unwrap()];
        let mut args = [&own[..], nats, allowed].concat();
        if !hook.is_empty() {
            args.extend(["--clock-test-hook", hook]);
        }
        let log = File::create(self.place.path(&format!("{name}.log"))).unwrap();
        let mut agent = self.place.command(&args);
        agent.current_dir(self.place.path(name)).stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    /// Restarts an agent for this target, with other flags for the NATS server.
    fn start_again(&mut self, number: usize, nats: &[&str], target: &str) {
        self.agents[number].kill().unwrap();
        self.agents[number].wait().unwrap();
        self.agents[number] = self.spawn(number, nats, &["--allow-target", target], ("15s", ""));
        self.wait_for_agent(&self.names[number]);
    }

    fn wait_for_agent(&self, name: &str) {
        wait_until(&format!("{name} waits"), || self.log(name).contains("waits for a run"));
    }

    /// Starts the NATS server, always on the same port.
    fn up(&self) {
        let agents = self.names.join(",");
        let port = self.port.to_string();
        self.place.expect(0, &["fleet", "up", "lab", "--agents", &agents, "--port", &port]);
        let Some(server) = nats_server() else { return };
        let state: Value = serde_json::from_slice(&self.read_server_file("state.json")).unwrap();
        let runs = std::fs::read_link(format!("/proc/{}/exe", state["pid"])).unwrap();
        assert_eq!(runs, std::fs::canonicalize(server).unwrap(), "the NATS server that the test is for");
    }

    /// Reads a file of the NATS server.
    fn read_server_file(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.place.path(".local/share/kelvin/fleet/lab").join(name)).unwrap()
    }

    /// Ends the NATS server as in a crash.
    fn kill_nats(&self) {
        let state: Value = serde_json::from_slice(&self.read_server_file("state.json")).unwrap();
        let pid = state["pid"].to_string();
        assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        wait_until("NATS is gone", || {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            comm.is_empty() || comm.contains(") Z")
        });
    }

    fn log(&self, agent: &str) -> String {
        std::fs::read_to_string(self.place.path(&format!("{agent}.log"))).unwrap_or_default()
    }

    fn args<'a>(target: &'a str, hosts: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let run =
            ["run", "tproc-c", "--target", target, "--fleet", "lab", "--hosts", hosts, "--accept-noise"];
        // The test does not judge how late a process starts on a busy machine.
        [&run[..], &["--start-skew", "10s"], more].concat()
    }

    /// Starts a run in the background.
    fn begin(&self, target: &str, hosts: &str, more: &[&str]) -> Child {
        let args = Self::args(target, hosts, more);
        self.place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn wait_for_start(&self) {
        for name in &self.names {
            wait_until(&format!("{name} starts"), || self.log(name).contains("starts at"));
        }
        // The start is ordered two seconds in advance.
        std::thread::sleep(Duration::from_secs(3));
    }

    fn wait_until_idle(&self, agents: usize) {
        wait_until("the agents are idle", || {
            let shown = text(&self.place.run(&["fleet", "status", "lab"]).stdout);
            shown.lines().filter(|line| line.ends_with("  idle")).count() == agents
        });
    }

    /// The report of an agent's last run, from the agent's own file.
    fn own_report(&self, agent: &str) -> Value {
        let store = self.place.path(&format!("{agent}.db"));
        let args = ["report", "last", "--json", "--store", store.to_str().unwrap()];
        serde_json::from_str(&self.place.expect(0, &args)).unwrap()
    }
}

impl Drop for TestFleet {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        let _ = self.place.run(&["fleet", "down", "lab"]);
        if std::thread::panicking() {
            for name in &self.names {
                eprintln!("{name}: {}", self.log(name));
            }
        }
    }
}

/// A server with the data of some warehouses, and copies of them.
struct Data {
    server: Server,
}

impl Data {
    fn build(warehouses: u32) -> Self {
        let server = Server::start();
        let place = Place::new();
        let warehouses = warehouses.to_string();
        place.expect(0, &["build", "tproc-c", "--warehouses", &warehouses, "--target", &server.url()]);
        Self { server }
    }

    fn engine(&self, database: &str) -> PostgresEngine {
        let mut config = self.server.instance.config();
        config.database = database.into();
        PostgresEngine::new(config)
    }

    /// The URL of the database of this name.
    fn url(&self, database: &str) -> String {
        let mut config = self.server.instance.config();
        config.database = database.into();
        config.to_string()
    }

    /// Makes a new copy of the data, which replaces one of the same name.
    fn copy(&self, name: &str) -> String {
        let own = self.server.instance.config().database;
        let mut session = self.engine("postgres").connect().unwrap();
        session.query(&format!("drop database if exists {name} with (force)")).unwrap();
        session.query(&format!("create database {name} template {own}")).unwrap();
        self.url(name)
    }

    /// Hashes that depend on the inputs of the transactions and not on their order.
    fn inputs(&self, database: &str) -> Vec<i64> {
        let hash = |columns: &str, table: &str| {
            format!(
                "select sum(('x' || substr(md5(concat_ws(',', {columns})), 1, 8))::bit(32)::bigint)::bigint from {table}"
            )
        };
        let queries = [
            hash("h_w_id, h_d_id, h_c_w_id, h_c_d_id, h_c_id, h_amount", "history"),
            hash("ol_w_id, ol_d_id, ol_supply_w_id, ol_i_id, ol_quantity", "order_line"),
            hash("o_w_id, o_d_id, o_c_id, o_ol_cnt, o_all_local", "orders"),
            "select count(*) from new_order".to_owned(),
        ];
        self.numbers(database, &queries)
    }

    /// Hashes of the whole content except its timestamps.
    fn content(&self, database: &str) -> Vec<i64> {
        let queries: Vec<String> = [
            ("warehouse", "w_id, w_ytd"),
            ("district", "d_w_id, d_id, d_ytd, d_next_o_id"),
            ("customer", "c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data"),
            ("stock", "s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt"),
            ("orders", "o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local"),
            ("new_order", "no_w_id, no_d_id, no_o_id"),
            ("order_line", "ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount"),
            ("history", "h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_amount, h_data"),
        ]
        .iter()
        .map(|(table, columns)| {
            format!(
                "select sum(('x' || substr(md5(concat_ws(',', {columns})), 1, 8))::bit(32)::bigint)::bigint from {table}"
            )
        })
        .collect();
        self.numbers(database, &queries)
    }

    fn numbers(&self, database: &str, queries: &[String]) -> Vec<i64> {
        let mut session = self.engine(database).connect().unwrap();
        queries.iter().map(|query| session.query(query).unwrap().int(0, 0).unwrap()).collect()
    }
}

/// Asserts that a run counts, or is void only by noise of the machine.
#[track_caller]
fn assert_counts(place: &Place, output: &Output) {
    let shown = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    let code = output.status.code();
    assert!(code == Some(0) || code == Some(1) && place.is_noise(), "{code:?}\n{shown}");
}

/// Asserts that the counts of agents, seconds and server agree: the run's own invariants, which are also recomputed here.
#[track_caller]
fn assert_counts_agree(run: &Value) {
    let point = &run["points"][0];
    let broken: Vec<&Value> =
        point["invariants"].as_array().unwrap().iter().filter(|one| one["holds"] == false).collect();
    let timing = ["generator", "started", "start"];
    assert!(
        broken.iter().all(|one| timing.iter().any(|word| one["name"].as_str().unwrap().contains(word))),
        "{broken:?}"
    );
    let hosts = point["generator"]["hosts"].as_array().unwrap();
    let sum: u64 = hosts.iter().map(|host| host["headline_count"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), point["headline_count"].as_u64(), "{point}");
    assert!(
        run["checks"].as_array().unwrap().iter().all(|check| check["holds"] == true),
        "{}",
        run["checks"]
    );
}

#[test]
fn a_user_does_the_same_on_any_number_of_agents() {
    let data = Data::build(2);
    let names = ["here8", "on1", "on2", "on4", "here1", "alone1"];
    let urls: Vec<String> = names.iter().map(|name| data.copy(name)).collect();
    let targets: Vec<&str> = urls.iter().map(String::as_str).collect();
    let fleet = TestFleet::start(4, &targets, "15s", &[]);
    let eight = ["--users", "8", "--transactions", "40", "--no-build", "--check"];
    let one = ["--users", "1", "--transactions", "150", "--no-build", "--check"];
    let here = ["run", "tproc-c", "--accept-noise", "--target"];
    fleet.place.expect(0, &[&here[..], &[targets[0]], &eight[..]].concat());
    for (target, hosts) in [(targets[1], "g2"), (targets[2], "g3,g1"), (targets[3], "4")] {
        let output = fleet.begin(target, hosts, &eight).wait_with_output().unwrap();
        assert_counts(&fleet.place, &output);
        let run = fleet.place.report("last");
        assert_counts_agree(&run);
        // The server's counters are read at the window's edges while the users work, so the counts may differ by the
        // transactions in flight. Over the whole load they are equal, which one of the run's invariants checks.
        let [client, server] = ["headline_count", "server_headline_count"]
            .map(|name| run["points"][0][name].as_u64().unwrap_or_else(|| panic!("{hosts}: no {name}")));
        assert!(client.abs_diff(server) <= 8, "{hosts}: {client} by the client, {server} by the server");
    }
    let inputs = data.inputs("here8");
    for name in &names[1..4] {
        assert_eq!(data.inputs(name), inputs, "{name}");
    }
    fleet.place.expect(0, &[&here[..], &[targets[4]], &one[..]].concat());
    let output = fleet.begin(targets[5], "g0", &one).wait_with_output().unwrap();
    assert_counts(&fleet.place, &output);
    assert_eq!(data.content("alone1"), data.content("here1"));
    // Each agent has its own share in its file.
    let seconds = fleet.own_report("g1")["points"].as_array().map_or(0, Vec::len);
    assert!(seconds <= 1, "the share of one run");
    fleet.wait_until_idle(4);
}

#[test]
fn the_bound_of_the_start_holds_for_clocks_that_differ_and_drift() {
    let data = Data::build(1);
    let url = data.copy("skew");
    let fleet = TestFleet::start(3, &[&url], "15s", &["", "3,50", "7,-50"]);
    let load = ["--users", "3", "--ramp-up", "1s", "--duration", "6s", "--no-build", "--check"];
    let output = fleet.begin(&url, "g0,g1,g2", &load).wait_with_output().unwrap();
    assert_counts(&fleet.place, &output);
    let run = fleet.place.report("last");
    assert_counts_agree(&run);
    let point = &run["points"][0];
    let number = |value: &Value| value.as_f64().unwrap();
    let hosts = point["generator"]["hosts"].as_array().unwrap();
    // On one host the truth is known, because all agents have the kernel's monotonic clock. Each agent logs the moment set
    // for its start, and the delay of its first user.
    let start = |host: &Value| {
        let log = fleet.log(host["host"].as_str().unwrap());
        let at = log.split("starts at ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        at.parse::<f64>().unwrap() / 1e3
    };
    let began = |host: &Value| start(host) + number(&host["late_us"]);
    // The window closes seven seconds later by the host's clock, which is fast or slow.
    let closed = |host: &Value, ppm: f64| start(host) + 7e6 / (1.0 + ppm * 1e-6);
    for (one, other) in [(0, 1), (0, 2), (1, 2)].map(|(one, other)| (&hosts[one], &hosts[other])) {
        let really = began(one) - began(other);
        let said = number(&one["start_us"]) - number(&other["start_us"]);
        let bound = number(&one["start_bound_us"]) + number(&other["start_bound_us"]);
        assert!(
            (really - said).abs() <= bound,
            "really {really} us apart, {said} \u{b1} {bound} said: {hosts:?}"
        );
        let at_most = number(&point["generator"]["start"]["at_most_us"]);
        assert!(really.abs() <= at_most, "really {really} us apart, at most {at_most} said: {hosts:?}");
    }
    for ((one, ppm), (other, other_ppm)) in
        [((0, 0.0), (1, 50.0)), ((0, 0.0), (2, -50.0)), ((1, 50.0), (2, -50.0))]
    {
        let (one, other) = (&hosts[one], &hosts[other]);
        let really = closed(one, ppm) - closed(other, other_ppm);
        let said = number(&one["end_us"]) - number(&other["end_us"]);
        let bound = number(&one["end_bound_us"]) + number(&other["end_bound_us"]);
        assert!(
            (really - said).abs() <= bound,
            "closed {really} us apart, {said} \u{b1} {bound} said: {hosts:?}"
        );
        assert!(really.abs() <= number(&point["generator"]["end"]["at_most_us"]), "{really} us: {hosts:?}");
    }
    assert_eq!(hosts.iter().map(|host| host["users"].as_u64().unwrap()).sum::<u64>(), 3);
    // Four exchanges a few seconds apart show which clock is fast.
    let drift = |host: usize| number(&hosts[host]["clock_drift_ppm"]);
    assert!(drift(1) > drift(2), "{hosts:?}");
}

#[test]
fn nothing_is_lost_when_the_server_of_nats_is_killed_and_comes_back() {
    let data = Data::build(1);
    let url = data.copy("gone");
    let fleet = TestFleet::start(2, &[&url], "15s", &[]);
    let load = ["--users", "4", "--ramp-up", "0s", "--duration", "13s", "--no-build", "--check"];
    let run = fleet.begin(&url, "g0,g1", &load);
    fleet.wait_for_start();
    fleet.kill_nats();
    // Ten seconds of silence would lose the agents, and the server may take a while to start.
    std::thread::sleep(Duration::from_secs(2));
    fleet.up();
    let output = run.wait_with_output().unwrap();
    assert_counts(&fleet.place, &output);
    let run = fleet.place.report("last");
    assert_counts_agree(&run);
    let seconds = run["points"][0]["seconds"].as_array().unwrap();
    let measured = seconds.iter().filter(|second| second["second"].as_i64().unwrap() >= 0).count();
    assert!(measured >= 13, "{measured} seconds");
    fleet.wait_until_idle(2);
}

#[test]
fn an_agent_does_what_its_own_list_allows() {
    let data = Data::build(1);
    let (url, other) = (data.copy("mine"), data.copy("theirs"));
    let fleet = TestFleet::start(1, &[&url], "15s", &[]);
    let refused_with = |code: i32, args: &[&str], words: &[&str]| {
        let output = fleet.place.run(args);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}\n{why}");
        assert!(words.iter().all(|word| why.contains(word)), "{args:?}\n{why}");
    };
    let refused = |args: &[&str], words: &[&str]| refused_with(2, args, words);
    let load = ["--users", "2", "--transactions", "5", "--no-build"];
    // The run is already in the store, as a failed one.
    refused_with(4, &TestFleet::args(&other, "g0", &load), &["g0", "--allow-target"]);
    refused(&TestFleet::args(&url, "g0,g9", &load), &["no answer from g9", "g0"]);
    refused(&TestFleet::args(&url, "2", &load), &["2 hosts are needed", "1 idle"]);
    refused(&["run", "tproc-c", "--hosts", "g0"], &["--fleet NAME"]);
    refused(
        &["run", "tproc-c", "--nats", "nats://10.255.0.1:4222", "--hosts", "g0"],
        &["require TLS and a key"],
    );
    refused(&["agent", "--fleet", "none", "--allow-target", &url], &["kelvin fleet up"]);
    refused(&["agent", "--fleet", "lab", "--name", "g0", "--allow-target", "postgres"], &["URL"]);
    refused(&["agent", "--fleet", "lab", "--name", "a.b", "--allow-target", &url], &["a.b"]);
    // The NATS server refuses a client without a key.
    let nats = format!("nats://127.0.0.1:{}", fleet.port);
    refused(&["run", "tproc-c", "--nats", &nats, "--hosts", "g0", "--target", &url], &["NATS"]);
    fleet.wait_until_idle(1);
}

#[test]
fn a_script_from_a_controller_reaches_no_other_file_of_the_agents_host() {
    let fleet_of = Place::new();
    let url = format!("sqlite:{}", fleet_of.path("target.db").display());
    let vacuum = |name: &str| {
        fleet_of.write(&format!("{name}.sql"), format!("vacuum into '{}';\n", fleet_of.path(name).display()));
        fleet_of.path(&format!("{name}.sql")).display().to_string()
    };
    let load = ["--users", "1", "--transactions", "1", "--accept-noise"];
    let run = |script: &str, more: &[&str], place: &Place| {
        place.run(&[&["run", "script", script, "--target", &url][..], &load, more].concat())
    };
    let here = run(&vacuum("here.db"), &[], &fleet_of);
    assert!(fleet_of.path("here.db").exists(), "a script of one's own: {}", text(&here.stderr));
    let fleet = TestFleet::start(1, &[&url], "15s", &[]);
    let flags = ["--fleet", "lab", "--start-skew", "10s"];
    let output = run(&vacuum("there.db"), &flags, &fleet.place);
    let shown = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    let point = &fleet.place.report("last")["points"][0];
    assert_eq!(point["headline_count"], 0, "{shown}");
    assert!(point["errors"].to_string().contains("too many attached databases"), "{}", point["errors"]);
    assert!(!fleet_of.path("there.db").exists(), "{shown}");
    fleet.wait_until_idle(1);
}

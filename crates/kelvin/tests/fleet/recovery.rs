//! A process dies or becomes unreachable during a run; what remains of the run is checked.

use kelvin_measure::Event;
use kelvin_store::Store;

use super::proxy::Proxy;
use super::*;

#[test]
fn an_agent_that_is_killed_is_lost_and_named_and_the_run_does_not_count() {
    let data = Data::build(1);
    let url = data.copy("killed");
    let mut fleet = TestFleet::start(2, &[&url], "15s", &[]);
    let load = ["--users", "4", "--ramp-up", "0s", "--duration", "8s", "--no-build", "--check"];
    let run = fleet.begin(&url, "g0,g1", &load);
    fleet.wait_for_start();
    fleet.agents[1].kill().unwrap();
    fleet.agents[1].wait().unwrap();
    let since = Instant::now();
    let output = run.wait_with_output().unwrap();
    let shown = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(since.elapsed() < Duration::from_mins(1), "{:?}", since.elapsed());
    let run = fleet.place.report("last");
    let hosts = run["points"][0]["generator"]["hosts"].as_array().unwrap();
    assert!(hosts[0]["lost"].is_null() && hosts[1]["lost"].is_string(), "{hosts:?}");
    assert!(run["reasons"].to_string().contains("g1"), "{}", run["reasons"]);
    fleet.wait_until_idle(1);

    // When the agent is back, its file is fetched; the run keeps its judgement.
    let collect = ["fleet", "collect", "1", "--fleet", "lab"];
    let status = fleet.place.expect(0, &["fleet", "status", "lab"]);
    assert!(status.contains("run 1 has ended: kelvin fleet collect"), "{status}");
    let why = fleet.place.run(&collect);
    assert_eq!(why.status.code(), Some(1), "its agent is not there");
    fleet.start_again(1, &["--fleet", "lab"], &url);
    let collected = fleet.place.expect(0, &collect);
    for words in ["g1: its own file has ", "run 1 has ", "stored as run 2", "removed the data of agents"] {
        assert!(collected.contains(words), "{words}: {collected}");
    }
    let after = fleet.place.report("1");
    assert_eq!((&after["state"], &after["reasons"]), (&run["state"], &run["reasons"]));
    assert_eq!(after["points"][0]["headline_count"], run["points"][0]["headline_count"]);
    assert!(after["points"][0]["timeline"].to_string().contains("collected from g1"), "{after}");
    let share = fleet.place.report("2");
    assert_eq!(share["points"][0]["seconds"], fleet.own_report("g1")["points"][0]["seconds"]);
    fleet.place.expect(0, &collect);
    assert_ne!(fleet.place.run(&["report", "3"]).status.code(), Some(0), "nothing is added twice");
    let status = fleet.place.expect(0, &["fleet", "status", "lab"]);
    assert!(!status.contains("on the server"), "{status}");
}

#[test]
fn without_its_controller_an_agent_stops_its_load_and_keeps_what_it_has() {
    let data = Data::build(1);
    let url = data.copy("orphaned");
    let fleet = TestFleet::start(2, &[&url], "3s", &[]);
    let load = ["--users", "4", "--ramp-up", "0s", "--duration", "10m", "--no-build"];
    let mut run = fleet.begin(&url, "g0,g1", &load);
    fleet.wait_for_start();
    let seconds = || {
        let store = Store::open_read_only(fleet.place.store()).unwrap();
        let run = store.load(store.find("last").unwrap()).unwrap();
        run.events().filter(|event| matches!(event, Ok(Event::Second(_)))).count()
    };
    wait_until("a second is stored", || seconds() > 0);
    run.kill().unwrap();
    run.wait().unwrap();
    fleet.wait_until_idle(2);
    let sessions = "select count(*) from pg_stat_activity where datname = 'orphaned' and backend_type = 'client backend'";
    let left = data.engine("postgres").connect().unwrap().query(sessions).unwrap().int(0, 0).unwrap();
    assert_eq!(left, 0, "connections of the load");
    for agent in ["g0", "g1"] {
        assert!(fleet.log(agent).contains("no message from the controller for 3 s"), "{}", fleet.log(agent));
        let seconds = fleet.own_report(agent)["points"][0]["seconds"].as_array().map_or(0, Vec::len);
        assert!(seconds >= 2, "{agent} has {seconds} seconds");
    }
    // A NATS server that fails before it has sent all of a run loses nothing of it.
    let before = seconds();
    let proxy = Proxy::cut_by(fleet.port, "CONSUMER.MSG.NEXT");
    let (nats, key) =
        (format!("nats://127.0.0.1:{}", proxy.port), ".local/share/kelvin/fleet/lab/controller.nk");
    let key = fleet.place.path(key);
    let through = ["fleet", "resume", "--nats", &nats, "--nats-key", key.to_str().unwrap(), "--lab", "lab"];
    let output = fleet.place.run(&through);
    let why = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{why}");
    assert!(why.contains("nothing was changed"), "{why}");
    assert_eq!(seconds(), before);
    // The resume comes after the load, but no data is missing.
    let resume = ["fleet", "resume", "--fleet", "lab"];
    let output = fleet.place.run(&resume);
    assert_eq!(output.status.code(), Some(4), "{}\n{}", text(&output.stdout), text(&output.stderr));
    let resumed = fleet.place.report("last");
    assert_eq!(resumed["state"], "failed");
    assert!(resumed["reasons"].to_string().contains("its controller died"), "{}", resumed["reasons"]);
    sums::assert_bins_are_the_sums(&fleet, "last", &["g0", "g1"]);
    let output = fleet.place.run(&resume);
    assert_eq!(output.status.code(), Some(2), "it has ended now: {}", text(&output.stderr));
    // An orderly end needs the controller and no timeout.
    let run = fleet.begin(&url, "g0,g1", &load);
    std::thread::sleep(Duration::from_secs(6));
    let pid = run.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}\n{}", text(&output.stdout), text(&output.stderr));
    fleet.wait_until_idle(2);
}

#[test]
fn another_controller_goes_on_with_a_run_whose_own_was_killed() {
    let data = Data::build(1);
    let url = data.copy("resumed");
    let fleet = TestFleet::start(2, &[&url], "15s", &[]);
    let load = ["--users", "4", "--ramp-up", "0s", "--duration", "9s", "--no-build", "--check"];
    let mut run = fleet.begin(&url, "g0,g1", &load);
    fleet.wait_for_start();
    let resume = ["fleet", "resume", "last", "--fleet", "lab"];
    assert_eq!(fleet.place.run(&resume).status.code(), Some(2), "its controller lives");
    run.kill().unwrap();
    run.wait().unwrap();
    let status = fleet.place.expect(0, &["fleet", "status", "lab"]);
    assert!(status.contains("the controller of run 1 was killed: kelvin fleet resume 1"), "{status}");
    let output = fleet.place.run(&resume);
    assert_eq!(output.status.code(), Some(1), "{}\n{}", text(&output.stdout), text(&output.stderr));
    let run = fleet.place.report("1");
    assert_eq!(run["state"], "void");
    assert!(run["reasons"].to_string().contains("the controller stayed to the end"), "{}", run["reasons"]);
    let point = &run["points"][0];
    let hosts = point["generator"]["hosts"].as_array().unwrap();
    assert!(hosts.len() == 2 && hosts.iter().all(|host| host["lost"].is_null()), "{hosts:?}");
    // The load continued to its planned end, and every second was stored.
    let measured = point["seconds"].as_array().unwrap().iter();
    assert_eq!(measured.filter(|second| second["part"] == "measured").count(), 9, "{}", point["seconds"]);
    sums::assert_bins_are_the_sums(&fleet, "1", &["g0", "g1"]);
    fleet.wait_until_idle(2);
    let status = fleet.place.expect(0, &["fleet", "status", "lab"]);
    assert!(!status.contains("on the server"), "{status}");
}

#[test]
fn a_partition_of_twelve_seconds_loses_a_host_but_none_of_its_seconds() {
    let data = Data::build(1);
    let url = data.copy("apart");
    let mut fleet = TestFleet::start(2, &[&url], "15s", &[]);
    let proxy = Proxy::to(fleet.port);
    let nats = format!("nats://127.0.0.1:{}", proxy.port);
    let key = fleet.place.path(".local/share/kelvin/fleet/lab/g1.nk");
    fleet.start_again(1, &["--nats", &nats, "--nats-key", key.to_str().unwrap(), "--lab", "lab"], &url);
    let load = ["--users", "4", "--ramp-up", "0s", "--duration", "15s", "--no-build", "--check"];
    let run = fleet.begin(&url, "g0,g1", &load);
    fleet.wait_for_start();
    proxy.cut(true);
    let since = Instant::now();
    std::thread::sleep(Duration::from_secs(12));
    proxy.cut(false);
    let output = run.wait_with_output().unwrap();
    assert!(since.elapsed() < Duration::from_secs(70), "{:?}", since.elapsed());
    assert_eq!(output.status.code(), Some(1), "{}\n{}", text(&output.stdout), text(&output.stderr));
    let run = fleet.place.report("1");
    let hosts = run["points"][0]["generator"]["hosts"].as_array().unwrap();
    assert!(hosts[0]["lost"].is_null() && hosts[1]["lost"].is_string(), "{hosts:?}");
    fleet.wait_until_idle(2);
    fleet.place.expect(0, &["fleet", "collect", "1", "--fleet", "lab"]);
    // The agent heard its controller in time, so its load continued, and its file is complete.
    let share = fleet.place.report("2");
    let measured = share["points"][0]["seconds"].as_array().unwrap().iter();
    assert_eq!(measured.filter(|second| second["part"] == "measured").count(), 15, "{share}");
}

//! I/O jobs on every host of a fleet.

use std::collections::BTreeMap;

use kelvin_measure::Event;
use kelvin_store::Store;
use serde_json::Value;

use super::support::{text, undisturbed, wait_until};
use super::*;

const JOBS: &str = "[global]\nbs=4k\nsize=4m\nruntime=3\ntime_based\nioengine=psync\n\
    [reader]\nrw=randread\nfilename=data\nnumjobs=2\n[writer]\nrw=randwrite\nfilename=other\nrate_iops=200\n";

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// Two agents that may use files below the directory for temporary files.
fn fleet(more: &[&str]) -> TestFleet {
    let below = std::fs::canonicalize(std::env::temp_dir()).unwrap();
    let allowed = [&["--allow-path", below.to_str().unwrap()], more].concat();
    TestFleet::allowing(2, &allowed, "15s", &[])
}

#[test]
fn every_host_runs_every_job_and_the_result_is_their_sum() {
    let fleet = fleet(&[]);
    fleet.place.write("jobs.fio", JOBS);
    let run = ["run", "io", "--job", "jobs.fio", "--fleet", "lab", "--accept-noise", "--start-skew", "10s"];
    let run = || assert_counts(&fleet.place, &fleet.place.run(&run));
    let ((), run) = undisturbed(run, |()| fleet.place.report("last"));
    let point = &run["points"][0];
    assert_counts_agree(&run);
    let hosts = point["generator"]["hosts"].as_array().unwrap();
    assert_eq!(hosts.iter().map(|host| host["host"].as_str().unwrap()).collect::<Vec<_>>(), ["g0", "g1"]);
    // Both agents are on this machine, so its disks and CPUs count once.
    assert!(hosts[0]["same_machine_as"].is_null() && hosts[1]["same_machine_as"] == "g0", "{hosts:?}");
    let status = fleet.place.expect(0, &["fleet", "status", "lab"]);
    assert!(status.contains("g1 is on the machine of g0"), "{status}");
    let store = Store::open_read_only(fleet.place.store()).unwrap();
    let stored = store.load(store.find("last").unwrap()).unwrap();
    let result = stored.events().find_map(|event| match event.unwrap() {
        Event::Storage { what, body } if what == "result" => Some(body),
        _ => None,
    });
    let result = result.unwrap();
    // One entry for each worker.
    assert_eq!(result["client_stats"].as_array().unwrap().len(), 6);
    let disks = result["disk_util"].as_array().unwrap();
    let mut names: Vec<&str> = disks.iter().map(|disk| disk["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), disks.len(), "a disk is counted twice: {disks:?}");
    // All workers of all jobs on each host.
    assert_eq!(hosts.iter().map(|host| number(&host["users"])).collect::<Vec<_>>(), [3, 3]);
    for host in hosts {
        let own = fleet.own_report(host["host"].as_str().unwrap());
        assert_eq!(own["points"][0]["headline_count"], host["headline_count"], "as in its own file");
        assert_eq!(own["workload"], "io");
    }
    let jobs: Vec<&str> =
        run["jobs"].as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap()).collect();
    assert_eq!(jobs, ["g0: reader", "g0: writer", "g1: reader", "g1: writer"]);
    // The rates of the hosts add up.
    let writes: u64 = run["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|job| job["job"].as_str().unwrap().ends_with("writer"))
        .map(|job| number(&job["targets"][0]["ios"]))
        .sum();
    assert!((1_000..=1_400).contains(&writes), "2 hosts at 200/s for 3 s: {writes}");
    for name in &fleet.names {
        for file in ["data", "other"] {
            assert!(fleet.place.path(name).join(file).is_file(), "{name} has its own {file}");
        }
    }
    // The equivalent of fio's command line, ended early.
    let args = [
        "io",
        "--name=a",
        "--rw=randread",
        "--bs=4k",
        "--size=4m",
        "--runtime=600",
        "--time_based",
        "--filename=data",
        "--fleet",
        "lab",
        "--hosts",
        "g1",
        "--start-skew",
        "10s",
    ];
    let starts = || fleet.log("g1").matches("starts at").count();
    let before = starts();
    let begun = fleet.place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("g1 runs", || starts() > before);
    std::thread::sleep(Duration::from_secs(4));
    let pid = begun.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = begun.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(128), "{}\n{}", text(&output.stdout), text(&output.stderr));
    let partial = fleet.place.report("last");
    assert_eq!(partial["state"], "partial", "{}", partial["reasons"]);
    let hosts = &partial["points"][0]["generator"]["hosts"];
    assert!(hosts[0]["lost"].is_null() && number(&hosts[0]["headline_count"]) > 0, "{hosts}");
    fleet.wait_until_idle(2);
}

#[test]
fn jobs_from_a_controller_do_what_the_agents_lists_allow() {
    let fleet = fleet(&["--allow-command", "true"]);
    let made = fleet.place.path("made-by-a-command");
    let refused = |job: &str, more: &[&str], words: &[&str]| {
        fleet.place.write("job.fio", job);
        let run = ["run", "io", "--job", "job.fio", "--fleet", "lab", "--hosts", "g0"];
        let output = fleet.place.run(&[&run[..], more].concat());
        let why = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 4)), "{:?}: {why}", output.status.code());
        assert!(words.iter().all(|word| why.contains(word)), "{job}\n{why}");
    };
    let job = |more: &str| format!("[a]\nrw=randread\nsize=64k\nfilename=data\n{more}");
    refused("[a]\nrw=randread\nsize=64k\nfilename=/etc/none\n", &[], &["g0", "--allow-path /etc/none"]);
    refused("[a]\nrw=randread\nsize=64k\nfilename=../../etc/none\n", &[], &["g0"]);
    refused(&job(&format!("exec_prerun=touch {}\n", made.display())), &[], &["g0", "--allow-command"]);
    refused(&job(&format!("exec_postrun=true && touch {}\n", made.display())), &[], &["--allow-command"]);
    refused(&job("write_bw_log=log\n"), &[], &["g0", "no log files"]);
    refused(&format!("{}[b]\nstonewall\nrw=randread\nfilename=data\n", job("")), &[], &["stonewall"]);
    refused(&job(""), &["--i-know-it-destroys", "/dev/null"], &["each agent"]);
    refused(&job(""), &["--repeat", "3"], &["--repeat"]);
    assert!(!made.exists(), "a command that is not in the list has run");
    // A command in the list runs, and leaves the agents ready.
    fleet.place.write("job.fio", job("exec_prerun=true\n"));
    let run = ["run", "io", "--job", "job.fio", "--fleet", "lab", "--hosts", "g0", "--accept-noise"];
    let output = fleet.place.run(&run);
    assert_counts(&fleet.place, &output);
    fleet.wait_until_idle(2);
}

/// Five workers of three jobs, with random offsets.
const SPLIT: &str = "[global]\nbs=4k\nsize=1m\nioengine=psync\nfallocate=none\nbuffer_pattern=0xab\nnumber_ios=40\nrate_iops=40\n\
    [a]\nrw=randwrite\nnumjobs=2\n[b]\nrw=randrw\nnumjobs=2\n[c]\nrw=randread\n";

/// Takes the files of the jobs out of each agent's directory, by name.
fn take_files(fleet: &TestFleet) -> Vec<BTreeMap<String, Vec<u8>>> {
    let of_agent = |name: &String| {
        let files = std::fs::read_dir(fleet.place.path(name)).unwrap().map(|entry| entry.unwrap().path());
        let take = |path: std::path::PathBuf| {
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), bytes)
        };
        files.map(take).collect()
    };
    fleet.names.iter().map(of_agent).collect()
}

#[test]
fn each_worker_runs_on_one_host_and_does_the_same_on_any() {
    let below = std::fs::canonicalize(std::env::temp_dir()).unwrap();
    let fleet = TestFleet::allowing(3, &["--allow-path", below.to_str().unwrap()], "15s", &[]);
    fleet.place.write("jobs.fio", SPLIT);
    let run = ["run", "io", "--job", "jobs.fio", "--fleet", "lab", "--accept-noise", "--start-skew", "10s"];
    let run = [&run[..], &["--split-workers", "--hosts"]].concat();
    let mut alone = None;
    for (hosts, shares) in
        [(&["g0"][..], &[5][..]), (&["g1", "g0"], &[2, 3]), (&["g0", "g1", "g2"], &[1, 2, 2])]
    {
        let output = fleet.place.run(&[&run[..], &[&hosts.join(",")]].concat());
        assert_counts(&fleet.place, &output);
        let report = fleet.place.report("last");
        assert_counts_agree(&report);
        let found = report["points"][0]["generator"]["hosts"].as_array().unwrap();
        assert_eq!(found.iter().map(|host| number(&host["users"])).collect::<Vec<_>>(), shares);
        // Every host has series for reads and writes, even if its workers have only one direction.
        sums::assert_bins_are_the_sums(&fleet, "last", hosts);
        let of_agents = take_files(&fleet);
        let count: usize = of_agents.iter().map(BTreeMap::len).sum();
        let all: BTreeMap<String, Vec<u8>> = of_agents.into_iter().flatten().collect();
        assert_eq!((count, all.len()), (5, 5), "a worker ran twice, or not: {:?}", all.keys());
        let first = alone.get_or_insert_with(|| all.clone());
        let others: Vec<&String> = all.keys().filter(|name| all[*name] != first[*name]).collect();
        assert!(others.is_empty(), "other I/Os in {others:?} on {hosts:?}");
    }
    let alone = alone.unwrap();
    let names: Vec<&str> = alone.keys().map(String::as_str).collect();
    assert_eq!(names, ["a.0.0", "a.1.0", "b.0.0", "b.1.0", "c.0.0"]);
    assert_ne!(alone["a.0.0"], alone["a.1.0"]);
    // Jobs that cannot be divided are refused before anything starts.
    let refused = |job: &str, words: &str| {
        fleet.place.write("job.fio", job);
        let args = ["run", "io", "--job", "job.fio", "--fleet", "lab", "--hosts", "g0,g1", "--split-workers"];
        let output = fleet.place.run(&args);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    };
    refused("[a]\nrw=randread\nsize=64k\n", "1 worker cannot be divided among 2 hosts");
    refused("[a]\nsize=64k\n[b]\nsize=64k\nwait_for=a\n", "job b: with --split-workers, wait_for=");
    fleet.place.expect(2, &["run", "io", "--job", "jobs.fio", "--split-workers"]);
    assert!(take_files(&fleet).iter().all(BTreeMap::is_empty), "a refused run has made files");
}

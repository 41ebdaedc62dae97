//! X-Ray's scenarios on the command line; `crates/xray` tests their conversion.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use support::{Place, text};

/// The path of one of Kelvin's own test scenarios.
fn folder(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../xray/tests/scenarios").join(name).display().to_string()
}

#[test]
fn a_scenario_is_checked_and_printed() {
    let place = Place::new();
    let folder = folder("colocation");
    let scaled = ["xray", &folder, "--map", "/data", "--param", "report_hosts=3", "--scale-size", "0.01"];
    insta::assert_snapshot!(place.expect(0, &[&scaled[..], &["--check"]].concat()));
    let printed = place.expect(0, &[&scaled[..], &["--print-scenario"]].concat());
    assert!(printed.contains("scenario = \"Colocation of our own\"\n"), "{printed}");
    assert!(
        printed.contains("copies = 3\n") && printed.contains("filename=/data/reports-${copy}-sdb\n"),
        "{printed}"
    );
    let placed = [&scaled[..], &["--place", "Reports=g1, g2,g3", "--print-scenario"]].concat();
    let printed = place.expect(0, &placed);
    assert!(printed.contains("copies = 3\nhost = [\"g1\", \"g2\", \"g3\"]\n"), "{printed}");
    for (agents, message) in [
        ("Reports=g1", "has 3 machines; name an agent for each"),
        ("Report=g1,g2,g3", "no workload runs on a group Report"),
    ] {
        let refused = place.run(&[&scaled[..], &["--place", agents, "--check"]].concat());
        let why = text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && why.contains(message), "{why}");
    }
}

#[test]
fn what_cannot_be_converted_ends_with_2() {
    let place = Place::new();
    let refused = |args: &[&str]| {
        let output = place.run(&[&["xray"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        text(&output.stderr).replace(&folder(""), "")
    };
    let every_step = folder("every_step");
    let colocation = folder("colocation");
    let directory = place.directory().to_str().unwrap().to_owned();
    let copy = format!("{directory}/own");
    std::fs::create_dir(&copy).unwrap();
    for name in ["test.yml", "orders.fio"] {
        std::fs::copy(format!("{colocation}/{name}"), format!("{copy}/{name}")).unwrap();
    }
    let missing = refused(&[&copy]).replace(&directory, "");
    let job = std::fs::read_to_string(format!("{colocation}/reports.fio")).unwrap();
    place.write("own/reports.fio", job.replace("iodepth=10", "iodepht=10"));
    let misspelt = refused(&[&copy]).replace(&directory, "");
    insta::assert_snapshot!(
        [
            missing,
            misspelt,
            refused(&[&every_step]),
            refused(&[&colocation, "--param", "orders_iops=0"]),
            refused(&[&colocation, "--map", "Order=/data"]),
            refused(&[&colocation, "--bind", "nodes.PowrOff=true"]),
        ]
        .concat()
    );
}

/// The colocation scenario on files, shortened to seconds: the tenants run at their rates, the effect of the arriving
/// neighbours is judged, and the scenario's expectations decide the exit code.
#[test]
fn a_scenario_runs() {
    let place = Place::new();
    let folder = place.path("quick");
    std::fs::create_dir(&folder).unwrap();
    for name in ["test.yml", "orders.fio", "reports.fio"] {
        let text = std::fs::read_to_string(format!("{}/{name}", self::folder("colocation"))).unwrap();
        // Rates that any disk of a test machine sustains, without direct I/O, which not every file system supports.
        let text = text.replace("direct=1", "direct=0").replace("rate_iops=500,500", "rate_iops=50,50");
        let text = text.replace("rate_iops=200", "rate_iops=5").replace("default: 1050", "default: 150");
        // Two copies of 5 x 1 MiB and 97 x 32 KiB a second.
        let text = text.replace("425721856", "16842752");
        std::fs::write(folder.join(name), text).unwrap();
    }
    let output = place.run(&["xray", "quick", "--scale-time", "0.003", "--scale-size", "0.001"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    // A mean over a few seconds may lie outside the band.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}\n{out}\n{err}", output.status);
    for part in [
        "expected orders: at least 139.7/s: ",
        "expected reports-2: at most 114",
        "expected orders: errors<=0%: ",
    ] {
        assert!(out.contains(part), "{part}: {out}\n{err}");
    }
    assert!(place.path("own_colocation.data/reports-2-sdb").exists(), "{out}");
}

/// X-Ray's own scenarios on the command line: each can be run after conversion, or is refused.
#[test]
#[ignore = "reads X-Ray's scenarios: KELVIN_TEST_XRAY is the directory of their folders"]
fn each_scenario_of_x_ray_can_be_run_or_is_refused() {
    let place = Place::new();
    let mut refused = Vec::new();
    let snapshots = "vm_group.CreatePeriodicSnapshots=true";
    for folder in std::fs::read_dir(std::env::var_os("KELVIN_TEST_XRAY").expect("KELVIN_TEST_XRAY")).unwrap()
    {
        let folder = folder.unwrap().path();
        let flags = ["--check", "--scale-time", "0.02", "--scale-size", "0.01", "--bind", snapshots];
        let output = place.run(&[&["xray", folder.to_str().unwrap()], &flags[..]].concat());
        if output.status.code() != Some(0) {
            let error = text(&output.stderr);
            assert!(error.contains("needs a hypervisor"), "{}: {error}", folder.display());
            refused.push(folder);
        }
    }
    assert_eq!(refused.len(), 6, "{refused:?}");
}

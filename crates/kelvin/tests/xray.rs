//! X-Ray's scenarios on the command line; `crates/xray` tests what they become.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;

use support::{Place, text};

/// A scenario of our own.
fn folder(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../xray/tests/scenarios").join(name).display().to_string()
}

#[test]
fn a_scenario_is_checked_and_printed() {
    let place = Place::new();
    let folder = folder("colocation");
    let scaled = ["xray", &folder, "--map", "/data", "--param", "report_hosts=3", "--scale-size", "0.01"];
    insta::assert_snapshot!(place.expect(0, &scaled));
    let printed = place.expect(0, &[&scaled[..], &["--print-scenario"]].concat());
    assert!(printed.contains("scenario = \"Colocation of our own\"\n"), "{printed}");
    assert!(
        printed.contains("copies = 3\n") && printed.contains("filename=/data/reports-${copy}-sdb\n"),
        "{printed}"
    );
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

//! Snapshots of the help in a terminal of 100 columns, for review by people.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::Place;

#[test]
fn each_workload_teaches_its_own_flags() {
    let place = Place::new();
    let seen = place.help(&[
        "run --help",
        "run tproc-c --help",
        "run tproc-h --help",
        "run pgbench --help",
        "run script --help",
        "run scan --help",
        "run io --help",
        "io --help",
        "io sweep --help",
        "io explain --help",
        "io plot --help",
        "build --help",
        "build tproc-c --help",
        "build pgbench --help",
        "build tproc-h --help",
        "check --help",
        "check pgbench --help",
        "drop --help",
        "drop pgbench --help",
        "waits --help",
        "top-sql --help",
        "xray --help",
    ]);
    insta::assert_snapshot!(seen);
}

#[test]
fn a_file_has_the_help_of_its_workload() {
    let place = Place::new();
    let file = place.expect(0, &["run", "pgbench", "-S", "--print-spec"]);
    place.write("run.toml", file);
    assert_eq!(
        place.expect(0, &["run", "run.toml", "--help"]),
        place.expect(0, &["run", "pgbench", "--help"])
    );
}

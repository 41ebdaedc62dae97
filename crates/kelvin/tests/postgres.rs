//! TPROC-C on a real PostgreSQL, as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::Stdio;
use std::time::Duration;

use support::{Place, Server, text};

#[test]
fn every_way_of_calling_is_valid_with_eight_users() {
    let server = Server::start();
    let url = server.url();
    let place = Place::new();
    for calls in ["functions", "pipelined", "statements"] {
        let args = ["run", "tproc-c", "--target", &url, "--calls", calls, "--users", "8"];
        place.expect(0, &[&args[..], &["--ramp-up", "1s", "--duration", "5s", "--check"]].concat());
        let run = place.report("last");
        let point = &run["points"][0];
        for count in ["headline_count", "server_headline_count"] {
            assert!(point[count].as_u64().unwrap() > 0, "{calls}: {count} {}", point[count]);
        }
    }
}

#[test]
fn a_server_killed_and_restarted_in_the_run_costs_errors_and_no_truth() {
    let mut server = Server::start();
    let url = server.url();
    let place = Place::new();
    place.expect(0, &["build", "tproc-c", "--target", &url]);
    let args = [
        "run",
        "tproc-c",
        "--target",
        &url,
        "--users",
        "4",
        "--ramp-up",
        "0s",
        "--duration",
        "14s",
        "--check",
    ];
    let child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    support::wait_for_a_second(&place);
    server.stop_immediately();
    std::thread::sleep(Duration::from_secs(1));
    server.start_again();
    let output = child.wait_with_output().unwrap();
    let shown = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    let run = place.report("last");
    // If the server was down for a whole second, the result is that of an outage; its recovery time depends on the
    // machine.
    assert_eq!(output.status.code(), Some(if place.is_noise() { 1 } else { 3 }), "{shown}");
    let errors = run["points"][0]["errors"].as_array().unwrap();
    assert!(errors.iter().any(|e| e["class"] == "connection lost"), "{errors:?}");
    assert!(run["checks"].as_array().unwrap().iter().all(|c| c["holds"] == true));
    // The run continued after the restart: there are good transactions after the last error.
    let number = |value: &serde_json::Value| value.as_i64().unwrap();
    let seconds = run["points"][0]["seconds"].as_array().unwrap();
    let last_error =
        seconds.iter().filter(|s| number(&s["errors"]) > 0).map(|s| number(&s["second"])).max().unwrap();
    let good = |s: &serde_json::Value| s["good"].as_array().unwrap().iter().map(number).sum::<i64>();
    assert!(seconds.iter().any(|s| number(&s["second"]) > last_error && good(s) > 0), "{seconds:?}");
}

#[test]
fn the_managed_server_is_made_used_again_and_removed() {
    let place = Place::new();
    let servers = tempfile::Builder::new().prefix("kelvin-test-").tempdir_in("/var/tmp").unwrap();
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(servers.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = |args: &[&str]| {
        let output = place.command(args).env("KELVIN_SERVERS", servers.path()).output().unwrap();
        let counts = output.status.success() || args[0] == "run" && place.is_noise();
        assert!(counts, "{args:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    };
    let load =
        ["run", "tproc-c", "--target", "postgres", "--transactions", "50", "--users", "2", "--accept-noise"];
    run(&load);
    assert!(run(&["server", "status"]).contains("running"));
    run(&[&load[..], &["--no-build"]].concat());
    assert!(run(&["server", "down"]).contains("stopped"));
    assert!(run(&["server", "status"]).contains("stopped"));
}

//! The live view on a real terminal, created by `script` (util-linux).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use support::{Place, text};

const ENTERED: &str = "\u{1b}[?1049h";
const LEFT: &str = "\u{1b}[?1049l";

/// The command on a separate terminal; the report goes to "report.txt", so that only the view is on the terminal.
fn on_a_terminal(place: &Place, size: &str, args: &str) -> Child {
    let inner =
        format!("stty {size}; echo $$ > pid; exec {} {args} > report.txt", env!("CARGO_BIN_EXE_kelvin"));
    let mut command = Command::new("script");
    command.args(["-qec", &inner, "/dev/null"]).current_dir(place.directory());
    command.env("KELVIN_STORE", place.store()).env("HOME", place.directory()).env("TMPDIR", "/var/tmp");
    command.env("TERM", "xterm").env("SHELL", "/bin/sh");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The output to the terminal so far.
fn reader(child: &mut Child) -> Arc<Mutex<Vec<u8>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (mut from, into) = (child.stdout.take().unwrap(), Arc::clone(&seen));
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            into.lock().unwrap().extend_from_slice(&bytes[..count]);
        }
    });
    seen
}

fn wait_for(seen: &Mutex<Vec<u8>>, what: &str) {
    let until = Instant::now() + Duration::from_mins(1);
    while !text(&seen.lock().unwrap()).contains(what) {
        assert!(Instant::now() < until, "no {what:?} in {:?}", text(&seen.lock().unwrap()));
        std::thread::sleep(Duration::from_millis(20));
    }
}

const RUN: &str = "run tproc-c --tui --users 2 --ramp-up 0s --no-observe";

/// Stops a run in its window and returns the exit code and the terminal's content.
fn stopped(place: &Place, how: impl Fn(&mut ChildStdin)) -> (Option<i32>, String) {
    let mut child = on_a_terminal(place, "cols 80 rows 24", &format!("{RUN} --duration 100s"));
    let seen = reader(&mut child);
    let mut keys = child.stdin.take().unwrap();
    // A transaction type has a rate only when a second of the window is complete.
    wait_for(&seen, "NOPM by second");
    wait_for(&seen, "measure");
    std::thread::sleep(Duration::from_secs(2));
    how(&mut keys);
    let code = child.wait().unwrap().code();
    let shown = text(&seen.lock().unwrap());
    (code, shown)
}

fn is_an_interrupted_run(place: &Place, (code, shown): (Option<i32>, String)) {
    assert_eq!(code, Some(130), "{shown}");
    let report = std::fs::read_to_string(place.path("report.txt")).unwrap();
    assert!(report.contains("state    partial") && report.contains("New-Order"), "{report}");
    assert_eq!((shown.matches(ENTERED).count(), shown.matches(LEFT).count()), (1, 1));
    // Messages are repeated on the normal screen.
    assert!(shown.rfind("virtual users").unwrap() > shown.find(LEFT).unwrap(), "{shown}");
}

#[test]
fn q_stops_as_an_interrupt_does() {
    let place = Place::new();
    let ended = stopped(&place, |keys| keys.write_all(b"q").unwrap());
    is_an_interrupted_run(&place, ended);
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let place = Place::new();
    let ended = stopped(&place, |_| {
        let pid = std::fs::read_to_string(place.path("pid")).unwrap();
        assert!(Command::new("kill").args(["-TERM", pid.trim()]).status().unwrap().success());
    });
    is_an_interrupted_run(&place, ended);
}

/// If the terminal is not read, the run still ends on time, and its result is stored.
#[test]
fn a_stalled_terminal_does_not_stall_the_run() {
    let place = Place::new();
    let mut child = on_a_terminal(&place, "cols 200 rows 60", &format!("{RUN} --duration 6s"));
    let mut keys = child.stdin.take().unwrap();
    // Each requests a full redraw, some 15 kB: pipe and terminal are soon full.
    let mut run = serde_json::Value::Null;
    for tick in 0..2400 {
        let _ = keys.write_all(b"\x0c");
        std::thread::sleep(Duration::from_millis(50));
        // Checked rarely, and only when the run can have ended: on a busy machine it starts late.
        if tick % 100 == 99 && tick >= 300 {
            let found = place.run(&["report", "last", "--json"]);
            run = serde_json::from_slice(&found.stdout).unwrap_or_default();
            if run["status"] == "complete" {
                break;
            }
        }
    }
    assert_eq!(run["status"], "complete", "two minutes later it has not ended");
    let window = run["points"][0]["window_s"].as_f64().unwrap();
    assert!((5.9..7.0).contains(&window), "{window}");
    assert!(child.try_wait().unwrap().is_none(), "it waits for the terminal, or the terminal never stalled");
    let seen = reader(&mut child);
    assert!(
        matches!(child.wait().unwrap().code(), Some(0 | 1)),
        "whether noise voids it is not the question here"
    );
    wait_for(&seen, LEFT);
}

/// If the terminal's window is closed or the connection to the host is lost, the run is stopped as by Ctrl-C.
#[test]
fn a_terminal_that_is_gone_ends_the_run() {
    let place = Place::new();
    let mut child = on_a_terminal(&place, "cols 80 rows 24", &format!("{RUN} --duration 100s"));
    let seen = reader(&mut child);
    wait_for(&seen, "measure");
    std::thread::sleep(Duration::from_secs(2));
    let pid = std::fs::read_to_string(place.path("pid")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let process = std::path::PathBuf::from(format!("/proc/{}", pid.trim()));
    support::wait_until("the run has ended", || !process.exists());
    assert_eq!(place.report("last")["status"], "interrupted");
}

#[test]
fn off_a_terminal_it_is_refused() {
    let place = Place::new();
    let output = place.run(&["run", "tproc-c", "--tui"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("standard error is not a terminal") && said.contains("--json"), "{said}");
    assert_eq!(place.run(&["run", "tproc-c", "--tui", "--json"]).status.code(), Some(2));
    assert_eq!(place.run(&["run", "tproc-c", "--tui", "--quiet"]).status.code(), Some(2));
    assert!(!place.store().exists(), "nothing was begun");
}

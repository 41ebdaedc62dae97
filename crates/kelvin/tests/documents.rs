//! Every command line of the documents is run as a reader would type it, in the order of its page.
//!
//! `documents/kelvin.sh` replaces the command in PATH and shortens it (windows, users, warehouses, files). What a page takes
//! for granted exists: stored runs and groups, job files, scripts, specifications, an external server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "what takes long is seen in the output of a test that failed")]

#[path = "support/command_lines.rs"]
mod command_lines;
mod support;

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use command_lines::{documents, shell_lines};
use support::{Place, Server, text};

/// Command lines that are not run: a part of the line, and the reason.
const NOT_RUN: [(&str, &str); 18] = [
    ("examples/colocation/", "it writes more than a gigabyte; the tests of scenarios check its plan"),
    ("LOG|RESULT|DIRECTORY|RUN…", "the shape of a command"),
    ("ssh ", "another host"),
    ("kelvin fleet", "a NATS server: tests/fleet.rs has one"),
    ("kelvin agent", "an agent waits for a controller: tests/fleet.rs starts some"),
    ("--fleet lab", "a fleet: tests/fleet.rs has some"),
    ("sslmode=verify-full", "a server with a certificate: tests/robustness_tls.rs has one"),
    ("sqlserver://", "a SQL Server: crates/database/tests/sqlserver.rs takes one"),
    (
        "check tproc-h --target postgres --validate",
        "data of scale factor 1: `mod machine` of tests/tproc_h.rs",
    ),
    ("kelvin hammerdb run", "a script of HammerDB: tests/hammerdb.rs runs one"),
    ("kelvin trace record", "root and tracefs: tests/trace.rs records"),
    ("kelvin xray", "a scenario of X-Ray: crates/xray/tests/conversion.rs converts two"),
    ("--profile hammerdb", "a schema that HammerDB built: crates/workload/tests/hammerdb_routines.rs"),
    ("--until 'ci<1%' --reset auto", "six copies of the data; each half is run on its own page"),
    ("kelvin io plot group:", "a sweep of runs that count, which runs beside other tests may not"),
    ("kelvin doctor", "ten seconds of a quiet machine, a minute beside other tests: tests/doctor.rs"),
    ("kelvin squeeze", "a minute at least: tests/squeeze.rs squeezes"),
    ("kelvin study run buffers", "48 runs of minutes, with huge pages: tests/study.rs runs studies"),
];

/// Pages that count their own runs and groups from 1.
const FROM_NOTHING: [&str; 3] = ["tutorial.md", "quick-start.md", "io-plots.md"];

/// What a page takes for granted in addition to what all pages have.
const GIVEN: [(&str, &str); 1] = [("profiles.md", "kelvin run tproc-c --target postgres")];

/// Number of pages that are tested concurrently.
const AT_ONCE: usize = 2;

const JOB: &str = "[reader]\nfilename=f\nrw=randread\nbs=4k\nsize=1m\nnumber_ios=100\nioengine=psync\n";
const TIMED_JOB: &str = "[reader]\nfilename=f\nrw=randread\nsize=1m\nioengine=psync\ntime_based\nruntime=1\n";

/// The requests of two processes, as blkparse prints them.
const TRACE: &str =
    "8,0 0 1 0.0 7 D WS 0 + 8 [wal]\n8,0 0 2 0.1 8 D R 99 + 8 [backend]\n8,0 0 3 0.2 7 D WS 8 + 8 [wal]\n";

/// A page and its command lines.
struct Page {
    path: PathBuf,
    lines: Vec<String>,
}

impl Page {
    fn name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }
}

/// The files and runs that every page starts with, and the servers that all pages share.
struct Ground {
    made: Place,
    theirs: Server,
    servers: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let servers = tempfile::Builder::new().prefix("kelvin-test-").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(servers.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let ground = Self { made: Place::new(), theirs: Server::start(), servers };
        ground.prepare();
        ground
    }

    fn prepare(&self) {
        let place = &self.made;
        std::fs::create_dir(place.path("bin")).unwrap();
        let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents/kelvin.sh");
        std::os::unix::fs::symlink(shim, place.path("bin/kelvin")).unwrap();
        let kept = place.path("kept");
        std::fs::create_dir(&kept).unwrap();
        for (name, content) in [
            ("job.fio", JOB),
            ("mix.fio", JOB),
            ("timed.fio", TIMED_JOB),
            ("read.sql", "select 1;\n"),
            ("write.sql", "select 2;\n"),
            ("transfer.sql", "\\set id random(1, :limit)\nselect :id;\n"),
            ("io.trace", TRACE),
            ("my.conf", "# sorts stay\n# in memory\nwork_mem = 6MB\n"),
        ] {
            std::fs::write(kept.join(name), content).unwrap();
        }
        let kelvin = |line: &str| {
            let args: Vec<&str> = line.split(' ').collect();
            let output = place.command(&args).current_dir(&kept).output().unwrap();
            let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
            assert!(matches!(output.status.code(), Some(0 | 1)), "kelvin {line}: {stdout}{stderr}");
            stdout
        };
        let one =
            "run tproc-c --target sqlite:warehouse.db -u 2 --transactions 5 --accept-noise --no-observe -q";
        for (name, users) in [("a.toml", "1"), ("b.toml", "2"), ("bench.toml", "2")] {
            let spec = kelvin(&format!("{} --print-spec", one.replace("-u 2", &format!("-u {users}"))));
            std::fs::write(kept.join(name), spec).unwrap();
        }
        // Groups 1 and 2 are repeats; 3 and 4 have sides.
        kelvin(&format!("{one} --repeat 2"));
        kelvin(&format!("{one} --repeat 2"));
        kelvin("ab a.toml b.toml --blocks 2 --no-control -q");
        kelvin("ab a.toml b.toml --blocks 2 --no-control -q");
        for branch in ["main --label release", "feature --label base", "pr-123"] {
            kelvin(&format!("{one} --testbed rack-7 --branch {branch}"));
        }
        let io = kelvin("io job.fio --output-format=json+ --write_bw_log=nvme");
        for name in ["mine", "theirs", "result", "before", "after", "old", "new"] {
            std::fs::write(kept.join(name).with_extension("json"), &io).unwrap();
        }
        std::fs::copy(kept.join("nvme_bw.1.log"), kept.join("sata_bw.1.log")).unwrap();
        Self::study(&kept, &kelvin);
        for name in ["a.db", "b.db"] {
            std::fs::copy(place.store(), kept.join(name)).unwrap();
        }
        // Two concurrent pages must not write to the same file.
        for lane in 0..AT_ONCE {
            std::fs::create_dir(self.servers.path().join(lane.to_string())).unwrap();
            std::fs::copy(kept.join("warehouse.db"), place.path(&lane.to_string())).unwrap();
        }
        std::fs::remove_file(kept.join("warehouse.db")).unwrap();
    }

    /// Runs a small study in `DIR`.
    fn study(kept: &Path, kelvin: &dyn Fn(&str) -> String) {
        kelvin("study new DIR");
        let path = kept.join("DIR/study.toml");
        let study = std::fs::read_to_string(&path).unwrap();
        let small = study
            .replace("blocks = 6 ", "blocks = 2 ")
            .replace("control = true ", "control = false ")
            .replace("ramp-up = \"5s\"", "ramp-up = \"0s\"")
            .replace("duration = \"20s\"", "duration = \"400ms\"")
            .replace("target = \"sqlite\"", "target = \"sqlite:warehouse.db\"\naccept-noise = true");
        assert_ne!(study, small);
        std::fs::write(path, small).unwrap();
        kelvin("study run DIR -q");
        std::fs::create_dir(kept.join("studies")).unwrap();
        let copy = ["-r", "DIR", "studies/buffers"];
        assert!(Command::new("cp").args(copy).current_dir(kept).status().unwrap().success());
    }

    /// Types a page's command lines; returns those that did not end as expected.
    fn read(&self, page: &Page, ran: &Path, known: &Mutex<BTreeSet<String>>, lane: usize) -> Vec<String> {
        let place = Place::new();
        let copy = |from: &Path, to: &str| assert!(std::fs::copy(from, place.path(to)).is_ok(), "{to}");
        for entry in std::fs::read_dir(self.made.path("kept")).unwrap() {
            let path = entry.unwrap().path();
            let target = place.directory().to_str().unwrap();
            assert!(Command::new("cp").arg("-r").arg(&path).arg(target).status().unwrap().success());
        }
        if !FROM_NOTHING.contains(&page.name()) {
            copy(&self.made.store(), "kelvin.db");
        }
        if page.lines.iter().any(|line| line.contains("rate-curve")) {
            copy(&self.made.path("kept/timed.fio"), "job.fio");
        }
        if page.lines.iter().any(|line| line.contains("sqlite:tpcc.db")) {
            copy(&self.made.path(&lane.to_string()), "tpcc.db");
        }
        let warehouse = self.made.path(&lane.to_string());
        std::os::unix::fs::symlink(warehouse, place.path("warehouse.db")).unwrap();
        for (_, line) in GIVEN.iter().filter(|(name, _)| *name == page.name()) {
            self.bash(line, &place, ran, lane).unwrap();
        }
        let (mut faults, mut before) = (Vec::new(), String::new());
        for line in &page.lines {
            if line.starts_with("export ") {
                before.push_str(&format!("{line}\n"));
                continue;
            }
            if NOT_RUN.iter().any(|(part, _)| line.contains(part)) {
                continue;
            }
            // The same line was already run for another page.
            let is_new = known.lock().unwrap().insert(line.split("  #").next().unwrap().trim().to_owned());
            if !is_new && !FROM_NOTHING.contains(&page.name()) {
                continue;
            }
            let began = Instant::now();
            let script = self.bash(&format!("{before}{line}"), &place, ran, lane);
            let seconds = began.elapsed().as_secs_f64();
            println!("{seconds:6.2} s  {}: {line}", page.name());
            if let Err(why) = script {
                faults.push(format!("{}: {line}\n{why}", page.name()));
            }
        }
        faults
    }

    fn bash(&self, line: &str, place: &Place, ran: &Path, lane: usize) -> Result<(), String> {
        let line = line
            .replace("./target/release/kelvin", "kelvin")
            .replace("count=256", "count=4")
            .replace("256M", "4M")
            .replace("1 2 3 4 5 6", "1 2");
        // Each line has a separate list of what ran.
        let ran = ran.with_extension(format!("{lane}"));
        std::fs::write(&ran, "").unwrap();
        let path = format!("{}:{}", self.made.path("bin").display(), std::env::var("PATH").unwrap());
        let output = place
            .program("bash")
            .args(["-o", "pipefail", "-c", &line])
            .envs([("PATH", path.as_str()), ("KELVIN", env!("CARGO_BIN_EXE_kelvin")), ("EDITOR", "true")])
            .env("RAN", &ran)
            .env("THEIR_POSTGRES", self.theirs.url())
            .env("KELVIN_SERVERS", self.servers.path().join(lane.to_string()))
            .output()
            .unwrap();
        let ended = std::fs::read_to_string(&ran).unwrap();
        let fault = ended.lines().find(|line| !is_expected(line));
        let started = ended.lines().count() > 0 || !line.contains("kelvin");
        if fault.is_none() && started {
            return Ok(());
        }
        Err(format!("{ended}{}{}", text(&output.stdout), text(&output.stderr)))
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        for lane in 0..AT_ONCE {
            let servers = self.servers.path().join(lane.to_string());
            let down = self.made.command(&["server", "down", "-q"]).env("KELVIN_SERVERS", servers).output();
            drop(down);
        }
    }
}

/// Whether a command ended as expected. A run may be void because the tests load the machine, and so few runs cannot be
/// judged.
fn is_expected(ended: &str) -> bool {
    let (code, line) = ended.split_once(' ').unwrap();
    let may: &[&str] = match line.split(' ').next().unwrap() {
        "run" | "io" | "ab" | "vioperf" => &["0", "1"],
        "gate" => &["0", "1", "5", "6"],
        _ => &["0"],
    };
    may.contains(&code)
}

fn pages() -> Vec<Page> {
    let with_lines = |(path, text): (PathBuf, String)| Page { path, lines: shell_lines(&text) };
    documents().into_iter().map(with_lines).filter(|page| !page.lines.is_empty()).collect()
}

#[test]
#[ignore = "takes minutes: cargo xtask documents"]
fn every_command_line_of_the_documents_runs() {
    let pages = pages();
    let all: Vec<&String> = pages.iter().flat_map(|page| &page.lines).collect();
    assert!(all.len() > 100, "{} lines", all.len());
    for (part, why) in NOT_RUN {
        assert!(all.iter().any(|line| line.contains(part)), "no line has {part} any more ({why})");
    }
    let began = Instant::now();
    let ground = Ground::new();
    println!("{:6.2} s  to prepare", began.elapsed().as_secs_f64());
    let (left, known) = (Mutex::new(VecDeque::from(pages)), Mutex::new(BTreeSet::new()));
    let ran = ground.made.path("ran");
    let faults: Vec<String> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..AT_ONCE)
            .map(|lane| {
                let (left, known, ground, ran) = (&left, &known, &ground, &ran);
                scope.spawn(move || {
                    let mut faults = Vec::new();
                    loop {
                        let Some(page) = left.lock().unwrap().pop_front() else { return faults };
                        faults.extend(ground.read(&page, ran, known, lane));
                    }
                })
            })
            .collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{} lines failed:\n\n{}", faults.len(), faults.join("\n\n"));
}

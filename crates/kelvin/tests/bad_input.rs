//! Bad input of every kind ends with exit code 2 and one clear message. The messages are a snapshot, so that
//! they are read and not only counted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

use support::{Place, Server, text};

/// Collects what each case printed.
struct Cases {
    place: Place,
    seen: String,
    count: usize,
}

impl Cases {
    fn new() -> Self {
        Self { place: Place::new(), seen: String::new(), count: 0 }
    }

    fn case(&mut self, name: &str, args: &[&str]) {
        let mut command = self.place.command(args);
        self.command(name, &mut command);
    }

    fn command(&mut self, name: &str, command: &mut Command) {
        let output = command.output().unwrap();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{name}\n{stdout}\n{stderr}");
        assert!(!stderr.trim().is_empty(), "{name} says nothing");
        assert!(!stderr.contains("panicked"), "{name}: {stderr}");
        let shown = stderr.replace(&self.place.directory().display().to_string(), "DIR");
        writeln!(self.seen, "## {name}\n{}\n", shown.trim_end()).unwrap();
        self.count += 1;
    }

    /// A specification file with this content.
    fn spec(&mut self, name: &str, content: impl AsRef<[u8]>) {
        self.place.write("run.toml", content);
        self.case(name, &["run", "run.toml"]);
    }
}

#[test]
fn specifications() {
    let mut cases = Cases::new();
    let load = |line: &str| format!("workload = \"tproc-c\"\n\n[load]\n{line}\n");
    let tproc_c = |line: &str| format!("workload = \"tproc-c\"\n\n[tproc-c]\n{line}\n");
    cases.spec("unknown key", load("user = 4"));
    cases.spec("wrong type", load("ramp-up = 60"));
    cases.spec("negative duration", load("duration = \"-5s\""));
    cases.spec("duration without unit", load("duration = \"300\""));
    cases.spec("zero users", load("users = 0"));
    cases.spec("one of several numbers of users is zero", load("users = [1, 0]"));
    cases.spec("no users at all", load("users = []"));
    cases.spec("no measured window", load("duration = \"0s\""));
    cases.spec("zero warehouses", tproc_c("warehouses = 0"));
    cases.spec("too many warehouses", tproc_c("warehouses = 100001"));
    cases.spec("warehouses beyond any integer", tproc_c("warehouses = 99999999999999999999"));
    cases.spec("unknown profile", tproc_c("profile = \"fast\""));
    cases.spec("mix with four weights", tproc_c("mix = \"1/1/1/1\""));
    cases.spec("mix of zeros", tproc_c("mix = \"0/0/0/0/0\""));
    cases.spec("no workload", "target = \"sqlite\"\n");
    cases.spec("unknown workload", "workload = \"tproc-x\"\n");
    cases.spec("not TOML", "workload: tproc-c\n");
    cases.spec("not text", [0xff_u8, 0xfe, 0x00]);
    cases.spec("far too long", vec![b'#'; 17 << 20]);
    cases.spec("a password in the target", "workload = \"tproc-c\"\ntarget = \"postgres://u:hush@h/d\"\n");
    assert!(!cases.seen.contains("hush"));
    cases.case("file that is not there", &["run", "absent.toml"]);
    cases.case("directory instead of a file", &["run", "."]);
    assert!(cases.count >= 20);
    let pgbench = |line: &str| format!("workload = \"pgbench\"\n\n[pgbench]\n{line}\n");
    cases.spec("pgbench on SQLite", format!("target = \"sqlite\"\n{}", pgbench("scale = 1")));
    cases.spec("scale 0", pgbench("scale = 0"));
    cases.spec("unknown query mode", pgbench("query-mode = \"fast\""));
    cases.spec("unknown built-in script", pgbench("scripts = [{ name = \"tpcc\" }]"));
    cases.spec(
        "a script that is wrong",
        pgbench("scripts = [{ name = \"a.sql\", text = \"\\\\set a 1 +\" }]"),
    );
    cases.spec("another workload's table", "workload = \"pgbench\"\n\n[tproc-c]\nwarehouses = 1\n");
    let script = |line: &str| format!("workload = \"script\"\n\n[script]\n{line}\n");
    cases.spec("no script", "workload = \"script\"\n");
    cases.spec("a script without text", script("scripts = [{ name = \"a.sql\" }]"));
    cases.spec("a scale for scripts", script("scale = 1"));
    insta::assert_snapshot!(cases.seen);
}

#[test]
fn command_lines_and_urls() {
    let mut cases = Cases::new();
    let run = |target: &'static str| ["run", "tproc-c", "--target", target];
    cases.case("unknown workload", &["run", "tpcc"]);
    cases.case("unknown flag", &["run", "tproc-c", "--user", "4"]);
    cases.case("count and duration", &["run", "tproc-c", "--transactions", "5", "--duration", "5s"]);
    cases.case("functions on SQLite", &["run", "tproc-c", "--calls", "functions"]);
    cases.case("unknown scheme", &run("ftp://host/db"));
    cases.case("an engine to come", &run("oracle://host/db"));
    cases.case("port 0", &run("postgres://u@127.0.0.1:0/db"));
    cases.case("port beyond all ports", &run("postgres://u@127.0.0.1:70000/db"));
    cases.case("password in the URL", &run("postgres://u:hush@127.0.0.1/db"));
    assert!(!cases.seen.contains("hush"));
    cases.case("broken percent-encoding", &run("postgres://u%4@127.0.0.1/db"));
    cases.case("unknown URL parameter", &run("postgres://u@127.0.0.1/db?sslmod=require"));
    cases.case("unknown sslmode", &run("postgres://u@127.0.0.1/db?sslmode=maybe"));
    cases.case("temporary data to keep", &["build", "tproc-c"]);
    cases.case("run that is not stored", &["show", "77"]);
    cases.case("check of a file that is not there", &["check", "tproc-c", "--target", "sqlite:absent.db"]);
    rusqlite::Connection::open(cases.place.path("foreign.db"))
        .unwrap()
        .execute_batch("create table t (a)")
        .unwrap();
    cases.case("another program's database", &["build", "tproc-c", "--target", "sqlite:foreign.db"]);
    cases.place.expect(0, &["build", "tproc-c", "--quiet", "--no-check", "--target", "sqlite:tpcc.db"]);
    cases.case("count and ramp-up", &["run", "tproc-c", "--transactions", "5", "--ramp-up", "5s"]);
    cases.case("negative duration", &["run", "tproc-c", "--duration", "-5s"]);
    cases.case("no transactions", &["run", "tproc-c", "--transactions", "0"]);
    cases.case("the same number of users twice", &["run", "tproc-c", "--users", "4,4"]);
    cases.case("drop without being asked", &["drop", "tproc-c", "--target", "sqlite:tpcc.db"]);
    insta::assert_snapshot!(cases.seen);
}

#[test]
fn pgbenchs_flags() {
    let mut cases = Cases::new();
    cases.place.write("good.sql", "select 1;\n");
    cases.place.write("bad.sql", "select 1;\n\\set a (1 +\n");
    cases.place.write("shell.sql", "\\shell true\n");
    cases.place.write("empty.sql", "");
    cases.place.write("latin1.sql", b"select '\xe9';");
    cases
        .place
        .write("run.toml", "workload = \"script\"\n[[script.scripts]]\nname = \"a\"\ntext = \"select 1\"\n");
    for line in [
        "run pgbench --target sqlite",
        "run pgbench --target a.db -S",
        "run pgbench -S bench",
        "run pgbench -i -I dx",
        "run pgbench -h x --target postgres",
        "run pgbench -P 0",
        "run pgbench --random-seed=dice",
        "run pgbench -C",
        "run pgbench --aggregate-interval 5",
        "run pgbench --sampling-rate=0.1",
        "run pgbench --tablespace fast",
        "run pgbench --exit-on-abort",
        "run pgbench -s 0",
        "run pgbench -s many",
        "run pgbench -F 9",
        "run pgbench -F 300",
        "run pgbench -b list",
        "run pgbench -b s",
        "run pgbench -b tpcb-like@x",
        "run pgbench -b select@0",
        "run pgbench -b",
        "run pgbench -f absent.sql",
        "run pgbench -f .",
        "run pgbench -f /dev/zero",
        "run pgbench -f bad.sql",
        "run pgbench -f shell.sql",
        "run pgbench -f empty.sql",
        "run pgbench -f latin1.sql",
        "run pgbench -D rows",
        "run pgbench -D a-b=1",
        "run pgbench -M fast",
        "run pgbench -c 0",
        "run pgbench -T 0",
        "run pgbench -T soon",
        "run pgbench -T -5",
        "run pgbench -t 0",
        "run pgbench -t 5 -T 3",
        "run pgbench -t 5 --max-tries 0",
        "run pgbench --max-tries 70000",
        "run pgbench --max-tries -10",
        "run pgbench --max-tries 2 --retries 2",
        "run pgbench -j many",
        "run pgbench -P soon",
        "run pgbench --warehouses 3",
        "run tproc-c -s 3",
        "run tproc-c -c 3",
        "run script",
        "run script absent.sql",
        "run script good.sql -s 3",
        "run script good.sql -b tpcb",
        "run script good.sql -U me",
        "run good.sql",
        "run --users 3 pgbench",
        "build script",
        "build run.toml",
        "build pgbench -c 3",
        "build pgbench --target sqlite:a.db",
        "check pgbench -s 3",
        "drop script",
        "run",
    ] {
        cases.case(&format!("kelvin {line}"), &line.split(' ').collect::<Vec<_>>());
    }
    insta::assert_snapshot!(cases.seen);
}

#[test]
fn files() {
    let mut cases = Cases::new();
    cases.place.write("text.db", "this is no database, but long enough to be taken for one\n".repeat(100));
    std::fs::create_dir(cases.place.path("directory.db")).unwrap();
    cases.case("SQLite file that is none", &["run", "tproc-c", "--target", "sqlite:text.db"]);
    cases.case("SQLite file that is a directory", &["run", "tproc-c", "--target", "sqlite:directory.db"]);
    cases.case("SQLite file in no directory", &["run", "tproc-c", "--target", "sqlite:absent/tpcc.db"]);
    let store = |name: &str| ["show", "last", "--store", name].map(str::to_owned);
    let show = |cases: &mut Cases, name: &str, file: &str| {
        let args = store(file);
        cases.case(name, &args.each_ref().map(String::as_str));
    };
    show(&mut cases, "store that is not there", "absent.db");
    show(&mut cases, "store that is text", "text.db");
    show(&mut cases, "store that is a directory", "directory.db");

    // The observed metrics depend on the host, and so does the size of the file.
    cases.place.expect(0, &["run", "tproc-c", "--transactions", "20", "--users", "1", "--no-observe"]);
    let good = std::fs::read(cases.place.store()).unwrap();
    cases.place.write("truncated.db", &good[..good.len() / 2 + 100]);
    show(&mut cases, "truncated store", "truncated.db");
    cases.place.write("future.db", &good);
    let future = rusqlite::Connection::open(cases.place.path("future.db")).unwrap();
    future.pragma_update(None, "journal_mode", "delete").unwrap();
    future.pragma_update(None, "user_version", 9999).unwrap();
    drop(future);
    let before = std::fs::read(cases.place.path("future.db")).unwrap();
    show(&mut cases, "store of a newer version", "future.db");
    cases.case(
        "run into a store of a newer version",
        &["run", "tproc-c", "--transactions", "5", "--users", "1", "--store", "future.db"],
    );
    assert_eq!(std::fs::read(cases.place.path("future.db")).unwrap(), before, "the newer store is unharmed");
    let other = rusqlite::Connection::open(cases.place.path("other.db")).unwrap();
    other.execute_batch("create table mine (a); insert into mine values (1)").unwrap();
    drop(other);
    show(&mut cases, "store of another program", "other.db");
    insta::assert_snapshot!(cases.seen);
}

#[test]
fn a_disk_that_fills_up_during_the_load() {
    let mut cases = Cases::new();
    let disk = cases.place.path("small-disk");
    std::fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=40m small-disk small-disk && exec \"$0\" \"$@\"";
    let kelvin = env!("CARGO_BIN_EXE_kelvin");
    let mut unshared = Command::new("unshare");
    unshared.args(["--mount", "--map-root-user", "sh", "-c", script, kelvin]);
    unshared.args(["build", "tproc-c", "--quiet", "--target", "sqlite:small-disk/tpcc.db"]);
    unshared.current_dir(cases.place.directory());
    unshared.env("KELVIN_STORE", cases.place.store());
    cases.command("disk full", &mut unshared);
    assert!(cases.seen.contains("full"), "{}", cases.seen);
}

#[test]
fn servers_that_refuse() {
    let server = Server::start();
    let config = server.instance.config();
    let mut cases = Cases::new();
    let at =
        |cases: &mut Cases, name: &str, url: &str| cases.case(name, &["run", "tproc-c", "--target", url]);
    at(&mut cases, "missing database", &server.url().replace("/kelvin", "/absent"));
    let seen = cases.seen.replace(&config.to_string().replace("/kelvin", "/absent"), "URL");
    assert!(seen.contains("absent"), "{seen}");

    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    at(&mut cases, "nobody listens", &format!("postgres://u@127.0.0.1:{port}/db"));

    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let http_port = http.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in http.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    at(&mut cases, "a web server", &format!("postgres://u@127.0.0.1:{http_port}/db?sslmode=disable"));

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let url = format!("postgres://u@127.0.0.1:{silent_port}/db?sslmode=disable&connect_timeout=2");
    at(&mut cases, "a server that never answers", &url);
    assert_eq!(cases.count, 4);
}

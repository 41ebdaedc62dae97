//! `kelvin server` as a user runs it: profiles of a managed server, and the settings of an external one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../database/tests/mysql_support/mod.rs"]
mod mysql_support;
mod support;

use kelvin_database::Engine;
use kelvin_database::managed::Manager;
use kelvin_database::postgres::PostgresEngine;
use support::{Place, Server, text, wait_until};

/// Except for fsync, only settings that a small host supports.
const MINE: &str = "shared_buffers = 24MB\nfsync = off\n\n# sorts stay\n# in memory\nwork_mem = 6MB\n";

#[test]
fn profiles_are_shown_applied_kept_and_restored() {
    let place = Place::new();
    place.write("mine.conf", MINE);
    place.write("other.conf", MINE.replace("6MB", "6144kB"));
    // The other server is unknown to kelvin, and therefore an external one.
    let server = Server::start_with(&[("fsync", "off"), ("shared_buffers", "32MB")]);
    let url = server.url();
    let show = |name: &str| {
        let mut session = PostgresEngine::new(server.instance.config()).connect().unwrap();
        session.query(&format!("SHOW {name}")).unwrap().text(0, 0).unwrap().to_owned()
    };
    let apply = ["server", "apply", "--target", &url, "--profile", "mine.conf"];

    let output = place.run(&apply);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert!(err.contains("nothing was changed") && err.contains("--allow-settings"), "{err}");
    let shown = out.replace(&url, "URL");
    insta::assert_snapshot!(shown, @r"
    URL differs from the profile mine.conf in 2 settings:
      setting         server  profile  changes
      shared_buffers  32MB    24MB     after a restart
      work_mem        4MB     6MB      immediately
    reasons for the profile's values:
      work_mem: sorts stay in memory
    ");
    assert_eq!(show("work_mem"), "4MB");

    let out = place.expect(0, &[&apply[..], &["--allow-settings"]].concat());
    assert!(out.contains("restart the server yourself to apply the rest: shared_buffers"), "{out}");
    assert_eq!((show("work_mem"), show("shared_buffers")), ("6MB".into(), "32MB".into()));
    let output = place.run(&[&apply[..], &["--allow-settings"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("revert it first: kelvin server restore"),
        "{}",
        text(&output.stderr)
    );

    let out = place.expect(0, &["server", "diff", "--target", &url, "--profile", "other.conf"]);
    assert!(!out.contains("work_mem") && out.contains("shared_buffers"), "6144kB is 6MB: {out}");
    let out = place.expect(0, &["server", "restore"]);
    assert!(out.contains("reverted: shared_buffers, work_mem of"), "{out}");
    assert_eq!(show("work_mem"), "4MB");
    assert_eq!(place.expect(0, &["server", "restore", "--target", &url]), "nothing to revert\n");
}

#[test]
fn a_server_of_kelvins_own_keeps_its_profile() {
    let servers = tempfile::Builder::new().prefix("kelvin-test-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(servers.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let place = Place::new();
    place.write("mine.conf", MINE);
    place.write("run.toml", "workload = \"tproc-c\"\ntarget = \"postgres\"\n[load]\nduration = \"7m\"\n");
    let run = |args: &[&str]| {
        let output = place.command(args).env("KELVIN_SERVERS", servers.path()).output().unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        (output.status.code(), out, err)
    };
    let expect = |args: &[&str]| {
        let (code, out, err) = run(args);
        assert_eq!(code, Some(0), "{args:?}: {out}{err}");
        out
    };
    expect(&["server", "up", "--profile", "mine.conf"]);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        assert!(expect(&["server", "status"]).contains("  profile  mine.conf\n"));
        assert!(expect(&["server", "diff"]).contains("has every setting of the profile mine.conf"));
        let out = expect(&["server", "diff", "--profile", "steady", "--for", "run.toml"]);
        let line = |name: &str| {
            out.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or("").to_owned()
        };
        assert!(
            line("shared_buffers ").contains("after a restart")
                && line("full_page_writes").contains("immediately"),
            "{out}"
        );
        assert!(!out.contains("fsync "), "the same in both: {out}");
        assert!(out.contains("estimated from") && out.contains("425 s"), "{out}");
        let (code, _, err) = run(&["server", "up", "--profile", "steady", "--for", "nothing"]);
        assert_eq!(code, Some(2), "{err}");
        let (code, _, err) = run(&["server", "up", "--profile", "durable", "--for", "run.toml"]);
        assert!(code == Some(2) && err.contains("only the profile steady is sized for a run"), "{err}");
        let (code, _, err) = run(&["server", "up", "--profile", "stedy"]);
        assert!(code == Some(2) && err.contains("neither default, durable nor steady"), "{err}");
        place.write("bad.conf", "fsync = on\nwork_mem 4 MB\n");
        let (code, _, err) = run(&["server", "up", "--profile", "bad.conf"]);
        assert!(
            code == Some(2) && err.contains("bad.conf: line 2: \"MB\" follows the value of work_mem"),
            "{err}"
        );
        assert!(expect(&["server", "status"]).contains("  profile  mine.conf\n"));
        // Settings of ALTER SYSTEM take precedence over a profile, and are reported wherever either is examined.
        let config = Manager::new(servers.path()).up(None, &mut |_| ()).unwrap().config();
        let mut session = PostgresEngine::new(config).connect().unwrap();
        session.run("ALTER SYSTEM SET work_mem = '9MB'").unwrap();
        session.run("SELECT pg_reload_conf()").unwrap();
        drop(session);
        wait_until("it has read its files", || expect(&["server", "diff"]).contains("9MB (ALTER SYSTEM)"));
        let (code, _, err) = run(&["server", "up", "--profile", "mine.conf"]);
        assert_eq!(code, Some(0), "{err}");
        assert!(err.contains("ALTER SYSTEM RESET work_mem lets the profile apply"), "{err}");
    }));
    expect(&["server", "down"]);
    outcome.unwrap();
}

#[test]
fn a_mariadb_is_compared_changed_and_restored() {
    let place = Place::new();
    place.write("mine.cnf", "[mysqld]\n# room for bursts\ninnodb-io-capacity = 1K\nback_log = 70\n");
    let server = mysql_support::Server::start_with(
        &["--performance-schema=ON", "--back-log=80", "--innodb-io-capacity=200"],
        |_| {},
    );
    let url = format!("mysql://root@/?socket={}", server.socket().display());
    let show = || {
        let rows = server.session().query("SELECT CAST(@@GLOBAL.innodb_io_capacity AS CHAR)").unwrap();
        rows.text(0, 0).unwrap().to_owned()
    };
    let before = show();
    let apply = ["server", "apply", "--target", &url, "--profile", "mine.cnf"];
    let output = place.run(&apply);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert!(err.contains("nothing was changed") && err.contains("--allow-settings"), "{err}");
    if mysql_support::is_mariadb() {
        assert!(err.contains("from its option file only: back_log"), "{err}");
        let shown = out.replace(url.as_str(), "URL");
        insta::assert_snapshot!(shown, @r"
        URL differs from the profile mine.cnf in 2 settings:
          setting             server  profile  changes
          innodb_io_capacity  200     1K       immediately
          back_log            80      70       in the server's option file, after a restart
        reasons for the profile's values:
          innodb_io_capacity: room for bursts
        ");
    }
    assert_eq!(show(), before);
    let out = place.expect(0, &[&apply[..], &["--allow-settings"]].concat());
    assert!(out.contains("changed; revert with: kelvin server restore"), "{out}");
    // Limited by MySQL's innodb_io_capacity_max.
    assert_eq!(show(), "1024");
    let out = place.expect(0, &["server", "restore"]);
    assert!(out.contains("reverted: innodb_io_capacity"), "{out}");
    assert_eq!(show(), before);
    assert_eq!(place.expect(0, &["server", "restore", "--target", &url]), "nothing to revert\n");
    let out = place.expect(0, &["server", "diff", "--target", &url, "--profile", "durable"]);
    assert!(out.contains("innodb_flush_log_at_trx_commit") && out.contains("a commit is on disk"), "{out}");

    // Instruments that a run with deep observation has switched on are restored at the start of the next one, or
    // manually.
    let switched_on = || {
        let sql = "SELECT CAST(COUNT(*) AS SIGNED) FROM performance_schema.setup_instruments \
                   WHERE NAME LIKE 'wait/synch/mutex/%' AND ENABLED = 'YES'";
        server.session().query(sql).unwrap().int(0, 0).unwrap()
    };
    let off = switched_on();
    place.write("sleep.sql", "select sleep(0.05);\n");
    let words =
        ["run", "script", "sleep.sql", "--target", &url, "-u", "1", "-d", "60s", "--observe", "deep", "-q"];
    let url_of_database = url.replace("@/?", "@/kelvin?");
    let words = words.map(|word| if word == url { &url_of_database } else { word });
    let mut run = place.command(&words).spawn().unwrap();
    wait_until("the instruments are on", || switched_on() > off);
    run.kill().unwrap();
    run.wait().unwrap();
    let out = place.expect(0, &["server", "restore"]);
    assert!(out.contains("instruments of mysql://"), "{out}");
    assert_eq!(switched_on(), off);
}

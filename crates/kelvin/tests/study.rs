//! Studies from the command line on real databases. After Ctrl-C, kill -9 and a crash of the server, they resume and
//! complete, and their changes are undone.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::{Place, Server, text, wait_until};

fn ledger(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("ledger.jsonl")).unwrap_or_default();
    // The last line may be incomplete.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn count(folder: &Path, event: &str) -> usize {
    ledger(folder).iter().filter(|line| line["event"] == event).count()
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

fn start(place: &Place, args: &[&str]) -> Child {
    place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// One or two users, and a command that keeps a file while it is active: four cells in one block, on one SQLite file.
fn two_factors(place: &Place) -> std::path::PathBuf {
    place.expect(0, &["study", "new", "users"]);
    let folder = place.path("users");
    let mark = place.path("mark").display().to_string();
    let database = place.path("users.db").display().to_string();
    let study = std::fs::read_to_string(folder.join("study.toml")).unwrap();
    let study = study
        .replace("kind = \"ab\"  ", "kind = \"factorial\"")
        .replace("blocks = 6 ", "blocks = 1 ")
        .replace("control = true ", "control = false ")
        .replace("# replacements = 3 ", "replacements = 8 #")
        .replace("ramp-up = \"5s\"", "ramp-up = \"0s\"")
        .replace("duration = \"20s\"", "duration = \"1s\"")
        // Tests that run concurrently would make every run void.
        .replace(
            "[run.load]\n",
            "[run.observe]\nenabled = false\n\n[run.reset]\nhow = \"auto\"\nidle-wait = \"0s\"\n\n[run.load]\n",
        )
        .replace("target = \"sqlite\"", &format!("target = \"sqlite:{database}\"\naccept-noise = true"))
        .replace(
            "[design]\n",
            &format!(
                "[[factor]]\nname = \"mark\"\nlevels = {{ off = {{}}, on = {{ apply = \"touch {mark}\", undo = \
                 \"rm -f {mark}\" }} }}\ncommand = true\n\n[design]\n"
            ),
        );
    std::fs::write(folder.join("study.toml"), study).unwrap();
    folder
}

#[test]
fn interrupted_and_killed_it_goes_on_and_puts_back_what_it_changed() {
    let place = Place::new();
    let folder = two_factors(&place);
    let mark = place.path("mark");
    let run = ["study", "run", "users", "--allow-commands"];

    let refused = place.run(&["study", "run", "users"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--allow-commands"), "{}", text(&refused.stderr));
    assert_eq!(count(&folder, "started"), 0);
    assert!(place.expect(0, &["study", "plan", "users"]).contains("4 runs"));
    place.expect(0, &["study", "lock", "users"]);
    place.expect(2, &["study", "lock", "users"]);

    let child = start(&place, &run);
    wait_until("the command factor is on", || mark.exists());
    // Only one session at a time may run a study.
    assert!(text(&place.run(&run).stderr).contains("already running"));
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(!mark.exists(), "Ctrl-C puts everything back");
    assert_eq!(count(&folder, "interrupted"), 1);

    let child = start(&place, &run);
    wait_until("the command factor is on", || mark.exists());
    signal(&child, "KILL");
    child.wait_with_output().unwrap();
    assert!(mark.exists(), "nobody can put back anything at a kill");
    assert!(place.expect(0, &["study", "show", "users"]).contains("study recover"));
    assert!(place.expect(0, &["study", "recover", "users"]).contains("restored: "));
    assert!(!mark.exists());
    assert!(place.expect(0, &["study", "recover", "users"]).contains("nothing"));

    let shown = place.expect(0, &run);
    assert!(shown.contains("complete: 4 of 4 runs done"), "{shown}");
    assert!(!mark.exists());
    let treatments: Vec<String> = ledger(&folder)
        .iter()
        .filter(|line| line["event"] == "measured")
        .map(|line| line["treatment"].as_str().unwrap().to_owned())
        .collect();
    let mut each = treatments.clone();
    each.sort();
    assert_eq!(each, ["users=1 mark=off", "users=1 mark=on", "users=2 mark=off", "users=2 mark=on"]);
    // The order is that of the plan, despite the interruptions.
    let planned = ledger(&folder).into_iter().find(|line| line["event"] == "planned").unwrap();
    let order: Vec<String> = planned["order"][0]
        .as_array()
        .unwrap()
        .iter()
        .map(|index| planned["treatments"][index.as_u64().unwrap() as usize].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(treatments, order);

    let listed: Value = serde_json::from_str(place.expect(0, &["study", "list", "--json"]).trim()).unwrap();
    assert_eq!(
        (&listed["state"], &listed["done"], &listed["locked"]),
        (&"complete".into(), &4.into(), &true.into())
    );
    let notebook = std::fs::read_to_string(folder.join("notebook.md")).unwrap();
    assert!(notebook.contains("complete: 4 of 4 runs done") && notebook.contains("Locked 20"), "{notebook}");

    place.expect(0, &["study", "fork", "users", "next"]);
    assert!(place.expect(0, &["study", "show", "next"]).contains("continues   users ("));
    place.expect(2, &["study", "fork", "users", "next"]);
    // A run that is in the store but not in the ledger does not count.
    let store = rusqlite::Connection::open(place.store()).unwrap();
    let of = |condition: &str| -> i64 {
        let sql = format!("SELECT count(*) FROM member WHERE void IS {condition}");
        store.query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    // A run that the machine delayed is void, and was replaced.
    assert_eq!(of("NULL"), 4 + count(&folder, "void") as i64);
    // Every counted run began from the same data.
    let runs: Vec<String> = ledger(&folder)
        .iter()
        .filter(|line| line["event"] == "measured")
        .map(|line| line["run"].to_string())
        .collect();
    for run in runs {
        let shown = place.expect(0, &["show", &run]);
        assert!(shown.contains("reset by files (SQLite uses a single file)"), "{shown}");
    }
}

#[test]
fn a_crash_of_the_server_is_logged_and_the_setting_restored() {
    let mut server = Server::start();
    let buffers = show_buffers(&server);
    let place = Place::new();
    place.write(
        "study.toml",
        "name = \"buffers\"\nquestion = \"?\"\n\
         [goal]\nmetric = \"tps\"\ndirection = \"higher\"\nsmallest-effect = \"3%\"\n\
         [hypothesis]\nstatement = \"s\"\nmechanism = \"m\"\nfactor = \"buffers\"\nfrom = \"16MB\"\nto = \"24MB\"\n\
         predicts = [{ metric = \"tps\", direction = \"same\" }]\n\
         [[factor]]\nname = \"buffers\"\nlevels = [\"16MB\", \"24MB\"]\nsetting = \"shared_buffers\"\n\
         [design]\nkind = \"ab\"\nblocks = 1\nreplacements = 6\n\
         [run]\nworkload = \"pgbench\"\ntarget = \"postgres\"\naccept-noise = true\n[run.load]\nramp-up = \"0s\"\nduration = \"3s\"\n\
         [run.observe]\nenabled = false\n\
         [run.pgbench]\nscale = 1\n",
    );
    let folder = place.directory().to_owned();
    let servers = server.base().to_owned();
    let mut command = place.command(&["study", "run", "."]);
    let child = command.env("KELVIN_SERVERS", servers).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    wait_until("the second run is under way", || {
        let kept = ledger(&folder).iter().filter(|line| line["event"] == "started").count() >= 2;
        kept && place.store().exists() && runs_in(&place) >= 2
    });
    // The study has restarted the server, so the new process is stopped.
    server.start_again();
    server.stop_immediately();
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", text(&output.stdout));
    let (void, failed) = (count(&folder, "void"), count(&folder, "failed"));
    assert!(void + failed >= 1, "the crash is in the ledger: {said}");
    assert_eq!((count(&folder, "measured"), count(&folder, "replaced")), (2, void + failed));
    server.start_again();
    assert_eq!(show_buffers(&server), buffers, "the setting is put back");
}

/// Both levels of every factor differ from the present state, so that the first run sets all of them.
#[test]
fn ctrl_c_puts_back_setting_binding_and_command() {
    let mut server = Server::start();
    let (buffers, cpus) = (show_buffers(&server), cpus_of(&server));
    let one: Vec<&str> = cpus.split([',', '-']).collect();
    let (first, last) = (one[0], one[one.len() - 1]);
    let place = Place::new();
    let marks = [place.path("one"), place.path("two")];
    let command = |mark: &Path| {
        let mark = mark.display();
        format!("{{ apply = \"touch {mark}\", undo = \"rm -f {mark}\" }}")
    };
    place.write(
        "study.toml",
        format!(
            "name = \"all\"\nquestion = \"?\"\n\
             [goal]\nmetric = \"tps\"\ndirection = \"higher\"\nsmallest-effect = \"3%\"\n\
             [hypothesis]\nstatement = \"s\"\nmechanism = \"m\"\nfactor = \"buffers\"\nfrom = \"24MB\"\nto = \"32MB\"\n\
             predicts = [{{ metric = \"tps\", direction = \"same\" }}]\n\
             [[factor]]\nname = \"buffers\"\nlevels = [\"24MB\", \"32MB\"]\nsetting = \"shared_buffers\"\n\
             [[factor]]\nname = \"cpus\"\nlevels = {{ low = \"{first}\", high = \"{last}\" }}\nbind = \"server.cpus\"\n\
             [[factor]]\nname = \"mark\"\nlevels = {{ one = {}, two = {} }}\ncommand = true\n\
             [design]\nkind = \"factorial\"\nblocks = 1\n\
             [run]\nworkload = \"pgbench\"\ntarget = \"postgres\"\naccept-noise = true\n[run.load]\nramp-up = \"0s\"\nduration = \"60s\"\n\
             [run.observe]\nenabled = false\n[run.pgbench]\nscale = 1\n",
            command(&marks[0]),
            command(&marks[1]),
        ),
    );
    let mut command = place.command(&["study", "run", ".", "--allow-commands"]);
    let child = command.env("KELVIN_SERVERS", server.base()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    wait_until("the first run is under way", || place.store().exists() && runs_in(&place) >= 1);
    server.start_again();
    assert!(marks.iter().any(|mark| mark.exists()), "the command is on");
    assert_ne!(show_buffers(&server), buffers, "the setting is on");
    let bound = cpus_of(&server);
    assert!(bound == first || bound == last, "the server is bound: {bound}");

    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    server.start_again();
    assert_eq!((show_buffers(&server), cpus_of(&server)), (buffers, cpus));
    assert!(marks.iter().all(|mark| !mark.exists()));
    assert!(place.expect(0, &["study", "recover", "."]).contains("nothing"));
}

/// The CPUs that the server may use, in the kernel's notation.
fn cpus_of(server: &Server) -> String {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.instance.pid())).unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    allowed.unwrap().trim().to_owned()
}

fn runs_in(place: &Place) -> i64 {
    let store = rusqlite::Connection::open(place.store()).unwrap();
    store.query_row("SELECT count(*) FROM member", [], |row| row.get(0)).unwrap_or(0)
}

fn show_buffers(server: &Server) -> String {
    use kelvin_database::Engine;
    let engine = kelvin_database::postgres::PostgresEngine::new(server.instance.config());
    let mut session = engine.connect().unwrap();
    engine
        .fingerprint(&mut *session)
        .unwrap()
        .settings
        .into_iter()
        .find(|one| one.name == "shared_buffers")
        .map_or_else(String::new, |one| one.value)
}

#[test]
fn what_cannot_be_a_study_is_refused() {
    let place = Place::new();
    for (args, expected) in [
        (&["study", "plan", "absent"][..], "absent is not a study"),
        (&["study", "run", "."], ". is not a study"),
        (&["study", "show", "kelvin.db"], "kelvin.db is not a study"),
        (&["study", "new", ".."], "cannot be used as the name of a study"),
        (&["study", "recover", "absent"], "absent is not a study"),
        (&["study", "list", "absent"], "absent is not a study"),
        (&["study", "plan", "."], ". is not a study"),
    ] {
        let output = place.run(args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    place.expect(0, &["study", "new", "s"]);
    place.expect(2, &["study", "new", "s"]);
    place.expect(2, &["study", "plan", "s", "--cv", "2"]);
    std::fs::write(place.path("s/ledger.jsonl"), "[1]\n").unwrap();
    assert!(text(&place.run(&["study", "show", "s"]).stderr).contains("line 1"));
    std::fs::remove_file(place.path("s/ledger.jsonl")).unwrap();
    std::fs::write(place.path("s/lock.json"), "{}").unwrap();
    assert!(text(&place.run(&["study", "plan", "s"]).stderr).contains("not the lock of a study"));
}

//! Sweeps, studies and traces.

use std::process::Stdio;

use serde_json::Value;

use super::support::{Place, text, undisturbed, wait_until};
use super::{JOB, place};

/// The study resumes after a kill, and failing runs end it with their own error.
#[test]
fn a_study_of_io_jobs_is_a_study_like_any_other() {
    let place = place(JOB);
    let study = "name = \"st\"\nquestion = \"?\"\n[goal]\nmetric = \"iops\"\ndirection = \"higher\"\nsmallest-effect = \"3%\"\n\
        [hypothesis]\nstatement = \"x\"\nmechanism = \"y\"\nfactor = \"bs\"\nfrom = \"4k\"\nto = \"8k\"\nrivals = [\"z\"]\n\
        predicts = [{ metric = \"iops\", direction = \"lower\", by = \"5%\" }]\n\
        [[factor]]\nname = \"bs\"\nlevels = [\"4k\", \"8k\"]\nspec = \"io.set.bs\"\n\
        [design]\nkind = \"ab\"\nblocks = 4\nseed = 1\ncontrol = false\n\
        [run]\nworkload = \"io\"\n[run.observe]\nenabled = false\n[run.io]\njob = \"\"\"\n";
    std::fs::create_dir(place.path("st")).unwrap();
    place.write("st/study.toml", format!("{study}{JOB}\"\"\"\n"));
    assert!(place.expect(0, &["study", "plan", "st"]).contains("8 runs"));
    let mut child =
        place.command(&["study", "run", "st"]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let ledger = place.path("st/ledger.jsonl");
    let done = || std::fs::read_to_string(&ledger).unwrap_or_default().matches("\"measured\"").count();
    wait_until("two runs are done", || done() > 1);
    child.kill().unwrap();
    child.wait().unwrap();
    place.expect(0, &["study", "run", "st"]);
    let shown = place.expect(0, &["study", "show", "st"]);
    assert!(shown.contains("complete: 8 of 8 runs done"), "{shown}");
    assert!(place.expect(0, &["study", "analyze", "st"]).contains("IOPS by cell"));
    place.expect(0, &["study", "report", "st"]);

    std::fs::create_dir(place.path("bad")).unwrap();
    let job = JOB.replace("filename=data", "filename=data/below");
    let study = study.replace("\"st\"", "\"bad\"");
    place.write("bad/study.toml", format!("{study}{job}\"\"\"\n"));
    let failed = place.run(&["study", "run", "bad"]);
    let stderr = text(&failed.stderr);
    assert!(stderr.contains("3 runs failed in a row") && stderr.contains("data/below"), "{stderr}");
}

/// The output of a sweep. A run may be void on a machine that stalls; only the exit code shows it, and it is not judged
/// here.
fn sweep(place: &Place, args: &[&str]) -> String {
    let output = place.run(&[&["io", "sweep"], args, &["job.fio", "--no-observe"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn a_sweep_is_one_table_and_a_group() {
    let place = place(JOB);
    let shown = sweep(&place, &["--bs", "4k,8k", "--numjobs", "1,2", "--label", "s"]);
    for part in ["bs  numjobs", "4k        1", "8k        2", "IOPS"] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    let again = place.expect(0, &["groups", "1"]);
    assert!(shown.starts_with(&again), "{again}\n{shown}");
    assert!(place.expect(0, &["groups"]).contains("highest: "));
    let json: Value = serde_json::from_str(&place.expect(0, &["groups", "1", "--json"])).unwrap();
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    assert_eq!((&cells[3]["set"]["bs"], &cells[3]["set"]["numjobs"]), (&"8k".into(), &"2".into()));
    assert_eq!(place.report("4")["points"][0]["headline_count"], 200);
}

#[test]
fn a_rate_curve_asks_for_parts_of_the_highest() {
    let place = place(
        "[c]\nfilename=data\nsize=1m\nrw=randread\nioengine=psync\nthinktime=1ms\ntime_based\nruntime=1\n",
    );
    let shown = sweep(&place, &["--rate-curve", "20,50%"]);
    for part in ["maximum", "20%", "50%", "target/s", "response times"] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    let report = place.report("2");
    assert_eq!(report["open_loop"], true);
    assert!(report["points"][0]["response_all"]["p50_us"].as_f64().is_some());
}

/// A trace has directions that `rw` does not have, and several I/Os with the same time, which are due at that time.
#[test]
fn all_of_a_trace_is_in_the_run() {
    let place = place("[r]\nread_iolog=trace\nioengine=psync\nfilename=data\n");
    place.write(
        "trace",
        "fio version 3 iolog\n0 data add\n0 data open\n0 data write 0 4096\n0 data read 8192 8192\n\
         2000 data write 4096 4096\n2000 data write 12288 4096\n2500 data close\n",
    );
    let run = || place.expect(0, &["io", "job.fio", "--no-observe", "--label", "trace"]);
    let (_, report) = undisturbed(run, |_| place.report("last"));
    let point = &report["points"][0];
    assert!(point["invariants"].as_array().unwrap().iter().all(|one| one["holds"] == true), "{point}");
    assert_eq!((report["valid"].as_bool(), point["headline_count"].as_u64()), (Some(true), Some(4)));
    let shown = place.expect(0, &["show", "last", "--all"]);
    let unwrapped = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("open loop: at the times recorded in the trace"), "{shown}");
    // The first table is of response times, and includes every I/O.
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .skip_while(|line| !line.starts_with("response, "))
        .take(5)
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    assert!(rows.contains(&vec!["read", "1"]) && rows.contains(&vec!["write", "3"]), "{shown}");
}

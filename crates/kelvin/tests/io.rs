//! `kelvin io` as fio's users type it, on small files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test tells why it compared nothing")]

mod fio_json;
mod support;

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::{Place, text, wait_until};

/// Read by the page cache: what is tested is the way of the figures, not a disk.
const JOB: &str =
    "[global]\nfilename=data\nsize=1m\nbs=4k\nioengine=psync\n[reader]\nrw=randread\nnumber_ios=100\n";

/// Open-ended, with as little load as does.
const LONG: &str =
    "[long]\nfilename=data\nsize=1m\nrw=randread\nioengine=psync\nrate_iops=200\ntime_based\nruntime=60\n";

fn place(job: &str) -> Place {
    let place = Place::new();
    place.write("job.fio", job);
    place.write("data", vec![7_u8; 1 << 20]);
    place
}

#[test]
fn each_format_says_the_same_and_machines_get_nothing_else() {
    let place = place(JOB);
    let normal = place.expect(0, &["io", "job.fio", "--no-observe"]);
    for part in ["reader: (g=0): rw=randread", "read: IOPS=", "kept as run 1: kelvin show 1"] {
        assert!(normal.contains(part), "no {part} in\n{normal}");
    }
    let json = place.expect(0, &["io", "job.fio", "--no-observe", "--output-format=json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let job = &json["jobs"][0];
    assert_eq!((job["jobname"].as_str(), job["read"]["total_ios"].as_u64()), (Some("reader"), Some(100)));
    let terse = place.expect(0, &["io", "--minimal", "job.fio", "--no-observe"]);
    assert!(terse.starts_with("3;") && terse.lines().count() == 1, "{terse}");
    // In a file, and standard output says nothing of the result.
    let told =
        place.expect(0, &["io", "job.fio", "--no-observe", "--output=out.json", "--output-format=json+"]);
    assert!(!told.contains("IOPS"), "{told}");
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("out.json")).unwrap()).unwrap();
    assert!(written["jobs"][0]["read"]["clat_ns"]["bins"].as_object().is_some_and(|bins| !bins.is_empty()));
    let explained = place.expect(0, &["io", "explain", "out.json"]);
    assert!(explained.contains("reader"), "{explained}");
}

#[test]
fn a_run_is_kept_and_known_to_every_command() {
    let place = place(JOB);
    place.expect(0, &["io", "job.fio", "--no-observe", "--label", "one", "--branch", "main"]);
    place.expect(0, &["run", "io", "--job", "job.fio", "--set", "bs=8k", "--no-observe", "--label", "two"]);
    let report = place.report("one");
    let point = &report["points"][0];
    assert_eq!((report["workload"].as_str(), report["valid"].as_bool()), (Some("io"), Some(true)));
    assert_eq!((report["headline"].as_str(), point["headline_count"].as_u64()), (Some("IOPS"), Some(100)));
    let target = &report["jobs"][0]["targets"][0];
    assert_eq!((target["ios"].as_u64(), target["bytes"].as_u64()), (Some(100), Some(100 * 4096)));
    assert_eq!(place.report("two")["jobs"][0]["targets"][0]["bytes"], 100 * 8192);
    assert!(report["spec_toml"].as_str().unwrap().contains("number_ios=100"));
    let shown = place.expect(0, &["show", "one"]);
    for part in
        ["IOPS", "job reader: random reads of 4 KiB, through the page cache", "closed loop", "counted"]
    {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    let compared = place.expect(0, &["compare", "one", "two"]);
    assert!(
        compared.contains("IOPS") && compared.contains("reader") | compared.contains("read"),
        "{compared}"
    );
    assert!(place.expect(0, &["runs"]).contains("one"));
    assert!(place.expect(0, &["history", "main"]).contains("IOPS"));
    place.expect(0, &["report", "one", "--html", "--output", "page.html"]);
    // What stands in the specification alone makes the same run again.
    let spec = place.expect(0, &["io", "job.fio", "--print-spec"]);
    place.write("run.toml", spec);
    std::fs::remove_file(place.path("job.fio")).unwrap();
    place.expect(0, &["run", "run.toml", "--no-observe"]);
    assert_eq!(place.report("last")["points"][0]["headline_count"], 100);
    place.expect(
        0,
        &["io", "--no-store", "--name=a", "--filename=data", "--rw=read", "--size=64k", "--no-observe"],
    );
    assert_eq!(place.report("last")["run"], 3, "that one was not kept");
}

#[test]
fn fios_words_make_the_same_run_as_its_file() {
    let place = place(JOB);
    let words = "io --no-observe --filename=data --size=1m --bs=4k --ioengine=psync --name=reader --rw=randread --number_ios=100";
    place.expect(0, &words.split(' ').collect::<Vec<_>>());
    let report = place.report("last");
    assert_eq!(report["points"][0]["headline_count"], 100);
    let shown = place.expect(0, &["io", "--showcmd", "job.fio"]);
    assert!(shown.starts_with("kelvin io ") && shown.contains("--name=reader"), "{shown}");
    assert_eq!(place.expect(0, &["io", "--parse-only", "job.fio"]), "");
    assert!(place.expect(0, &["io", "--cmdhelp=bs"]).contains("bs"));
    assert!(place.expect(0, &["io", "--enghelp"]).contains("io_uring"));
}

/// A run with findings, notes and everything that Kelvin has to say: fio's scripts take a word on standard error for a failure.
#[test]
fn trial_c5_a_run_that_went_well_is_silent_on_standard_error() {
    let place = place("[hole]\nfilename=sparse\nsize=4m\nrw=randread\nnumber_ios=50\nthread\n");
    std::fs::File::create(place.path("sparse")).unwrap().set_len(4 << 20).unwrap();
    let run = |words: &[&str]| {
        let output = place.run(&[&["io", "job.fio", "--no-observe"], words].concat());
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    for words in [
        &[][..],
        &["--output-format=json"],
        &["--output-format=terse"],
        &["--output-format=normal,json"],
        &["--output=out"],
        &["--output-format=json+", "--output=out"],
    ] {
        let (out, told) = run(words);
        assert_eq!(told, "", "{words:?}");
        assert!(!words.contains(&"--output=out") || out.is_empty(), "{out}");
    }
    // What there is to say is in the result: lines with Kelvin's mark, or its key.
    let (normal, _) = run(&[]);
    let at = normal.find("kelvin: findings").unwrap_or_else(|| panic!("{normal}"));
    assert!(normal[at..].lines().all(|line| line.is_empty() || line.starts_with("kelvin: ")), "{normal}");
    assert!(normal.contains("kelvin: kept as run") && normal.contains("thread has no effect"), "{normal}");
    let (json, _) = run(&["--output-format=json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let remarks = &json["kelvin"];
    assert!(remarks["run"].as_u64().is_some() && remarks["notes"][0].as_str().is_some(), "{remarks}");
    assert!(remarks["findings"].as_array().unwrap().iter().any(|one| one["id"] == "io-holes"), "{remarks}");
    let (_, told) = run(&["--output-format=terse", "--notes"]);
    assert!(told.contains("findings") && told.contains("kept as run"), "{told}");
}

/// What fio runs, and means something, runs; each of these was refused.
#[test]
fn trial_c7_what_fio_accepts_is_accepted() {
    let place = place(JOB);
    let write = "--rw=write --size=64k --bs=4k --filename=w";
    for words in [
        format!("{write} --verify=crc32c --verify_interval=3000"),
        format!("{write} --verify=crc32c --zero_buffers"),
        format!("{write} --verify=meta"),
        format!("{write} --verify=meta --verify_pattern=0xab"),
        format!("{write} --verify=pattern --verify_pattern=\"abcd\"-120xdeadface"),
        format!("{write} --verify=crc32c --kb_base=1000"),
        "--rw=read --size=64k --filename=w --verify_backlog=4 --verify=null".into(),
        "--rw=read --size=64k --filename=data --steadystate=iops:1% --ss_dur=60 --runtime=30".into(),
        "--rw=randread --size=64k --filename=data --bssplit=4k/50:8k/50 --bsrange=1k-2k".into(),
        "--rw=randread --size=64k --filename=data --ioengine=libaio --direct=1 --cmdprio_bssplit=4k/50/2/1/0"
            .into(),
        "--rw=read --size=64k --filename=data --debug=io,verify".into(),
        "--rw=read --size=64k --filename=data --bandwidth-log".into(),
    ] {
        let words = format!("io --no-store --no-observe --name=a --output-format=json {words}");
        let out = place.expect(0, &words.split(' ').collect::<Vec<_>>());
        let json: Value =
            serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words}: {error}\n{out}"));
        assert_eq!(json["jobs"][0]["error"], 0, "{words}");
    }
    assert!(place.path("agg-read_bw.log").exists());
    // As with fio, a command line's words are read with what stands before them.
    let size = |words: &str| {
        let words = format!("io --no-store --no-observe --output-format=json {words}");
        let out = place.expect(0, &words.split(' ').collect::<Vec<_>>());
        serde_json::from_str::<Value>(&out).unwrap()["jobs"][0]["write"]["io_bytes"].clone()
    };
    assert_eq!(size("--name=rand4k --rw=write --filename=x --size=64k --kb_base=1000 --bs=4096"), 65_536);
    assert_eq!(size("--name=a --rw=write --filename=y --kb_base=1000 --size=64k --bs=4k"), 64_000);
}

#[test]
fn trial_c7_max_latency_ends_with_fios_number() {
    let place = place(JOB);
    let words = "io --no-store --no-observe --name=a --rw=randread --filename=data --max_latency=1us --output-format=json";
    let output = place.run(&words.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["jobs"][0]["error"], 110);
}

/// fio's script for it looks for these words; seeds that are to repeat do, others do not.
#[test]
fn trial_c7_debug_random_prints_the_seeds() {
    let place = place(JOB);
    let seeds = |word: &str| -> Vec<String> {
        let words = format!(
            "io --no-store --no-observe --debug=random --name=a --ioengine=null --filesize=32k --rw=randread --numjobs=2 {word}"
        );
        let out = place.expect(0, &words.split(' ').collect::<Vec<_>>());
        assert!(out.contains("random") && out.contains("FIO_RAND_NR_OFFS=1"), "{out}");
        out.lines()
            .filter_map(|line| line.split_once("rand_seeds[0]="))
            .map(|(_, seed)| seed.to_owned())
            .collect()
    };
    assert_eq!(seeds("--randrepeat=1"), seeds("--randrepeat=1"));
    assert_ne!(seeds("--randrepeat=0"), seeds("--randrepeat=0"));
    assert_eq!(seeds("--randseed=5"), seeds("--randseed=5"));
    assert_ne!(seeds("--randseed=5"), seeds("--randseed=6"));
    let two = seeds("--randrepeat=1");
    assert!(two.len() == 2 && two[0] != two[1], "{two:?}");
}

/// A dozen jobs, in one run of each tool.
const TWELVE: &str = "[global]\nsize=1m\nfilename=one\nstonewall\nfallocate=none\n\
    [write]\nrw=write\nbs=64k\nend_fsync=1\n[read]\nrw=read\nbs=16k\n[randread]\nrw=randread\nblocksize=8k\nba=8k\n\
    [mix]\nrw=randrw\nfsync=16\n[verify]\nrw=randwrite\nverify=crc32c\nfilename=two\n[split]\nrw=randread\nbssplit=4k/50:8k/50\n\
    [percentiles]\nrw=randread\nlat_percentiles=1\nslat_percentiles=1\npercentile_list=50:99\nioengine=libaio\niodepth_batch_submit=1\n\
    [clones]\nrw=read\nnumjobs=2\ngroup_reporting\nnew_group\n[mixed]\nrw=rw\nunified_rw_reporting=mixed\n\
    [nothing]\nioengine=null\nrw=randtrimwrite\niodepth=4\n[reduced]\nrw=randread\ngtod_reduce=1\n\
    [priorities]\nrw=randread\nioengine=libaio\ndirect=1\ncmdprio_percentage=50\ncmdprio_class=2\ncmdprio=3\nrandseed=3\n";

#[test]
fn trial_c6_the_json_of_fio_and_kelvin_says_the_same() {
    let place = place(TWELVE);
    let Ok(fio) =
        Command::new("fio").args(["--output-format=json", "job.fio"]).current_dir(place.directory()).output()
    else {
        eprintln!("fio is not installed: nothing to compare with");
        return;
    };
    let fio = text(&fio.stdout);
    let fio: Value = serde_json::from_str(&fio[fio.find('{').unwrap()..]).unwrap();
    let kelvin = place.expect(0, &["io", "job.fio", "--no-store", "--no-observe", "--output-format=json"]);
    let kelvin: Value = serde_json::from_str(&kelvin).unwrap();
    assert_eq!(fio["jobs"].as_array().unwrap().len(), 12);
    let found = fio_json::differences(&fio, &kelvin);
    assert!(found.is_empty(), "{}", found.join("\n"));
    // And the comparison sees what is not so.
    let mut wrong = kelvin.clone();
    wrong["jobs"][0]["write"]["total_ios"] = 17.into();
    wrong["jobs"][1]["read"].as_object_mut().unwrap().remove("iops");
    wrong["jobs"][2]["read"]["clat_ns"]["mean"] = 1e15.into();
    let found = fio_json::differences(&fio, &wrong);
    for part in ["total_ios of", "/read/iops is fio's alone", "clat_ns: mean is"] {
        assert!(found.iter().any(|one| one.contains(part)), "{part}: {found:?}");
    }
}

/// Names of the command line, and the names of options, as fio's own result has them.
#[test]
fn trial_c6_job_options_are_echoed_as_fio_does() {
    let place = place(JOB);
    let words = "io --no-store --no-observe --output-format=json --name=a --ioengine=null --size=64k --blocksize=4k \
                 --iodepth_batch_submit=1 --blockalign=4k --readwrite=randread";
    let out = place.expect(0, &words.split_whitespace().collect::<Vec<_>>());
    let json: Value = serde_json::from_str(&out).unwrap();
    let names: Vec<&String> = json["jobs"][0]["job options"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["ba", "bs", "iodepth_batch", "ioengine", "name", "rw", "size"]);
}

/// A state is there after a normal end, in the directory that is asked for, and another run can look at the data by it.
#[test]
fn trial_c6_a_state_is_kept_after_a_normal_end() {
    let place = place(JOB);
    std::fs::create_dir(place.path("aux")).unwrap();
    let job = "--no-store --no-observe --aux-path=aux --name=a --rw=randwrite --size=64k --filename=w --verify=crc32c --output-format=json";
    let run = |more: &str| {
        let words = format!("io {job} {more}");
        let out = place.expect(0, words.trim().split(' ').collect::<Vec<_>>().as_slice());
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let json = run("");
    // As fio: what is read to be verified is among the reads.
    assert_eq!(
        (&json["jobs"][0]["read"]["total_ios"], &json["jobs"][0]["write"]["total_ios"]),
        (&16.into(), &16.into())
    );
    assert!(place.path("aux/kelvin-a-0-verify.state").exists());
    let json = run("--verify_only --verify_state_load=1");
    assert_eq!(json["jobs"][0]["kelvin"]["verified"]["total_ios"], 16);
}

/// One figure has one definition: the mean of a run in a chart is that of its table, its last part of a second included.
#[test]
fn trial_c10_a_chart_and_a_table_have_the_same_mean() {
    let place = place(
        "[a]\nfilename=data\nsize=1m\nrw=randread\nioengine=psync\nrate_iops=100\ntime_based\nruntime=1150ms\n",
    );
    for _ in 0..2 {
        place.expect(0, &["io", "job.fio", "--no-observe"]);
    }
    place.expect(0, &["io", "plot", "1", "2", "--out", "charts"]);
    let svg = std::fs::read_to_string(place.path("charts/compared-iops-read.svg")).unwrap();
    for run in ["1", "2"] {
        let (_, rest) = svg.split_once(&format!("run {run} (mean ")).unwrap_or_else(|| panic!("{svg}"));
        let (mean, unit) = rest.split_once(' ').unwrap();
        assert!(unit.starts_with("IOPS)"), "{unit}");
        let mean: f64 = mean.replace(',', "").parse().unwrap();
        let point = &place.report(run)["points"][0];
        let table = point["headline_per_second"].as_f64().unwrap();
        assert!((mean / table - 1.0).abs() < 0.002, "{mean} in the chart, {table} in the table");
    }
}

#[test]
fn trial_c10_explain_refuses_what_has_nothing_to_explain() {
    let place = place(JOB);
    for (content, why) in [
        ("{\"jobs\":5}", "no result in fio's JSON"),
        ("\n{\"jobs\":[]}", "bad.json:2: this result has no jobs"),
    ] {
        place.write("bad.json", content);
        let output = place.run(&["io", "explain", "bad.json"]);
        assert_eq!(output.status.code(), Some(2), "{content}");
        assert!(text(&output.stderr).contains(why) && output.stdout.is_empty(), "{}", text(&output.stderr));
    }
}

#[test]
fn bad_input_ends_with_fios_code_and_says_where() {
    let place = place("[a]\nfilename=data\nrw=sideways\n");
    let output = place.run(&["io", "job.fio"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("job.fio:3") && told.contains("sideways"), "{told}");
    for words in [
        &["io"][..],
        &["io", "none.fio"],
        &["io", "--name=a", "--no_such_option=1"],
        &["io", "--label"],
        &["io", "--readonly", "--name=a", "--filename=data", "--rw=write", "--size=4k"],
        &["io", "sweep", "--name=a", "--filename=data", "--size=4k"],
        &["io", "sweep", "--iodepth", "1,x", "--name=a", "--filename=data", "--size=4k"],
    ] {
        let output = place.run(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}\n{}", text(&output.stderr));
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{words:?}");
    }
    // Elsewhere Kelvin's own codes hold.
    assert_eq!(place.run(&["io", "explain", "none.json"]).status.code(), Some(2));
    assert_eq!(place.run(&["run", "io", "--job", "job.fio"]).status.code(), Some(2));
    place.write("load.toml", "workload = \"io\"\n[load]\nusers = 3\n[io]\njob = \"[a]\\nsize=4k\"\n");
    let output = place.run(&["run", "load.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("[load] says nothing"), "{}", text(&output.stderr));
    assert_eq!(place.run(&["build", "load.toml"]).status.code(), Some(2));
}

#[test]
fn a_job_that_fails_counts_in_the_exit_code() {
    let place = place(
        "[global]\nsize=64k\nbs=4k\nioengine=psync\n[full]\nfilename=/dev/full\nrw=write\n[good]\nfilename=data\nrw=read\n",
    );
    let output = place.run(&["io", "job.fio", "--no-observe"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}\n{told}", text(&output.stdout));
    assert!(told.contains("full"), "{told}");
    let report = place.report("last");
    assert_eq!(report["status"], "failed");
}

#[test]
fn a_signal_ends_the_run_and_keeps_its_results() {
    let place = place(LONG);
    let mut child = place
        .command(&["io", "job.fio", "--no-observe", "--output-format=json", "--eta=always"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It runs once its first second is in the store.
    let store = place.store();
    wait_until("the first second is kept", Duration::from_secs(30), || {
        rusqlite::Connection::open(&store)
            .and_then(|store| store.query_row("SELECT count(*) FROM second", [], |row| row.get::<_, i64>(0)))
            .is_ok_and(|seconds| seconds > 0)
    });
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), Some(128));
    let mut out = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut out).unwrap();
    let json: Value = serde_json::from_str(&out).unwrap();
    assert!(json["jobs"][0]["read"]["total_ios"].as_u64().unwrap() > 50, "{out}");
    let report = place.report("last");
    assert_eq!(report["status"], "interrupted");
    assert_eq!(report["open_loop"], true);
    assert_eq!(report["points"][0]["schedule"]["asked_per_second"], 200.0);
}

#[test]
fn holes_are_found_before_the_run_and_after_it() {
    let place = place("[hole]\nfilename=sparse\nsize=4m\nrw=randread\nnumber_ios=200\nioengine=psync\n");
    let file = std::fs::File::create(place.path("sparse")).unwrap();
    file.set_len(4 << 20).unwrap();
    let output = place.run(&["io", "job.fio", "--no-observe", "--notes"]);
    let (out, told) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("before the run") && told.contains("hole"), "{told}");
    assert!(out.contains("kelvin: findings") && out.contains("hole"), "{out}");
    let report = place.report("last");
    let ids: Vec<&str> =
        report["findings"].as_array().unwrap().iter().filter_map(|f| f["id"].as_str()).collect();
    assert!(ids.iter().any(|id| id.starts_with("io-")), "{ids:?}");
}

/// What is said of a file is said of it as the jobs find it, and not as it was before it was made.
#[test]
fn files_are_looked_at_after_they_are_laid_out() {
    let place = place("[made]\nfilename=fresh\nsize=2m\nrw=randread\nnumber_ios=100\nioengine=psync\n");
    let output = place.run(&["io", "job.fio", "--no-observe", "--json-events"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let events: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let facts = events.iter().find(|event| event["what"] == "facts").expect("the facts of the run");
    let target = &facts["body"]["targets"][0];
    assert_eq!(target["kind"], "file", "{target}");
    assert_eq!(target["size"], 2 << 20, "{target}");
}

#[test]
fn compressed_logs_are_read() {
    let job = format!("{JOB}write_lat_log=times\nlog_compression=64k\nlog_store_compressed=1\n");
    let place = place(&job);
    let output = place.run(&["io", "job.fio", "--no-observe", "--no-store"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = place.run(&["io", "--inflate-log=times_clat.1.log.fz"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout).lines().count(), 100);
    let output = place.run(&["io", "--inflate-log=data"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no compressed log"), "{}", text(&output.stderr));
}

#[test]
fn logs_results_and_runs_are_plotted_with_each_direction_apart() {
    let place = place(
        "[mix]\nfilename=data\nsize=1m\nbs=4k\nioengine=psync\nrw=randrw\nrandseed=7\nnumber_ios=200\n\
         write_bw_log=mix\nwrite_lat_log=mix\n",
    );
    place.expect(0, &["io", "job.fio", "--no-observe", "--output=mix.json", "--output-format=json+"]);
    let words = "io plot mix_bw.1.log mix_clat.1.log mix.json last --png --title a<b --out charts";
    let told = place.expect(0, &words.split(' ').collect::<Vec<_>>());
    assert!(told.contains("charts/index.html"), "{told}");
    let read = |name: &str| std::fs::read_to_string(place.path("charts").join(name)).unwrap();
    let pictures: [(&str, &[&str]); 6] = [
        ("mix_bw.1-time", &[">read, as measured<", ">write, as measured<"]),
        ("mix_clat.1-time", &[">read, as measured<", ">write, as measured<", "single I/Os"]),
        ("bandwidth-written", &[">mix_bw.1<"]),
        ("latency-histogram-read", &["mix mix (", "run 1 read, 50 % reads, bs 4k, depth 1 ("]),
        ("latency-histogram-write", &["mix mix (", "run 1 write, 50 % reads, bs 4k"]),
        ("latency-percentiles-write", &["run 1 write, "]),
    ];
    let page = read("index.html");
    assert!(page.contains("<h1>a&lt;b</h1>"));
    for (name, parts) in pictures {
        let svg = read(&format!("{name}.svg"));
        for part in parts {
            assert!(svg.contains(part), "no {part} in {name}\n{svg}");
        }
        assert!(page.contains(svg.trim()), "{name} is not on the page");
        let png = std::fs::read(place.path(&format!("charts/{name}.png"))).unwrap();
        // librsvg paints twice as many pixels as the picture has units.
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        let width = svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap();
        let pixels = u32::from_be_bytes(png[16..20].try_into().unwrap());
        assert_eq!(f64::from(pixels), 2.0 * width.parse::<f64>().unwrap(), "{name}");
    }
    let no_program = place.command(&["io", "plot", "mix.json", "--png"]).env("PATH", "").output().unwrap();
    assert_eq!(no_program.status.code(), Some(2));
    let message = text(&no_program.stderr);
    assert!(message.contains("rsvg-convert") && message.contains("librsvg2-bin"), "{message}");
    // What both directions of a run did is in the result as well: together they are all.
    let counts = |direction: &str| -> u64 {
        let svg = read(&format!("latency-histogram-{direction}.svg"));
        let (_, name) = svg.split_once(&format!("run 1 {direction}, ")).unwrap();
        let count = name.split_once('(').unwrap().1.split(' ').next().unwrap();
        count.parse().unwrap()
    };
    assert_eq!(counts("read") + counts("write"), 200);
    place.expect(0, &["report", "last", "--html", "--output", "page.html"]);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    let json = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(json).unwrap();
    let names: Vec<_> =
        data["points"][0]["directions"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["read", "write"]);
    for direction in ["read", "write"] {
        assert!(page.contains(&format!("histogram of completion times, {direction}")), "{direction}");
    }
    place.write("bad_bw.1.log", "1, 2, 0, 0, 0\nfio: hello\n");
    let output = place.run(&["io", "plot", "mix_bw.1.log", "bad_bw.1.log", "--out", "none"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("bad_bw.1.log:2: 1 columns"), "{told}");
    assert!(output.stdout.is_empty() && !place.path("none").exists(), "nothing is drawn of a part");
}

#[test]
fn runs_repeat_and_compare() {
    let place = place(JOB);
    let shown = place.expect(0, &["io", "job.fio", "--no-observe", "--repeat", "2", "--label", "twice"]);
    assert!(shown.contains("group 1 \"twice\"") && shown.contains("IOPS"), "{shown}");
    // Each block has other offsets.
    assert_eq!(
        (place.report("1")["seed"].clone(), place.report("2")["seed"].clone()),
        ("1".into(), "2".into())
    );
    place.write("a.toml", place.expect(0, &["io", "job.fio", "--print-spec", "--no-observe"]));
    place.write(
        "b.toml",
        place
            .expect(0, &["run", "io", "--job", "job.fio", "--set", "bs=16k", "--print-spec", "--no-observe"]),
    );
    let shown = place.expect(0, &["ab", "a.toml", "b.toml", "--blocks", "2", "--no-control"]);
    assert!(shown.contains("IOPS"), "{shown}");
}

/// Two phases, of which only the first has a rate.
const PHASES: &str = "[global]\nfilename=data\nsize=1m\nbs=4k\nioengine=psync\nnumber_ios=100\n\
    [paced]\nrw=randread\nnumjobs=2\nrate_iops=2000\n[free]\nstonewall\nrw=randrw\n";

#[test]
fn stonewalls_are_phases_of_their_own() {
    let place = place(PHASES);
    place.expect(0, &["io", "job.fio", "--no-observe"]);
    let report = place.report("last");
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert_eq!(points[0]["headline_count"], 200);
    assert_eq!(points[1]["headline_count"], 100);
    // The rate of one phase makes no open loop of the other, and what one does not do is no row of it.
    assert_eq!((&points[0]["open_loop"], &points[1]["open_loop"]), (&true.into(), &false.into()));
    assert_eq!(report["open_loop"], false);
    let rows = |point: usize, what: &str| points[point][what].as_array().unwrap().len();
    assert_eq!(
        (rows(0, "latency"), rows(0, "response"), rows(1, "latency"), rows(1, "response")),
        (1, 1, 2, 0)
    );
    assert!(points[1]["response_all"].is_null() && points[1]["schedule"].is_null());
    let shown = place.expect(0, &["show", "last"]);
    assert!(shown.contains("phase 2 (1 worker)"), "{shown}");
    assert_eq!(shown.matches("job free: random reads and writes").count(), 1, "{shown}");
    let listed = place.expect(0, &["runs"]);
    for part in ["2 phases", "phase 1      2", "phase 2      1"] {
        assert!(listed.contains(part), "no {part} in\n{listed}");
    }
    place.expect(0, &["report", "last", "--html", "--output", "page.html"]);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    let rows = place.expect(0, &["report", "last", "--csv=jobs", "--output", "-"]);
    assert_eq!(rows.lines().count(), 1 + 1 + 2, "{rows}");
    // Its last part is the script of the charts, which other runs have as well.
    let page = page.split("<script").next().unwrap();
    for part in [
        "Jobs and devices",
        "IOPS, phase 2 (1 worker)",
        "<td class=\"l\">free</td>",
        "fewer than two seconds",
    ] {
        assert!(page.contains(part), "no {part} in the page");
    }
    for word in ["virtual user", "transaction", "connection", "client’s"] {
        assert!(!page.contains(word), "{word} in the page of a run of I/O jobs");
    }
    place.expect(0, &["io", "job.fio", "--no-observe"]);
    let compared = place.expect(0, &["compare", "1", "2"]);
    for part in ["phase 1: 4,000/s asked", "phase 2: 1 worker", "response p99, µs", "write p95, µs"] {
        assert!(compared.contains(part), "no {part} in\n{compared}");
    }
    // Runs are repeated by one figure.
    let refused = place.run(&["io", "job.fio", "--repeat", "2"]);
    assert!(text(&refused.stderr).contains("2 phases (stonewall)"), "{}", text(&refused.stderr));
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn a_rate_in_some_jobs_leaves_the_throughput_to_be_found_out() {
    let job = "[global]\nfilename=data\nsize=1m\nioengine=psync\nrw=randread\nnumber_ios=50\n[paced]\nrate_iops=2000\n[free]\n";
    let place = place(job);
    place.expect(0, &["io", "job.fio", "--no-observe"]);
    let point = &place.report("last")["points"][0];
    assert_eq!(point["open_loop"], false);
    // The times of those with a rate are told all the same.
    assert_eq!(
        (&point["response_all"]["committed"], &point["latency_all"]["committed"]),
        (&50.into(), &100.into())
    );
    assert!(place.expect(0, &["show", "last"]).contains("closed loop beside jobs with a rate"));
}

/// Two jobs, one after the other: over the whole window each asks for its rate in its own half.
#[test]
fn a_rate_is_of_the_time_that_its_jobs_cover() {
    let place = place(
        "[global]\nfilename=data\nsize=1m\nrw=randread\nioengine=psync\nrate_iops=200\ntime_based\nruntime=1\n\
         [first]\n[second]\nstartdelay=1\n",
    );
    place.expect(0, &["io", "job.fio", "--no-observe"]);
    let point = &place.report("last")["points"][0];
    let schedule = &point["schedule"];
    let asked = schedule["asked_per_second"].as_f64().unwrap();
    let window = point["window_s"].as_f64().unwrap();
    assert!((asked * window / 400.0 - 1.0).abs() < 0.1, "{asked} asked a second for {window} s");
    assert!(schedule["achieved_ratio"].as_f64().unwrap() > 0.8, "{schedule}");
}

/// Its amount ends the job before its time, late as it is: nothing was left that had not begun.
#[test]
fn a_job_that_did_all_that_it_had_to_do_left_nothing_waiting() {
    let place =
        place("[a]\nioengine=null\nsize=64k\nbs=4k\nrw=read\nrate_iops=100\nthinktime=30ms\nruntime=60\n");
    place.expect(0, &["io", "job.fio", "--no-observe"]);
    let schedule = &place.report("last")["points"][0]["schedule"];
    assert_eq!((&schedule["due"], &schedule["waiting"]), (&16.into(), &0.into()), "{schedule}");
    assert!(schedule["achieved_ratio"].as_f64().unwrap() < 0.9, "{schedule}");
}

/// What was stored of I/O jobs is held against their own sums, and the longest time is the one that fio's form has.
#[test]
fn a_figure_that_changed_in_the_store_voids_the_run() {
    let place = place(JOB);
    let json = place.expect(0, &["io", "job.fio", "--no-observe", "--output-format=json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let longest = json["jobs"][0]["read"]["clat_ns"]["max"].as_u64().unwrap();
    let report = place.report("last");
    assert_eq!(report["state"], "counted");
    assert_eq!(report["points"][0]["latency_all"]["max_us"].as_f64(), Some(longest as f64 / 1e3));
    let store = rusqlite::Connection::open(place.store()).unwrap();
    for (column, name) in
        [("latency_sum", "latency in nanoseconds"), ("latency_max", "longest latency in nanoseconds")]
    {
        let change =
            |by: &str| store.execute(&format!("UPDATE second SET {column} = {column} {by}"), []).unwrap();
        change("+ 1");
        let report = place.report("last");
        let reason = report["reasons"][0].as_str().unwrap_or_default();
        assert!(
            report["state"] == "void" && reason.contains(&format!("collector's sum: {name}")),
            "{reason}"
        );
        change("- 1");
    }
    assert_eq!(place.report("last")["state"], "counted");
}

/// Waits until the store has a measured second.
fn wait_for_a_second(place: &Place) {
    wait_until("a second is stored", Duration::from_secs(30), || {
        let read = || -> rusqlite::Result<i64> {
            let store = rusqlite::Connection::open_with_flags(
                place.store(),
                rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY,
            )?;
            store.query_row("SELECT count(*) FROM second", [], |row| row.get(0))
        };
        read().is_ok_and(|seconds| seconds > 0)
    });
}

#[test]
fn trial_d3_jobs_that_were_stopped_within_their_window_are_void_and_say_so() {
    let place = place(&LONG.replace("runtime=60", "runtime=4"));
    let child = place.command(&["io", "job.fio", "--no-observe"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for_a_second(&place);
    let signal = |name: &str| {
        let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    signal("STOP");
    std::thread::sleep(Duration::from_millis(700));
    signal("CONT");
    let shown = text(&child.wait_with_output().unwrap().stdout);
    assert!(shown.contains("void") && shown.contains("never held up"), "{shown}");
    let report = place.report("last");
    let reasons = report["reasons"].to_string();
    assert!(report["state"] == "void" && reasons.contains("it was stopped"), "{reasons}");
}

#[test]
fn a_store_that_is_deleted_ends_the_run_and_is_rescued() {
    let place = place(LONG);
    let child = place
        .command(&["io", "job.fio", "--no-observe"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_a_second(&place);
    std::fs::remove_file(place.store()).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = text(&output.stderr);
    assert!(!output.status.success() && told.contains("was deleted while it was written to"), "{told}");
    let rescued = format!("{}.rescued", place.store().display());
    let listed = place.expect(0, &["--store", &rescued, "runs"]);
    assert!(listed.contains("partial"), "{listed}");
}

#[test]
fn findings_of_runs_that_nobody_watched_are_listed() {
    let place = place("[hole]\nfilename=sparse\nsize=4m\nrw=randread\nnumber_ios=200\nioengine=psync\n");
    std::fs::File::create(place.path("sparse")).unwrap().set_len(4 << 20).unwrap();
    place.expect(0, &["-q", "io", "job.fio", "--no-observe"]);
    let listed = place.expect(0, &["runs"]);
    assert!(listed.contains("io-holes") || listed.contains(" red"), "{listed}");
}

/// Killed in the middle it goes on, and runs that fail end it with their own error.
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
    wait_until("two runs are done", Duration::from_secs(30), || done() > 1);
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
    let told = text(&failed.stderr);
    assert!(told.contains("3 runs failed in a row") && told.contains("data/below"), "{told}");
}

#[test]
fn a_sweep_is_one_table_and_a_group() {
    let place = place(JOB);
    let shown = place.expect(
        0,
        &["io", "sweep", "--bs", "4k,8k", "--numjobs", "1,2", "job.fio", "--no-observe", "--label", "s"],
    );
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
    let shown = place.expect(0, &["io", "sweep", "--rate-curve", "20,50%", "job.fio", "--no-observe"]);
    for part in ["maximum", "20%", "50%", "asked/s", "response times"] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    let report = place.report("2");
    assert_eq!(report["open_loop"], true);
    assert!(report["points"][0]["response_all"]["p50_us"].as_f64().is_some());
}

/// A trace has directions that `rw` says nothing of, and several I/Os of one moment, all of which are due then.
#[test]
fn all_of_a_trace_is_in_the_run() {
    let place = place("[r]\nread_iolog=trace\nioengine=psync\nfilename=data\n");
    place.write(
        "trace",
        "fio version 3 iolog\n0 data add\n0 data open\n0 data write 0 4096\n0 data read 8192 8192\n\
         2000 data write 4096 4096\n2000 data write 12288 4096\n2500 data close\n",
    );
    let told = place.expect(0, &["io", "job.fio", "--no-observe", "--label", "trace"]);
    assert!(!told.contains("counts that must agree"), "{told}");
    let report = place.report("trace");
    let point = &report["points"][0];
    assert_eq!((report["valid"].as_bool(), point["headline_count"].as_u64()), (Some(true), Some(4)));
    let shown = place.expect(0, &["show", "trace", "--all"]);
    let unwrapped = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(unwrapped.contains("open loop: at the times of the trace"), "{shown}");
    // The first table is of the response times, and every I/O is in it.
    let rows: Vec<Vec<&str>> = shown
        .lines()
        .skip_while(|line| !line.starts_with("response, "))
        .take(5)
        .map(|line| line.split_whitespace().take(2).collect())
        .collect();
    assert!(rows.contains(&vec!["read", "1"]) && rows.contains(&vec!["write", "3"]), "{shown}");
}

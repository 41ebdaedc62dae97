//! Compatibility with fio: options, output, exit codes.

use std::process::Command;

use serde_json::Value;

use super::support::text;
use super::{JOB, fio_json, place};

/// A run with findings, notes and all messages of Kelvin. fio's scripts take output on standard error for a failure.
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
        let (out, stderr) = run(words);
        assert_eq!(stderr, "", "{words:?}");
        assert!(!words.contains(&"--output=out") || out.is_empty(), "{out}");
    }
    // Messages are in the result: lines with Kelvin's mark, or its key.
    let (normal, _) = run(&[]);
    let at = normal.find("kelvin: findings").unwrap_or_else(|| panic!("{normal}"));
    assert!(normal[at..].lines().all(|line| line.is_empty() || line.starts_with("kelvin: ")), "{normal}");
    assert!(normal.contains("kelvin: stored as run") && normal.contains("thread has no effect"), "{normal}");
    let (json, _) = run(&["--output-format=json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let remarks = &json["kelvin"];
    assert!(remarks["run"].as_u64().is_some() && remarks["notes"][0].as_str().is_some(), "{remarks}");
    assert!(remarks["findings"].as_array().unwrap().iter().any(|one| one["id"] == "io-holes"), "{remarks}");
    let (_, stderr) = run(&["--output-format=terse", "--notes"]);
    assert!(stderr.contains("findings") && stderr.contains("stored as run"), "{stderr}");
}

/// Meaningful jobs that fio runs also run here; each of these was refused.
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
    // As with fio, command line options are interpreted together with the preceding ones.
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

/// A script for fio checks this output; repeatable seeds are repeated, others are not.
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
fn trial_c6_the_json_of_fio_and_kelvin_agree() {
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
    // The comparison detects differences.
    let mut wrong = kelvin.clone();
    wrong["jobs"][0]["write"]["total_ios"] = 17.into();
    wrong["jobs"][1]["read"].as_object_mut().unwrap().remove("iops");
    wrong["jobs"][2]["read"]["clat_ns"]["mean"] = 1e15.into();
    let found = fio_json::differences(&fio, &wrong);
    for part in ["total_ios of", "/read/iops is fio's alone", "clat_ns: mean is"] {
        assert!(found.iter().any(|one| one.contains(part)), "{part}: {found:?}");
    }
}

/// Names from the command line, and option names, as in fio's own result.
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

/// A state file exists after a normal end, in the requested directory, and another run can verify the data with it.
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
    // As in fio: reads for verification are among the reads.
    assert_eq!(
        (&json["jobs"][0]["read"]["total_ios"], &json["jobs"][0]["write"]["total_ios"]),
        (&16.into(), &16.into())
    );
    assert!(place.path("aux/kelvin-a-0-verify.state").exists());
    let json = run("--verify_only --verify_state_load=1");
    assert_eq!(json["jobs"][0]["kelvin"]["verified"]["total_ios"], 16);
}

//! The jobs of `crates/fio/tests/jobs`, made small, run by both tools.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::differences;
use crate::support::{Place, text};

/// Files whose jobs cannot be compared on any machine, and why.
const LEFT_OUT: [(&str, &str); 17] = [
    ("append-and-fill", "fills the device"),
    ("device-by-name", "its target is a device"),
    ("engines-stood-in", "engines that Kelvin has not"),
    ("globals-repeated", "fio says a second [global] of the jobs above it, too, for which it does not hold"),
    ("io_uring", "needs a polled device"),
    ("latency-goal", "the course decides whether it ends with an error"),
    ("layout-only", "opens what lies in the directory"),
    ("many-targets", "a directory that is not there"),
    ("memory", "needs huge pages"),
    ("no-effect", "fio 3.33 refuses a zonesize without a zonemode"),
    ("offload", "fio 3.33 comes to no end with io_submit_mode=offload in a process of its own"),
    (
        "priorities-by-length",
        "fio 3.33 takes a percentage that is left open (`64k/`) for none, Kelvin for the rest",
    ),
    ("replay", "needs traces"),
    ("steady", "fio 3.33 wants the same steadystate of all jobs of a group"),
    ("trims-among-writes", "fio 3.33 ends itself with an assertion: it trims in a job that does not say so"),
    ("verify", "jobs look at what nobody wrote: fio finds errors, Kelvin refuses"),
    ("trims", "needs a device with trims"),
];

/// Seconds that a file may take in one tool.
const LONGEST: &str = "60";

#[test]
#[ignore = "minutes, and the installed fio: cargo xtask bench fio-json"]
fn a_hundred_jobs_have_the_json_of_fio() {
    let only = std::env::var("KELVIN_FIO_JSON").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fio/tests/jobs");
    let mut files: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "fio"));
    files.sort();
    let (mut jobs, mut differing) = (0, Vec::new());
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        if !only.is_empty() && !only.contains(&name.as_str()) {
            continue;
        }
        let content = fs::read_to_string(&file).unwrap();
        let why = LEFT_OUT.iter().find(|(known, _)| *known == name).map(|(_, why)| *why);
        if let Some(why) =
            why.or_else(|| content.strip_prefix(";; fio:").and_then(|rest| rest.lines().next()))
        {
            eprintln!("{name}: left out: {}", why.trim());
            continue;
        }
        let found = match run_both(&root, &small(&content)) {
            Ok((fio, kelvin)) => {
                jobs += fio["jobs"].as_array().map_or(0, Vec::len);
                differences(&fio, &kelvin)
            }
            Err(why) => vec![why],
        };
        eprintln!("{name}: {}", if found.is_empty() { "the same" } else { "DIFFERS" });
        for one in &found {
            eprintln!("    {one}");
        }
        if !found.is_empty() {
            differing.push(name);
        }
    }
    eprintln!("{jobs} jobs compared; {} files differ", differing.len());
    assert!(differing.is_empty(), "{differing:?}");
    assert!(jobs >= 100 || !only.is_empty(), "{jobs} jobs are too few");
}

/// The results of both tools, each in a separate directory.
fn run_both(root: &Path, job: &str) -> Result<(Value, Value), String> {
    let result = |is_fio: bool| {
        let place = Place::new();
        for directory in ["one", "two"] {
            fs::create_dir(place.path(directory)).unwrap();
        }
        for include in ["common.inc", "deeper.inc"] {
            fs::copy(root.join(include), place.path(include)).unwrap();
        }
        place.write("job.fio", job);
        // The file that `percent` refers to.
        fs::write(place.path("f.bin"), vec![0x5a; 4 << 20]).unwrap();
        let mut command = Command::new("timeout");
        command.args(["-k", "5", LONGEST]);
        if is_fio {
            command.arg("fio");
        } else {
            command.args([env!("CARGO_BIN_EXE_kelvin"), "io", "--no-store", "--no-observe"]);
        }
        let output = command
            .args(["--output-format=json", "job.fio"])
            .current_dir(place.directory())
            .env("CARGO_PKG_NAME", "kelvin")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let (said, errors) = (text(&output.stdout), text(&output.stderr));
        let at = said.find("{\n").ok_or_else(|| {
            format!("{} has no result: {} {said}", if is_fio { "fio" } else { "kelvin" }, errors.trim())
        })?;
        let mut values = serde_json::Deserializer::from_str(&said[at..]).into_iter::<Value>();
        values.next().unwrap().map_err(|error| format!("{error}: {said}"))
    };
    Ok((result(true)?, result(false)?))
}

/// The same jobs with sizes, times and delays that take only a moment.
fn small(content: &str) -> String {
    let line = |line: &str| -> String {
        let Some((name, value)) = line.split_once('=') else { return line.to_owned() };
        let digits = value.trim_end_matches(['m', 'M']);
        let large = value.ends_with(['g', 'G']) || digits.len() > 1 && digits.len() < value.len();
        match name.trim() {
            "size" if large => "size=4m".into(),
            "io_limit" | "io_size" | "offset_increment" | "fileoffset" if large => format!("{name}=1m"),
            "runtime" => "runtime=1".into(),
            "startdelay" => "startdelay=10ms".into(),
            "ramp_time" => "ramp_time=100ms".into(),
            "ss_dur" | "steadystate_duration" => format!("{name}=2"),
            "ss_ramp" | "steadystate_ramp_time" => format!("{name}=0"),
            // Shares of regions that the smaller file has, too.
            "random_distribution" if value.starts_with("zoned_abs") => {
                format!("{name}={}", value.replace("200m", "1m").replace("400m", "2m"))
            }
            "thinktime" if value == "1s" => "thinktime=1ms".into(),
            "thinktime_iotime" => "thinktime_iotime=9ms".into(),
            _ => line.to_owned(),
        }
    };
    content.lines().map(|one| line(one) + "\n").collect()
}

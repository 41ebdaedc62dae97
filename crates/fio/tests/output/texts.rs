//! Texts as a person reads them, looked at; and that their lines are those of fio.

use kelvin_fio::job::{Amount, BlockSizes, EngineName, Mixed, SteadyFigure, SteadyState};
use kelvin_fio::output::{Format, banner, json, normal, render_formats, starting, terse};
use kelvin_fio::result::{DirectionOutcome, JobsOutcome, SteadyOutcome};
use kelvin_fio::{Direction, PerDirection};

use crate::support::{
    SECOND, direction, disk, failures, job, jobs, options, outcome, reader, tally, target, worker,
};

/// Two groups: two readers reported together, then a mix on two devices with a rate, syncs and errors.
pub(crate) fn rich() -> JobsOutcome {
    let mut first = job("readers");
    first.clones = 2;
    first.course.group_reporting = true;
    first.pattern.random = true;
    first.depth.depth = 8;
    first.engine.name = EngineName::Libaio;
    first.engine.given = "libaio".into();
    first.sync.direct = true;
    first.description = Some("some words".into());
    first.given = vec![("rw".into(), "randread".into()), ("iodepth".into(), "8".into())];
    let mut second = job("mix");
    let given = [("rw", "randrw"), ("bs", "64k,4k-64k,1m"), ("ioengine", "posixaio"), ("rate_iops", "1000")];
    second.given = given.map(|(name, value)| (name.into(), value.into())).to_vec();
    second.course.stonewall = true;
    second.pattern.writes = true;
    second.pattern.random = true;
    second.blocks.sizes =
        PerDirection([BlockSizes::One(65536), BlockSizes::Range(4096, 65536), BlockSizes::One(1 << 20)]);
    second.depth.depth = 16;
    second.engine.name = EngineName::IoUring;
    second.engine.given = "posixaio".into();
    second.report.total_percentiles = true;
    second.report.submission_percentiles = true;
    second.report.percentiles = vec![50.0, 99.0, 99.9];
    second.errors.go_on_read = true;
    second.rate.iops = PerDirection::all(Some(1000));
    second.steady = Some(SteadyState {
        figure: SteadyFigure::Iops,
        slope: false,
        limit: 5.0,
        percent: true,
        window: 2 * SECOND,
        ramp: 0,
        interval: SECOND,
    });
    let mut mixer = worker(1);
    mixer.group = 1;
    for (path, device, pace) in [("/dev/vdb", "vdb", 1), ("/dev/vdc", "vdc", 10)] {
        let mut one = target(path, Some(device));
        one.directions[Direction::Read] = direction(900, 60_000 * pace, 100);
        let mut writes = tally(100, 3_000_000 * pace, 1_000_000);
        for late in 0..100 {
            writes.response.record(4_000_000 + late * 1_000_000);
        }
        let mut bins = kelvin_fio::Bins::default();
        (0..100).for_each(|late| bins.record(4_000_000 + late * 1_000_000));
        writes.response_bins = Some(bins);
        one.directions[Direction::Write] = DirectionOutcome::default();
        one.directions[Direction::Write].add(&writes);
        mixer.targets.push(one);
    }
    mixer.runtime = PerDirection([2 * SECOND, 1_900_000_000, 0]);
    for place in 0..20 {
        mixer.syncs.record(120_000 + place * 1000);
    }
    let mut bins = kelvin_fio::Bins::default();
    (0..20).for_each(|place| bins.record(120_000 + place * 1000));
    mixer.sync_bins.add(&bins);
    mixer.failures.push(failures());
    mixer.notes.push("posixaio is done by io_uring".into());
    mixer.steady = Some(SteadyOutcome {
        attained: true,
        criterion: 0.5,
        max_deviation: 5.0,
        slope: 0.1,
        iops: vec![995.0, 1005.0],
        bandwidth: vec![4_075_520.0, 4_116_480.0],
        latency: vec![250_000.0, 260_000.0],
    });
    let mut outcome = outcome(jobs(vec![first, second]), vec![reader(0), reader(0), mixer]);
    outcome.jobs.global = vec![("size".into(), "1g".into()), ("direct".into(), "1".into())];
    let mut raid = disk("md0");
    raid.below = vec![disk("vdb"), disk("vdc")];
    outcome.disks = vec![disk("vda"), raid];
    outcome
}

#[test]
fn the_banner_says_what_each_job_will_do() {
    let outcome = rich();
    insta::assert_snapshot!("banner", format!("{}{}", banner(&outcome.jobs), starting(&outcome.jobs)));
}

#[test]
fn the_normal_text_reads_well() {
    insta::assert_snapshot!("normal", normal(&rich(), &options()));
}

#[test]
fn a_job_that_failed_and_one_that_never_began() {
    let mut failed = reader(0);
    failed.error = Some((28, "writing /data/f: no space left on device".into()));
    let mut never = worker(1);
    (never.started, never.elapsed, never.measured, never.thread) = (None, 0, 0, 0);
    (never.cpu, never.depth) = ((0, 0), kelvin_fio::tick::DepthCounts::default());
    let mut outcome = outcome(jobs(vec![job("failed"), job("never")]), vec![failed, never]);
    outcome.disks.clear();
    insta::assert_snapshot!("failed", normal(&outcome, &options()));
    let text = json(&outcome, &options(), true);
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed["jobs"][0]["error"], 28);
    assert_eq!(parsed["jobs"][1]["read"]["clat_ns"]["min"], 0);
}

#[test]
fn mixed_reporting_and_other_units() {
    let mut outcome = rich();
    outcome.jobs.jobs[0].report.mixed = Mixed::Mixed;
    outcome.jobs.jobs[0].report.bits = true;
    outcome.jobs.jobs[1].report.mixed = Mixed::Both;
    outcome.jobs.jobs[1].report.thousand = true;
    let text = normal(&outcome, &options());
    insta::assert_snapshot!("mixed", text);
}

#[test]
fn many_targets_are_shown_by_device() {
    let mut files = job("files");
    files.targets.files = 40;
    files.targets.size = Some(Amount::Bytes(40 << 20));
    let mut reads = worker(0);
    for number in 0..40 {
        let mut one =
            target(&format!("/data/files.0.{number}"), Some(if number < 20 { "vda" } else { "vdb" }));
        one.directions[Direction::Read] = direction(50, 100_000, 1000);
        reads.targets.push(one);
    }
    reads.runtime[Direction::Read] = 2 * SECOND;
    let outcome = outcome(jobs(vec![files]), vec![reads]);
    let text = normal(&outcome, &options());
    let section: Vec<&str> = text
        .lines()
        .filter(|line| {
            line.starts_with("  kelvin") || line.starts_with("    /dev") || line.starts_with("      ")
        })
        .collect();
    insta::assert_snapshot!("devices", section.join("\n"));
}

#[test]
fn terse_lines_of_all_versions() {
    let outcome = rich();
    let mut all = String::new();
    for version in 2..=5 {
        let options = kelvin_fio::output::OutputOptions { terse_version: version, ..options() };
        all.push_str(&terse(&outcome, &options).unwrap());
    }
    insta::assert_snapshot!("terse", all);
    let none = kelvin_fio::output::OutputOptions { terse_version: 6, ..options() };
    assert!(terse(&outcome, &none).unwrap_err().to_string().contains("use 2, 3, 4 or 5"));
}

/// The number of fields is fio's, counted in the lines of fio 3.33 of one job and one disk.
#[test]
fn terse_lines_have_as_many_fields_as_fios() {
    for (version, fields) in [(2_u8, 161), (3, 130), (4, 171), (5, 189)] {
        let outcome = outcome(jobs(vec![job("a")]), vec![reader(0)]);
        let options = kelvin_fio::output::OutputOptions { terse_version: version, ..options() };
        let line = terse(&outcome, &options).unwrap();
        assert_eq!(line.split(';').count(), fields, "version {version}");
    }
}

#[test]
fn machine_readable_text_is_nothing_else() {
    let outcome = rich();
    let text = render_formats(&outcome, &[Format::Json], &options()).unwrap();
    assert!(text.starts_with("{\n") && text.ends_with("}\n"));
    serde_json::from_str::<serde_json::Value>(&text).unwrap();
    let text = render_formats(&outcome, &[Format::Terse], &options()).unwrap();
    assert!(text.lines().all(|line| line.starts_with("3;fio-3.33")), "{text}");
}

/// What `kelvin io explain` is tested with is what is written.
#[test]
fn the_sample_of_the_explaining_command_is_up_to_date() {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/../kelvin/src/commands/io_explain/samples/kelvin.json");
    let now = json(&rich(), &options(), false);
    if std::env::var_os("UPDATE_SAMPLES").is_some() {
        std::fs::write(place, &now).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(place).unwrap(),
        now,
        "run this test with UPDATE_SAMPLES=1 and look at it"
    );
}

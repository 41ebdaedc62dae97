//! Findings that only a run can show. Runs of a second on files in the temporary directory: what depends on a separate device is
//! asserted only where there is one.

use std::process::{Command, Stdio};

use kelvin_diagnose::{Severity, io_findings};
use kelvin_storage::Direction;
use kelvin_storage::probe::StorageFacts;

use crate::support::{SIZE, found, kept, run, sparse, written};

const JOB: &str = "[job]\nrw=randread\nbs=4k\nruntime=1\ntime_based=1\n";
/// What a busy machine can have at any time, whatever the job does.
const OF_THE_MACHINE: [&str; 6] =
    ["io-cpu-taken", "io-cpu-bound", "io-foreign-traffic", "io-not-steady", "io-limited", "io-timer-floor"];

/// Findings about the job and its data.
fn of_the_job(facts: &StorageFacts) -> Vec<(&'static str, Severity)> {
    found(facts).into_iter().filter(|(id, _)| !OF_THE_MACHINE.contains(id)).collect()
}

#[test]
fn a_full_file_past_the_cache_has_no_finding_and_a_sparse_one_asks_no_device() {
    let directory = tempfile::tempdir().unwrap();
    let (full, hollow) = (directory.path().join("full"), directory.path().join("hollow"));
    written(&full);
    sparse(&hollow);
    let direct = format!("{JOB}direct=1\nioengine=io_uring\niodepth=8\n");
    let (facts, outcome) = run(&format!("{direct}filename={}\nsize={SIZE}\n", full.display()));
    let seen = facts.run.clone().unwrap();
    let measured: u64 =
        outcome.workers[0].targets.iter().map(|target| target.directions[Direction::Read].bytes).sum();
    assert!(seen.claimed[Direction::Read] >= measured && measured > 0);
    assert_eq!(seen.jobs[0].bytes[Direction::Read], measured);
    if facts.targets[0].device.is_some() {
        let (read, _) = seen.process.unwrap();
        assert!(read >= seen.claimed[Direction::Read], "every byte was asked of a device: {seen:?}");
        assert_eq!(of_the_job(&facts), []);
        let counted: u64 = seen.devices.iter().map(|device| device.bytes[Direction::Read]).sum();
        assert!(counted >= measured, "{seen:?}");
    }
    assert_eq!(found(&kept(&facts)), found(&facts));

    let (facts, _) = run(&format!("{direct}filename={}\nsize={SIZE}\n", hollow.display()));
    assert!(found(&facts).contains(&("io-holes", Severity::Red)));
    let seen = facts.run.unwrap();
    if let Some((read, _)) = seen.process {
        assert!(read < seen.claimed[Direction::Read], "not every byte was asked of a device: {seen:?}");
    }
}

#[test]
fn reads_from_the_page_cache_are_reported_with_their_share() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    written(&path);
    let (facts, _) = run(&format!("{JOB}filename={}\nsize={SIZE}\n", path.display()));
    if facts.targets[0].device.is_none() {
        return;
    }
    assert!(found(&facts).contains(&("io-page-cache", Severity::Red)), "{:?}", facts.run);
    let cached = facts.targets[0].after.as_ref().unwrap().cached;
    assert!(cached.is_none_or(|cached| cached.bytes > SIZE / 2), "{cached:?}");
}

#[test]
fn writes_that_stay_in_memory_are_reported_and_synced_ones_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    written(&path);
    let job =
        format!("[job]\nrw=randwrite\nbs=4k\nnumber_ios=1500\nfilename={}\nsize={SIZE}\n", path.display());
    let (facts, _) = run(&job);
    if facts.targets[0].device.is_none() {
        return;
    }
    // Others may write to the device meanwhile, which hides what did not reach it: the file itself does not.
    let dirty = facts.targets[0].after.as_ref().unwrap().cached.map(|cached| cached.dirty);
    assert!(dirty.is_none_or(|dirty| dirty > SIZE / 4), "{dirty:?}");
    let (facts, _) = run(&format!("{job}end_fsync=1\n"));
    assert!(!found(&facts).iter().any(|(id, _)| *id == "io-unsynced-writes"));
    let dirty = facts.targets[0].after.as_ref().unwrap().cached.map(|cached| cached.dirty);
    assert!(dirty.is_none_or(|dirty| dirty == 0), "{dirty:?}");
}

#[test]
fn a_file_that_the_run_lays_out_is_seen_as_it_was_when_the_job_began() {
    let directory = tempfile::tempdir().unwrap();
    let job = |rw: &str, name: &str| {
        let options = "bs=16k\ndirect=1\nioengine=io_uring\niodepth=4";
        format!("[job]\nrw={rw}\n{options}\nfilename={}/{name}\nsize={SIZE}\n", directory.path().display())
    };
    let (facts, _) = run(&job("randread", "read"));
    let coverage = facts.targets[0].coverage.clone().unwrap();
    assert_eq!((coverage.bytes, coverage.hole, coverage.unwritten), (SIZE, 0, 0), "laid out for reading");
    assert!(
        !found(&facts).iter().any(|(id, _)| ["io-holes", "io-unwritten"].contains(id)),
        "{:?}",
        found(&facts)
    );

    let (facts, _) = run(&job("randwrite", "write"));
    assert!(found(&facts).contains(&("io-allocating-writes", Severity::Amber)), "{:?}", facts.targets);
}

#[test]
fn anothers_traffic_on_the_device_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (ours, theirs) = (directory.path().join("ours"), directory.path().join("theirs"));
    written(&ours);
    written(&theirs);
    let mut other = Command::new("sh")
        .args(["-c", "while dd if=\"$0\" of=/dev/null bs=1M iflag=direct; do :; done"])
        .arg(&theirs)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (facts, _) = run(&format!("{JOB}direct=1\nrate=1m\nfilename={}\nsize={SIZE}\n", ours.display()));
    other.kill().unwrap();
    other.wait().unwrap();
    let seen = facts.run.clone().unwrap();
    if seen.devices.is_empty() || seen.process.is_none() {
        return;
    }
    let foreign = io_findings(&facts).into_iter().find(|finding| finding.id == "io-foreign-traffic");
    assert_eq!(foreign.map(|finding| finding.severity), Some(Severity::Red), "{seen:?}");
}

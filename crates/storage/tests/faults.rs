//! Failures while jobs run: no space, device errors, a removed device, a kill. In each case the error must be clear,
//! earlier results must be kept, and nothing outside the targets may change.
//!
//! Only root can create filesystems and loop devices; for other users the tests do nothing.
#![allow(clippy::unwrap_used)]

mod control_support;
mod faults_support;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use control_support::*;
use faults_support::*;
use kelvin_measure::Stop;
use kelvin_storage::Direction;
use kelvin_storage::control::{self, RunOptions, exit_code};
use kelvin_storage::job::{Amount, EngineName, Fallocate, Job};
use kelvin_storage::result::JobsOutcome;

const MIB: u64 = 1 << 20;

const ENGINES: [EngineName; 3] = [EngineName::Psync, EngineName::IoUring, EngineName::Libaio];

fn bytes(outcome: &JobsOutcome, worker: usize, direction: Direction) -> u64 {
    outcome.workers[worker].targets.iter().map(|target| target.directions[direction].bytes).sum()
}

fn error(outcome: &JobsOutcome, worker: usize) -> (i32, String) {
    outcome.workers[worker].error.clone().expect("the worker ended with an error")
}

fn allowed(path: &Path) -> RunOptions {
    RunOptions { destroy: vec![path.into()], ..RunOptions::default() }
}

#[test]
fn no_space_ends_the_worker_with_that_error_and_the_others_go_on() {
    // libaio supports no asynchronous writes to /dev/full.
    for engine in [EngineName::Psync, EngineName::IoUring] {
        let directory = tempfile::tempdir().unwrap();
        let full = by(engine, on(writer("full", directory.path(), MIB), Path::new("/dev/full")));
        let good = by(engine, writer("good", directory.path(), MIB));
        let (outcome, _) = run(&jobs([full, good]), &RunOptions::default()).unwrap();
        let (number, words) = error(&outcome, 0);
        assert_eq!(number, libc::ENOSPC, "{engine:?}: {words}");
        assert!(words.contains("No space left"), "{engine:?}: {words}");
        assert_eq!((bytes(&outcome, 0, Direction::Write), bytes(&outcome, 1, Direction::Write)), (0, MIB));
        assert!(outcome.workers[1].error.is_none());
        assert_eq!(exit_code(&outcome), 1);
    }
}

#[test]
fn a_filesystem_that_fills_up_keeps_what_was_measured_until_then_and_what_others_have_on_it() {
    let growing = |directory: &Path| {
        let mut job = writer("grow", directory, 64 * MIB);
        job.targets.fallocate = Fallocate::None;
        job
    };
    for engine in ENGINES {
        let Some(small) = SmallFilesystem::new(8 * MIB) else { return };
        let canaries = Canaries::beside(small.path());
        let job = growing(small.path());
        let (outcome, heard) = run(&jobs([by(engine, job)]), &RunOptions::default()).unwrap();
        let (number, words) = error(&outcome, 0);
        assert_eq!(number, libc::ENOSPC, "{engine:?}: {words}");
        let written = bytes(&outcome, 0, Direction::Write);
        assert!((4 * MIB..=8 * MIB).contains(&written), "{engine:?}: {written}");
        assert_eq!(heard.ios * 4096, written);
        assert_eq!(exit_code(&outcome), 1);
        canaries.check();
    }
    let Some(small) = SmallFilesystem::new(8 * MIB) else { return };
    let canaries = Canaries::beside(small.path());
    let mut job = growing(small.path());
    // If the space is allocated in advance, no I/O begins.
    job.targets.fallocate = Fallocate::Native;
    let refusal = control::prepare(&jobs([job]), &RunOptions::default()).unwrap_err().to_string();
    assert!(refusal.contains("needs 64 MiB more space, but the filesystem has "), "{refusal}");
    let refusal = control::prepare(&jobs([reader("read", small.path(), 32 * MIB)]), &RunOptions::default());
    assert!(refusal.unwrap_err().to_string().contains("needs 32 MiB more"));
    assert_eq!(fs::read_dir(small.path()).unwrap().count(), canaries.count());
    // A reader with fill_device reads as much as there was space for.
    let mut fill = reader("fill", small.path(), 0);
    (fill.targets.size, fill.targets.fill_device) = (None, true);
    let (outcome, _) = run(&jobs([fill]), &RunOptions::default()).unwrap();
    let size = fs::metadata(small.path().join("fill.0.0")).unwrap().len();
    assert!(size >= 4 * MIB);
    assert_eq!(bytes(&outcome, 0, Direction::Read), size / 4096 * 4096);
    canaries.check();
}

#[test]
fn a_device_error_is_reported_with_the_preceding_reads() {
    let Some(device) = LoopDevice::new(8 * MIB) else { return };
    device.backing().set_len(4 * MIB).unwrap();
    let good = tempfile::tempdir().unwrap();
    for engine in ENGINES {
        let failing = by(engine, forgetful(on(job("read"), device.path())));
        let all = jobs([failing.clone(), reader("good", good.path(), MIB)]);
        let (outcome, _) = run(&all, &RunOptions::default()).unwrap();
        let (number, words) = error(&outcome, 0);
        assert_eq!(number, libc::EIO, "{engine:?}: {words}");
        assert!(words.contains(&device.path().display().to_string()), "it says where: {words}");
        let read = bytes(&outcome, 0, Direction::Read);
        assert!(read > 0 && read <= 4 * MIB, "{engine:?}: {read}");
        assert_eq!(bytes(&outcome, 1, Direction::Read), MIB);
        assert_eq!(exit_code(&outcome), 1);
        // With the option to continue, errors are counted.
        let mut going_on = failing;
        going_on.errors.go_on_read = true;
        let (outcome, _) = run(&jobs([going_on]), &RunOptions::default()).unwrap();
        let failed: u64 = outcome.workers[0].failures.iter().map(|failures| failures.count).sum();
        assert_eq!(bytes(&outcome, 0, Direction::Read) / 4096 + failed, 8 * MIB / 4096, "{engine:?}");
        assert!(failed >= 1000, "{engine:?}: {failed}");
    }
}

#[test]
fn a_device_whose_medium_vanishes_during_the_run_ends_its_worker() {
    let Some(device) = LoopDevice::new(32 * MIB) else { return };
    let mut reading = lasting(on(job("read"), device.path()), 120 * SECOND);
    reading.pattern.random = true;
    let backing = device.backing();
    let (at_work, works) = channel();
    let cutter = std::thread::spawn(move || {
        works.recv().unwrap();
        backing.set_len(4096).unwrap();
    });
    let begun = Instant::now();
    let options = RunOptions::default();
    let prepared = control::prepare(&jobs([forgetful(reading)]), &options).unwrap();
    let mut heard = Heard { at_work: Some(at_work), ..Heard::default() };
    let outcome = run_prepared(prepared, &options, &Stop::new(), &mut heard).unwrap();
    cutter.join().unwrap();
    let (number, words) = error(&outcome, 0);
    assert_eq!(number, libc::EIO, "{words}");
    assert!(bytes(&outcome, 0, Direction::Read) > 0);
    assert!(begun.elapsed() < Duration::from_mins(1));
}

#[test]
fn a_device_that_was_removed_is_an_error_and_no_endless_run() {
    let Some(device) = LoopDevice::new(4 * MIB) else { return };
    let all = jobs([lasting(on(job("read"), device.path()), 3 * SECOND)]);
    let options = RunOptions::default();
    let prepared = control::prepare(&all, &options).unwrap();
    // The device number must not be assigned to another test's device meanwhile.
    let alone = no_new_devices();
    device.detach();
    let begun = Instant::now();
    let mut heard = Heard::default();
    let outcome = run_prepared(prepared, &options, &Stop::new(), &mut heard).unwrap();
    let refusal = control::prepare(&all, &options);
    if device.over().is_some() {
        // Another process created a device with this number.
        return;
    }
    drop(alone);
    let (number, words) = error(&outcome, 0);
    assert!(number != 0 && !words.is_empty());
    assert_eq!(bytes(&outcome, 0, Direction::Read), 0, "{words}");
    assert_eq!(exit_code(&outcome), 1);
    assert!(begun.elapsed() < Duration::from_mins(1));
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains("no medium"), "{refusal}");
}

#[test]
fn a_file_that_is_deleted_during_the_run_is_measured_to_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let canaries = Canaries::beside(directory.path());
    let path = directory.path().join("file");
    fs::write(&path, vec![1; MIB as usize]).unwrap();
    let victim = path.clone();
    let deleter = std::thread::spawn(move || {
        // The worker must have opened it, not the probe before the run, which opens it briefly.
        let is_open = || {
            let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
            open.filter_map(|file| fs::read_link(file.path()).ok()).any(|file| file == victim)
        };
        let mut looks = 0;
        while looks < 20 {
            looks = if is_open() { looks + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(2));
        }
        fs::remove_file(&victim).unwrap();
    });
    let (outcome, _) =
        run(&jobs([lasting(on(job("read"), &path), 250 * MILLI)]), &RunOptions::default()).unwrap();
    deleter.join().unwrap();
    assert!(outcome.workers[0].error.is_none(), "an open file stays");
    assert!(!path.exists(), "and nobody makes it again");
    canaries.check();
}

/// A job that writes at random offsets of a region within a target.
fn within(target: &Path, begin: u64, length: u64) -> Job {
    let mut job = on(writer("within", target, length), target);
    job.targets.offset = Amount::Bytes(begin);
    job.pattern.random = true;
    job
}

#[test]
fn only_the_region_is_written_in_a_file_and_on_a_device() {
    let directory = tempfile::tempdir().unwrap();
    let canaries = Canaries::beside(directory.path());
    let path = directory.path().join("file");
    let before = noise(4 * MIB);
    fs::write(&path, &before).unwrap();
    let job = lasting(within(&path, MIB, 2 * MIB), 150 * MILLI);
    let (outcome, _) = run(&jobs([job]), &RunOptions::default()).unwrap();
    assert!(bytes(&outcome, 0, Direction::Write) > 0);
    changed_only_within(&File::open(&path).unwrap(), &before, MIB, 2 * MIB);
    canaries.check();

    let Some(device) = LoopDevice::new(4 * MIB) else { return };
    device.backing().write_all_at(&before, 0).unwrap();
    device.forget();
    let job = lasting(within(device.path(), MIB, 2 * MIB), 150 * MILLI);
    let refusal = control::prepare(&jobs([job.clone()]), &RunOptions::default()).unwrap_err().to_string();
    assert!(refusal.contains("--i-know-it-destroys"), "{refusal}");
    let (outcome, _) = run(&jobs([job]), &allowed(device.path())).unwrap();
    assert!(outcome.workers[0].error.is_none(), "{:?}", outcome.workers[0].error);
    assert!(bytes(&outcome, 0, Direction::Write) > 0);
    device.sync();
    changed_only_within(&device.backing(), &before, MIB, 2 * MIB);
    canaries.check();
}

#[test]
fn preparing_a_device_needs_a_word_and_fills_only_what_shows_zeros() {
    let Some(device) = LoopDevice::new(4 * MIB) else { return };
    let mine = noise(MIB);
    device.backing().write_all_at(&mine, MIB).unwrap();
    device.forget();
    let mut reading = on(job("read"), device.path());
    reading.targets.size = Some(Amount::Bytes(3 * MIB));
    let unconfirmed = RunOptions { prepare: true, ..RunOptions::default() };
    let prepared = control::prepare(&jobs([reading.clone()]), &unconfirmed).unwrap();
    assert_eq!(prepared.layout_bytes(), 0);
    assert!(
        prepared.notes()[0].contains("filling a device needs --i-know-it-destroys"),
        "{:?}",
        prepared.notes()
    );
    let confirmed = RunOptions { prepare: true, ..allowed(device.path()) };
    let (outcome, heard) = run(&jobs([reading]), &confirmed).unwrap();
    assert_eq!(exit_code(&outcome), 0);
    assert_eq!(heard.layouts.last().map(|layout| (layout.2, layout.3)), Some((3 * MIB, 3 * MIB)));
    let mut now = vec![0; 4 * MIB as usize];
    device.backing().read_exact_at(&mut now, 0).unwrap();
    let zeros = |part: &[u8]| part.chunks(4096).filter(|block| block.iter().all(|byte| *byte == 0)).count();
    let mib = MIB as usize;
    assert_eq!([0, 1, 2, 3].map(|at| zeros(&now[at * mib..(at + 1) * mib])), [0, 0, 0, 256]);
    assert_eq!(now[mib..2 * mib], mine, "what held data is left");
}

#[test]
fn an_end_by_force_leaves_logs_and_touches_nothing_else() {
    const PLACE: &str = "KELVIN_FAULTS_PLACE";
    let named = |directory: &Path| {
        let mut job = lasting(within(&directory.join("file"), MIB, 2 * MIB), 60 * SECOND);
        job.rate.iops[Direction::Write] = Some(2000);
        job.logs.iops = Some("kept".into());
        jobs([job])
    };
    if let Some(place) = std::env::var_os(PLACE) {
        // This is the other process, which never ends on its own.
        let place = Path::new(&place);
        let options = RunOptions { log_directory: Some(place.into()), ..RunOptions::default() };
        let _ = run(&named(place), &options);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let canaries = Canaries::beside(directory.path());
    let path = directory.path().join("file");
    let before = noise(4 * MIB);
    fs::write(&path, &before).unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "an_end_by_force_leaves_logs_and_touches_nothing_else"])
        .env(PLACE, directory.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let differs = || fs::read(&path).unwrap() != before;
    let rows =
        || fs::read_to_string(directory.path().join("kept_iops.1.log")).unwrap_or_default().lines().count();
    while !(differs() && rows() > 0) && begun.elapsed() < Duration::from_mins(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(differs() && rows() > 0, "it wrote before it was killed, and its log is there");
    changed_only_within(&File::open(&path).unwrap(), &before, MIB, 2 * MIB);
    canaries.check();
    // The next run uses the existing file.
    let mut again = within(&path, MIB, 2 * MIB);
    again.targets.size = Some(Amount::Bytes(MIB));
    // This process may have cached the list of open files, including those of the process that was killed.
    let (outcome, heard) = run(&jobs([again]), &allowed(&path)).unwrap();
    assert_eq!((exit_code(&outcome), heard.layouts.len()), (0, 0));
}

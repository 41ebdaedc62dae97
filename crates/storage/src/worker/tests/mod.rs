//! Workers on real files, and on engines that misbehave.

mod fate;
mod faults;
mod files;
mod verify;

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use kelvin_measure::event::LoadPart;
use kelvin_measure::{Clock, Stop};

use super::parts::WorkerParts;
use super::testing::{Blocks, Looks, Offsets, Sent, plan, run, run_on};
use super::{Shared, run_parts};
use crate::engine::testing::{file, job, writing};
use crate::job::*;
use crate::message::Message;
use crate::{Direction, NextIo, PerDirection, SyncCall};

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

/// All engines that move data, with options that lead to other code paths.
fn engines() -> Vec<Job> {
    let mut all: Vec<Job> = [
        EngineName::IoUring,
        EngineName::Libaio,
        EngineName::Sync,
        EngineName::Psync,
        EngineName::Pvsync,
        EngineName::Pvsync2,
        EngineName::Mmap,
    ]
    .into_iter()
    .map(|name| job(name, if name.is_asynchronous() { 16 } else { 1 }))
    .collect();
    let mut vectored = job(EngineName::IoUring, 8);
    vectored.engine.nonvectored = false;
    vectored.engine.fixed_buffers = Some(false);
    vectored.engine.register_files = Some(false);
    vectored.engine.force_async = 3;
    let mut polled = job(EngineName::IoUring, 4);
    polled.engine.sq_poll = true;
    let mut in_memory = job(EngineName::Libaio, 8);
    in_memory.engine.userspace_reap = true;
    in_memory.depth.complete_min = Some(0);
    let mut offloaded = job(EngineName::Psync, 4);
    offloaded.depth.offload = true;
    let mut batches = job(EngineName::IoUring, 16);
    batches.depth = Depth {
        submit: Some(4),
        complete_min: Some(3),
        complete_max: Some(5),
        low: Some(6),
        ..batches.depth
    };
    all.extend([vectored, polled, in_memory, offloaded, batches]);
    all
}

fn written_in_order(mut job: Job) -> Job {
    job.pattern.random = false;
    job.sync.end_fsync = true;
    writing(job)
}

fn in_order(mut job: Job) -> Job {
    job.pattern.random = false;
    job
}

#[test]
fn every_engine_reads_what_every_other_wrote() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    let all = engines();
    for (number, writer) in all.iter().enumerate() {
        fs::write(&path, vec![0; MIB as usize]).unwrap();
        let sent = run(&written_in_order(writer.clone()), &path, MIB);
        assert_eq!(sent.end.error, None, "{:?}", writer.engine);
        assert_eq!((sent.written().ios, sent.written().bytes), (256, MIB), "{:?}", writer.engine);
        let syncs: u64 = sent.ticks.iter().map(|tick| tick.syncs.count).sum();
        assert_eq!(syncs, 0, "end_fsync is in no figure, as in fio");
        let data = fs::read(&path).unwrap();
        for (block, bytes) in data.chunks(4096).enumerate() {
            assert_eq!(bytes[..8], (block as u64 * 4096).to_le_bytes());
            assert!(bytes[8..].iter().all(|byte| *byte == 0x5a));
        }
        let reader = &all[(number + 1) % all.len()];
        let sent = run_on(reader, file(&path, MIB), &Stop::new(), |parts| {
            parts.check = Some(Box::new(Looks::default()));
        });
        assert_eq!(sent.end.error, None, "{:?}", reader.engine);
        assert_eq!((sent.read().ios, sent.read().bytes), (256, MIB));
        assert_eq!(sent.read().completion_bins.count(), 256);
        assert_eq!(sent.read().total.count, 256);
        let synchronous = !reader.engine.name.is_asynchronous() && !reader.depth.offload;
        assert_eq!(sent.read().submission.count, if synchronous { 0 } else { 256 });
        // 256 I/Os, each with the number in flight when it was issued.
        assert_eq!(sent.depth.at.iter().sum::<u64>(), 256);
        assert!(sent.depth.sum <= 256 * u64::from(reader.depth.depth));
    }
}

#[test]
fn the_depth_that_was_asked_for_is_reached() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, vec![0; MIB as usize]).unwrap();
    for name in [EngineName::IoUring, EngineName::Libaio, EngineName::Null] {
        let sent = run(&job(name, 32), &path, MIB);
        assert_eq!(sent.end.error, None);
        // 17 to 32 in flight.
        assert!(sent.depth.at[5] >= 16, "{name:?}: {:?}", sent.depth);
        assert_eq!(sent.depth.at[6], 0);
    }
    let sent = run(&job(EngineName::Psync, 32), &path, MIB);
    assert_eq!(sent.depth.at, [256, 0, 0, 0, 0, 0, 0]);
    assert!(sent.end.notes[0].contains("iodepth=32, but psync has 1"), "{:?}", sent.end.notes);
}

#[test]
fn a_job_does_the_requested_amount() {
    let path = Path::new("/nowhere");
    let ios = |change: &dyn Fn(&mut Job)| {
        let mut job = job(EngineName::Null, 8);
        change(&mut job);
        let sent = run(&job, path, MIB);
        assert_eq!(sent.end.error, None);
        sent.read().ios
    };
    assert_eq!(ios(&|_| {}), 256);
    assert_eq!(ios(&|job| job.course.loops = 3), 768);
    assert_eq!(ios(&|job| job.targets.io_size = Some(Amount::Bytes(3 * MIB / 2))), 384);
    assert_eq!(ios(&|job| job.targets.io_size = Some(Amount::Percent(50.0))), 128);
    assert_eq!(ios(&|job| job.targets.number_ios = Some(7)), 7);
    assert_eq!(
        ios(&|job| {
            job.targets.number_ios = Some(1000);
            job.course.time_based = true;
            job.course.runtime = Some(60_000 * MS);
        }),
        1000
    );
}

#[test]
fn ticks_add_up_and_the_ramp_up_is_apart() {
    let mut job = job(EngineName::Null, 4);
    job.course.time_based = true;
    job.course.ramp = 60 * MS;
    job.course.runtime = Some(560 * MS);
    let sent = run(&job, Path::new("/nowhere"), MIB);
    assert_eq!(sent.end.error, None);
    assert!(sent.ramp[Direction::Read].ios > 0 && sent.read().ios > 0);
    let parts: Vec<LoadPart> = sent.ticks.iter().map(|tick| tick.part).collect();
    assert_eq!(parts[0], LoadPart::RampUp);
    assert!(parts.len() >= 3 && parts[1..].iter().all(|part| *part == LoadPart::Measured), "{parts:?}");
    assert_eq!(sent.ticks[0].from, sent.end.course.0);
    assert!(sent.ticks[0].to >= sent.end.course.0 + 60 * MS);
    let last = sent.ticks.last().unwrap();
    assert_eq!(last.to, sent.end.course.1);
    assert!(last.to >= sent.ticks[1].from + 560 * MS);
    assert_eq!(sent.read().completion_bins.count(), sent.read().ios);
    assert_eq!(sent.read().bytes, sent.read().ios * 4096);
    let issued: u64 = sent.depth.at.iter().sum();
    assert_eq!(issued, sent.ramp[Direction::Read].ios + sent.read().ios);
    assert!(sent.end.cpu.0 + sent.end.cpu.1 > 0);
}

#[test]
fn a_rate_is_kept_and_times_count_from_the_intended_start() {
    let mut job = job(EngineName::Null, 4);
    job.rate.iops[Direction::Read] = Some(2000);
    job.targets.number_ios = Some(200);
    let sent = run(&job, Path::new("/nowhere"), MIB);
    assert_eq!(sent.end.error, None);
    assert_eq!(sent.read().ios, 200);
    let took = sent.end.course.1 - sent.end.course.0;
    assert!(took >= 199 * MS / 2, "199 gaps of half a millisecond are not over in {took} ns");
    assert_eq!(sent.read().response.count, 200);
    assert_eq!(sent.read().response_bins.count(), 200);
    assert!(
        sent.read().response.sum >= sent.read().total.sum,
        "the intended start is never after the real one"
    );
}

#[test]
fn a_rate_that_is_changed_in_a_gap_ends_the_gap() {
    let mut job = job(EngineName::Null, 1);
    // A block in ten seconds, then a thousand in one.
    job.rate.bytes[Direction::Read] = Some(400);
    job.targets.number_ios = Some(20);
    let (messages, received) = channel();
    let shared = Shared::new(Clock::real(), Stop::new(), messages, &[None]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stream = Blocks::new(&job, MIB);
            let parts = WorkerParts { stream, fill: Box::new(Offsets), check: None };
            run_parts(&plan(&job, vec![file(Path::new("/nowhere"), MIB)]), &shared, || Ok(parts));
        });
        // It is running, and has soon done the only block of the first ten seconds.
        received.recv().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        shared.rates.change_at(shared.clock.now() + 50 * MS, 10_000.0);
    });
    let sent = Sent::from_messages(&received);
    assert_eq!((sent.end.error.clone(), sent.read().ios), (None, 20));
    let took = sent.end.course.1 - sent.end.course.0;
    assert!(took < 10_000 * MS, "{took}");
}

#[test]
fn two_rates_of_a_mix_do_not_wait_for_each_other() {
    let mut job = job(EngineName::Null, 4);
    job.pattern.writes = true;
    job.rate.iops[Direction::Read] = Some(4000);
    job.rate.iops[Direction::Write] = Some(1000);
    job.targets.number_ios = Some(500);
    let sent = run(&job, Path::new("/nowhere"), 4 * MIB);
    assert_eq!(sent.read().ios + sent.written().ios, 500);
    assert!(sent.read().ios.abs_diff(400) <= 10, "{}", sent.read().ios);
}

#[test]
fn pauses_are_taken() {
    let mut job = job(EngineName::Null, 4);
    job.thinking = Some(Thinking { time: 5 * MS, spin: MS, blocks: 10, by_issue: false, io_time: None });
    job.targets.number_ios = Some(100);
    let sent = run(&job, Path::new("/nowhere"), MIB);
    assert_eq!(sent.read().ios, 100);
    let took = sent.end.course.1 - sent.end.course.0;
    // Up to `depth` I/Os more may be issued before a pause: at least 7 pauses for 100.
    assert!(took >= 7 * 5 * MS, "{took}");
}

#[test]
fn syncs_drains_and_times_of_a_stream_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, vec![0; MIB as usize]).unwrap();
    for name in [EngineName::IoUring, EngineName::Psync, EngineName::Mmap] {
        let sent = run_on(&writing(job(name, 8)), file(&path, MIB), &Stop::new(), |parts| {
            parts.stream.also = vec![
                (10, NextIo::Sync { target: 0, how: SyncCall::Fsync }),
                (20, NextIo::Sync { target: 0, how: SyncCall::Fdatasync }),
                (30, NextIo::Sync { target: 0, how: SyncCall::Range(7) }),
                (40, NextIo::Drain),
                (50, NextIo::NotBefore(20 * MS)),
            ];
        });
        assert_eq!(sent.end.error, None);
        assert_eq!(sent.written().ios, 256);
        assert_eq!(sent.ticks.iter().map(|tick| tick.syncs.count).sum::<u64>(), 3);
        assert!(sent.end.course.1 - sent.end.course.0 >= 20 * MS);
    }
}

#[test]
fn trims_make_holes() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, vec![1; MIB as usize]).unwrap();
    let mut job = in_order(job(EngineName::IoUring, 8));
    job.pattern.trims = true;
    // Reads and trims in turn: every second block becomes a hole.
    let sent = run(&job, &path, MIB);
    assert_eq!(sent.end.error, None);
    let trimmed = &sent.measured[Direction::Trim];
    assert_eq!((sent.read().ios, trimmed.ios, trimmed.bytes), (128, 128, MIB / 2));
    let data = fs::read(&path).unwrap();
    for (block, bytes) in data.chunks(4096).enumerate() {
        assert!(bytes.iter().all(|byte| *byte == u8::from(block % 2 == 0)), "block {block}");
    }
    assert!(fs::metadata(&path).unwrap().blocks() * 512 <= MIB / 2 + 65_536);
}

#[test]
fn one_who_is_asked_to_stop_ends_and_keeps_what_it_has() {
    let mut job = job(EngineName::Null, 2);
    job.course.time_based = true;
    job.course.runtime = Some(3_600_000 * MS);
    let (messages, received) = channel();
    let shared = Shared::new(Clock::real(), Stop::new(), messages, &[None]);
    let mut ios_before_the_stop = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stream = Blocks::new(&job, MIB);
            let parts = WorkerParts { stream, fill: Box::new(Offsets), check: None };
            run_parts(&plan(&job, vec![file(Path::new("/nowhere"), MIB)]), &shared, || Ok(parts));
        });
        // A tick is the first sign of its I/O.
        while ios_before_the_stop == 0 {
            if let Message::Tick(tick) = received.recv().unwrap() {
                let tallies = tick.targets.iter().flat_map(PerDirection::iter);
                ios_before_the_stop +=
                    tallies.filter_map(|(_, tally)| Some(tally.as_ref()?.ios)).sum::<u64>();
            }
        }
        shared.stop.request();
    });
    assert_eq!(Sent::from_messages(&received).end.error, None);
}

#[test]
fn an_io_that_takes_too_long_ends_the_job() {
    let mut job = job(EngineName::Null, 1);
    job.latency.maximum = PerDirection::all(Some(0));
    let sent = run(&job, Path::new("/nowhere"), MIB);
    let (number, message) = sent.end.error.clone().unwrap();
    assert_eq!(number, libc::ETIMEDOUT);
    assert!(message.contains("longer than max_latency"), "{message}");
}

#[test]
fn workers_on_a_locked_file_take_turns() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, vec![0; MIB as usize]).unwrap();
    let mut wanted = writing(job(EngineName::IoUring, 8));
    wanted.targets.lock = LockFile::Exclusive;
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (wanted, path) = (wanted.clone(), path.clone());
            std::thread::spawn(move || run(&wanted, &path, MIB))
        })
        .collect();
    for worker in workers {
        let sent = worker.join().unwrap();
        assert_eq!(sent.end.error, None);
        assert_eq!(sent.written().ios, 256);
        assert_eq!(sent.depth.at, [256, 0, 0, 0, 0, 0, 0], "never two at a time");
    }
}

#[test]
fn a_depth_is_found_for_a_latency() {
    let mut wanted = job(EngineName::Null, 16);
    wanted.course.time_based = true;
    wanted.course.runtime = Some(10_000 * MS);
    wanted.latency = LatencyGoal {
        target: Some(3_600_000 * MS),
        // Longer than a busy machine keeps a thread off its CPU.
        window: 50 * MS,
        percentile: 100.0,
        keep_running: false,
        ..LatencyGoal::default()
    };
    let sent = run(&wanted, Path::new("/nowhere"), MIB);
    assert_eq!(sent.end.error, None);
    assert_eq!(sent.end.latency_depth, Some(16), "an hour is kept at any depth");
    assert!(sent.read().ios > 0 && sent.ramp[Direction::Read].ios > 0);
}

#[test]
fn what_cannot_be_opened_is_named() {
    let sent = run(&job(EngineName::Psync, 1), Path::new("/nowhere/at/all"), MIB);
    let (number, message) = sent.end.error.clone().unwrap();
    assert_eq!(number, libc::ENOENT);
    assert!(message.starts_with("opening /nowhere/at/all: No such file"), "{message}");
    assert!(sent.ticks.is_empty());
}

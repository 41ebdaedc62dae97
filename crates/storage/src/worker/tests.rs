//! Workers at work: on real files, and on engines that misbehave.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use kelvin_measure::Stop;
use kelvin_measure::event::Part;

use super::testing::{Looks, Sent, run, run_engine, run_on};
use crate::engine::testing::{file, job, writing};
use crate::engine::{Ended, Engine, Request, Wait};
use crate::job::*;
use crate::{Direction, Io, Next, PerDirection, SyncCall, Target, TargetKind};

const MIB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

/// All engines that move data, with options that take other paths through them.
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
        assert_eq!(syncs, 1, "end_fsync");
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
        // 256 I/Os, each with those under way when it was issued.
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
        // 17 to 32 under way.
        assert!(sent.depth.at[5] >= 16, "{name:?}: {:?}", sent.depth);
        assert_eq!(sent.depth.at[6], 0);
    }
    let sent = run(&job(EngineName::Psync, 32), &path, MIB);
    assert_eq!(sent.depth.at, [256, 0, 0, 0, 0, 0, 0]);
    assert!(sent.end.notes[0].contains("iodepth=32, but psync has 1"), "{:?}", sent.end.notes);
}

#[test]
fn a_job_does_as_much_as_it_was_told_to() {
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
    let parts: Vec<Part> = sent.ticks.iter().map(|tick| tick.part).collect();
    assert_eq!(parts[0], Part::RampUp);
    assert!(parts.len() >= 3 && parts[1..].iter().all(|part| *part == Part::Measured), "{parts:?}");
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
                (10, Next::Sync { target: 0, how: SyncCall::Fsync }),
                (20, Next::Sync { target: 0, how: SyncCall::Fdatasync }),
                (30, Next::Sync { target: 0, how: SyncCall::Range(7) }),
                (40, Next::Drain),
                (50, Next::NotBefore(20 * MS)),
            ];
        });
        assert_eq!(sent.end.error, None);
        assert_eq!(sent.written().ios, 256);
        assert_eq!(sent.ticks.iter().map(|tick| tick.syncs.count).sum::<u64>(), 3);
        assert!(sent.end.course.1 - sent.end.course.0 >= 20 * MS);
    }
}

#[test]
fn what_was_written_is_looked_at_in_between_and_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    for name in [EngineName::IoUring, EngineName::Psync] {
        fs::write(&path, vec![0; MIB as usize]).unwrap();
        let mut job = written_in_order(job(name, 8));
        job.verify = Some(Verify { after: true, ..verify() });
        let sent = run_on(&job, file(&path, MIB), &Stop::new(), |parts| {
            parts.check = Some(Box::new(Looks::default()));
        });
        assert_eq!(sent.end.error, None);
        assert_eq!((sent.written().ios, sent.read().ios), (256, 0), "reads that verify are in no figure");
        let verified = sent.end.verified.unwrap();
        assert_eq!((verified[Direction::Read].ios, verified[Direction::Read].bytes), (256, MIB));
        assert_eq!(sent.ticks.last().unwrap().part, Part::Tail);
    }
    // One wrong byte.
    let mut data = fs::read(&path).unwrap();
    data[100 * 4096 + 9] ^= 1;
    fs::write(&path, data).unwrap();
    let sent = run_on(&in_order(job(EngineName::IoUring, 8)), file(&path, MIB), &Stop::new(), |parts| {
        parts.check = Some(Box::new(Looks::default()));
    });
    let (number, message) = sent.end.error.clone().unwrap();
    assert_eq!(number, libc::EILSEQ);
    assert!(message.contains("offset 409600"), "{message}");
}

#[test]
fn the_first_corruption_is_the_last_where_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, vec![0; MIB as usize]).unwrap();
    assert_eq!(run(&written_in_order(job(EngineName::Psync, 1)), &path, MIB).end.error, None);
    let mut data = fs::read(&path).unwrap();
    for block in [100, 101, 200] {
        data[block * 4096 + 9] ^= 1;
    }
    fs::write(&path, data).unwrap();
    for (fatal, found) in [(false, 3), (true, 1)] {
        let mut job = in_order(job(EngineName::Psync, 1));
        job.verify = Some(Verify { fatal, ..verify() });
        (job.errors.go_on_verify, job.errors.ignore[2]) = (true, vec![libc::EILSEQ]);
        let sent = run_on(&job, file(&path, MIB), &Stop::new(), |parts| {
            parts.check = Some(Box::new(Looks::default()));
        });
        assert_eq!(sent.end.error.map(|error| error.0), fatal.then_some(libc::EILSEQ));
        assert_eq!(
            sent.ticks.iter().flat_map(|tick| &tick.failures).map(|one| one.count).sum::<u64>(),
            found
        );
    }
}

fn in_order(mut job: Job) -> Job {
    job.pattern.random = false;
    job
}

fn verify() -> Verify {
    Verify {
        method: VerifyMethod::Crc32c,
        after: true,
        only: false,
        interval: None,
        offset: 0,
        pattern: None,
        pattern_interval: None,
        fatal: false,
        dump: false,
        threads: 0,
        backlog: None,
        backlog_batch: None,
        state_save: false,
        state_load: false,
        replay_generator: false,
        write_sequence: true,
        header_seed: true,
    }
}

#[test]
fn the_real_parts_write_and_verify() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    for (name, random) in
        [(EngineName::IoUring, true), (EngineName::Libaio, false), (EngineName::Psync, true)]
    {
        fs::write(&path, vec![0; MIB as usize]).unwrap();
        let mut job = writing(job(name, 8));
        job.pattern.random = random;
        job.pattern.no_random_map = false;
        job.sync.fsync = 100;
        job.verify = Some(verify());
        let (messages, received) = std::sync::mpsc::channel();
        let shared = super::Shared::new(kelvin_measure::Clock::real(), Stop::new(), messages, &[None]);
        let end = super::run(super::testing::plan(&job, vec![file(&path, MIB)]), &shared);
        assert_eq!(end.error, None);
        let sent = Sent::of(&received);
        assert_eq!(sent.written().ios, 256);
        assert_eq!(sent.end.verified.unwrap()[Direction::Read].ios, 256);
        assert_eq!(sent.ticks.iter().map(|tick| tick.syncs.count).sum::<u64>(), 2);
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
fn a_full_device_is_an_error_or_the_end() {
    let full =
        Target { path: "/dev/full".into(), kind: TargetKind::Character, begin: 0, length: MIB, device: None };
    for name in [EngineName::Psync, EngineName::IoUring] {
        let mut job = writing(job(name, 4));
        let sent = run_on(&job, full.clone(), &Stop::new(), |_| {});
        let (number, message) = sent.end.error.clone().unwrap();
        assert_eq!(number, libc::ENOSPC);
        assert!(message.contains("/dev/full: No space left on device"), "{message}");
        assert!(message.contains("write of 4096 bytes at "), "{message}");
        let failures: u64 =
            sent.ticks.iter().flat_map(|tick| &tick.failures).map(|failure| failure.count).sum();
        assert_eq!(failures, sent.written().failed);
        assert_eq!(sent.written().ios, 0);
        job.targets.fill_device = true;
        let sent = run_on(&job, full.clone(), &Stop::new(), |_| {});
        assert_eq!(sent.end.error, None);
        assert!(sent.written().dropped > 0);
    }
}

#[test]
fn a_file_that_was_truncated_is_told_and_kills_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    for name in [EngineName::IoUring, EngineName::Libaio, EngineName::Psync, EngineName::Mmap] {
        fs::write(&path, vec![0; MIB as usize / 2]).unwrap();
        let mut job = in_order(job(name, 4));
        let sent = run(&job, &path, MIB);
        let (number, message) = sent.end.error.clone().unwrap();
        assert_eq!(number, libc::EIO, "{name:?}: {message}");
        assert!(message.contains(&path.display().to_string()), "{message}");
        assert!(message.contains("read of 4096 bytes at 52"), "{message}");
        assert_eq!(sent.read().ios, 128, "{name:?}");
        // Going on counts every block that is not there.
        job.errors.go_on_read = true;
        let sent = run(&job, &path, MIB);
        assert_eq!(sent.end.error, None);
        assert_eq!((sent.read().ios, sent.read().failed), (128, 128), "{name:?}");
        let failures: Vec<_> = sent.ticks.iter().flat_map(|tick| &tick.failures).collect();
        assert_eq!(failures[0].first, (MIB / 2, 4096));
        assert_eq!(failures[0].count, 128);
    }
}

#[test]
fn one_who_is_asked_to_stop_ends_and_keeps_what_it_has() {
    let mut job = job(EngineName::Null, 2);
    job.course.time_based = true;
    job.course.runtime = Some(3_600_000 * MS);
    let stop = Stop::new();
    let other = stop.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        other.request();
    });
    let sent = run_on(&job, file(Path::new("/nowhere"), MIB), &stop, |_| {});
    stopper.join().unwrap();
    assert_eq!(sent.end.error, None);
    assert!(sent.read().ios > 0);
}

#[test]
fn an_io_that_takes_too_long_ends_the_job() {
    let mut job = job(EngineName::Null, 1);
    job.latency.maximum = PerDirection::all(Some(0));
    let sent = run(&job, Path::new("/nowhere"), MIB);
    let (number, message) = sent.end.error.clone().unwrap();
    assert_eq!(number, libc::ETIME);
    assert!(message.contains("longer than max_latency"), "{message}");
}

/// Tells for each I/O what becomes of it: from its number to its result.
struct Fate<F> {
    decide: F,
    asked: u64,
    waiting: Vec<Ended>,
    seen: Vec<Io>,
}

impl<F: FnMut(u64, &Request) -> Option<i64>> Fate<F> {
    fn new(decide: F) -> Self {
        Self { decide, asked: 0, waiting: Vec::new(), seen: Vec::new() }
    }
}

impl<F: FnMut(u64, &Request) -> Option<i64>> Engine for Fate<F> {
    fn is_synchronous(&self) -> bool {
        false
    }

    fn queue(&mut self, request: Request) {
        let Request { direction, target, offset, length, .. } = request;
        self.seen.push(Io { direction, target, offset, length });
        if let Some(result) = (self.decide)(self.asked, &request) {
            self.waiting.push(Ended { slot: request.slot, result });
        }
        self.asked += 1;
    }

    fn commit(&mut self, _ended: &mut Vec<Ended>) -> io::Result<()> {
        Ok(())
    }

    fn reap(&mut self, _least: u32, most: u32, wait: Wait, ended: &mut Vec<Ended>) -> io::Result<()> {
        if self.waiting.is_empty()
            && let Wait::AtMost(nanos) = wait
        {
            std::thread::sleep(Duration::from_nanos(nanos.min(MS)));
        }
        let count = self.waiting.len().min(most as usize);
        ended.extend(self.waiting.drain(..count));
        Ok(())
    }
}

#[test]
fn what_moved_less_than_asked_is_resumed() {
    let halves = Fate::new(|_, request: &Request| Some(i64::from(request.length.div_ceil(2).max(512))));
    let mut wanted = in_order(job(EngineName::Null, 8));
    wanted.targets.number_ios = Some(100);
    let sent = run_engine(&wanted, halves, MIB, &Stop::new());
    assert_eq!(sent.end.error, None);
    // 4096 = 2048 + 1024 + 512 + 512.
    assert_eq!((sent.read().ios, sent.read().bytes, sent.read().short), (100, 100 * 4096, 300));
    assert_eq!(sent.read().completion.count, 100);
}

#[test]
fn the_kernel_may_ask_to_be_asked_again() {
    let busy = Fate::new(|number, request: &Request| {
        Some(if number % 3 == 0 { -i64::from(libc::EAGAIN) } else { i64::from(request.length) })
    });
    let sent = run_engine(&in_order(job(EngineName::Null, 8)), busy, MIB, &Stop::new());
    assert_eq!(sent.end.error, None);
    assert_eq!((sent.read().ios, sent.read().failed), (256, 0));
}

#[test]
fn errors_are_counted_and_end_the_job_or_not() {
    let failing = |number: i32| {
        move |at: u64, request: &Request| {
            Some(if at % 4 == 3 { -i64::from(number) } else { i64::from(request.length) })
        }
    };
    let mut wanted = in_order(job(EngineName::Null, 1));
    let sent = run_engine(&wanted, Fate::new(failing(libc::EIO)), MIB, &Stop::new());
    let (number, message) = sent.end.error.clone().unwrap();
    assert_eq!((number, sent.read().ios, sent.read().failed), (libc::EIO, 3, 1));
    assert!(message.starts_with("read of 4096 bytes at 12288 of /nowhere: Input/output error"), "{message}");
    wanted.errors.go_on_read = true;
    let sent = run_engine(&wanted, Fate::new(failing(libc::EIO)), MIB, &Stop::new());
    assert_eq!(sent.end.error, None);
    assert_eq!((sent.read().ios, sent.read().failed), (192, 64));
    // A device that is gone does not come back.
    let sent = run_engine(&wanted, Fate::new(failing(libc::ENODEV)), MIB, &Stop::new());
    assert_eq!(sent.end.error.unwrap().0, libc::ENODEV);
    wanted.errors.ignore[0] = vec![libc::ENODEV];
    let sent = run_engine(&wanted, Fate::new(failing(libc::ENODEV)), MIB, &Stop::new());
    assert_eq!(sent.end.error, None);
    assert_eq!((sent.read().ios, sent.read().failed), (192, 64));
}

#[test]
fn a_device_that_hangs_hangs_nobody_who_insists() {
    let hangs = Fate::new(|number, request: &Request| (number < 10).then_some(i64::from(request.length)));
    let stop = Stop::new();
    let other = stop.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        other.request();
        std::thread::sleep(Duration::from_millis(30));
        other.request();
    });
    let sent = run_engine(&in_order(job(EngineName::Null, 4)), hangs, MIB, &stop);
    stopper.join().unwrap();
    let (number, message) = sent.end.error.clone().unwrap();
    assert_eq!(number, libc::ETIMEDOUT);
    assert!(
        message.starts_with("gave up waiting for 4 I/Os under way: read of 4096 bytes at 40960"),
        "{message}"
    );
    assert_eq!(sent.read().ios, 10, "what had ended is kept");
    assert_eq!(sent.end.notes, ["4 I/Os never ended and are in no figure"]);
}

#[test]
fn ios_that_overlap_wait_for_each_other() {
    // One that is never under way together with its own place.
    let mut under_way: Vec<(u32, u64)> = Vec::new();
    let mut turn = 0;
    let watched = Fate::new(move |_, request: &Request| {
        under_way.retain(|(slot, _)| *slot != request.slot);
        assert!(!under_way.iter().any(|(_, offset)| *offset == request.offset) || turn > 0);
        under_way.push((request.slot, request.offset));
        turn += 1;
        Some(i64::from(request.length))
    });
    let mut wanted = job(EngineName::Null, 4);
    wanted.depth.serialize_overlap = true;
    let sent = run_engine(&wanted, watched, 2 * 4096, &Stop::new());
    assert_eq!(sent.end.error, None);
    // Two blocks only: never more than two under way.
    assert_eq!(sent.depth.at[2..], [0, 0, 0, 0, 0]);
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
        window: 2 * MS,
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

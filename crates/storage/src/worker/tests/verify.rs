//! Written data are verified, and errors are reported.

use std::fs;

use kelvin_measure::Stop;
use kelvin_measure::event::LoadPart;

use super::super::testing::{Looks, Sent, plan, run, run_on};
use super::{MIB, in_order, written_in_order};
use crate::Direction;
use crate::engine::testing::{file, job, writing};
use crate::job::*;

#[test]
fn what_was_written_is_looked_at_in_between_and_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    for name in [EngineName::IoUring, EngineName::Psync] {
        fs::write(&path, vec![0; MIB as usize]).unwrap();
        let mut job = written_in_order(job(name, 8));
        job.verify = Some(Verify { after: true, ..crc() });
        let sent = run_on(&job, file(&path, MIB), &Stop::new(), |parts| {
            parts.check = Some(Box::new(Looks::default()));
        });
        assert_eq!(sent.end.error, None);
        assert_eq!((sent.written().ios, sent.read().ios), (256, 0), "reads that verify are in no figure");
        let verified = sent.end.verified.unwrap();
        assert_eq!((verified[Direction::Read].ios, verified[Direction::Read].bytes), (256, MIB));
        assert_eq!(sent.ticks.last().unwrap().part, LoadPart::Tail);
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
        job.verify = Some(Verify { fatal, ..crc() });
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

/// CRC-32C, after the writes.
pub(super) fn crc() -> Verify {
    Verify { state_save: false, ..Verify::by(VerifyMethod::Crc32c) }
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
        job.verify = Some(crc());
        let (messages, received) = std::sync::mpsc::channel();
        let shared = super::super::Shared::new(kelvin_measure::Clock::real(), Stop::new(), messages, &[None]);
        let end = super::super::run(plan(&job, vec![file(&path, MIB)]), &shared);
        assert_eq!(end.error, None);
        let sent = Sent::from_messages(&received);
        assert_eq!(sent.written().ios, 256);
        assert_eq!(sent.end.verified.unwrap()[Direction::Read].ios, 256);
        assert_eq!(sent.ticks.iter().map(|tick| tick.syncs.count).sum::<u64>(), 2);
    }
}

#[test]
fn threads_look_at_what_was_read_and_find_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    fs::write(&path, vec![0; MIB as usize]).unwrap();
    let real = |job: &Job| {
        let (messages, received) = std::sync::mpsc::channel();
        let shared = super::super::Shared::new(kelvin_measure::Clock::real(), Stop::new(), messages, &[None]);
        super::super::run(plan(job, vec![file(&path, MIB)]), &shared);
        Sent::from_messages(&received)
    };
    for (name, depth) in [(EngineName::IoUring, 8), (EngineName::Psync, 4), (EngineName::Psync, 1)] {
        let mut wanted = writing(in_order(job(name, depth)));
        wanted.verify = Some(Verify { threads: 3, thread_cpus: vec![0], ..crc() });
        let sent = real(&wanted);
        assert_eq!(sent.end.error, None, "{name:?}");
        assert_eq!(sent.end.verified.unwrap()[Direction::Read].ios, 256, "{name:?}");
        // Also during the writes.
        wanted.verify = Some(Verify { threads: 2, backlog: Some(50), backlog_batch: Some(50), ..crc() });
        let sent = real(&wanted);
        assert_eq!(sent.end.error, None, "{name:?}");
        assert_eq!(sent.end.verified.unwrap()[Direction::Read].ios, 256, "{name:?}");
        // Workers that only read find wrong bytes, each once.
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        let places = [0, 7, 100, 101, 255];
        for block in places {
            bad[block * 4096 + 1000] ^= 4;
        }
        fs::write(&path, &bad).unwrap();
        let mut reads = in_order(job(name, depth));
        reads.verify = Some(Verify { threads: 3, ..crc() });
        reads.errors.go_on_verify = true;
        let sent = real(&reads);
        assert_eq!(sent.end.error, None, "{name:?}");
        let failures = || sent.ticks.iter().flat_map(|tick| &tick.failures);
        assert_eq!(failures().map(|one| one.count).sum::<u64>(), places.len() as u64, "{name:?}");
        assert!(failures().all(|one| one.number == libc::EILSEQ && one.message.contains("verify:")));
        assert_eq!(sent.read().ios, 256, "{name:?}");
        reads.errors.go_on_verify = false;
        assert_eq!(real(&reads).end.error.unwrap().0, libc::EILSEQ, "{name:?}");
    }
}

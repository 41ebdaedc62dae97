//! What was written is looked at, and what is wrong is told.

use std::fs;

use kelvin_measure::Stop;
use kelvin_measure::event::Part;

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

/// By CRC-32C, after the writes.
pub(super) fn crc() -> Verify {
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
        job.verify = Some(crc());
        let (messages, received) = std::sync::mpsc::channel();
        let shared = super::super::Shared::new(kelvin_measure::Clock::real(), Stop::new(), messages, &[None]);
        let end = super::super::run(plan(&job, vec![file(&path, MIB)]), &shared);
        assert_eq!(end.error, None);
        let sent = Sent::of(&received);
        assert_eq!(sent.written().ios, 256);
        assert_eq!(sent.end.verified.unwrap()[Direction::Read].ios, 256);
        assert_eq!(sent.ticks.iter().map(|tick| tick.syncs.count).sum::<u64>(), 2);
    }
}

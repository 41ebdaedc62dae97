//! Files that are not all open, and files that are created again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kelvin_measure::{Clock, Stop};

use super::super::testing::{Sent, plan};
use super::verify::crc;
use crate::Direction;
use crate::engine::testing::{file, job, writing};
use crate::job::*;

const LENGTH: u64 = 64 << 10;

/// Runs a job with its stream on files of one length.
fn run(job: &Job, paths: &[&Path]) -> Sent {
    let (messages, received) = std::sync::mpsc::channel();
    let shared = super::super::Shared::new(Clock::real(), Stop::new(), messages, &[None]);
    let targets = paths.iter().map(|path| file(path, LENGTH)).collect();
    super::super::run(plan(job, targets), &shared);
    Sent::from_messages(&received)
}

#[test]
fn files_that_are_closed_and_opened_again_hold_what_was_written() {
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..8).map(|number| directory.path().join(number.to_string())).collect();
    let paths: Vec<&Path> = paths.iter().map(AsRef::as_ref).collect();
    for name in [EngineName::IoUring, EngineName::Libaio, EngineName::Sync, EngineName::Psync] {
        for path in &paths {
            fs::write(path, vec![0; LENGTH as usize]).unwrap();
        }
        let mut wanted = writing(job(name, 4));
        wanted.pattern.no_random_map = false;
        wanted.targets.files = 8;
        wanted.targets.open_files = Some(2);
        // Any file at any time, so that they are often closed and opened.
        wanted.targets.service.choice = FileChoice::Zipf(1.2);
        wanted.sync.fsync = 10;
        wanted.sync.end_fsync = true;
        wanted.verify = Some(crc());
        let sent = run(&wanted, &paths);
        assert_eq!(sent.end.error, None, "{name:?}");
        assert_eq!(sent.written().ios, 128, "{name:?}");
        // A file that is chosen again after it has been completely written is written again, as in fio: blocks that
        // were written twice are verified once.
        let verified = sent.end.verified.unwrap()[Direction::Read].ios;
        assert!((16..=128).contains(&verified), "{name:?}: {verified}");
    }
}

#[test]
fn files_are_made_anew_between_loops_and_stay_after_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data");
    for name in [EngineName::IoUring, EngineName::Libaio, EngineName::Sync, EngineName::Psync] {
        fs::write(&path, vec![7; LENGTH as usize]).unwrap();
        let first = fs::File::open(&path).unwrap();
        let before = first.metadata().unwrap();
        let mut wanted = writing(job(name, 4));
        wanted.pattern.no_random_map = false;
        wanted.buffers.zero = true;
        (wanted.course.loops, wanted.targets.unlink_each_loop) = (3, true);
        let sent = run(&wanted, &[&path]);
        assert_eq!(sent.end.error, None, "{name:?}");
        assert_eq!(sent.written().bytes, 3 * LENGTH, "{name:?}");
        let after = fs::metadata(&path).unwrap();
        assert_ne!(after.ino(), before.ino(), "{name:?}: as `first` is open, its number is not given again");
        assert_eq!(after.len(), LENGTH, "{name:?}");
        assert_eq!(first.metadata().unwrap().nlink(), 0, "{name:?}");
        assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 0), "{name:?}");
    }
}

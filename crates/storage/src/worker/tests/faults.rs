//! Targets that are full, or shorter than expected.

use std::fs;

use kelvin_measure::Stop;

use super::super::testing::{run, run_on};
use super::{MIB, in_order};
use crate::engine::testing::{job, writing};
use crate::job::*;
use crate::{Target, TargetKind};

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
fn a_truncated_file_is_reported_without_a_crash() {
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
        // With continue_on_error, every missing block is counted.
        job.errors.go_on_read = true;
        let sent = run(&job, &path, MIB);
        assert_eq!(sent.end.error, None);
        assert_eq!((sent.read().ios, sent.read().failed), (128, 128), "{name:?}");
        let failures: Vec<_> = sent.ticks.iter().flat_map(|tick| &tick.failures).collect();
        assert_eq!(failures[0].first, (MIB / 2, 4096));
        assert_eq!(failures[0].count, 128);
    }
}

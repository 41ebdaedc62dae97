//! What is reported before anything is measured.

use std::path::PathBuf;
use std::process::Command;

use kelvin_diagnose::Severity;

use crate::support::{SIZE, found, prepare, reserved, sparse, written};

const JOB: &str =
    "[read]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\niodepth=8\nruntime=1\ntime_based=1\n";

#[test]
fn written_sparse_and_reserved_files_are_distinguished() {
    let directory = tempfile::tempdir().unwrap();
    let inspect = |name: &str, make: fn(&std::path::Path)| {
        let path = directory.path().join(name);
        make(&path);
        let (_, facts) = prepare(&format!("{JOB}filename={}\nsize={SIZE}\n", path.display()));
        let coverage = facts.targets[0].coverage.clone().unwrap();
        assert_eq!(coverage.bytes, SIZE, "{name}");
        (found(&facts), coverage)
    };
    let (findings, coverage) = inspect("written", written);
    assert_eq!((findings, coverage.hole, coverage.unwritten), (vec![], 0, 0));
    let (findings, coverage) = inspect("sparse", sparse);
    assert_eq!((findings, coverage.hole), (vec![("io-holes", Severity::Red)], SIZE));
    let (findings, coverage) = inspect("reserved", reserved);
    // tmpfs has no extents that were never written: what was reserved there is stored.
    if coverage.by == "fiemap" {
        assert_eq!((findings, coverage.unwritten), (vec![("io-unwritten", Severity::Red)], SIZE));
    }
}

#[test]
fn what_a_job_asks_for_is_judged_before_it_begins() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    written(&path);
    let reported = |options: &str| {
        let text = format!("[job]\nfilename={}\nsize={SIZE}\n{options}", path.display());
        found(&prepare(&text).1)
    };
    assert_eq!(reported("rw=read\nbs=64k\ndirect=1\n"), []);
    assert_eq!(
        reported("rw=randread\nioengine=psync\niodepth=32\ndirect=1\n"),
        [("io-depth-not-reached", Severity::Amber)]
    );
    assert_eq!(reported("rw=read\nbs=64k\ndirect=1\nnumjobs=4\n"), [("io-same-bytes", Severity::Amber)]);
    assert_eq!(reported("rw=read\nbs=64k\ndirect=1\nnumjobs=4\noffset_increment=25%\nsize=25%\n"), []);
    let cached = reported("rw=randread\nruntime=1\ntime_based=1\n");
    assert_eq!(cached, [("io-page-cache", Severity::Amber)]);
    assert_eq!(reported("rw=randwrite\nbs=4k\ndirect=1\nrefill_buffers=1\n"), []);
    let zeros =
        prepare(&format!("[job]\nfilename={}\nsize={SIZE}\nrw=write\nzero_buffers=1\n", path.display()));
    let zeros = zeros.1.jobs[0].buffers.clone().unwrap();
    assert_eq!(zeros.zero, zeros.blocks);
}

#[test]
fn blocks_of_zeros_that_were_written_are_found_by_their_sample() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("zeros");
    std::fs::write(&path, vec![0; SIZE as usize]).unwrap();
    let text = format!("{JOB}filename={}\nsize={SIZE}\n", path.display());
    assert_eq!(found(&prepare(&text).1), [("io-zero-blocks", Severity::Amber)]);
}

#[test]
fn memory_is_distinguished_from_storage() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = directory.path().join("file");
    written(&path);
    let text =
        format!("[job]\nfilename={}\nsize={SIZE}\nrw=randread\nruntime=1\ntime_based=1\n", path.display());
    assert_eq!(found(&prepare(&text).1), [("io-layers", Severity::Red)]);
}

/// A loop device over a file; detached at the end.
struct Loop(PathBuf);

impl Drop for Loop {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("-d").arg(&self.0).status();
        assert!(detached.is_ok_and(|status| status.success()), "{} stays behind", self.0.display());
    }
}

#[test]
fn a_device_of_zeros_over_a_file_is_reported_for_both() {
    let directory = tempfile::tempdir().unwrap();
    let image = directory.path().join("image");
    sparse(&image);
    // Only root may make one, and not in every container.
    let Ok(made) = Command::new("losetup").args(["-f", "--show"]).arg(&image).output() else { return };
    if !made.status.success() {
        return;
    }
    let device = Loop(String::from_utf8(made.stdout).unwrap().trim().into());
    let job = format!("{JOB}filename={}\n", device.0.display());
    let (_, facts) = prepare(&job);
    assert_eq!(found(&facts), [("io-zero-blocks", Severity::Red), ("io-layers", Severity::Amber)]);
    let seen = &facts.devices[0];
    assert_eq!((seen.size, seen.layers[0].detail.as_str()), (SIZE, image.to_str().unwrap()));
    drop(device);

    written(&image);
    let made = Command::new("losetup").args(["-f", "--show"]).arg(&image).output().unwrap();
    let device = Loop(String::from_utf8(made.stdout).unwrap().trim().into());
    let (_, facts) = prepare(&format!("{JOB}filename={}\n", device.0.display()));
    assert_eq!(found(&facts), [("io-layers", Severity::Amber)]);
}

//! What is told before anything is measured.

use kelvin_diagnose::Severity;

use crate::support::{SIZE, found, prepare, reserved, sparse, written};

const JOB: &str = "[read]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\niodepth=8\nruntime=1\ntime_based=1\n";

#[test]
fn written_sparse_and_reserved_files_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let told = |name: &str, make: fn(&std::path::Path)| {
        let path = directory.path().join(name);
        make(&path);
        let (_, facts) = prepare(&format!("{JOB}filename={}\nsize={SIZE}\n", path.display()));
        let coverage = facts.targets[0].coverage.clone().unwrap();
        assert_eq!(coverage.bytes, SIZE, "{name}");
        (found(&facts), coverage)
    };
    let (findings, coverage) = told("written", written);
    assert_eq!((findings, coverage.hole, coverage.unwritten), (vec![], 0, 0));
    let (findings, coverage) = told("sparse", sparse);
    assert_eq!((findings, coverage.hole), (vec![("io-holes", Severity::Red)], SIZE));
    let (findings, coverage) = told("reserved", reserved);
    // tmpfs has no extents that were never written: what was reserved there is stored.
    if coverage.by == "fiemap" {
        assert_eq!((findings, coverage.unwritten), (vec![("io-unwritten", Severity::Red)], SIZE));
    }
}

//! `kelvin io` on small files, as users of fio type it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stderr, reason = "a test reports why it compared nothing")]

#[path = "../fio_json/mod.rs"]
mod fio_json;
#[path = "../support/mod.rs"]
mod support;

mod as_fio;
mod groups;
mod kept;
mod logs;
mod phases;
mod runs;

use support::Place;

/// Reads from the page cache: the tests check how values are processed, not a disk.
const JOB: &str =
    "[global]\nfilename=data\nsize=1m\nbs=4k\nioengine=psync\n[reader]\nrw=randread\nnumber_ios=100\n";

/// Open-ended, with a minimal load.
const LONG: &str =
    "[long]\nfilename=data\nsize=1m\nrw=randread\nioengine=psync\nrate_iops=200\ntime_based\nruntime=60\n";

fn place(job: &str) -> Place {
    let place = Place::new();
    place.write("job.fio", job);
    place.write("data", vec![7_u8; 1 << 20]);
    place
}

//! The sampler allocates nothing in steady state. A separate binary: its allocator counts for the whole process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kelvin_observe::sample::{Config, HostSampler, Process, SystemTree};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator as it came.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of some work. The harness has a separate thread, which may do something now and then: the least of some
/// rounds counts.
fn least(work: &mut dyn FnMut()) -> u64 {
    let rounds = (0..5).map(|_| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..20 {
            work();
        }
        ALLOCATIONS.load(Ordering::Relaxed) - before
    });
    rounds.min().unwrap()
}

/// One test, since the others would be counted with it.
#[test]
fn a_sample_allocates_nothing() {
    host();
    placement();
    counters();
    assert_eq!(least(&mut || drop(std::hint::black_box(vec![1_u8]))), 20, "the allocator does not count");
}

fn host() {
    let me = std::process::id();
    let config = Config {
        paths: vec![("data".into(), PathBuf::from(".")), ("wal".into(), PathBuf::from("/tmp"))],
        processes: vec![
            Process { name: "client".into(), pid: me, children: false },
            Process { name: "parent".into(), pid: std::os::unix::process::parent_id(), children: true },
        ],
        ..Config::default()
    };
    samples(HostSampler::new(&config));
}

/// For a process on a host with two nodes, which this one need not have.
fn placement() {
    let tree = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/proc", tree.path().join("proc")).unwrap();
    for node in 0..2 {
        std::fs::create_dir_all(tree.path().join(format!("sys/devices/system/node/node{node}"))).unwrap();
    }
    let process = Process { name: "client".into(), pid: std::process::id(), children: false };
    let sampler = HostSampler::from_tree(
        &SystemTree::at(tree.path()),
        &Config { processes: vec![process], ..Config::default() },
    );
    let has = |name: &str| sampler.series().iter().any(|series| series.name == name);
    assert!(has("host.process.client.numa.1") || !std::path::Path::new("/proc/self/numa_maps").exists());
    samples(sampler);
}

fn samples(mut sampler: HostSampler) {
    let mut values = vec![0.0; sampler.series().len()];
    // Said to be long after each other, so that all is read every time.
    let mut sample = || sampler.sample(Duration::from_secs(1000), &mut values);
    sample();
    sample();
    assert_eq!(least(&mut sample), 0);
}

/// Hardware counters and software counters are read in the same way, and the latter exist everywhere.
fn counters() {
    let mut builder = perf_event::Builder::new(perf_event::events::Software::PAGE_FAULTS);
    match builder.enabled(true).build() {
        Ok(mut counter) => {
            let mut read = || assert!(counter.read_full().unwrap().count() < u64::MAX);
            assert_eq!(least(&mut read), 0);
        }
        // Some distributions and containers allow it only to root.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
}

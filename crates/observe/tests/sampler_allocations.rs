//! The sampler allocates nothing in steady state. A binary of its own: its allocator counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kelvin_observe::sample::{Config, HostSampler, Process};

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

#[test]
fn a_sample_allocates_nothing() {
    let me = std::process::id();
    let config = Config {
        paths: vec![("data".into(), PathBuf::from(".")), ("wal".into(), PathBuf::from("/tmp"))],
        processes: vec![
            Process { name: "client".into(), pid: me, children: false },
            Process { name: "parent".into(), pid: std::os::unix::process::parent_id(), children: true },
        ],
        ..Config::default()
    };
    let mut sampler = HostSampler::new(&config);
    let mut values = vec![0.0; sampler.series().len()];
    for _ in 0..2 {
        sampler.sample(Duration::from_secs(1), &mut values);
    }
    // The harness has a thread of its own, which may do something now and then: the best of the rounds counts.
    let count = |work: &mut dyn FnMut()| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        work();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    let rounds = (0..5).map(|_| {
        count(&mut || {
            for _ in 0..20 {
                sampler.sample(Duration::from_secs(1), &mut values);
            }
        })
    });
    assert_eq!(rounds.min(), Some(0));
    assert_eq!(count(&mut || drop(std::hint::black_box(vec![1_u8]))), 1, "the allocator does not count");
}

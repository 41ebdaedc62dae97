//! A run that goes on is read as it is written, and a list that was read before is brought up to date.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{as_json, new_run, whole_run};
use kelvin_measure::{Event, Sink};
use kelvin_store::{Follower, Liveness, Store};

/// Everything but the seconds.
fn others(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| !matches!(event, Event::Second(_))).cloned().collect()
}

#[test]
fn a_follower_reads_each_event_once_and_the_newest_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("k.db");
    let store = Store::open(&path).unwrap();
    let mut writer = store.begin_run(&new_run(None)).unwrap();
    let mut follower = Follower::new(Store::open_read_only(&path).unwrap(), writer.id()).unwrap();
    assert!(follower.advance().unwrap().is_empty() && follower.run().first_second().is_none());
    let events = whole_run(3, 12, 40);
    let (mut seen, mut counted) = (Vec::new(), 0);
    for part in events.chunks(5) {
        for event in part {
            writer.event(event).unwrap();
        }
        writer.flush().unwrap();
        seen.extend(follower.advance().unwrap());
        // The last second that was read comes again, since it may have been incomplete.
        if let Some((point, first)) = follower.run().first_second() {
            let rows = follower.run().point_statistics(point).unwrap().series;
            let known = rows.iter().filter(|row| row.second >= first).map(|row| row.second).max();
            counted = counted.max(known.unwrap_or(0));
        }
        assert_eq!(
            follower.run().liveness == Liveness::Ended,
            seen.iter().any(|e| matches!(e, Event::Finished { .. }))
        );
    }
    drop(writer);
    // Of the counters within one second the last is kept.
    let kept = |events: &[Event]| -> Vec<String> {
        as_json(events).into_iter().filter(|event| !event.contains("\"counters\"")).collect()
    };
    assert_eq!(kept(&seen), kept(&others(&events)));
    assert_eq!(counted, 12, "the tail's second");
}

#[test]
fn a_list_that_is_brought_up_to_date_is_the_list() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("k.db");
    let mut store = Store::open(&path).unwrap();
    let mut known = Vec::new();
    let version = store.data_version().unwrap();
    for number in 0..4 {
        let mut writer = store.begin_run(&new_run(Some("nightly"))).unwrap();
        let events = whole_run(number, 3, 5);
        // The third run stays without its end.
        let end = if number == 2 { 6 } else { events.len() };
        for event in &events[..end] {
            writer.event(event).unwrap();
        }
        writer.flush().unwrap();
        known = store.runs_after(&known).unwrap();
        assert_eq!(known, store.runs().unwrap(), "while run {} goes on", number + 1);
        drop(writer);
        known = store.runs_after(&known).unwrap();
        assert_eq!(known, store.runs().unwrap(), "after run {}", number + 1);
    }
    assert_ne!(store.data_version().unwrap(), version);
    store.delete(known[1].id).unwrap();
    known = store.runs_after(&known).unwrap();
    assert_eq!((known.len(), &known), (3, &store.runs().unwrap()));
}

/// Closing a descriptor of a file gives up all locks that this process has on it: opening the store again must not, or the
/// writer elsewhere that ends last removes the write-ahead log under those who still read.
#[test]
fn opening_a_store_again_keeps_the_locks_on_it() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("k.db");
    let store = Store::open(&path).unwrap();
    drop(store.begin_run(&new_run(None)).unwrap());
    assert_eq!(store.runs().unwrap().len(), 1);
    let inode = format!(":{} ", std::fs::metadata(&path).unwrap().ino());
    let held = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        let pid = format!(" {} ", std::process::id());
        locks.lines().any(|line| line.contains("POSIX") && line.contains(&pid) && line.contains(&inode))
    };
    assert!(held(), "a connection to a store in WAL mode has a lock on it");
    drop(Store::open_read_only(&path).unwrap());
    assert!(held(), "opening the store a second time gave up the lock of the first");
}

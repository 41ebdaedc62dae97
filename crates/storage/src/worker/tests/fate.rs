//! The loop on an engine that treats each I/O as a test specifies.

use std::io;
use std::sync::mpsc::channel;
use std::time::Duration;

use kelvin_measure::Stop;

use super::super::testing::{run_engine, run_engine_with};
use super::{MIB, MS, in_order};
use crate::engine::testing::{job, writing};
use crate::engine::{CompletedRequest, IoEngine, Request, Wait};
use crate::job::*;
use crate::{Io, NextIo, SyncCall};

/// Decides the result of each I/O from its number.
struct Fate<F> {
    decide: F,
    asked: u64,
    waiting: Vec<CompletedRequest>,
    seen: Vec<Io>,
    /// It accepts syncs, which end after this many further I/Os.
    syncs: Option<u64>,
    carried: Vec<(u32, u64)>,
    /// The first I/O ends when this many have been submitted.
    holds: Option<u64>,
    held: Option<CompletedRequest>,
}

impl<F: FnMut(u64, &Request) -> Option<i64>> Fate<F> {
    fn new(decide: F) -> Self {
        Self {
            decide,
            asked: 0,
            waiting: Vec::new(),
            seen: Vec::new(),
            syncs: None,
            carried: Vec::new(),
            holds: None,
            held: None,
        }
    }
}

impl<F: FnMut(u64, &Request) -> Option<i64>> IoEngine for Fate<F> {
    fn is_synchronous(&self) -> bool {
        false
    }

    fn queue(&mut self, request: Request) {
        let Request { direction, target, offset, length, .. } = request;
        self.seen.push(Io { direction, target, offset, length });
        if let Some(result) = (self.decide)(self.asked, &request) {
            let ended = CompletedRequest { slot: request.slot, result };
            if self.asked == 0 && self.holds.is_some() {
                self.held = Some(ended);
            } else {
                self.waiting.push(ended);
            }
        }
        self.asked += 1;
        if self.holds == Some(self.asked) {
            self.waiting.extend(self.held.take());
        }
        let asked = self.asked;
        let waiting = &mut self.waiting;
        self.carried.retain(|(slot, at)| {
            if *at == asked {
                waiting.push(CompletedRequest { slot: *slot, result: 0 });
            }
            *at > asked
        });
    }

    fn queue_sync(&mut self, slot: u32, _target: u32, _how: SyncCall, _range: (u64, u64)) -> bool {
        let Some(later) = self.syncs else { return false };
        self.carried.push((slot, self.asked + later));
        true
    }

    fn commit(&mut self, _ended: &mut Vec<CompletedRequest>) -> io::Result<()> {
        Ok(())
    }

    fn reap(
        &mut self,
        _least: u32,
        most: u32,
        wait: Wait,
        ended: &mut Vec<CompletedRequest>,
    ) -> io::Result<()> {
        if self.waiting.is_empty()
            && let Wait::AtMost(nanos) = wait
        {
            std::thread::sleep(Duration::from_nanos(nanos.min(MS)));
        }
        let count = self.waiting.len().min(most as usize);
        ended.extend(self.waiting.drain(..count));
        Ok(())
    }
}

#[test]
fn what_moved_less_than_asked_is_resumed() {
    let halves = Fate::new(|_, request: &Request| Some(i64::from(request.length.div_ceil(2).max(512))));
    let mut wanted = in_order(job(EngineName::Null, 8));
    wanted.targets.number_ios = Some(100);
    let sent = run_engine(&wanted, halves, MIB, &Stop::new());
    assert_eq!(sent.end.error, None);
    // 4096 = 2048 + 1024 + 512 + 512.
    assert_eq!((sent.read().ios, sent.read().bytes, sent.read().short), (100, 100 * 4096, 300));
    assert_eq!(sent.read().completion.count, 100);
}

#[test]
fn the_kernel_may_ask_to_be_asked_again() {
    let busy = Fate::new(|number, request: &Request| {
        Some(if number % 3 == 0 { -i64::from(libc::EAGAIN) } else { i64::from(request.length) })
    });
    let sent = run_engine(&in_order(job(EngineName::Null, 8)), busy, MIB, &Stop::new());
    assert_eq!(sent.end.error, None);
    assert_eq!((sent.read().ios, sent.read().failed), (256, 0));
}

#[test]
fn errors_are_counted_and_end_the_job_or_not() {
    let failing = |number: i32| {
        move |at: u64, request: &Request| {
            Some(if at % 4 == 3 { -i64::from(number) } else { i64::from(request.length) })
        }
    };
    let mut wanted = in_order(job(EngineName::Null, 1));
    let sent = run_engine(&wanted, Fate::new(failing(libc::EIO)), MIB, &Stop::new());
    let (number, message) = sent.end.error.clone().unwrap();
    assert_eq!((number, sent.read().ios, sent.read().failed), (libc::EIO, 3, 1));
    assert!(message.starts_with("read of 4096 bytes at 12288 of /nowhere: Input/output error"), "{message}");
    wanted.errors.go_on_read = true;
    let sent = run_engine(&wanted, Fate::new(failing(libc::EIO)), MIB, &Stop::new());
    assert_eq!(sent.end.error, None);
    assert_eq!((sent.read().ios, sent.read().failed), (192, 64));
    // A failed device does not recover.
    let sent = run_engine(&wanted, Fate::new(failing(libc::ENODEV)), MIB, &Stop::new());
    assert_eq!(sent.end.error.unwrap().0, libc::ENODEV);
    wanted.errors.ignore[0] = vec![libc::ENODEV];
    let sent = run_engine(&wanted, Fate::new(failing(libc::ENODEV)), MIB, &Stop::new());
    assert_eq!(sent.end.error, None);
    assert_eq!((sent.read().ios, sent.read().failed), (192, 64));
}

#[test]
fn a_device_that_hangs_hangs_nobody_who_insists() {
    let (hung, all_hang) = channel();
    let hangs = Fate::new(move |number, request: &Request| {
        if number == 13 {
            hung.send(()).unwrap();
        }
        (number < 10).then_some(i64::from(request.length))
    });
    let stop = Stop::new();
    let other = stop.clone();
    let stopper = std::thread::spawn(move || {
        all_hang.recv().unwrap();
        std::thread::sleep(Duration::from_millis(30));
        other.request();
        std::thread::sleep(Duration::from_millis(30));
        other.request();
    });
    let sent = run_engine(&in_order(job(EngineName::Null, 4)), hangs, MIB, &stop);
    stopper.join().unwrap();
    let (number, message) = sent.end.error.clone().unwrap();
    assert_eq!(number, libc::ETIMEDOUT);
    assert!(
        message.starts_with("gave up waiting for 4 I/Os in flight: read of 4096 bytes at 40960"),
        "{message}"
    );
    assert_eq!(sent.read().ios, 10, "what had ended is kept");
    assert_eq!(sent.end.notes, ["4 I/Os never completed and are not in the results"]);
}

#[test]
fn ios_that_overlap_wait_for_each_other() {
    // Two I/Os at the same offset are never in flight together.
    let mut under_way: Vec<(u32, u64)> = Vec::new();
    let mut turn = 0;
    let watched = Fate::new(move |_, request: &Request| {
        under_way.retain(|(slot, _)| *slot != request.slot);
        assert!(!under_way.iter().any(|(_, offset)| *offset == request.offset) || turn > 0);
        under_way.push((request.slot, request.offset));
        turn += 1;
        Some(i64::from(request.length))
    });
    let mut wanted = job(EngineName::Null, 4);
    wanted.depth.serialize_overlap = true;
    let sent = run_engine(&wanted, watched, 2 * 4096, &Stop::new());
    assert_eq!(sent.end.error, None);
    // Two blocks only: never more than two in flight.
    assert_eq!(sent.depth.at[2..], [0, 0, 0, 0, 0]);
}

#[test]
fn what_is_under_way_goes_on_over_a_sync() {
    let sync = NextIo::Sync { target: 0, how: SyncCall::Fsync };
    for syncs in [None, Some(3)] {
        let mut engine = Fate::new(|_, request: &Request| Some(i64::from(request.length)));
        // The first write is in flight until the last has been submitted: a worker that waited for it would wait
        // forever.
        engine.holds = Some(40);
        engine.syncs = syncs;
        let mut wanted = writing(in_order(job(EngineName::Null, 4)));
        wanted.targets.number_ios = Some(40);
        let sent = run_engine_with(&wanted, engine, MIB, &Stop::new(), |stream| {
            stream.also = vec![(4, sync), (8, sync), (20, sync)];
        });
        assert_eq!(sent.end.error, None);
        assert_eq!(sent.written().ios, 40);
        assert_eq!(sent.ticks.iter().map(|tick| tick.syncs.count).sum::<u64>(), 3);
    }
}

#[test]
fn a_failed_sync_is_reported() {
    struct Fails(Fate<fn(u64, &Request) -> Option<i64>>);
    impl IoEngine for Fails {
        fn is_synchronous(&self) -> bool {
            false
        }
        fn queue(&mut self, request: Request) {
            self.0.queue(request);
        }
        fn queue_sync(&mut self, slot: u32, _target: u32, _how: SyncCall, _range: (u64, u64)) -> bool {
            self.0.waiting.push(CompletedRequest { slot, result: -i64::from(libc::EIO) });
            true
        }
        fn commit(&mut self, ended: &mut Vec<CompletedRequest>) -> io::Result<()> {
            self.0.commit(ended)
        }
        fn reap(
            &mut self,
            least: u32,
            most: u32,
            wait: Wait,
            ended: &mut Vec<CompletedRequest>,
        ) -> io::Result<()> {
            self.0.reap(least, most, wait, ended)
        }
    }
    let whole: fn(u64, &Request) -> Option<i64> = |_, request| Some(i64::from(request.length));
    let mut wanted = writing(in_order(job(EngineName::Null, 4)));
    for go_on in [false, true] {
        wanted.errors.go_on_write = go_on;
        let sent = run_engine_with(&wanted, Fails(Fate::new(whole)), MIB, &Stop::new(), |stream| {
            stream.also = vec![(10, NextIo::Sync { target: 0, how: SyncCall::Fdatasync })];
        });
        let error = sent.end.error.clone();
        assert_eq!(error.as_ref().map(|error| error.0), (!go_on).then_some(libc::EIO));
        assert!(error.is_none_or(|error| error.1.starts_with("sync of /nowhere: Input/output error")));
        assert_eq!(sent.ticks.iter().flat_map(|tick| &tick.failures).map(|one| one.count).sum::<u64>(), 1);
        assert_eq!(sent.written().failed, 0, "no write failed");
    }
}

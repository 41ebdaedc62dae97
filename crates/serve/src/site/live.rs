//! A running run as server-sent events: its newest seconds, once a second.

use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kelvin_report::live::LiveRun;
use kelvin_store::{Follower, Liveness, RunId, Store};

/// How often the store is read. The writer commits once a second.
const EVERY: Duration = Duration::from_secs(1);
/// Number of seconds that a page gets at first, which fills a screen.
const FIRST: usize = 900;
/// Largest number of pages that follow runs at the same time.
const MOST: usize = 32;

/// The number of pages that follow runs.
#[derive(Default)]
pub(super) struct Streams(AtomicUsize);

/// One page that follows a run.
pub(super) struct Stream<'a>(&'a Streams);

impl Streams {
    /// Registers a page; `None` if too many pages follow runs.
    pub(super) fn begin(&self) -> Option<Stream<'_>> {
        let more = |streams| (streams < MOST).then_some(streams + 1);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Stream(self))
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Follows a run until it ends, the page is closed, or the server stops.
pub(super) fn follow(
    store: Store,
    run: RunId,
    stop: &AtomicBool,
    out: &mut dyn Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut follower = Follower::new(store, run)?;
    let mut live = LiveRun::new(follower.run());
    let mut most = FIRST;
    while !stop.load(Ordering::Acquire) {
        for event in follower.advance()? {
            live.event(&event);
        }
        if let Some(newest) = live.newest(follower.run(), most)? {
            most = 5;
            write!(out, "data: {}\n\n", serde_json::to_string(&newest)?)?;
        } else {
            // A comment, which fails if the page was closed.
            out.write_all(b": nothing yet\n\n")?;
        }
        if follower.run().liveness != Liveness::Running {
            out.write_all(b"event: end\ndata: {}\n\n")?;
            out.flush()?;
            return Ok(());
        }
        out.flush()?;
        std::thread::sleep(EVERY);
    }
    Ok(())
}

//! Ctrl-C, and the signals that service managers send.

use anyhow::{Context, Result};
use kelvin_workload::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const TRANSACTIONS: &str = "kelvin: stopping after the transactions under way; Ctrl-C again to stop now";

/// Makes the first signal ask for an orderly end and the second for one now. A third ends the process: by then
/// something is stuck that we should have foreseen.
pub(crate) fn listen() -> Result<Stop> {
    listen_saying(TRANSACTIONS)
}

/// The same; these words answer the first signal.
pub(crate) fn listen_saying(words: &'static str) -> Result<Stop> {
    let stop = Stop::new();
    let asked = stop.clone();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .context("cannot listen for signals")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                answer(&asked, words);
            }
        })
        .context("cannot start a thread for signals")?;
    Ok(stop)
}

/// What a signal does, and a key of the live view that stands for one.
pub(crate) fn asked(stop: &Stop) {
    answer(stop, TRANSACTIONS);
}

fn answer(stop: &Stop, words: &str) {
    if stop.now() {
        crate::live::give_back_in_a_hurry();
        std::process::exit(crate::exit::Code::Interrupted as i32);
    }
    crate::live::tell(if stop.requested() { "kelvin: stopping now" } else { words });
    stop.request();
}

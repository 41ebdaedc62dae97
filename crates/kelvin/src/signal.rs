//! Ctrl-C, and the signals that service managers send.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use kelvin_workload::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const TRANSACTIONS: &str = "kelvin: stopping after the transactions in flight; Ctrl-C again to stop now";

/// Handles signals: the first requests an orderly stop, the second an immediate one, and the third ends the
/// process, which must have hung.
pub(crate) fn listen() -> Result<Stop> {
    listen_saying(TRANSACTIONS)
}

/// As [`listen`], with the message to print on the first signal.
pub(crate) fn listen_saying(words: &'static str) -> Result<Stop> {
    let stop = Stop::new();
    let asked = stop.clone();
    // SIGHUP ends the run as Ctrl-C does, unless the parent made this process ignore it, as nohup
    // does.
    let hang_up = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM].into_iter().chain(hang_up))
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

/// Ignores the signals: the process that started this one receives them, too, and ends this one.
pub(crate) fn leave_to_others() -> Result<()> {
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // The flag is never read. Registering it replaces the default action, which would end the process.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .context("cannot listen for signals")?;
    }
    Ok(())
}

/// Whether this process was started with the signal ignored.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = kelvin_host::field(&status, "SigIgn");
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

/// Requests a stop as a signal does; for the key of the live view.
pub(crate) fn request_stop(stop: &Stop) {
    answer(stop, TRANSACTIONS);
}

fn answer(stop: &Stop, words: &str) {
    if stop.is_immediate() {
        kelvin_live::restore_immediately();
        std::process::exit(crate::exit::Code::Interrupted as i32);
    }
    let words = if stop.requested() { "kelvin: stopping now" } else { words };
    stop.request();
    kelvin_live::show_message(words);
}

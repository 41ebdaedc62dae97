//! Ctrl-C, and the signals that service managers send.

use anyhow::{Context, Result};
use kelvin_workload::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Makes the first signal ask for an orderly end and the second for one now. A third ends the process: by then
/// something is stuck that we should have foreseen.
pub(crate) fn listen() -> Result<Stop> {
    let stop = Stop::new();
    let asked = stop.clone();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
        .context("cannot listen for signals")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                if asked.now() {
                    std::process::exit(crate::exit::Code::Interrupted as i32);
                }
                if asked.requested() {
                    eprintln!("\nkelvin: stopping now");
                } else {
                    eprintln!(
                        "\nkelvin: stopping after the transactions under way; Ctrl-C again to stop now"
                    );
                }
                asked.request();
            }
        })
        .context("cannot start a thread for signals")?;
    Ok(stop)
}

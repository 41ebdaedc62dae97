//! Ctrl-C: the run in progress ends, what was measured is printed, and everything that was started is ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on an interrupt only asks.
pub(crate) fn watch() -> Result<()> {
    let asked = ASKED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(asked))?;
    }
    Ok(())
}

/// An error once somebody asked to stop.
pub(crate) fn check() -> Result<()> {
    if ASKED.get().is_some_and(|asked| asked.load(Ordering::Acquire)) {
        bail!("interrupted");
    }
    Ok(())
}

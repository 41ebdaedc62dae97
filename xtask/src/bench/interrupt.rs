//! Ctrl-C: the current run ends, the results so far are printed, and all child processes are ended.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, an interrupt only requests a stop.
pub(crate) fn watch() -> Result<()> {
    let asked = ASKED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(asked))?;
    }
    Ok(())
}

/// Returns an error if a stop was requested.
pub(crate) fn check() -> Result<()> {
    if ASKED.get().is_some_and(|asked| asked.load(Ordering::Acquire)) {
        bail!("interrupted");
    }
    Ok(())
}

//! Samples a server's sessions for a duration, for `kelvin waits` and `kelvin top-sql`.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kelvin_lab::open::Purpose;
use kelvin_measure::observation::Observation;
use kelvin_measure::{Clock, Nanos};
use kelvin_observe::activity::{Activity, ServerActivity, SessionSamples};
use kelvin_observe::engine;
use kelvin_observe::watch::{Watch, Watcher};
use kelvin_run::spec::Span;

use crate::args::{Format, Global, SampledServerArgs};
use crate::measure::open;
use crate::out;

/// How often samples are taken from the watcher and signals are checked.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// The default duration.
pub(super) const INTERVAL: Span = Span::seconds(10);

/// A server with a connection.
pub(super) struct Opened {
    /// Its URL without the password.
    pub(super) target: String,
    /// Product and version.
    pub(super) product: String,
    pub(super) sessions: Box<dyn Watcher>,
    pub(super) server: Box<dyn ServerActivity>,
}

/// Connects to the server.
pub(super) fn open_server(args: &SampledServerArgs, global: &Global) -> Result<Opened> {
    if args.format.format() == Format::Pgbench {
        bail!("--format pgbench prints the result of a run; use text, json, jsonl, csv or markdown");
    }
    let opened = open(&args.target, Purpose::Existing, &mut |text| {
        if !global.quiet {
            out::note(text);
        }
    })?;
    let Activity { sessions, mut server } = engine::activity(&opened.engine, args.sample_rate)?;
    let product = server.product().map_err(anyhow::Error::msg)?;
    Ok(Opened { target: opened.engine.describe(), product, sessions, server })
}

/// A running observation of the sessions.
pub(super) struct Sampling {
    watch: Watch,
    clock: Clock,
    began: Nanos,
    pub(super) samples: SessionSamples,
}

impl Sampling {
    pub(super) fn start(sessions: Box<dyn Watcher>) -> Result<Self> {
        let clock = Clock::real();
        let watch = Watch::start(vec![sessions], &clock).context("cannot start the observer")?;
        Ok(Self { watch, began: clock.now(), clock, samples: SessionSamples::default() })
    }

    /// Seconds since the start.
    pub(super) fn seconds(&self) -> f64 {
        (self.clock.now() - self.began) as f64 / 1e9
    }

    /// Takes the samples that the watcher has.
    pub(super) fn take(&mut self) {
        self.watch.take().for_each(|one| self.samples.take(&one));
    }

    /// Stops the watcher and returns all samples.
    pub(super) fn finish(self) -> SessionSamples {
        let mut samples = self.samples;
        let last: Result<(), std::convert::Infallible> = self.watch.finish(|one: Observation| {
            samples.take(&one);
            Ok(())
        });
        match last {
            Ok(()) => samples,
        }
    }
}

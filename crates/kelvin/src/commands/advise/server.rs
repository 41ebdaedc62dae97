//! Changes for a server as it is: the findings of a run's observers under any load it has.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use kelvin_database::Engine;
use kelvin_diagnose::{Context, Evidence, is_client};
use kelvin_lab::open::Purpose;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::Observation;
use kelvin_measure::{Clock, Event};
use kelvin_observe::engine::ExplainSample;
use kelvin_observe::watch::{Stage, Watch};
use kelvin_run::Environment;
use kelvin_run::observation::Watchers;
use kelvin_run::spec::{Observe, Span, TargetName};

use crate::args::Global;
use crate::commands::sampling::TICK;
use crate::measure::open;
use crate::{out, signal};

/// Default duration of the observation.
const LENGTH: Span = Span::seconds(30);

/// The observations of a server.
pub(super) struct WatchedServer {
    pub(super) evidence: Evidence,
    pub(super) engine: Arc<dyn Engine>,
    /// "postgres://… , watched for 30 s".
    pub(super) what: String,
    /// Whether Ctrl-C ended it early.
    pub(super) interrupted: bool,
}

/// Observes the server for a duration.
pub(super) fn watch(
    target: &TargetName,
    length: Option<Span>,
    explain: Option<ExplainSample>,
    global: &Global,
) -> Result<WatchedServer> {
    let length = length.unwrap_or(LENGTH);
    let stop = signal::listen_saying("kelvin: stopping; the advice is based on the observations so far")?;
    let mut say = |text: &str| {
        if !global.quiet {
            out::note(text);
        }
    };
    let opened = open(target, Purpose::Existing, &mut say)?;
    if explain.is_some() && !opened.engine.capabilities().executed_plans {
        bail!("--explain is supported only on PostgreSQL, MySQL and MariaDB; omit it");
    }
    let environment = Environment::read(&*opened.engine, &mut *opened.engine.connect()?)?;
    let mut context =
        Context::default().with_environment(serde_json::Value::Null, serde_json::to_value(&environment)?);
    context.target = opened.engine.describe();
    say(&format!("watching {} for {length}", context.target));
    let mut seen = Evidence::new(context);
    let clock = Clock::real();
    let observe = Observe { explain, ..Observe::default() };
    let found = Watchers::for_plan(&observe, target.is_managed(), false, Some(&opened.engine));
    for absent in found.refused {
        seen.event(&Event::Observed(Observation::Lost(absent)));
    }
    let watch = Watch::start(found.watchers, &clock).context("cannot start the observers")?;
    let phase = |seen: &mut Evidence, phase: Phase| {
        seen.event(&Event::Phase { point: 0, phase, at: clock.now(), users: 1, planned: None });
        watch.stage(Stage { point: 0, phase });
    };
    phase(&mut seen, Phase::Connect);
    phase(&mut seen, Phase::Measure);
    let began = clock.now();
    while clock.now() < began + length.nanos() && !stop.requested() {
        std::thread::sleep(TICK);
        watch.take().for_each(|one| seen.event(&Event::Observed(one)));
    }
    phase(&mut seen, Phase::Stop);
    let seconds = (clock.now() - began) as f64 / 1e9;
    watch.finish(|one| {
        seen.event(&Event::Observed(one));
        Ok::<(), std::convert::Infallible>(())
    })?;
    // The average number of active sessions counts as the number of users: a change that costs memory per
    // session costs it for each.
    let users = seen.active(0, is_client).sessions().ceil().clamp(1.0, f64::from(u32::MAX)) as u32;
    seen.set_users(0, users);
    let what = format!("{}, watched for {seconds:.0} s", seen.context.target);
    Ok(WatchedServer { evidence: seen, engine: opened.engine, what, interrupted: stop.requested() })
}

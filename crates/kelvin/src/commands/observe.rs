//! `kelvin observe`: observes host and database without a load from Kelvin.

mod line;
mod summary;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use kelvin_lab::open::Purpose;
use kelvin_measure::observation::Observation;
use kelvin_measure::{Clock, Event};
use kelvin_observe::watch::Watch;
use kelvin_run::observation::Watchers;
use kelvin_run::spec::{Observe, TargetName};

use crate::args::{Global, ObserveArgs};
use crate::exit::Code;
use crate::measure::open;
use crate::{out, signal};
use summary::Summary;

/// Interval at which observations are collected: a line should appear soon after its second.
const TICK: Duration = Duration::from_millis(50);

/// Observes and prints.
pub(crate) fn observe(args: &ObserveArgs, global: &Global) -> Result<Code> {
    let plan = Observe { interval: args.interval, scrape: args.scrape.clone(), ..Observe::default() };
    plan.validate().and_then(|()| kelvin_run::observation::probe(&plan)).map_err(anyhow::Error::msg)?;
    let stop = signal::listen()?;
    let opened = match &args.target {
        Some(target) => Some(open(target, Purpose::Existing, &mut |text| {
            if !global.quiet {
                out::note(text);
            }
        })?),
        None => None,
    };
    let mut screen = Screen {
        summary: Summary::default(),
        file: args.output.as_deref().map(create).transpose()?,
        json: args.json,
        quiet: global.quiet,
        lines: 0,
    };
    let clock = Clock::real();
    let ours = args.target.as_ref().is_some_and(TargetName::is_managed);
    let found = Watchers::for_plan(&plan, ours, false, opened.as_ref().map(|opened| &opened.engine));
    for absent in found.refused {
        screen.take(Observation::Lost(absent))?;
    }
    let watch = Watch::start(found.watchers, &clock).context("cannot start the observers")?;
    // The first sample has gauges only. As many intervals as fit into the duration follow it.
    let until = clock.now() + args.duration.nanos() + args.interval.nanos() / 2;
    while clock.now() < until && !stop.requested() {
        std::thread::sleep(TICK);
        for observation in watch.take() {
            screen.take(observation)?;
        }
    }
    watch.finish(|observation| screen.take(observation))?;
    screen.finish()?;
    Ok(if stop.requested() { Code::Interrupted } else { Code::Success })
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    Ok(BufWriter::new(file))
}

/// The output of the observations.
struct Screen {
    summary: Summary,
    file: Option<BufWriter<File>>,
    json: bool,
    quiet: bool,
    /// Lines since the last heading.
    lines: u32,
}

impl Screen {
    fn take(&mut self, observation: Observation) -> Result<()> {
        let event = Event::Observed(observation);
        if self.file.is_some() || self.json {
            let line = serde_json::to_string(&event)?;
            if let Some(file) = &mut self.file {
                writeln!(file, "{line}").context("cannot write the output")?;
            }
            if self.json {
                out::line(&line)?;
            }
        }
        let Event::Observed(observation) = &event else { return Ok(()) };
        let is_new = self.summary.take(observation);
        if is_new && !self.json && !self.quiet {
            // Repeated as by vmstat, so that the heading stays in sight.
            if self.lines.is_multiple_of(20) {
                out::line(line::HEADING)?;
            }
            self.lines += 1;
            out::line(&line::line(&self.summary))?;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if let Some(file) = &mut self.file {
            file.flush().context("cannot write the output")?;
        }
        if self.json { Ok(()) } else { out::write(&self.summary.render()) }
    }
}

//! `kelvin build`: make and load a workload's tables.

use std::sync::mpsc;
use std::time::Instant;

use anyhow::{Context, Result};
use kelvin_database::Engine;
use kelvin_measure::Event;
use kelvin_run::Spec;
use kelvin_workload::{BuildProgress, Stop};

use super::workload::SelectedWorkload;
use crate::args::{BuildArgs, Global};
use crate::exit::{Code, Stopped};
use crate::live::{self, Live};
use crate::open::{self, Purpose};
use crate::signal;

/// Makes what is missing and checks it.
pub(crate) fn build(args: &BuildArgs, global: &Global) -> Result<Code> {
    build_tables(args.spec()?, !args.no_check, global)
}

/// The same by a specification.
pub(super) fn build_tables(mut spec: Spec, check: bool, global: &Global) -> Result<Code> {
    let stop = signal::listen()?;
    let mut live = live::for_run(global.quiet, false);
    let opened = open::open(&spec.target, Purpose::Keep, &mut |text| live.message(text))?;
    let chosen = SelectedWorkload::for_engine(&*opened.engine, &mut spec)?;
    if chosen.get().is_built(&*opened.engine)? {
        live.message(&format!("{} holds this data already; nothing to do", opened.engine.describe()));
        return Ok(Code::Success);
    }
    build_data(&*opened.engine, &chosen, &mut *live, &stop)?;
    if check {
        super::check::check_data(&*opened.engine, chosen.get(), &mut *live, &stop)?;
    }
    Ok(Code::Success)
}

/// Builds, with progress.
pub(crate) fn build_data(
    engine: &dyn Engine,
    chosen: &SelectedWorkload,
    live: &mut dyn Live,
    stop: &Stop,
) -> Result<()> {
    let workload = chosen.get();
    if let Some(size) = chosen.working_set(engine)? {
        live.message(&size);
    }
    let since = Instant::now();
    let (sender, receiver) = mpsc::channel();
    let progress = Sender(sender);
    let built = std::thread::scope(|scope| {
        // The progress moves into the thread, so that the channel ends with the work.
        let work = scope.spawn(move || workload.build(engine, &progress, stop));
        for event in receiver {
            live.event(&event);
        }
        work.join()
    });
    live.end();
    match built {
        Ok(Ok(())) => {}
        Ok(Err(_)) if stop.requested() => {
            return Err(Stopped(format!("interrupted; {}", chosen.unfinished())).into());
        }
        Ok(Err(error)) => return Err(error).with_context(|| format!("cannot build {}", workload.name())),
        Err(_) => anyhow::bail!("the loader panicked"),
    }
    live.message(&format!("built in {:.1} s", since.elapsed().as_secs_f64()));
    Ok(())
}

struct Sender(mpsc::Sender<Event>);

impl BuildProgress for Sender {
    fn update(&self, what: &str, done: u64, total: u64, rows: u64) {
        // Nobody listens only when the command is ending.
        let _ = self.0.send(Event::Progress { what: what.into(), done, total, rows });
    }
}

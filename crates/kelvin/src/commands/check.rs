//! `kelvin check`: the consistency conditions.

use anyhow::{Result, bail};
use kelvin_database::Engine;
use kelvin_measure::event::Phase;
use kelvin_measure::{Clock, Event};
use kelvin_run::{Sink, SinkError};
use kelvin_workload::{Stop, Workload};

use super::workload::SelectedWorkload;
use crate::args::{CheckArgs, Global};
use crate::exit::{Code, Stopped};
use crate::live::{self, Live};
use crate::open::{self, Purpose};
use crate::out;
use crate::signal;

/// Checks and prints every condition.
pub(crate) fn check(args: &CheckArgs, global: &Global) -> Result<Code> {
    let mut spec = args.spec()?;
    // What the data must fulfil does not depend on the scripts that a file would run on them.
    spec.pgbench.scripts.clear();
    let stop = signal::listen()?;
    let mut live = live::for_run(global.quiet, false);
    let opened = open::open(&spec.target, Purpose::Existing, &mut |text| live.message(text))?;
    let chosen = SelectedWorkload::for_engine(&*opened.engine, &mut spec)?;
    super::must_be_built(chosen.get(), &*opened.engine)?;
    let mut sink = Heard(&mut *live);
    let lines = kelvin_run::run::check_consistency(
        &*opened.engine,
        chosen.get(),
        &Clock::real(),
        &stop,
        Phase::CheckAfter,
        &mut sink,
    )?;
    live.end();
    if stop.requested() {
        return Err(Stopped(format!("interrupted after {} conditions", lines.len())).into());
    }
    for line in &lines {
        let mark = match (line.holds, line.fails()) {
            (true, _) => "holds",
            (false, true) => "FAILS",
            (false, false) => "  –  ",
        };
        out::line(&format!("{:>3}  {mark}  {}{}", line.number, line.name, detail(line)))?;
    }
    let lacks = chosen.get().missing_objects(&*opened.engine)?;
    for lack in &lacks {
        out::line(&format!("     FAILS  {lack}"))?;
    }
    let failed = lines.iter().filter(|line| line.fails()).count();
    if failed > 0 {
        out::line(&format!("\n{failed} of {} conditions do not hold", lines.len()))?;
        return Ok(Code::NotValid);
    }
    if !lacks.is_empty() {
        out::line(
            "\nthe conditions hold, but what is missing makes a run another one: drop the data and build again",
        )?;
        return Ok(Code::NotValid);
    }
    let holding = lines.iter().filter(|line| line.holds).count();
    if holding < lines.len() {
        let exempt = lines.len() - holding;
        out::line(&format!(
            "\n{holding} of {} conditions hold, and {exempt} are none that the data's maker keeps",
            lines.len()
        ))?;
        return Ok(Code::Success);
    }
    out::line(&format!("\nall {} conditions hold", lines.len()))?;
    Ok(Code::Success)
}

fn detail(line: &kelvin_measure::event::CheckLine) -> String {
    if line.holds || line.detail.is_empty() {
        return String::new();
    }
    let why = line.exempt.as_ref().map_or(String::new(), |why| format!("\n            {why}"));
    format!("{why}\n            {}", line.detail)
}

/// Checks freshly loaded data; a condition that does not hold right after the load is an error.
pub(crate) fn check_data(
    engine: &dyn Engine,
    workload: &dyn Workload,
    live: &mut dyn Live,
    stop: &Stop,
) -> Result<()> {
    let mut sink = Heard(&mut *live);
    let lines = kelvin_run::run::check_consistency(
        engine,
        workload,
        &Clock::real(),
        stop,
        Phase::CheckBefore,
        &mut sink,
    )?;
    live.end();
    if stop.requested() {
        return Err(Stopped("interrupted in the check after the build; the data is complete".into()).into());
    }
    if let Some(line) = lines.iter().find(|line| line.fails()) {
        bail!(
            "consistency condition {} ({}) does not hold after the load: {}",
            line.number,
            line.name,
            line.detail
        );
    }
    if !lines.is_empty() {
        live.message(&format!("all {} consistency conditions hold after the load", lines.len()));
    }
    Ok(())
}

/// Events of work that belongs to no run are shown and not kept.
struct Heard<'a>(&'a mut dyn Live);

impl Sink for Heard<'_> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.event(event);
        Ok(())
    }
}

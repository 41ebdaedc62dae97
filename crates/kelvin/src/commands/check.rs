//! `kelvin check`: the consistency conditions.

use anyhow::Result;
use kelvin_lab::open::Purpose;
use kelvin_lab::selected_workload::{SelectedWorkload, must_be_built};
use kelvin_measure::Clock;
use kelvin_measure::event::Phase;
use kelvin_run::spec::Work;

use crate::args::{CheckArgs, Global};
use crate::exit::{Code, Stopped};
use crate::measure::open;
use crate::out;
use crate::signal;

/// Checks and prints every condition.
pub(crate) fn check(args: &CheckArgs, global: &Global) -> Result<Code> {
    let mut spec = args.spec()?;
    // The consistency conditions do not depend on the scripts that a file would run.
    if let Work::Pgbench(options) = &mut spec.work {
        options.scripts.clear();
    }
    let stop = signal::listen()?;
    let mut live = kelvin_live::for_run(global.quiet, false);
    let opened = open(&spec.target, Purpose::Existing, &mut |text| live.message(text))?;
    let chosen = SelectedWorkload::for_engine(&*opened.engine, &mut spec)?;
    must_be_built(chosen.get(), &*opened.engine)?;
    let lines = kelvin_run::run::check_consistency(
        &*opened.engine,
        chosen.get(),
        &Clock::real(),
        &stop,
        Phase::CheckAfter,
        &mut *live,
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
            "\nthe conditions hold, but the missing parts would change the results of a run: drop the data \
             and build again",
        )?;
        return Ok(Code::NotValid);
    }
    let holding = lines.iter().filter(|line| line.holds).count();
    if holding < lines.len() {
        let exempt = lines.len() - holding;
        out::line(&format!(
            "\n{holding} of {} conditions hold, and {exempt} do not apply to data of this origin",
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

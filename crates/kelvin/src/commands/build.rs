//! `kelvin build`: creates and loads a workload's tables.

use anyhow::Result;
use kelvin_lab::open::Purpose;
use kelvin_lab::selected_workload::SelectedWorkload;
use kelvin_lab::store_bench::{build_data, check_data};
use kelvin_run::Spec;

use crate::args::{BuildArgs, Global};
use crate::exit::Code;
use crate::measure::open;
use crate::signal;

/// Builds what is missing and checks the data.
pub(crate) fn build(args: &BuildArgs, global: &Global) -> Result<Code> {
    build_tables(args.spec()?, !args.no_check, global)
}

/// Builds the tables of a specification, and checks them if `check` is set.
pub(super) fn build_tables(mut spec: Spec, check: bool, global: &Global) -> Result<Code> {
    let stop = signal::listen()?;
    let mut live = kelvin_live::for_run(global.quiet, false);
    let opened = open(&spec.target, Purpose::Keep, &mut |text| live.message(text))?;
    let chosen = SelectedWorkload::for_engine(&*opened.engine, &mut spec)?;
    if chosen.get().is_built(&*opened.engine)? {
        live.message(&format!("{} already holds this data; nothing to do", opened.engine.describe()));
        return Ok(Code::Success);
    }
    build_data(&opened, &chosen, &mut *live, &stop)?;
    if check {
        check_data(&*opened.engine, chosen.get(), &mut *live, &stop)?;
    }
    Ok(Code::Success)
}

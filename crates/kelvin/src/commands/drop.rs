//! `kelvin drop`: remove a workload's tables.

use anyhow::Result;
use kelvin_lab::open::Purpose;
use kelvin_lab::selected_workload::SelectedWorkload;

use crate::args::{DropArgs, Global};
use crate::exit::Code;
use crate::measure::open;

/// Asks, then removes.
pub(crate) fn drop_data(args: &DropArgs, global: &Global) -> Result<Code> {
    let mut spec = args.spec()?;
    // What is dropped does not depend on the scale, which would have to be read from tables of any shape.
    spec.pgbench.scale.get_or_insert(1);
    let opened = open(&spec.target, Purpose::Existing, &mut |_| {})?;
    let chosen = SelectedWorkload::for_engine(&*opened.engine, &mut spec)?;
    let workload = chosen.get();
    if !args.yes {
        let question = format!("remove all {} tables from {}", workload.name(), opened.engine.describe());
        super::confirm(&question)?;
    }
    workload.drop_data(&*opened.engine)?;
    if !global.quiet {
        crate::out::note("removed");
    }
    Ok(Code::Success)
}

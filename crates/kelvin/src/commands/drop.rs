//! `kelvin drop`: removes a workload's tables.

use anyhow::Result;
use kelvin_lab::open::Purpose;
use kelvin_lab::selected_workload::SelectedWorkload;
use kelvin_run::spec::Work;

use crate::args::{DropArgs, Global};
use crate::exit::Code;
use crate::measure::open;

/// Asks for confirmation, then removes the tables.
pub(crate) fn drop_data(args: &DropArgs, global: &Global) -> Result<Code> {
    let mut spec = args.spec()?;
    // The tables to drop do not depend on the scale. Without one, it would be read from tables that may have
    // any shape.
    if let Work::Pgbench(options) = &mut spec.work {
        options.scale.get_or_insert(1);
    }
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

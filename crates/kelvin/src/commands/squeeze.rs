//! `kelvin squeeze`: a run whose resources are cut in turn.

use anyhow::{Result, anyhow};
use kelvin_database::Engine;
use kelvin_lab::squeeze::Squeeze;
use kelvin_run::Spec;
use kelvin_run::spec::Span;

use crate::args::{Global, SqueezeArgs};
use crate::exit::Code;

/// Runs, and prints the elasticities. As a run it may be void by what was done to it (its own CPU was cut, for one): that is
/// in its report, and no failure of the squeeze.
pub(crate) fn squeeze(args: &SqueezeArgs, global: &Global) -> Result<Code> {
    let code = super::run::run_squeezed(&args.run, global, Some(args))?;
    Ok(if matches!(code, Code::NotValid) { Code::Success } else { code })
}

/// Takes the server in hand and gives the window the length that the slices need.
pub(crate) fn prepare(
    args: &SqueezeArgs,
    spec: &mut Spec,
    engine: &dyn Engine,
    notes: &mut Vec<String>,
) -> Result<Squeeze> {
    SqueezeArgs::suits(spec)?;
    let users = spec.load.points().first().map_or(1, |(users, _)| *users);
    let squeeze =
        Squeeze::prepare(args.options()?, engine, users, spec.load.seed).map_err(|why| anyhow!(why))?;
    spec.load.duration = Span::seconds(squeeze.seconds());
    notes.push("resources were cut during this run: its figures are those of a squeezed database".into());
    Ok(squeeze)
}

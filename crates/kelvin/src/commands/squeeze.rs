//! `kelvin squeeze`: a run whose resources are reduced one after the other.

use anyhow::Result;

use crate::args::{Global, SqueezeArgs};
use crate::exit::Code;

/// Runs, and prints the elasticities. The run may be void because of the reductions (for example, of its own CPU).
/// The report says so; it is not a failure of the squeeze.
pub(crate) fn squeeze(args: &SqueezeArgs, global: &Global) -> Result<Code> {
    let code = super::run::run_squeezed(&args.run, global, Some(args))?;
    Ok(if matches!(code, Code::NotValid) { Code::Success } else { code })
}

//! `kelvin squeeze`: a run whose resources are cut in turn.

use anyhow::Result;

use crate::args::{Global, SqueezeArgs};
use crate::exit::Code;

/// Runs, and prints the elasticities. As a run it may be void because of the cuts (for example, of its own CPU): that
/// is in its report, and not a failure of the squeeze.
pub(crate) fn squeeze(args: &SqueezeArgs, global: &Global) -> Result<Code> {
    let code = super::run::run_squeezed(&args.run, global, Some(args))?;
    Ok(if matches!(code, Code::NotValid) { Code::Success } else { code })
}

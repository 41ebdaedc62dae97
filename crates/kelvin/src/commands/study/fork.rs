//! `kelvin study fork`.

use anyhow::Result;

use super::new::name_of;
use super::{find, registry};
use crate::args::ForkArgs;
use crate::exit::Code;
use crate::out;

/// Creates the next study from this one.
pub(super) fn fork(args: &ForkArgs) -> Result<Code> {
    let from = find(&args.study)?;
    let (folder, study) = kelvin_lab::study::fork(&from, &args.to, name_of(&args.to)?)?;
    registry::remember(&folder);
    out::line(&format!(
        "created {} from {}: not locked, no runs; its hypothesis is still \"{}\"",
        folder.path().display(),
        from.path().display(),
        study.hypothesis.statement
    ))?;
    Ok(Code::Success)
}

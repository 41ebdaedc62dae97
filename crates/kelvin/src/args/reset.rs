//! The flags of what is done to the database before a load.

use clap::Args;
use kelvin_run::Spec;
use kelvin_run::spec::{ResetMethod, Span, StepPolicy};

use super::choice_parser::one_of;

/// What is done to the database before the load.
#[derive(Debug, Clone, Args)]
pub(crate) struct ResetArgs {
    /// Bring the data back into the state in which they were built: in the fastest way that is possible here (auto), or
    /// from a database copied beside it (template), from copied files (files), by `pg_restore` (dump), or by building
    /// anew (reload). The first time the data are built and kept as a snapshot [default: none]
    #[arg(long, value_name = "HOW", help_heading = "Reset",
        value_parser = one_of::<ResetMethod>(&["auto", "none", "template", "files", "dump", "reload"]))]
    reset: Option<ResetMethod>,

    /// Begin from this snapshot (`kelvin snapshot list`) instead of from the data as they were built
    #[arg(long, value_name = "NAME", help_heading = "Reset")]
    snapshot: Option<String>,

    /// Read tables and indexes into the database's cache before the load
    #[arg(long, help_heading = "Reset")]
    prewarm: bool,

    /// VACUUM before the load: when the way of the reset leaves it to be done, always, or never [default: needed]
    #[arg(long, value_name = "WHEN", value_parser = one_of::<StepPolicy>(&["needed", "always", "never"]), help_heading = "Reset")]
    reset_vacuum: Option<StepPolicy>,

    /// ANALYZE before the load, in the same words
    #[arg(long, value_name = "WHEN", value_parser = one_of::<StepPolicy>(&["needed", "always", "never"]), help_heading = "Reset")]
    reset_analyze: Option<StepPolicy>,

    /// CHECKPOINT before the load, in the same words
    #[arg(long, value_name = "WHEN", value_parser = one_of::<StepPolicy>(&["needed", "always", "never"]), help_heading = "Reset")]
    reset_checkpoint: Option<StepPolicy>,

    /// The longest rest before the load until processors and disks are quiet; 0s is none [default: 30s after a reset, none
    /// without one]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Reset")]
    rest: Option<Span>,
}

impl ResetArgs {
    /// Puts the flags on top of what the file says.
    pub(super) fn apply(&self, spec: &mut Spec) {
        let reset = &mut spec.reset;
        if let Some(how) = self.reset {
            reset.how = how;
            if how == ResetMethod::None {
                reset.snapshot = None;
            }
        }
        if let Some(name) = &self.snapshot {
            reset.snapshot = Some(name.clone());
            if self.reset.is_none() && reset.how == ResetMethod::None {
                reset.how = ResetMethod::Auto;
            }
        }
        super::set(&mut reset.vacuum, self.reset_vacuum.as_ref());
        super::set(&mut reset.analyze, self.reset_analyze.as_ref());
        super::set(&mut reset.checkpoint, self.reset_checkpoint.as_ref());
        reset.prewarm |= self.prewarm;
        reset.rest = self.rest.or(reset.rest);
    }
}

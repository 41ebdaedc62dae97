//! The flags of what happens to the database before a load.

use clap::Args;
use kelvin_run::Spec;
use kelvin_run::spec::{ResetMethod, Span, StepPolicy};

use super::choice_parser::one_of;

/// What is done to the database before the load.
#[derive(Debug, Clone, Args)]
pub(crate) struct ResetArgs {
    /// Restore the data to their initial state: by the fastest method available (auto), from a copy of the database on
    /// the server (template), from copied files (files), by `pg_restore` (dump), or by loading them again (reload). The
    /// first time, the data are built and saved as a snapshot [default: none]
    #[arg(long, value_name = "HOW", help_heading = "Reset",
        value_parser = one_of::<ResetMethod>(&["auto", "none", "template", "files", "dump", "reload"]))]
    reset: Option<ResetMethod>,

    /// Start from this snapshot (`kelvin snapshot list`) instead of the initial data
    #[arg(long, value_name = "NAME", help_heading = "Reset")]
    snapshot: Option<String>,

    /// Read tables and indexes into the database's cache before the load
    #[arg(long, help_heading = "Reset")]
    prewarm: bool,

    /// VACUUM before the load: needed (if the reset method requires it), always, or never [default: needed]
    #[arg(long, value_name = "WHEN", value_parser = one_of::<StepPolicy>(&["needed", "always", "never"]), help_heading = "Reset")]
    reset_vacuum: Option<StepPolicy>,

    /// ANALYZE before the load; same values
    #[arg(long, value_name = "WHEN", value_parser = one_of::<StepPolicy>(&["needed", "always", "never"]), help_heading = "Reset")]
    reset_analyze: Option<StepPolicy>,

    /// CHECKPOINT before the load; same values
    #[arg(long, value_name = "WHEN", value_parser = one_of::<StepPolicy>(&["needed", "always", "never"]), help_heading = "Reset")]
    reset_checkpoint: Option<StepPolicy>,

    /// Maximum time to wait before the load for CPUs and disks to become idle; 0s disables it [default: 30s after a
    /// reset, otherwise no wait]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Reset")]
    idle_wait: Option<Span>,
}

impl ResetArgs {
    /// Applies the flags on top of the file.
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
        reset.idle_wait = self.idle_wait.or(reset.idle_wait);
    }
}

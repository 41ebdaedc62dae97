//! `kelvin hammerdb`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `kelvin hammerdb`.
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "Without a subcommand, commands are read from standard input, as hammerdbcli does.\n\
    \n\
    buildschema, checkschema, deleteschema and vurun run kelvin build, check, drop and run with the profile \
    hammerdb. Runs are stored, and job ID result, timing and tcount print them; runs with several numbers of \
    users are shown as a sweep at the end. A script in Tcl may read and write files below its own directory, \
    the current one and $TMP, and starts no programs. A script in Python runs in python3 with all \
    permissions of your user.\n\
    \n\
    Examples:\n\
    \x20 kelvin hammerdb run pg_tprocc_run.tcl\n\
    \x20 kelvin hammerdb run pg_tprocc_run.tcl --plan           print the kelvin commands, run nothing\n\
    \x20 kelvin hammerdb run pg_tprocc_run.tcl --scale-time 0.1 a test run in a tenth of the time"
)]
pub(crate) struct HammerdbArgs {
    #[command(subcommand)]
    pub(crate) command: Option<HammerdbCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HammerdbCommand {
    /// Run an unchanged HammerDB CLI script
    Run(HammerdbRunArgs),
}

/// `kelvin hammerdb run`.
#[derive(Debug, Args)]
pub(crate) struct HammerdbRunArgs {
    /// The script, in Tcl or Python
    #[arg(value_name = "FILE.tcl|FILE.py")]
    pub(crate) file: PathBuf,
    /// Print the kelvin commands that the script would run, without running them
    #[arg(long)]
    pub(crate) plan: bool,
    /// Print a specification file for each run of the script, without running it
    #[arg(long, conflicts_with = "plan")]
    pub(crate) print_spec: bool,
    /// Multiply ramp-up and duration by this factor, for a test run
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) scale_time: f64,
}

/// A factor of times or sizes.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if (0.000_1..=1000.0).contains(&factor) => Ok(factor),
        _ => Err("must be a number from 0.0001 to 1000".into()),
    }
}

//! `kelvin io`: fio's language, outputs and exit codes, with Kelvin's additions to a run.

mod explain;
mod run;
mod sweep;

use std::process::ExitCode;

use crate::args::Global;
use crate::args::io::{IoArgs, IoCommand};
use crate::exit;

/// fio's exit code for an error before the run.
pub(crate) const USAGE: u8 = 1;
/// fio's exit code after a signal.
const INTERRUPTED: u8 = 128;

/// Runs a subcommand. Errors are printed here, because the exit codes are fio's.
pub(crate) fn io(args: &IoArgs, global: &Global) -> ExitCode {
    let done = match &args.command {
        None => run::run(args, global),
        Some(IoCommand::Explain(args)) => explain::explain(args),
        Some(IoCommand::Plot(args)) => super::io_plot::plot(args, global),
        Some(IoCommand::Sweep(args)) => sweep::sweep(args, global),
    };
    done.unwrap_or_else(|error| {
        crate::out::note(&format!("kelvin: {}", exit::describe(&error)));
        match &args.command {
            // fio lacks these commands: they use the exit codes of Kelvin's other commands.
            Some(IoCommand::Plot(_) | IoCommand::Explain(_)) => exit::Code::from_error(&error).into(),
            _ if exit::is_stop(&error) => ExitCode::from(INTERRUPTED),
            _ => ExitCode::from(USAGE),
        }
    })
}

/// The exit code, which is fio's for interrupted runs.
fn code(code: exit::Code) -> ExitCode {
    match code {
        exit::Code::Interrupted => ExitCode::from(INTERRUPTED),
        code => code.into(),
    }
}

//! `kelvin`: measure a database and the storage under it, and be able to trust the answer.

// The command's own output goes to standard output and standard error; libraries may not.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod commands;
mod exit;
mod live;
mod open;
mod place;
mod signal;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // `--help` and `--version` arrive here too and are no errors.
            let code = if error.use_stderr() { exit::Code::BadInput } else { exit::Code::Success };
            let _ = error.print();
            return code.into();
        }
    };
    match commands::run(cli) {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("kelvin: {}", exit::describe(&error));
            exit::Code::of_error(&error).into()
        }
    }
}

//! `kelvin`: measure a database and the storage under it, and be able to trust the answer.

// The command prints to standard output and standard error; the libraries may not.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod commands;
mod document;
mod exit;
mod group;
mod measure;
mod out;
mod paths;
mod signal;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(error) => {
            let Some(error) = error.downcast_ref::<clap::Error>() else { return fail(&error) };
            // clap reports `--help` and `--version` as errors, which they are not.
            show(error);
            let words: Vec<_> = std::env::args_os().collect();
            return match error.use_stderr() {
                true if args::io::is_asked(&words) => ExitCode::from(commands::io::USAGE),
                true => exit::Code::BadInput.into(),
                false => ExitCode::SUCCESS,
            };
        }
    };
    match commands::run(cli) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    out::note(&format!("kelvin: {}", exit::describe(error)));
    exit::Code::from_error(error).into()
}

/// Prints clap's message. It repeats invalid arguments, and a URL may contain a password.
fn show(error: &clap::Error) {
    use std::io::IsTerminal;
    // clap repeats control characters of an argument. If there are any, the text is printed without
    // colours, and control characters become blanks.
    let steers = std::env::args_os().any(|word| word.to_string_lossy().chars().any(char::is_control));
    let colour = !steers && std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let styled = error.render();
    let text = if colour {
        styled.ansi().to_string()
    } else {
        kelvin_measure::text::printable_lines(&styled.to_string())
    };
    let text = kelvin_measure::redact(&text);
    if error.use_stderr() {
        eprint!("{text}");
    } else {
        // A closed pipe is no error: the reader of `--help` may have seen enough.
        let _ = out::write(&text);
    }
}

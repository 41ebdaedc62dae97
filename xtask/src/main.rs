//! The project's own chores, one file each: `cargo xtask CHORE`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod packages;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
The project's chores.

Usage: cargo xtask CHORE

Chores:
  test    install what the tests need, then check the format, the lints, the tests and the dependencies
  help    print this
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let chore = arguments.next().unwrap_or_default();
    let outcome = match (chore.as_str(), arguments.next()) {
        ("test", None) => test::run(),
        ("help" | "--help" | "-h", _) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        (_, Some(extra)) => {
            eprintln!("error: unexpected argument {extra:?}\n\n{HELP}");
            return ExitCode::from(2);
        }
        (other, None) => {
            if !other.is_empty() {
                eprintln!("error: there is no chore {other:?}\n");
            }
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

//! The project's own chores: `cargo xtask test | bench NAME`.

// A chore talks to the person who runs it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bench;
mod packages;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test          install what the tests need, then formatting, lints, every test
cargo xtask bench NAME    the published figures: driver, load";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((chore, [])) if chore == "test" => test::test(),
        Some((chore, rest)) if chore == "bench" => bench::bench(rest),
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

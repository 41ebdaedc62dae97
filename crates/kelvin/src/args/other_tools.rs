//! Flags of other tools that users type, and what to type instead.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Flags of pgbench that kelvin lacks, and what to use instead.
const ABSENT: &[(&[&str], &str)] = &[
    (&["-h", "--host", "-p", "--port", "-U", "--username", "--dbname"], HOST),
    (
        &["-C", "--connect"],
        "each user keeps its connection; a new connection per transaction is not supported",
    ),
    (
        &["-l", "--log", "--log-prefix", "--aggregate-interval", "--sampling-rate"],
        "transactions are not logged individually, and none are left out: counts and latencies are kept for \
         every second; see `kelvin report last --csv`",
    ),
    (
        &["--tablespace", "--index-tablespace"],
        "set the tablespace for the database or the user: ALTER DATABASE … SET default_tablespace",
    ),
    (
        &["-L", "--latency-limit"],
        "late transactions are not skipped; --slo 'max<100ms' checks whether all were in time, and --queue \
         limits how many may wait for an idle user",
    ),
    (
        &["--exit-on-abort"],
        "a user continues after a failure, and the failure is counted; the exit code reports it",
    ),
    (&["--progress-timestamp"], "every run stores its start time and results for every second"),
    (&["--debug"], "errors are counted and reported without this flag"),
    (
        &["-b", "-S", "-N", "-s", "--builtin", "--select-only", "--simple-update", "--scale"],
        "use it with `kelvin run pgbench`; for your own script, -D sets a variable",
    ),
    (&["-V"], "kelvin --version prints the version"),
];

const HOST: &str = "give host, port, user and database as --target postgres://user@host:port/database \
    (help is --help, or -h alone)";

/// Replaces clap's message if we know what was meant.
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
        return raw(format!("-h does not set a host here: {HOST}"));
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
            "unexpected \"{argument}\"; name a database as --target postgres://user@host/{argument}"
        ));
    }
    match ABSENT.iter().find(|(names, _)| names.contains(&argument.as_str())) {
        Some((_, advice)) => raw(format!("{argument} is not supported: {advice}")),
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

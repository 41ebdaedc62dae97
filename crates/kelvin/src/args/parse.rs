//! Parses the command line into [`Cli`], and reads a file that replaces the workload.

use kelvin_measure::text::series;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::{Result, bail};
use clap::Parser;
use kelvin_run::Spec;
use kelvin_run::spec::WorkloadName;

use super::workload::TakesFile;
use super::{Cli, Command, other_tools};

/// Parses this process's command line. clap's messages come as a [`clap::Error`].
pub(crate) fn parse() -> Result<Cli> {
    parse_words(std::env::args_os().collect())
}

fn parse_words(words: Vec<OsString>) -> Result<Cli> {
    let mut words = super::io::arrange(words);
    let mut cli = try_parse(&words)?;
    let is_run = matches!(cli.command, Command::Run(_));
    let Some(command) = takes_file(&mut cli) else { return Ok(cli) };
    let Some(other) = command.other() else { return Ok(cli) };
    let at = words.len() - other.len();
    if is_scenario(&words[at]) && is_run {
        return try_parse(&as_scenario(words, at));
    }
    let spec = read(&words[at], command.workloads())?;
    // The flags that can override values of the file are those of its workload.
    words[at] = spec.workload().as_str().into();
    let mut cli = try_parse(&words)?;
    if let Some(command) = takes_file(&mut cli) {
        command.set_file(spec);
    }
    Ok(cli)
}

/// Whether a word names a file with a scenario.
fn is_scenario(word: &OsStr) -> bool {
    let path = Path::new(word);
    // A file that is not text, or is too long, is left to the parser of specifications, which refuses it.
    let short = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < 16 << 20);
    short && std::fs::read_to_string(path).is_ok_and(|text| kelvin_scenario::is_scenario(&text))
}

/// `kelvin run FILE` as `kelvin scenario run FILE`; the file stands at `at`.
fn as_scenario(mut words: Vec<OsString>, at: usize) -> Vec<OsString> {
    if let Some(run) = words[..at].iter().rposition(|word| word == "run") {
        words.insert(run, "scenario".into());
    }
    words
}

fn try_parse(words: &[OsString]) -> Result<Cli> {
    Ok(Cli::try_parse_from(words).map_err(|error| other_tools::explain(error, words))?)
}

fn takes_file(cli: &mut Cli) -> Option<&mut dyn TakesFile> {
    match &mut cli.command {
        Command::Run(args) => Some(args),
        Command::Squeeze(args) => Some(args),
        Command::Build(args) => Some(args),
        Command::Check(args) => Some(args),
        Command::Drop(args) => Some(args),
        _ => None,
    }
}

/// Reads the file that this word names.
fn read(word: &OsStr, known: &[WorkloadName]) -> Result<Spec> {
    let shown = word.to_string_lossy();
    let path = Path::new(word);
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("sql")) {
        bail!("{shown} is not a specification; to run your own SQL: kelvin run script {shown}");
    }
    let tableless = |workload: WorkloadName| match workload {
        WorkloadName::Scan => {
            "the workload \"scan\" reads the tables of tproc-c; build, check and drop take tproc-c".to_owned()
        }
        _ => format!(
            "the workload \"{}\" has no tables to build, check or drop; the workloads with tables are {}",
            workload.as_str(),
            names(known)
        ),
    };
    for other in WorkloadName::ALL {
        if shown == other.as_str() && !known.contains(&other) {
            bail!(tableless(other));
        }
    }
    if !shown.contains(['/', '.']) && !path.exists() {
        let all = known.iter().map(|workload| workload.as_str());
        let meant = kelvin_run::nearest(&shown, all)
            .map_or_else(String::new, |meant| format!(" (did you mean {meant}?)"));
        bail!(
            "there is no workload \"{shown}\"{meant}; choose from {}, or give a file such as run.toml",
            names(known)
        );
    }
    let spec = Spec::read(path)?;
    if !known.contains(&spec.workload()) {
        bail!(tableless(spec.workload()));
    }
    Ok(spec)
}

/// "tproc-c, pgbench, script and io".
fn names(workloads: &[WorkloadName]) -> String {
    let names: Vec<&str> = workloads.iter().map(|workload| workload.as_str()).collect();
    series(&names)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use kelvin_run::spec::Work;

    use super::*;

    fn spec(line: &str) -> Spec {
        let words = std::iter::once("kelvin").chain(line.split(' ')).map(OsString::from).collect();
        let Command::Run(args) = parse_words(words).unwrap().command else { panic!("{line}") };
        args.spec().unwrap()
    }

    fn pgbench(spec: &Spec) -> &kelvin_workload::pgbench::Options {
        let Work::Pgbench(options) = &spec.work else { panic!("{spec:?}") };
        options
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn pgbenchs_letters_mean_what_they_mean_to_pgbench() {
        let spec = spec(
            "run pgbench -s 20 -c 8 -T 30 -M prepared -D a=1 -D b=x=y -r -F 90 -n --max-tries 3 --random-seed 7 \
             --foreign-keys --unlogged-tables --ramp-up 2 --target postgres://me@h/d -j 2 -P 1",
        );
        assert_eq!(spec.load.users.numbers(), [8]);
        assert_eq!(
            (spec.load.duration.to_string(), spec.load.ramp_up.to_string()),
            ("30s".into(), "2s".into())
        );
        assert_eq!((spec.load.retries, spec.load.seed), (2, 7));
        let options = pgbench(&spec);
        assert_eq!((options.scale, options.fillfactor, options.vacuum), (Some(20), 90, false));
        assert!(options.per_statement && options.foreign_keys && options.unlogged_tables);
        assert_eq!(options.define.get("b").map(String::as_str), Some("x=y"));
        assert_eq!(spec.target.as_str(), "postgres://me@h/d");
        assert_eq!(
            self::spec("run pgbench -t 100").load.transactions.map(std::num::NonZeroU64::get),
            Some(100)
        );
        assert_eq!(self::spec("run pgbench --max-tries 0").load.retries, u16::MAX);
    }

    #[test]
    fn trial_b12_times_without_a_unit_are_seconds_for_every_workload() {
        for run in ["run tproc-c", "run pgbench"] {
            let spec = self::spec(&format!("{run} --ramp-up 0 --duration 7"));
            assert_eq!(
                (spec.load.ramp_up.to_string(), spec.load.duration.to_string()),
                ("0s".into(), "7s".into())
            );
        }
        assert_eq!(self::spec("run pgbench").target.as_str(), "postgres");
        assert_eq!(self::spec("run tproc-c -t a.db -u 2 -d 3s").target.as_str(), "a.db");
    }

    #[test]
    fn scripts_stay_in_the_order_in_which_they_were_given() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("own.sql");
        std::fs::write(&file, "select 1").unwrap();
        let file = file.display();
        let spec = spec(&format!("run pgbench -S -f {file}@3 -b tpcb@2 -N --file={file} -S"));
        let scripts = &pgbench(&spec).scripts;
        let names: Vec<_> = scripts.iter().map(|s| (s.text.is_some(), s.weight, s.name.clone())).collect();
        let expected = [
            (false, 1, "select-only".to_owned()),
            (true, 3, file.to_string()),
            (false, 2, "tpcb-like".to_owned()),
            (false, 1, "simple-update".to_owned()),
            (true, 1, file.to_string()),
            (false, 1, "select-only".to_owned()),
        ];
        assert_eq!(names, expected);
        assert_eq!(pgbench(&self::spec("run pgbench")).scripts[0].name, "tpcb-like");
    }

    #[test]
    fn the_flags_of_its_workload_override_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.toml");
        let written = spec("run pgbench -S -s 3 -D a=1 -c 2 -T 9");
        std::fs::write(&file, written.to_toml()).unwrap();
        let file = file.display();
        assert_eq!(spec(&format!("run {file}")), written);
        let changed = spec(&format!("run {file} -s 4 -N -D b=2 -t 10"));
        let options = pgbench(&changed);
        assert_eq!((options.scale, options.define.len()), (Some(4), 2));
        assert_eq!(options.scripts[0].name, "simple-update");
        assert_eq!((changed.load.users, changed.load.transactions.is_some()), (written.load.users, true));
    }
}

//! fio's command line: `--name=` begins a job, other options belong to it, and those before the first hold for all.

use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::slice::Iter;

use super::build::Builder;
use super::lines::{Section, WrittenOption, problem, sections, text_of};
use super::run_flags::{Does, FLAGS, Flag, RunFlags, Takes};
use super::table::{self, OptionEntry, ValueKind};
use super::{guess, require_jobs};
use crate::error::{Error, Location, Result};
use crate::job::Jobs;

/// What a command line says.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedCommandLine {
    /// The jobs; none where something else than a run was asked for.
    pub jobs: Jobs,
    /// How the run is shown, and what else is to be done.
    pub run: RunFlags,
}

/// Reads fio's command line, without the name of the program.
///
/// # Errors
///
/// Words that are neither options nor flags nor job files, and all that is wrong with the jobs.
pub fn parse_arguments(words: &[String]) -> Result<ParsedCommandLine> {
    let mut line = Line::default();
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.next() {
        if word == "--" {
            line.run.files.extend(rest.by_ref().map(PathBuf::from));
            break;
        }
        match word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|name| !name.is_empty()) {
            Some(option) => line.option(option, &mut rest)?,
            None => line.run.files.push(word.into()),
        }
    }
    line.finish()
}

fn wrong(text: impl Into<String>) -> Error {
    problem(&Location::default(), text)
}

fn given(name: &str, value: Option<String>) -> WrittenOption {
    WrittenOption { name: name.to_owned(), value, place: Location::default(), named_at: 0, comment: None }
}

/// What a name on the command line stands for.
enum Meaning {
    Flag(&'static Flag),
    Option(&'static OptionEntry),
}

/// As fio: a name, or a beginning that only one name has.
fn meaning(name: &str) -> Result<(Meaning, &'static str)> {
    let name = match name {
        "h" => "help",
        "v" => "version",
        name => name,
    };
    if let Some(flag) = FLAGS.iter().find(|flag| flag.name == name) {
        return Ok((Meaning::Flag(flag), flag.name));
    }
    let known = |wanted: &str| table::names().find(|known| *known == wanted).zip(table::find(wanted));
    if let Some((known, entry)) = known(name) {
        return Ok((Meaning::Option(entry), known));
    }
    let all = || FLAGS.iter().map(|flag| flag.name).chain(table::names());
    let begins: Vec<&'static str> = all().filter(|known| known.starts_with(name)).collect();
    match begins.as_slice() {
        [] => {}
        [first, others @ ..] => {
            let entry = known(first);
            let same = |other: &&str| entry.is_some_and(|(_, entry)| entry.is(other));
            if !others.iter().all(same) {
                let text = format!("--{name} is ambiguous; it could be --{}", begins.join(", --"));
                return Err(wrong(text));
            }
            if let Some((known, entry)) = entry {
                return Ok((Meaning::Option(entry), known));
            }
            if let Some(flag) = FLAGS.iter().find(|flag| flag.name == *first) {
                return Ok((Meaning::Flag(flag), flag.name));
            }
        }
    }
    Err(wrong(format!("there is no option --{name}{}", guess::question(name, all()))))
}

/// `rw=read` without its dashes is taken for a file, as in fio; there is rarely one of this name.
fn forgotten_dashes(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    match text.split_once('=') {
        Some((name, _)) if table::find(name).is_some() && !path.exists() => {
            Err(wrong(format!("there is no job file {text:?}; did you mean --{text}?")))
        }
        _ => Ok(()),
    }
}

#[derive(Default)]
struct Line {
    run: RunFlags,
    global: Vec<WrittenOption>,
    jobs: Vec<Section>,
    notes: Vec<String>,
}

impl Line {
    fn option(&mut self, option: &str, rest: &mut Peekable<Iter<'_, String>>) -> Result<()> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        let (meaning, name) = meaning(name)?;
        let needs = match &meaning {
            Meaning::Flag(flag) => flag.takes == Takes::Value,
            Meaning::Option(entry) => !entry.kind.may_be_bare(),
        };
        let may = matches!(&meaning, Meaning::Option(entry) if matches!(entry.kind, ValueKind::OptionalText));
        let value = match value {
            None if may => rest.next_if(|next| !next.starts_with('-')).cloned(),
            None if needs => {
                Some(rest.next().ok_or_else(|| wrong(format!("--{name} needs a value")))?.clone())
            }
            value => value,
        };
        match meaning {
            Meaning::Flag(flag) => self.flag(flag, value.as_deref()),
            Meaning::Option(_) if name == "name" => {
                let name =
                    value.filter(|name| !name.is_empty()).ok_or_else(|| wrong("--name needs a value"))?;
                // As in fio, a name of the command line is one of the options that the result echoes.
                let options = vec![given("name", Some(name.clone()))];
                self.jobs.push(Section { name, place: Location::default(), options });
                Ok(())
            }
            Meaning::Option(_) => {
                let options = self.jobs.last_mut().map_or(&mut self.global, |job| &mut job.options);
                options.push(given(name, value));
                Ok(())
            }
        }
    }

    fn flag(&mut self, flag: &Flag, value: Option<&str>) -> Result<()> {
        let name = flag.name;
        match (flag.takes, value) {
            (Takes::Nothing, Some(_)) => return Err(wrong(format!("--{name} takes no value"))),
            (Takes::Value, Some("")) => return Err(wrong(format!("--{name} needs a value"))),
            _ => {}
        }
        match flag.does {
            Does::Sets(set) => set(&mut self.run, value.unwrap_or_default())
                .map_err(|text| wrong(format!("--{name}={}: {text}", value.unwrap_or_default()))),
            Does::Ignored(reason) => {
                self.notes.push(format!("command line: --{name} has no effect: {reason}"));
                Ok(())
            }
            Does::Refused(reason) => Err(wrong(format!("--{name}: not supported: {reason}"))),
        }
    }

    fn finish(self) -> Result<ParsedCommandLine> {
        let Self { run, global, jobs, notes } = self;
        if run.asked.is_some() {
            // Whatever else the line says: nothing will be run.
            return Ok(ParsedCommandLine { jobs: Jobs::default(), run });
        }
        let mut builder = Builder::new();
        builder.global(&global)?;
        builder.file(jobs, &run.sections)?;
        for (index, path) in run.files.iter().enumerate() {
            if index > 0 {
                builder.next_file();
            }
            forgotten_dashes(path)?;
            builder.file(sections(&text_of(path)?, Some(path))?, &run.sections)?;
        }
        let mut jobs = builder.finish()?;
        jobs.notes.splice(0..0, notes);
        require_jobs(&jobs, &run.sections, run.files.first().map(PathBuf::as_path))?;
        if let (true, Some(note)) = (run.warnings_fatal, jobs.notes.first()) {
            return Err(wrong(format!("{note} (an error because of --warnings-fatal)")));
        }
        let workers: u64 = jobs.jobs.iter().map(|job| u64::from(job.clones)).sum();
        if let Some(most) = run.max_jobs.filter(|most| workers > u64::from(*most)) {
            return Err(wrong(format!("there are {workers} workers, but --max-jobs allows {most}")));
        }
        if run.read_only
            && let Some(job) = jobs.jobs.iter().find(|job| job.pattern.changes_data())
        {
            return Err(problem(
                &job.place,
                format!("job {:?} writes or trims, which --readonly forbids", job.name),
            ));
        }
        Ok(ParsedCommandLine { jobs, run })
    }
}

/// Help for the flags, as `--help` shows it.
pub fn flags_help() -> String {
    let mut out = String::from("kelvin io [FLAGS] [OPTIONS] [--name=JOB OPTIONS]… [JOB-FILE]…\n\n");
    for flag in FLAGS {
        let name = match flag.takes {
            Takes::Nothing => flag.name.to_owned(),
            Takes::Value => format!("{}=…", flag.name),
            Takes::Maybe => format!("{}[=…]", flag.name),
        };
        let support = match flag.does {
            Does::Sets(_) => String::new(),
            Does::Ignored(reason) => format!(" (no effect: {reason})"),
            Does::Refused(reason) => format!(" (not supported: {reason})"),
        };
        out.push_str(&format!("  --{name:<22} {}{support}\n", flag.help));
    }
    out.push_str("\nAny job option can be given as --OPTION=VALUE; --cmdhelp lists them.\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobfile::{InfoRequest, OutputFormat};

    fn parse(line: &str) -> Result<ParsedCommandLine> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse_arguments(&words)
    }

    #[test]
    fn a_line_is_jobs_and_flags() {
        let parsed = parse(
            "--output-format=normal,json --bs=8k --name=a --rw randread --time_based --runtime 5 -iodepth=4 \
             --ioengine=libaio --name b --rw=write --eta never --minimal --append-terse --append-terse",
        )
        .unwrap();
        let jobs = &parsed.jobs.jobs;
        assert_eq!(parsed.jobs.global, [("bs".to_owned(), "8k".to_owned())]);
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(jobs[0].depth.depth, 4);
        assert!(jobs[0].course.time_based && jobs[0].pattern.random);
        assert!(jobs[1].pattern.writes && !jobs[1].course.time_based);
        assert!(jobs.iter().all(|job| job.blocks.sizes.0[0].smallest() == 8192));
        assert_eq!(parsed.run.formats, [OutputFormat::Terse]);
        assert_eq!(parsed.run.eta, super::super::EtaFlag::Never);
    }

    #[test]
    fn beginnings_of_names_are_enough_where_they_are_clear() {
        let parsed = parse("--name=a --runt=5 --outp=x").map_err(|error| error.to_string());
        assert!(parsed.unwrap_err().contains("--output, --output-format"), "two flags begin so");
        assert_eq!(parse("--name=a --runt=5").unwrap().jobs.jobs[0].course.runtime, Some(5_000_000_000));
        assert!(parse("--name=a --steady=iops:1%").is_err());
    }

    #[test]
    fn help_needs_no_jobs() {
        assert_eq!(
            parse("--cmdhelp=bs").unwrap().run.asked,
            Some(InfoRequest::CommandHelp(Some("bs".into())))
        );
        assert_eq!(parse("--enghelp").unwrap().run.asked, Some(InfoRequest::EngineHelp(None)));
        assert_eq!(
            parse("--inflate-log=a.fz").unwrap().run.asked,
            Some(InfoRequest::InflateLog("a.fz".into()))
        );
        assert_eq!(
            parse("--inflate-log a.fz").unwrap().run.asked,
            Some(InfoRequest::InflateLog("a.fz".into()))
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, text) in [
            ("--name=a --foo=1", "no option --foo"),
            ("--name=a --iodpeth=1", "did you mean \"iodepth\"?"),
            ("--name=a --bs", "--bs needs a value"),
            ("--name=", "--name needs a value"),
            ("--bs=4k", "no job"),
            ("--name=a --client=host", "not supported: start Kelvin on the other machine"),
            ("--name=a --terse-version=9", "between 2 and 5"),
            ("--name=a --readonly --rw=write", "--readonly forbids"),
            ("--name=a --numjobs=5 --max-jobs=4", "--max-jobs allows 4"),
            ("--name=a --thread --warnings-fatal", "--warnings-fatal"),
            ("/nowhere/a.fio", "/nowhere/a.fio"),
            ("--name=a rw=read", "did you mean --rw=read?"),
            ("--name=a --parse-only=1", "takes no value"),
        ] {
            let error = parse(line).unwrap_err().to_string();
            assert!(error.contains(text), "{line}: {error}");
        }
    }
}

//! Arguments of fio's command line that are not job options: output, and other actions.

use std::path::PathBuf;

use kelvin_measure::Nanos;

use super::number::{Unit, nanos};
use super::{guess, number};

/// What the command line says about the run itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFlags {
    /// `--output`: the file for the result; standard output when none.
    pub output: Option<PathBuf>,
    /// `--output-format`, `--minimal`, `--append-terse`: in which forms, each once; normal when nothing is said.
    pub formats: Vec<OutputFormat>,
    /// `--terse-version`: 2, 3, 4 or 5.
    pub terse_version: u8,
    /// `--eta`: whether there is a status line.
    pub eta: EtaFlag,
    /// `--eta-interval`: how often it is drawn.
    pub eta_interval: Nanos,
    /// `--eta-newline`: how often it begins a new line.
    pub eta_newline: Option<Nanos>,
    /// `--status-interval`: how often the result so far is written.
    pub status_interval: Option<Nanos>,
    /// `--section`: the jobs that are taken; all when empty.
    pub sections: Vec<String>,
    /// `--showcmd`: write the jobs as a command line and do nothing.
    pub show_command: bool,
    /// `--parse-only`: do nothing but read the jobs.
    pub parse_only: bool,
    /// `--readonly`: refuse jobs that write or trim.
    pub read_only: bool,
    /// `--warnings-fatal`: notes are errors.
    pub warnings_fatal: bool,
    /// `--max-jobs`: no more workers than this.
    pub max_jobs: Option<u32>,
    /// `--debug=random`: print the workers' seeds.
    pub debug_random: bool,
    /// `--bandwidth-log`: a log of the bandwidth of all jobs together.
    pub bandwidth_log: bool,
    /// `--aux-path`: the directory of verify's states and dumps.
    pub aux_directory: Option<PathBuf>,
    /// Something else than a run was asked for.
    pub asked: Option<InfoRequest>,
    /// The job files that were named, in their order; `-` is standard input.
    pub files: Vec<PathBuf>,
}

impl Default for RunFlags {
    fn default() -> Self {
        Self {
            output: None,
            formats: Vec::new(),
            terse_version: 3,
            eta: EtaFlag::Auto,
            eta_interval: 1_000_000_000,
            eta_newline: None,
            status_interval: None,
            sections: Vec::new(),
            show_command: false,
            parse_only: false,
            read_only: false,
            warnings_fatal: false,
            max_jobs: None,
            debug_random: false,
            bandwidth_log: false,
            aux_directory: None,
            asked: None,
            files: Vec::new(),
        }
    }
}

/// A form of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text for a person.
    Normal,
    /// A line of fields between semicolons.
    Terse,
    /// JSON.
    Json,
    /// JSON with all bins.
    JsonPlus,
}

/// When there is a status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EtaFlag {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What else can be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InfoRequest {
    /// `--help`.
    Help,
    /// `--version`.
    Version,
    /// `--cmdhelp`, of one option or of all.
    CommandHelp(Option<String>),
    /// `--enghelp`, of one engine or of all.
    EngineHelp(Option<String>),
    /// `--inflate-log`: the text of a compressed log.
    InflateLog(PathBuf),
}

/// Whether a flag has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    /// With `=` or as the next word.
    Value,
    /// With `=` only.
    Maybe,
}

type Set = fn(&mut RunFlags, &str) -> Result<(), String>;

/// What a flag does.
pub(crate) enum Does {
    Sets(Set),
    /// Nothing here: why.
    Ignored(&'static str),
    /// It is not supported: why.
    Refused(&'static str),
}

/// A flag.
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) help: &'static str,
    pub(crate) does: Does,
}

const fn sets(name: &'static str, takes: Takes, help: &'static str, set: Set) -> Flag {
    Flag { name, takes, help, does: Does::Sets(set) }
}

const fn refused(name: &'static str, takes: Takes, help: &'static str, reason: &'static str) -> Flag {
    Flag { name, takes, help, does: Does::Refused(reason) }
}

/// What fio traces.
const DEBUG: &[&str] = &[
    "all",
    "process",
    "file",
    "io",
    "mem",
    "blktrace",
    "verify",
    "random",
    "parse",
    "diskutil",
    "job",
    "mutex",
    "profile",
    "time",
    "net",
    "rate",
    "compress",
    "steadystate",
    "helperthread",
    "zbd",
    "sprandom",
];

const REMOTE: &str = "start Kelvin on the other machine";
const TRIGGER: &str = "end the run with a signal: SIGINT keeps the results";

/// All flags.
pub(crate) const FLAGS: &[Flag] = &[
    sets("output", Takes::Value, "file to write the results to", |run, value| {
        run.output = Some(value.into());
        Ok(())
    }),
    sets(
        "output-format",
        Takes::Value,
        "normal, terse, json, json+; separate several with commas",
        |run, value| {
            let formats = value.split(',').map(|word| match word.trim() {
                "normal" => Ok(OutputFormat::Normal),
                "terse" | "minimal" | "csv" => Ok(OutputFormat::Terse),
                "json" => Ok(OutputFormat::Json),
                "json+" => Ok(OutputFormat::JsonPlus),
                word => {
                    let guess = guess::question(word, ["normal", "terse", "json", "json+"].into_iter());
                    Err(format!("{word:?} is not a format: use normal, terse, json or json+{guess}"))
                }
            });
            let formats: Vec<OutputFormat> = formats.collect::<Result<_, _>>()?;
            run.formats.clear();
            for format in formats {
                add(run, format);
            }
            Ok(())
        },
    ),
    sets("minimal", Takes::Nothing, "same as --output-format=terse", |run, _| {
        run.formats = vec![OutputFormat::Terse];
        Ok(())
    }),
    sets("append-terse", Takes::Nothing, "append terse output to the others", |run, _| {
        if run.formats.is_empty() {
            run.formats.push(OutputFormat::Normal);
        }
        add(run, OutputFormat::Terse);
        Ok(())
    }),
    sets("terse-version", Takes::Value, "2, 3, 4 or 5", |run, value| {
        run.terse_version = whole(value, 2, 5)? as u8;
        Ok(())
    }),
    sets("eta", Takes::Value, "when to show the status line: auto, always or never", |run, value| {
        run.eta = match value {
            "auto" => EtaFlag::Auto,
            "always" => EtaFlag::Always,
            "never" => EtaFlag::Never,
            _ => return Err("use auto, always or never".into()),
        };
        Ok(())
    }),
    sets("eta-interval", Takes::Value, "interval between status updates, at least 250ms", |run, value| {
        run.eta_interval = nanos(value, Unit::Seconds)?;
        if run.eta_interval < 250_000_000 { Err("must be at least 250ms".into()) } else { Ok(()) }
    }),
    sets("eta-newline", Takes::Value, "interval between new status lines", |run, value| {
        run.eta_newline = Some(nanos(value, Unit::Seconds)?).filter(|time| *time > 0);
        Ok(())
    }),
    sets("status-interval", Takes::Value, "interval between reports of the results so far", |run, value| {
        run.status_interval = Some(nanos(value, Unit::Seconds)?).filter(|time| *time > 0);
        Ok(())
    }),
    sets("section", Takes::Value, "run only this job of the file; may be repeated", |run, value| {
        run.sections.push(value.to_owned());
        Ok(())
    }),
    sets("showcmd", Takes::Nothing, "print the jobs as a command line", |run, _| {
        run.show_command = true;
        Ok(())
    }),
    sets("parse-only", Takes::Nothing, "parse the jobs and exit", |run, _| {
        run.parse_only = true;
        Ok(())
    }),
    sets("readonly", Takes::Nothing, "reject jobs that write or trim", |run, _| {
        run.read_only = true;
        Ok(())
    }),
    sets("warnings-fatal", Takes::Nothing, "treat warnings as errors", |run, _| {
        run.warnings_fatal = true;
        Ok(())
    }),
    sets("max-jobs", Takes::Value, "maximum number of workers", |run, value| {
        run.max_jobs = Some(whole(value, 1, 65_536)? as u32);
        Ok(())
    }),
    sets("inflate-log", Takes::Value, "print a compressed log (.fz) as text", |run, value| {
        run.asked = Some(InfoRequest::InflateLog(value.into()));
        Ok(())
    }),
    sets("help", Takes::Nothing, "show this help", |run, _| {
        run.asked = Some(InfoRequest::Help);
        Ok(())
    }),
    sets("version", Takes::Nothing, "show the version", |run, _| {
        run.asked = Some(InfoRequest::Version);
        Ok(())
    }),
    sets("cmdhelp", Takes::Maybe, "help for one option or all", |run, value| {
        run.asked = Some(InfoRequest::CommandHelp(named(value)));
        Ok(())
    }),
    sets("enghelp", Takes::Maybe, "help for one engine or all: ENGINE[,OPTION]", |run, value| {
        run.asked = Some(InfoRequest::EngineHelp(named(value)));
        Ok(())
    }),
    Flag {
        name: "alloc-size",
        takes: Takes::Value,
        help: "size of fio's shared memory pool",
        does: Does::Ignored("workers are threads and share all memory"),
    },
    sets(
        "debug",
        Takes::Value,
        "random shows the seeds of the workers; fio's other values have no effect",
        |run, value| {
            for word in value.split(',').map(str::trim) {
                if !DEBUG.contains(&word) {
                    let guess = guess::question(word, DEBUG.iter().copied());
                    return Err(format!("{word:?} is not one of fio's debug values{guess}"));
                }
                run.debug_random |= matches!(word, "random" | "all");
            }
            Ok(())
        },
    ),
    sets(
        "bandwidth-log",
        Takes::Nothing,
        "write agg-read_bw.log, agg-write_bw.log and agg-trim_bw.log for all jobs together",
        |run, _| {
            run.bandwidth_log = true;
            Ok(())
        },
    ),
    sets("aux-path", Takes::Value, "directory for verify states and dumps", |run, value| {
        run.aux_directory = Some(value.into());
        Ok(())
    }),
    refused("latency-log", Takes::Nothing, "latency logs", "use write_lat_log=… in the jobs"),
    refused("merge-blktrace-only", Takes::Nothing, "merge traces into one", "merge traces with blkparse"),
    refused(
        "crctest",
        Takes::Maybe,
        "measure checksum speed",
        "kelvin vioperf and verify= show the cost of checksums",
    ),
    refused("cpuclock-test", Takes::Nothing, "test the CPU clock", "Kelvin checks its clock automatically"),
    refused("idle-prof", Takes::Value, "measure CPU idleness", "Kelvin samples the host during runs"),
    refused("server", Takes::Maybe, "run as a server for clients", REMOTE),
    refused("client", Takes::Value, "send jobs to a server", REMOTE),
    refused("remote-config", Takes::Value, "job file on the server", REMOTE),
    refused("daemonize", Takes::Value, "run in the background", "use systemd-run or nohup"),
    refused("trigger-file", Takes::Value, "run a command when a file appears", TRIGGER),
    refused("trigger-timeout", Takes::Value, "run a command after a timeout", TRIGGER),
    refused("trigger", Takes::Value, "the trigger command", TRIGGER),
    refused("trigger-remote", Takes::Value, "the trigger command on the remote machine", TRIGGER),
];

fn add(run: &mut RunFlags, format: OutputFormat) {
    if !run.formats.contains(&format) {
        run.formats.push(format);
    }
}

fn named(value: &str) -> Option<String> {
    Some(value).filter(|value| !value.is_empty() && *value != "all").map(str::to_owned)
}

fn whole(text: &str, least: i128, most: i128) -> Result<i128, String> {
    let value = number::whole(text, false)?;
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(format!("must be between {least} and {most}"))
    }
}

//! What to run, as a file says it and as the command line says it: one type for both, so that neither can say
//! what the other cannot.

mod io;
mod load;
mod observe;
mod rate;
mod reset;
mod script;
mod slo;
mod span;
mod sweep;
mod target;
mod think_time;
mod users;

use std::path::Path;

use kelvin_workload::{pgbench, tproc_c};
use serde::{Deserialize, Serialize};

pub use io::{IoOptions, Setting};
pub use load::{Load, LogFile};
pub use observe::Observe;
pub use rate::Rates;
pub use reset::{Reset, ResetMethod, StartingData, StepPolicy};
pub use script::ScriptOptions;
pub use slo::{Slo, SloFigures, SloTermResult};
pub use span::Span;
pub use sweep::Sweep;
pub use target::TargetName;
pub use think_time::ThinkTime;
pub use users::Users;

/// A complete description of a run. Nothing that decides a figure stands outside it, and no password in it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Spec {
    /// What the users do.
    pub workload: WorkloadName,
    /// The database.
    #[serde(default)]
    pub target: TargetName,
    /// A name to find the run by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether missing data is made before the run.
    #[serde(default)]
    pub build: Build,
    /// Whether the consistency conditions are checked after the run.
    #[serde(default)]
    pub check: bool,
    /// Whether a run counts although other work on the machine may explain much of its figures: their price stands beside
    /// them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub accept_noise: bool,
    /// How the load is put on.
    #[serde(default)]
    pub load: Load,
    /// What is watched beside the load.
    #[serde(default)]
    pub observe: Observe,
    /// What is done to the database before the load.
    #[serde(default)]
    pub reset: Reset,
    /// What TPROC-C leaves to choose.
    #[serde(default)]
    pub tproc_c: tproc_c::Options,
    /// What pgbench's workload leaves to choose.
    #[serde(default)]
    pub pgbench: pgbench::Options,
    /// The user's own scripts.
    #[serde(default)]
    pub script: ScriptOptions,
    /// I/O jobs in fio's language.
    #[serde(default)]
    pub io: IoOptions,
}

impl Spec {
    /// The data that each run of a series begins with.
    pub fn beginning(&self) -> StartingData {
        match self.reset.how {
            ResetMethod::None if self.workload == WorkloadName::Io => StartingData::Files,
            ResetMethod::None if self.target.is_temporary() => StartingData::Made,
            ResetMethod::None => StartingData::Left,
            how => StartingData::Reset(how),
        }
    }
}

/// A specification as a file shows it: with the table of its own workload only.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Shown<'a> {
    workload: WorkloadName,
    target: &'a TargetName,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    build: Build,
    check: bool,
    #[serde(skip_serializing_if = "is_false")]
    accept_noise: bool,
    load: &'a Load,
    observe: &'a Observe,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<&'a Reset>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tproc_c: Option<&'a tproc_c::Options>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pgbench: Option<&'a pgbench::Options>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<&'a ScriptOptions>,
}

/// A specification of I/O jobs as a file shows it: they have no database, and their own text says how the load is put on.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownIo<'a> {
    workload: WorkloadName,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    #[serde(skip_serializing_if = "is_false")]
    accept_noise: bool,
    load: OnlySeed,
    observe: &'a Observe,
    io: &'a IoOptions,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Serialize)]
struct OnlySeed {
    #[serde(with = "kelvin_measure::seed")]
    seed: u64,
}

/// The workloads of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadName {
    /// The TPC-C-like workload.
    TprocC,
    /// pgbench's built-in scripts and scripts on its tables.
    Pgbench,
    /// The user's own scripts on the user's own tables.
    Script,
    /// I/O jobs in fio's language, on files and block devices.
    Io,
}

impl WorkloadName {
    /// Every workload.
    pub const ALL: [Self; 4] = [Self::TprocC, Self::Pgbench, Self::Script, Self::Io];

    /// The id of its headline figure.
    pub fn headline(self) -> &'static str {
        match self {
            Self::TprocC => "nopm",
            Self::Pgbench | Self::Script => "tps",
            Self::Io => "iops",
        }
    }

    /// Its name on the command line and in a file, where its table has the same.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TprocC => "tproc-c",
            Self::Pgbench => "pgbench",
            Self::Script => "script",
            Self::Io => "io",
        }
    }

    /// The database when nobody names one: the embedded one wherever it can carry the workload.
    fn target(self) -> TargetName {
        match self {
            // I/O jobs name their own files, and have no use for it.
            Self::TprocC | Self::Script | Self::Io => TargetName::default(),
            Self::Pgbench => TargetName::managed_postgres(),
        }
    }
}

/// What to do about data that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Build {
    /// Make what is missing.
    #[default]
    Auto,
    /// Refuse to run.
    Never,
}

/// What virtual users run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Threading {
    /// Threads while there are few, event loops when there are many and the engine can.
    #[default]
    Auto,
    /// A thread each.
    Threads,
    /// Fibers on a few event loops.
    Loops,
}

/// Why a specification cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The text is not a specification; the message has line and column.
    #[error("{path}: {message}")]
    Parse {
        /// The file.
        path: String,
        /// What is wrong and where.
        message: String,
    },
    /// Two settings contradict each other.
    #[error("{0}")]
    Contradiction(String),
}

/// A specification file longer than this is not one. Scripts of [`LONGEST_SCRIPTS`] fit, however many of their
/// characters must be escaped.
const LONGEST_FILE: u64 = 16 << 20;

/// Bytes of all scripts of a run: they are kept in its file and in its result.
const LONGEST_SCRIPTS: usize = 2 << 20;

impl Spec {
    /// A run of `workload` with every default.
    pub fn new(workload: WorkloadName) -> Self {
        Self {
            workload,
            target: workload.target(),
            label: None,
            build: Build::default(),
            check: false,
            accept_noise: false,
            load: Load::default(),
            observe: Observe::default(),
            reset: Reset::default(),
            tproc_c: tproc_c::Options::default(),
            pgbench: pgbench::Options::default(),
            script: ScriptOptions::default(),
            io: IoOptions::default(),
        }
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, SpecError> {
        let shown = path.display().to_string();
        let read = |source| SpecError::Read { path: shown.clone(), source };
        let length = std::fs::metadata(path).map_err(read)?.len();
        if length > LONGEST_FILE {
            let message = format!("{length} bytes are too many for a specification ({LONGEST_FILE} allowed)");
            return Err(SpecError::Parse { path: shown, message });
        }
        let text = std::fs::read_to_string(path).map_err(read)?;
        Self::parse_in(&text, &shown, path.parent().unwrap_or(Path::new("")))
    }

    /// Parses the text of a file; `name` is in the errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, SpecError> {
        Self::parse_in(text, name, Path::new(""))
    }

    /// The same of a file in `directory`, where files that it names are looked for.
    pub fn parse_in(text: &str, name: &str, directory: &Path) -> Result<Self, SpecError> {
        let refused = |error: toml::de::Error| SpecError::Parse {
            path: name.into(),
            // The message repeats the line, and the line may hold the password that it is refused for.
            message: kelvin_measure::redact(&with_suggestion(error.to_string().trim_end())),
        };
        let mut spec: Self = toml::from_str(text).map_err(refused)?;
        let keys: toml::Table = toml::from_str(text).map_err(refused)?;
        if !keys.contains_key("target") {
            spec.target = spec.workload.target();
        }
        let others = WorkloadName::ALL.into_iter().filter(|&other| other != spec.workload);
        if let Some(other) = others.map(WorkloadName::as_str).find(|&other| keys.contains_key(other)) {
            let workload = spec.workload.as_str();
            let message = format!("[{other}] does not apply to the workload \"{workload}\"");
            return Err(SpecError::Parse { path: name.into(), message });
        }
        spec.io.resolve(directory).map_err(|message| SpecError::Parse { path: name.into(), message })?;
        spec.validate()?;
        Ok(spec)
    }

    /// Refuses settings that contradict each other.
    pub fn validate(&self) -> Result<(), SpecError> {
        self.load.validate().map_err(SpecError::Contradiction)?;
        self.observe.validate().map_err(SpecError::Contradiction)?;
        self.reset.validate().map_err(SpecError::Contradiction)?;
        if self.workload == WorkloadName::Io && self.load.transaction_log.is_some() {
            return Err(SpecError::Contradiction(
                "I/O jobs have no transaction log; write_lat_log=PREFIX in a job logs every I/O".into(),
            ));
        }
        if self.load.is_open_loop() && self.tproc_c.keying_and_thinking {
            return Err(SpecError::Contradiction(
                "[tproc-c] keying and think times require a closed loop; with a rate, transactions start as \
                 scheduled"
                    .into(),
            ));
        }
        let scripts = self.pgbench.scripts.iter().chain(&self.script.scripts);
        if scripts.filter_map(|script| script.text.as_ref()).map(String::len).sum::<usize>() > LONGEST_SCRIPTS
        {
            return Err(SpecError::Contradiction(format!(
                "more than {LONGEST_SCRIPTS} bytes of scripts are not supported"
            )));
        }
        if self.workload == WorkloadName::Io {
            return self.validate_io().map_err(SpecError::Contradiction);
        }
        let checked = match self.workload {
            WorkloadName::TprocC => tproc_c::TprocC::new(self.tproc_c.clone()).map(|_| ()),
            WorkloadName::Pgbench => pgbench::Pgbench::new(self.pgbench.clone()).map(|_| ()),
            WorkloadName::Script => pgbench::Pgbench::script(self.script.clone().into()).map(|_| ()),
            WorkloadName::Io => Ok(()),
        };
        checked.map_err(|error| SpecError::Contradiction(format!("[{}] {error}", self.workload.as_str())))
    }

    /// Refuses what says nothing about I/O jobs, whose own text says it.
    fn validate_io(&self) -> Result<(), String> {
        let own =
            Self { load: Load { seed: self.load.seed, ..Load::default() }, ..Self::new(WorkloadName::Io) };
        let refused = [
            (
                self.load != own.load,
                "[load]",
                "except for its seed: the job defines duration, depth and rate",
            ),
            (self.target != own.target, "target", ": the job names its files and devices"),
            (self.reset != own.reset, "[reset]", ": there is no database to reset"),
            (self.build != own.build || self.check, "build or check", ": there are no tables"),
        ];
        if let Some((_, what, why)) = refused.iter().find(|(refused, _, _)| *refused) {
            let space = if why.starts_with(':') { "" } else { " " };
            return Err(format!("{what} does not apply to a run of I/O jobs{space}{why}"));
        }
        self.io.validate()
    }

    /// Whether arrivals have their own schedule.
    pub fn is_open_loop(&self) -> bool {
        if self.workload == WorkloadName::Io { self.io.is_open_loop() } else { self.load.is_open_loop() }
    }

    /// How long the load of a run of one point takes, ramp-up included; none where a number of transactions or an amount of
    /// data decides.
    pub fn planned(&self) -> Option<std::time::Duration> {
        if self.workload == WorkloadName::Io {
            return self.io.planned();
        }
        let by_time = self.load.transactions.is_none();
        by_time.then(|| self.load.ramp_up.duration() + self.load.duration.duration())
    }

    /// The file that says the same.
    pub fn to_toml(&self) -> String {
        if self.workload == WorkloadName::Io {
            let shown = ShownIo {
                workload: self.workload,
                label: self.label.as_deref(),
                accept_noise: self.accept_noise,
                load: OnlySeed { seed: self.load.seed },
                observe: &self.observe,
                io: &self.io,
            };
            return toml::to_string(&shown).unwrap_or_default();
        }
        let of = |workload| self.workload == workload;
        let shown = Shown {
            workload: self.workload,
            target: &self.target,
            label: self.label.as_deref(),
            build: self.build,
            check: self.check,
            accept_noise: self.accept_noise,
            load: &self.load,
            observe: &self.observe,
            reset: Some(&self.reset).filter(|reset| **reset != Reset::default()),
            tproc_c: of(WorkloadName::TprocC).then_some(&self.tproc_c),
            pgbench: of(WorkloadName::Pgbench).then_some(&self.pgbench),
            script: of(WorkloadName::Script).then_some(&self.script),
        };
        // Every field is a number, text, list or table of those: nothing that TOML cannot say.
        toml::to_string(&shown).unwrap_or_default()
    }
}

/// The message of an unknown key with the key that was probably meant.
fn with_suggestion(message: &str) -> String {
    let meant = message.split_once("unknown field `").and_then(|(_, rest)| {
        let mut words = rest.split('`');
        let unknown = words.next()?;
        let known: Vec<&str> = words.skip(1).step_by(2).collect();
        crate::nearest(unknown, known)
    });
    meant.map_or_else(|| message.to_owned(), |meant| format!("{message}\n  did you mean `{meant}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_file_says_what_was_parsed() {
        let mut spec = Spec::new(WorkloadName::TprocC);
        spec.load.users = "1,2,4".parse().unwrap();
        spec.load.ramp_up = "1m30s".parse().unwrap();
        spec.load.transactions = std::num::NonZeroU64::new(7);
        spec.tproc_c.warehouses = Some(10);
        spec.label = Some("a \"quoted\" label".into());
        (spec.load.seed, spec.tproc_c.data_seed) = (u64::MAX, Some(1 << 63));
        assert!(!spec.to_toml().contains("accept-noise"));
        spec.accept_noise = true;
        assert_eq!(Spec::parse(&spec.to_toml(), "x").unwrap(), spec);
    }

    #[test]
    fn a_script_is_kept_to_the_letter_and_other_workloads_tables_are_not_printed() {
        let text = "\\set a random(1, 10)\n-- \"quoted\" and '''three'''\n\tselect :a, 'é\u{1}\r\n';\n";
        let choice =
            |name: &str| pgbench::ScriptChoice { name: name.into(), weight: 3, text: Some(text.into()) };
        let mut spec = Spec::new(WorkloadName::Script);
        spec.script.scripts = vec![choice("a.sql"), choice("b\n.sql")];
        spec.script.define.insert("who".into(), "O'Neil".into());
        let printed = spec.to_toml();
        assert_eq!(Spec::parse(&printed, "x").unwrap(), spec);
        assert!(!printed.contains("pgbench") && !printed.contains("tproc-c"), "{printed}");
        let mut spec = Spec::new(WorkloadName::Pgbench);
        spec.pgbench.scripts = vec![pgbench::ScriptChoice::builtin("select@2").unwrap(), choice("c.sql")];
        spec.pgbench.scale = Some(7);
        spec.pgbench.query_mode = pgbench::QueryMode::Prepared;
        let printed = spec.to_toml();
        assert_eq!(Spec::parse(&printed, "x").unwrap(), spec);
        assert!(!printed.contains("[script]") && !printed.contains("tproc-c"), "{printed}");
    }

    #[test]
    fn a_file_without_a_target_takes_its_workloads_own() {
        for workload in WorkloadName::ALL {
            let script = "[[script.scripts]]\nname = \"a\"\ntext = \"select 1\"\n";
            let table = match workload {
                WorkloadName::Script => script,
                WorkloadName::Io => "[io]\njob = \"[a]\\nioengine=null\\nsize=1m\"\n",
                _ => "",
            };
            let text = format!("workload = \"{}\"\n{table}", workload.as_str());
            let spec = Spec::parse(&text, "x").unwrap();
            assert_eq!(spec.target, Spec::new(workload).target);
        }
    }

    #[test]
    fn a_table_of_another_workload_is_refused() {
        let error = Spec::parse("workload = \"pgbench\"\n[tproc-c]\n", "x").unwrap_err().to_string();
        assert!(error.contains("[tproc-c]") && error.contains("pgbench"), "{error}");
    }

    #[test]
    fn io_jobs_stand_in_the_file_whole_and_nothing_else_says_how_they_run() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let job = "[global]\nioengine=null\nsize=1m\n[a]\nrw=randread\n";
        std::fs::write(path("a.fio"), job).unwrap();
        let table = "[io]\nfile = \"a.fio\"\n[io.set]\niodepth = 4\nbs = \"8k\"\n";
        std::fs::write(path("run.toml"), format!("workload = \"io\"\n{table}")).unwrap();
        let spec = Spec::read(&path("run.toml")).unwrap();
        assert_eq!(spec.io.job, job);
        let printed = spec.to_toml();
        assert_eq!(Spec::parse(&printed, "x").unwrap(), spec);
        assert!(!printed.contains("target") && !printed.contains("users"), "{printed}");
        let jobs = spec.io.jobs(1).unwrap();
        assert_eq!((jobs.jobs[0].depth.depth, jobs.jobs[0].pattern.seed), (4, None));
        assert_eq!(spec.io.jobs(7).unwrap().jobs[0].pattern.seed, Some(7));
        for (more, expected) in [
            ("[load]\nusers = 2\n", "the job defines duration"),
            ("[reset]\nhow = \"auto\"\n", "no database"),
            ("[io]\njob = \"[a]\\nno_such_option=1\"\n", "no_such_option"),
            ("[io]\n", "no job"),
            ("[io]\nfile = \"none.fio\"\n", "none.fio"),
        ] {
            let text = if more.starts_with("[io]") {
                format!("workload = \"io\"\n{more}")
            } else {
                format!("workload = \"io\"\n{more}[io]\njob = \"[a]\\nioengine=null\\nsize=1m\"\n")
            };
            let error = Spec::parse(&text, "x").unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_minimal_file_has_every_default() {
        let spec = Spec::parse("workload = \"tproc-c\"", "x").unwrap();
        assert_eq!(spec, Spec::new(WorkloadName::TprocC));
    }

    #[test]
    fn errors_have_line_and_column() {
        for (text, expected) in [
            ("workload = \"tproc-c\"\n[load]\nuser = 3\n", "line 3, column 1"),
            ("workload = \"tproc-c\"\n[load]\nusers = 0\n", "line 3, column 9"),
            ("workload = \"tproc-c\"\n[load]\nduration = \"-5s\"\n", "line 3, column 12"),
            ("workload = \"tproc-c\"\ntarget = \"ftp://x\"\n", "line 2, column 10"),
        ] {
            let message = Spec::parse(text, "run.toml").unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,200}") {
            let _ = Spec::parse(&text, "x");
        }

        #[test]
        fn any_script_stands_in_the_file_as_it_is(text in "(?s).{0,100}", value in "(?s).{0,20}") {
            let mut spec = Spec::new(WorkloadName::Script);
            // In a comment nothing is a syntax error, so that the text alone is what is tested.
            let line: String = text.chars().map(|c| if c == '\n' || c == '\r' { ' ' } else { c }).collect();
            let text = format!("select 1; -- {line}\n");
            spec.script.scripts =
                vec![pgbench::ScriptChoice { name: value.clone(), weight: 1, text: Some(text) }];
            spec.script.define.insert(value.clone(), value);
            proptest::prop_assert_eq!(Spec::parse(&spec.to_toml(), "x").unwrap(), spec);
        }
    }
}

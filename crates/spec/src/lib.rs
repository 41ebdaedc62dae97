//! What to run, as a file says it and as the command line says it: one type for both, so that neither can say
//! what the other cannot.

mod file;
pub mod find_max;
mod io;
pub mod jobfile_text;
mod load;
mod observe;
pub mod plan;
mod process;
mod rate;
mod reset;
mod script;
mod similar_name;
mod slo;
mod span;
mod sweep;
mod target;
mod think_time;
mod users;
mod work;

use std::path::Path;

use kelvin_storage::job::Jobs;
use kelvin_workload::{pgbench, scan, tproc_c, tproc_h};
use serde::{Deserialize, Serialize};

pub use file::SpecFile;
pub use io::{IoOptions, Setting};
pub use load::{Load, LogFile};
pub use observe::Observe;
pub use process::Process;
pub use rate::Rates;
pub use reset::{Reset, ResetMethod, StartingData, StepPolicy};
pub use script::ScriptOptions;
pub use similar_name::nearest;
pub use slo::{Slo, SloFigures, SloTermResult};
pub use span::Span;
pub use sweep::Sweep;
pub use target::TargetName;
pub use think_time::ThinkTime;
pub use users::Users;
pub use work::{Work, WorkloadName};

/// A complete description of a run. Nothing that decides a figure stands outside it, and no password in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// The workload, and what it leaves to choose.
    pub work: Work,
    /// The database.
    pub target: TargetName,
    /// A name to find the run by.
    pub label: Option<String>,
    /// Whether missing data is made before the run.
    pub build: Build,
    /// Whether the consistency conditions are checked after the run.
    pub check: bool,
    /// Whether a run counts although other work on the machine may explain much of its figures: their price stands beside
    /// them.
    pub accept_noise: bool,
    /// How the load is put on.
    pub load: Load,
    /// What is watched beside the load.
    pub observe: Observe,
    /// What is done to the database before the load.
    pub reset: Reset,
}

impl Spec {
    /// The data that each run of a series begins with.
    pub fn beginning(&self) -> StartingData {
        match self.reset.how {
            ResetMethod::None if self.is_io() => StartingData::Files,
            ResetMethod::None if self.target.is_temporary() => StartingData::Made,
            ResetMethod::None => StartingData::Left,
            how => StartingData::Reset(how),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_true(value: &bool) -> bool {
    *value
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
    /// A table that does not apply, or a file that it names and that cannot be read.
    #[error("{0}")]
    Table(String),
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
            work: workload.into(),
            target: workload.target(),
            label: None,
            build: Build::default(),
            check: false,
            accept_noise: false,
            load: if workload == WorkloadName::TprocH { Load::of_queries() } else { Load::default() },
            observe: Observe::default(),
            reset: Reset::default(),
        }
    }

    /// Takes users and transactions from the streams of TPROC-H, whose scale factor is known.
    pub fn arrange_streams(&mut self) {
        let Work::TprocH(options) = &self.work else { return };
        self.load.transactions = std::num::NonZeroU64::new(options.most_transactions());
        self.load.ramp_up = Span::seconds(0);
        if options.profile == tproc_h::Profile::Spec {
            self.load.users = Users::several(options.users());
        }
    }

    /// The name of its workload.
    pub fn workload(&self) -> WorkloadName {
        self.work.name()
    }

    /// Whether it runs I/O jobs, which have no database.
    pub fn is_io(&self) -> bool {
        matches!(self.work, Work::Io(_))
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
        let refuse = |message: String| SpecError::Parse { path: name.into(), message };
        let file: SpecFile = toml::from_str(text).map_err(|error| {
            // The message repeats the line, and the line may hold the password that it is refused for.
            refuse(kelvin_measure::redact(&with_suggestion(error.to_string().trim_end())))
        })?;
        Self::of_file(file, directory).map_err(|error| match error {
            SpecError::Table(message) => refuse(message),
            error => error,
        })
    }

    /// The same of a text that came from another host, which may not make this one read files or its environment.
    ///
    /// # Errors
    /// As of [`Spec::parse`], and for jobs that name such a thing.
    pub fn parse_received(text: &str, name: &str) -> Result<Self, SpecError> {
        let refuse = |message: String| SpecError::Parse { path: name.into(), message };
        // The message may repeat a line, which is the sender's own.
        let file: SpecFile = toml::from_str(text)
            .map_err(|error| refuse(kelvin_measure::redact(error.to_string().trim_end())))?;
        let spec = file.into_spec().map_err(refuse)?;
        if let Work::Io(io) = &spec.work {
            io.stands_alone().map_err(refuse)?;
        }
        spec.resolved(Path::new("")).map_err(|error| match error {
            SpecError::Table(message) => refuse(message),
            error => error,
        })
    }

    /// What a file in `directory`, or a table of another one, says.
    ///
    /// # Errors
    /// [`SpecError::Table`] or [`SpecError::Contradiction`].
    pub fn of_file(file: SpecFile, directory: &Path) -> Result<Self, SpecError> {
        file.into_spec().map_err(SpecError::Table)?.resolved(directory)
    }

    fn resolved(mut self, directory: &Path) -> Result<Self, SpecError> {
        if let Work::Io(io) = &mut self.work {
            io.resolve(directory).map_err(SpecError::Table)?;
        }
        self.validate()?;
        Ok(self)
    }

    /// Refuses settings that contradict each other.
    pub fn validate(&self) -> Result<(), SpecError> {
        if matches!(self.work, Work::TprocH(_)) && (self.load.is_open_loop() || self.load.sweep.is_some()) {
            return Err(SpecError::Contradiction(
                "[tproc-h] the queries of a stream follow one another: a rate or a sweep does not apply"
                    .into(),
            ));
        }
        self.validate_trickle().map_err(SpecError::Contradiction)?;
        self.load.validate().map_err(SpecError::Contradiction)?;
        self.observe.validate().map_err(SpecError::Contradiction)?;
        self.reset.validate().map_err(SpecError::Contradiction)?;
        let scripts = self.work.scripts().iter().filter_map(|script| script.text.as_ref());
        if scripts.map(String::len).sum::<usize>() > LONGEST_SCRIPTS {
            return Err(SpecError::Contradiction(format!(
                "more than {LONGEST_SCRIPTS} bytes of scripts are not supported"
            )));
        }
        let checked = match &self.work {
            Work::TprocC(options) if options.keying_and_thinking && self.load.is_open_loop() => {
                return Err(SpecError::Contradiction(
                    "[tproc-c] keying and think times require a closed loop; with a rate, transactions start \
                     as scheduled"
                        .into(),
                ));
            }
            Work::TprocC(options) => tproc_c::TprocC::new(options.clone()).map(drop),
            Work::TprocH(options) => tproc_h::TprocH::new(options.clone()).map(drop),
            Work::Pgbench(options) => pgbench::Pgbench::new(options.clone()).map(drop),
            Work::Script(options) => pgbench::Pgbench::script(options.clone().into()).map(drop),
            Work::Scan(options) => scan::Scan::new(options.clone()).map(drop),
            Work::Io(options) => {
                return self
                    .validate_io()
                    .and_then(|()| options.validate())
                    .map_err(SpecError::Contradiction);
            }
        };
        checked.map_err(|error| SpecError::Contradiction(format!("[{}] {error}", self.workload().as_str())))
    }

    /// Refuses a trickle refresh that no queries of this process are beside.
    fn validate_trickle(&self) -> Result<(), String> {
        let Work::TprocH(options) = &self.work else { return Ok(()) };
        if options.trickle_refresh.is_none() {
            return Ok(());
        }
        if self.load.hosts.is_some() {
            return Err("[tproc-h] trickle-refresh is not supported with several hosts: it ends with the \
                queries"
                .into());
        }
        if options.profile == tproc_h::Profile::Hammerdb
            && self.load.points().iter().any(|(users, _)| *users < 2)
        {
            return Err(
                "[tproc-h] with trickle-refresh the last of the users refreshes: at least two are needed"
                    .into(),
            );
        }
        Ok(())
    }

    /// Refuses what says nothing about I/O jobs, whose own text says it.
    fn validate_io(&self) -> Result<(), String> {
        if self.load.transaction_log.is_some() {
            return Err(
                "I/O jobs have no transaction log; write_lat_log=PREFIX in a job logs every I/O".into()
            );
        }
        let refused = [
            (
                self.load != Load { seed: self.load.seed, ..Load::default() },
                "[load]",
                "except for its seed: the job defines duration, depth and rate",
            ),
            (self.target != WorkloadName::Io.target(), "target", ": the job names its files and devices"),
            (self.reset != Reset::default(), "[reset]", ": there is no database to reset"),
            (self.build != Build::default() || self.check, "build or check", ": there are no tables"),
        ];
        let Some((_, what, why)) = refused.iter().find(|(refused, _, _)| *refused) else { return Ok(()) };
        let space = if why.starts_with(':') { "" } else { " " };
        Err(format!("{what} does not apply to a run of I/O jobs{space}{why}"))
    }

    /// Its I/O jobs; none of another workload.
    ///
    /// # Errors
    /// Those of [`IoOptions::jobs`].
    pub fn jobs(&self) -> kelvin_storage::Result<Jobs> {
        if let Work::Io(io) = &self.work { io.jobs(self.load.seed) } else { Ok(Jobs::default()) }
    }

    /// Whether arrivals have their own schedule.
    pub fn is_open_loop(&self) -> bool {
        if let Work::Io(io) = &self.work { io.is_open_loop() } else { self.load.is_open_loop() }
    }

    /// How many phases a run of one point has: those between the stonewalls of I/O jobs, else one.
    pub fn phases(&self) -> u32 {
        if let Work::Io(io) = &self.work { io.phases() } else { 1 }
    }

    /// How long the load of a run of one point takes, ramp-up included; none where a number of transactions or an amount of
    /// data decides.
    pub fn planned(&self) -> Option<std::time::Duration> {
        if let Work::Io(io) = &self.work {
            return io.planned();
        }
        let by_time = self.load.transactions.is_none();
        by_time.then(|| self.load.ramp_up.duration() + self.load.duration.duration())
    }

    /// The file that says the same.
    pub fn to_toml(&self) -> String {
        // Every field is a number, text, list or table of those: nothing that TOML cannot say.
        toml::to_string(&SpecFile::from_spec(self)).unwrap_or_default()
    }
}

/// The message of an unknown key with the key that was probably meant.
pub fn with_suggestion(message: &str) -> String {
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
        spec.work = Work::TprocC(tproc_c::Options {
            warehouses: Some(10),
            data_seed: Some(1 << 63),
            ..Default::default()
        });
        spec.label = Some("a \"quoted\" label".into());
        spec.load.seed = u64::MAX;
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
        let define = [("who".to_owned(), "O'Neil".to_owned())].into();
        let scripts = vec![choice("a.sql"), choice("b\n.sql")];
        spec.work = Work::Script(ScriptOptions { define, scripts, ..Default::default() });
        let printed = spec.to_toml();
        assert_eq!(Spec::parse(&printed, "x").unwrap(), spec);
        assert!(!printed.contains("pgbench") && !printed.contains("tproc-c"), "{printed}");
        let mut spec = Spec::new(WorkloadName::Pgbench);
        spec.work = Work::Pgbench(pgbench::Options {
            scripts: vec![pgbench::ScriptChoice::builtin("select@2").unwrap(), choice("c.sql")],
            scale: Some(7),
            query_mode: pgbench::QueryMode::Prepared,
            ..Default::default()
        });
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
        let Work::Io(io) = &spec.work else { panic!("{spec:?}") };
        assert_eq!(io.job, job);
        let printed = spec.to_toml();
        assert_eq!(Spec::parse(&printed, "x").unwrap(), spec);
        assert!(!printed.contains("target") && !printed.contains("users"), "{printed}");
        let jobs = io.jobs(1).unwrap();
        assert_eq!((jobs.jobs[0].depth.depth, jobs.jobs[0].pattern.seed), (4, None));
        assert_eq!(io.jobs(7).unwrap().jobs[0].pattern.seed, Some(7));
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
            ("workload = \"tproc-c\"\nbuild = \"yes\"\n", "line 2, column 9"),
            ("workload = \"tproc-c\"\ncheck = 1\n", "line 2, column 9"),
            ("workload = \"tproc-c\"\n[tproc-c]\nwarehouses = -1\n", "line 3, column 14"),
            ("workload = \"pgbench\"\n[pgbench]\nscal = 1\n", "line 3, column 1"),
            ("workload = \"io\"\n[io]\njob = \"\"\n[io.set]\nbs = [4]\n", "line 5, column 6"),
            ("workload = \"io\"\n[script]\nallow-shell = \"yes\"\n", "line 3, column 15"),
            ("[load]\nusers = 3\n", "missing field `workload`"),
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
            let scripts = vec![pgbench::ScriptChoice { name: value.clone(), weight: 1, text: Some(text) }];
            let define = [(value.clone(), value)].into();
            spec.work = Work::Script(ScriptOptions { define, scripts, ..Default::default() });
            proptest::prop_assert_eq!(Spec::parse(&spec.to_toml(), "x").unwrap(), spec);
        }
    }
}

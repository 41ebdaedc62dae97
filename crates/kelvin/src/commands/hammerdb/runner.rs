//! Executes the steps of a script. Each is run by this program with the arguments that a user would type.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use kelvin_hammerdb::{
    Action, Administration, DatabaseObject, HostError, JobPart, KelvinCommand, Position, Runner, Step,
};
use kelvin_lab::open::connect_with_password;
use kelvin_measure::text::printable_lines;
use kelvin_report::RunReport;
use kelvin_store::Store;
use kelvin_workload::Stop;

use super::sweep::Sweeps;
use crate::args::Global;
use crate::exit::Code;
use crate::measure::as_typed;
use crate::{out, paths};

/// How steps are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Steps are executed.
    Run,
    /// The command of each step is printed.
    Plan,
    /// Only the specifications of runs are printed.
    Specifications,
}

/// Executes the steps of a script.
pub(super) struct KelvinRunner<'a> {
    global: &'a Global,
    mode: Mode,
    scale: f64,
    stop: Stop,
    /// The worst exit code of a step so far.
    worst: i32,
    /// Number of planned runs, from which their job identifiers are made.
    planned: u32,
    /// Notes that were already printed.
    noted: BTreeSet<String>,
    sweeps: Sweeps,
}

/// Exit codes from the best to the worst.
const ORDER: [(i32, Code); 6] = [
    (0, Code::Success),
    (3, Code::WithErrors),
    (1, Code::NotValid),
    (2, Code::BadInput),
    (4, Code::Aborted),
    (130, Code::Interrupted),
];

impl<'a> KelvinRunner<'a> {
    /// `stop` is requested by signals. The step that is running gets the same signals, and
    /// answers them.
    pub(super) fn new(global: &'a Global, mode: Mode, scale: f64, stop: Stop) -> Self {
        Self {
            global,
            mode,
            scale,
            stop,
            worst: 0,
            planned: 0,
            noted: BTreeSet::new(),
            sweeps: Sweeps::default(),
        }
    }

    /// The worst exit code of a step.
    pub(super) fn worst(&self) -> Code {
        ORDER.iter().find(|(code, _)| *code == self.worst).map_or(Code::Aborted, |(_, code)| *code)
    }

    /// Prints the runs that differ in the number of users together; in a plan, the command that runs them as
    /// one sweep.
    pub(super) fn show_sweeps(&mut self) -> Result<()> {
        let mut shown = String::new();
        for sweep in self.sweeps.found() {
            match self.mode {
                Mode::Run => {
                    let store = paths::store(self.global.store.as_deref())?;
                    shown.push_str(&sweep.report(&store)?);
                }
                Mode::Plan => shown.push_str(&format!("the same as one sweep: {}\n", sweep.command())),
                Mode::Specifications => {}
            }
        }
        self.print(&shown);
        Ok(())
    }

    fn child(&self, command: &KelvinCommand) -> Result<Command> {
        let program = std::env::current_exe().context("cannot find this program's executable")?;
        let mut child = Command::new(program);
        child.args(&command.arguments).stdin(Stdio::null());
        if let Some(store) = &self.global.store {
            child.arg("--store").arg(store);
        }
        if self.global.quiet {
            child.arg("--quiet");
        }
        let (variable, password) = &command.password;
        if !password.is_empty() {
            child.env(variable, password);
        }
        Ok(child)
    }

    /// Runs a step's command, and keeps its exit code if it is the worst so far.
    fn execute(&mut self, step: &Step, command: &KelvinCommand) -> Result<(), HostError> {
        let run = || Ok(self.child(command)?.status()?);
        let status = run().map_err(|error: anyhow::Error| HostError::from(format!("{error:#}")))?;
        let code = status.code().unwrap_or(4);
        let rank = |code: i32| ORDER.iter().position(|(known, _)| *known == code).unwrap_or(ORDER.len());
        if rank(code) > rank(self.worst) {
            self.worst = code;
        }
        if self.stop.requested() || code == 130 {
            self.worst = 130;
            return Err(HostError { message: format!("interrupted in {}", step.action.word()), fatal: true });
        }
        // The run was measured and is stored, valid or not.
        let went_on = code == 0 || step.action == Action::Run && (code == 1 || code == 3);
        if went_on { Ok(()) } else { Err(format!("{} failed (exit code {code})", step.action.word()).into()) }
    }

    /// Creates the missing objects.
    fn create(&self, administration: &Administration) -> Result<()> {
        // If the owner of the tables can connect, nothing is missing, and the administrator's password is not
        // needed.
        let (own, password) = &administration.own;
        if connect_with_password(own, password).is_ok() {
            return Ok(());
        }
        let mut session = connect_with_password(&administration.target, &administration.password)
            .context("cannot create the database as its administrator")?;
        for object in &administration.objects {
            if session.query(&object.exists)?.is_empty() {
                self.say(&format!("creating {}", object.name));
                session.run(&object.create).with_context(|| format!("cannot create {}", object.name))?;
            }
        }
        Ok(())
    }

    /// Drops the database and its owner, unless they own more than the dropped tables.
    fn drop(&self, administration: &Administration) -> Result<()> {
        let (own, password) = &administration.own;
        let mut session = connect_with_password(own, password)?;
        if !session.query(&administration.holds_tables)?.is_empty() {
            self.say("the database holds other tables, and is kept");
            return Ok(());
        }
        drop(session);
        let mut session = connect_with_password(&administration.target, &administration.password)
            .context("cannot drop the database as its administrator")?;
        for DatabaseObject { name, drop, .. } in administration.objects.iter().rev() {
            self.say(&format!("dropping {name}"));
            session.run(drop).with_context(|| format!("cannot drop {name}"))?;
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.global.quiet {
            out::note(text);
        }
    }

    fn plan(&mut self, step: &Step, command: &KelvinCommand) -> Result<(), HostError> {
        match (self.mode, step.action) {
            (Mode::Specifications, Action::Run) => {
                let mut child = self.child(command).map_err(|error| HostError::from(format!("{error:#}")))?;
                match child.arg("--print-spec").status() {
                    Ok(status) if status.success() => Ok(()),
                    _ => Err(HostError::from("the run cannot be specified".to_owned())),
                }
            }
            (Mode::Plan, _) => {
                // The reader of standard output may have closed it.
                let _ = out::line(&printable_lines(&as_typed(command.arguments.iter().cloned())));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn report(&self, job: &str) -> Result<serde_json::Value> {
        let store = Store::open_read_only(&paths::store(self.global.store.as_deref())?)?;
        let run = store.find(&label(job)).with_context(|| format!("there is no job {job}"))?;
        let report = RunReport::load(&store, run)?;
        Ok(serde_json::from_str(&kelvin_report::json::render(&report)?)?)
    }
}

/// The label of a job's run.
pub(super) fn label(job: &str) -> String {
    format!("hammerdb-{job}")
}

/// A new job identifier: the start time in microseconds.
fn job() -> String {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    format!("{:X}", now.as_micros())
}

impl Runner for KelvinRunner<'_> {
    fn run(&mut self, step: &Step) -> Result<String, HostError> {
        if self.stop.requested() {
            return Err(HostError { message: "interrupted".into(), fatal: true });
        }
        let job = if self.mode == Mode::Run {
            job()
        } else {
            self.planned += 1;
            format!("PLANNED{}", self.planned)
        };
        let label = label(&job);
        let command = step.command(self.scale, (self.mode == Mode::Run).then_some(label.as_str()))?;
        for note in &command.notes {
            self.warn(&step.position, note);
        }
        if self.mode != Mode::Run {
            self.plan(step, &command)?;
            if step.action == Action::Run {
                self.sweeps.add(&command.arguments, &job);
            }
            return Ok(job);
        }
        self.say(&format!(
            "{}: {}: kelvin {}",
            step.position,
            step.action.word(),
            command.arguments.join(" ")
        ));
        let administered =
            |result: Result<()>| result.map_err(|error| HostError::from(crate::exit::describe(&error)));
        let administration = step.administration()?;
        if step.action == Action::Build {
            administered(self.create(&administration))?;
        }
        self.execute(step, &command)?;
        match step.action {
            Action::Run => self.sweeps.add(&command.arguments, &job),
            Action::Delete => administered(self.drop(&administration))?,
            Action::Build | Action::Check => {}
        }
        Ok(job)
    }

    fn job(&mut self, command: &str, arguments: &[String]) -> Result<String, HostError> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match (command, words.as_slice()) {
            ("jobs", ["profileid", ..]) => Ok(String::new()),
            ("jobs", _) => Ok("Runs are listed by `kelvin runs`.\n".into()),
            (_, [job, ..]) if job.starts_with("PLANNED") => Ok(String::new()),
            (_, [job, part]) => match JobPart::parse(part) {
                Some(part) => {
                    let report =
                        self.report(job).map_err(|error| HostError::from(crate::exit::describe(&error)))?;
                    Ok(kelvin_hammerdb::render(&report, job, part))
                }
                None => Ok(format!("kelvin show {} prints all results of the job.\n", label(job))),
            },
            _ => Err(HostError::from("job is called as: job ID result|timing|tcount".to_owned())),
        }
    }

    fn print(&mut self, text: &str) {
        // In a plan, the output of the script is printed between the commands as comments.
        let text = match self.mode {
            Mode::Run => text.to_owned(),
            _ => text.lines().flat_map(|line| ["# ", line, "\n"]).collect(),
        };
        // The reader of standard output may have closed it.
        let _ = out::write(&printable_lines(&text));
    }

    fn warn(&mut self, position: &Position, text: &str) {
        let line = format!("{position}: note: {text}");
        // A step in a loop repeats its notes.
        if self.noted.insert(line.clone()) {
            out::note(&line);
        }
    }

    fn wait(&mut self, milliseconds: u64) -> Result<(), HostError> {
        if self.mode != Mode::Run {
            return Ok(());
        }
        let until = Instant::now() + Duration::from_millis(milliseconds).mul_f64(self.scale.min(1.0));
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if self.stop.requested() {
                return Err(HostError { message: "interrupted".into(), fatal: true });
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        Ok(())
    }

    fn interrupted(&self) -> bool {
        self.stop.requested()
    }

    fn processors(&self) -> u32 {
        std::thread::available_parallelism().map_or(1, |count| count.get() as u32)
    }
}

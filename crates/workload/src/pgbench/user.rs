//! A virtual user: draws a script and carries out its commands.

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Error, ErrorClass, Result, Rows, Session, Statement, Value as Parameter};
use kelvin_measure::{Counters, Outcome, Random};

use super::expression::{Fault, Machine, Value};
use super::options::QueryMode;
use super::script::{self, Command, Part, Script, Sql, Step, Store, Word};
use super::variables::{Slots, Variables, Written};
use crate::{Next, VirtualUser};

/// What all users share.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) scripts: Vec<Script>,
    /// Sums of the weights up to and with each script.
    pub(crate) weights: Vec<u64>,
    pub(crate) slots: Slots,
    pub(crate) mode: QueryMode,
    /// Values set before the load, by slot.
    pub(crate) defined: Vec<(u32, String)>,
}

/// A statement of this connection, once prepared.
#[derive(Debug, Clone, Default)]
struct Prepared {
    statement: Option<Statement>,
    /// For `\gset`: the slot of each column, none where no script reads it.
    columns: Vec<Option<u32>>,
}

pub(crate) struct User {
    plan: Arc<Plan>,
    random: Random,
    variables: Variables,
    /// As they were when the transaction began, for its repetition.
    random_before: Random,
    variables_before: Variables,
    /// Whether the next `execute` repeats.
    repeats: bool,
    script: usize,
    prepared: Vec<Vec<Prepared>>,
    machine: Machine,
    /// Memory for the texts of parameters and statements, and for results.
    text: Vec<u8>,
    name: String,
    rows: Rows,
    results: Vec<Rows>,
}

impl User {
    pub(crate) fn new(plan: Arc<Plan>, index: u32, seed: u64, random: Random) -> Self {
        let mut variables = Variables::new(&plan.slots);
        let mut set = |name: &str, value: i64| {
            if let Some(slot) = plan.slots.find(name) {
                variables.set(slot, Value::Integer(value));
            }
        };
        set("client_id", i64::from(index));
        set("random_seed", seed as i64);
        // One for the whole run, and not the seed itself: hashes of small numbers would resemble each other.
        set("default_seed", Random::part(seed, 0x6465_6661_756c_7473, 0).bits() as i64);
        for (slot, text) in &plan.defined {
            variables.set_text(*slot, text.as_bytes());
        }
        let prepared =
            plan.scripts.iter().map(|script| vec![Prepared::default(); script.steps.len()]).collect();
        Self {
            random_before: random.clone(),
            variables_before: Variables::new(&plan.slots),
            plan,
            random,
            variables,
            repeats: false,
            script: 0,
            prepared,
            machine: Machine::default(),
            text: Vec::new(),
            name: String::new(),
            rows: Rows::new(),
            results: Vec::new(),
        }
    }

    fn run(&mut self, script: &Script, session: &mut dyn Session) -> Result<()> {
        let mut pipeline = false;
        let mut at = 0;
        while let Some(step) = script.steps.get(at) {
            let place = (self.script, at);
            at += 1;
            let outcome = match &step.command {
                Command::Sql(sql) => self.sql(sql, place, pipeline, session),
                Command::Set { slot, expression } => self
                    .machine
                    .evaluate(expression, &self.variables, &mut self.random, place)
                    .map(|value| self.variables.set(*slot, value))
                    .map_err(|fault| self.fault(fault)),
                Command::Unless { condition, target } => self
                    .machine
                    .evaluate(condition, &self.variables, &mut self.random, place)
                    .map(|value| {
                        if !value.is_true() {
                            at = *target;
                        }
                    })
                    .map_err(|fault| self.fault(fault)),
                Command::Jump { target } => {
                    at = *target;
                    Ok(())
                }
                Command::Sleep(duration) => self.sleep(*duration),
                Command::Shell { slot, words } => self.shell(*slot, words),
                Command::StartPipeline => {
                    pipeline = true;
                    Ok(())
                }
                Command::SyncPipeline => session.queue_sync(),
                Command::EndPipeline => {
                    pipeline = false;
                    session.flush(&mut self.results)
                }
            };
            outcome.map_err(|error| at_line(error, script, step))?;
        }
        if session.in_transaction() {
            return Err(Error::new(
                ErrorClass::Statement,
                format!("{}: the script ended within a transaction: a COMMIT is missing", script.name),
            ));
        }
        Ok(())
    }

    #[inline]
    fn sql(
        &mut self,
        sql: &Sql,
        place: (usize, usize),
        pipeline: bool,
        session: &mut dyn Session,
    ) -> Result<()> {
        if self.plan.mode == QueryMode::Simple {
            return self.simple(sql, session);
        }
        let statement = match self.prepared[place.0][place.1].statement {
            Some(statement) => statement,
            None => self.prepare_one(sql, place, session)?,
        };
        match sql.parameters.len() {
            0..=16 => self.bind::<16>(statement, sql, pipeline, session)?,
            17..=64 => self.bind::<64>(statement, sql, pipeline, session)?,
            _ => self.bind::<256>(statement, sql, pipeline, session)?,
        }
        if let Some(store) = &sql.store {
            one_row(store, &self.rows)?;
            if let Some(row) = self.rows.len().checked_sub(1) {
                for (column, slot) in self.prepared[place.0][place.1].columns.iter().enumerate() {
                    if let Some(slot) = slot {
                        self.variables.set_text(*slot, self.rows.bytes(row, column)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// Executes or queues a statement with the texts of its variables; `N` is enough for them.
    #[inline]
    fn bind<const N: usize>(
        &mut self,
        statement: Statement,
        sql: &Sql,
        pipeline: bool,
        session: &mut dyn Session,
    ) -> Result<()> {
        self.text.clear();
        let mut ends = [(0_usize, false); N];
        for (end, &slot) in ends.iter_mut().zip(&sql.parameters) {
            let written = self.variables.write(slot, &mut self.text);
            *end = (self.text.len(), written == Written::Text);
        }
        let text = std::str::from_utf8(&self.text)
            .map_err(|_| Error::new(ErrorClass::Statement, "a variable holds text that is not UTF-8"))?;
        let mut parameters = [Parameter::Null; N];
        let mut start = 0;
        for (parameter, &(end, is_text)) in parameters.iter_mut().zip(&ends[..sql.parameters.len()]) {
            if is_text {
                *parameter = Parameter::Text(&text[start..end]);
            }
            start = end;
        }
        let parameters = &parameters[..sql.parameters.len()];
        if pipeline {
            session.queue(statement, parameters)
        } else {
            session.execute(statement, parameters, &mut self.rows)
        }
    }

    fn simple(&mut self, sql: &Sql, session: &mut dyn Session) -> Result<()> {
        self.text.clear();
        for part in &sql.parts {
            match part {
                Part::Text(text) => self.text.extend_from_slice(text.as_bytes()),
                Part::Variable(slot, written) => match self.variables.write(*slot, &mut self.text) {
                    Written::Text => {}
                    Written::Null => self.text.extend_from_slice(b"NULL"),
                    Written::Undefined => self.text.extend_from_slice(written.as_bytes()),
                },
            }
        }
        let text = std::str::from_utf8(&self.text)
            .map_err(|_| Error::new(ErrorClass::Statement, "a variable holds text that is not UTF-8"))?;
        let Some(store) = &sql.store else { return session.run(text) };
        session.query_text(text, &mut self.results)?;
        let first = if store.all { 0 } else { self.results.len().saturating_sub(1) };
        if self.results.is_empty() && !store.all {
            return Err(rows_expected(0));
        }
        for rows in &self.results[first..] {
            one_row(store, rows)?;
            let Some(row) = rows.len().checked_sub(1) else { continue };
            for column in 0..rows.columns() {
                self.name.clear();
                self.name.push_str(&store.prefix);
                self.name.push_str(rows.name(column).and_then(|n| std::str::from_utf8(n).ok()).unwrap_or(""));
                if let Some(slot) = self.plan.slots.find(&self.name) {
                    self.variables.set_text(slot, rows.bytes(row, column)?);
                }
            }
        }
        Ok(())
    }

    fn prepare_one(
        &mut self,
        sql: &Sql,
        (script, step): (usize, usize),
        session: &mut dyn Session,
    ) -> Result<Statement> {
        let mut names = Vec::new();
        let statement =
            session.prepare_text(&sql.numbered, self.plan.mode == QueryMode::Extended, &mut names)?;
        let columns = match &sql.store {
            Some(store) => {
                names.iter().map(|name| self.plan.slots.find(&format!("{}{name}", store.prefix))).collect()
            }
            None => Vec::new(),
        };
        self.prepared[script][step] = Prepared { statement: Some(statement), columns };
        Ok(statement)
    }

    fn sleep(&mut self, duration: script::Duration) -> Result<()> {
        let duration = match duration {
            script::Duration::Fixed(duration) => duration,
            script::Duration::Variable { slot, unit } => {
                let value = super::expression::Lookup::value(&self.variables, slot)
                    .and_then(Value::integer)
                    .map_err(|fault| self.fault(fault))?;
                // A negative time is none.
                Duration::from_micros(u64::try_from(value).unwrap_or(0).saturating_mul(unit))
            }
        };
        std::thread::sleep(duration);
        Ok(())
    }

    fn shell(&mut self, slot: Option<u32>, words: &[Word]) -> Result<()> {
        let mut line = Vec::new();
        for word in words {
            match word {
                Word::Text(text) => line.extend_from_slice(text.as_bytes()),
                Word::Variable(slot, written) => {
                    if self.variables.write(*slot, &mut line) != Written::Text {
                        return Err(refused(format!("the shell command's variable {written} has no value")));
                    }
                }
            }
            line.push(b' ');
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut command = std::process::Command::new("/bin/sh");
        command.arg("-c").arg(&line).stdin(std::process::Stdio::null());
        let Some(slot) = slot else {
            let status = command
                .stdout(std::process::Stdio::null())
                .status()
                .map_err(|error| refused(format!("starting the shell command {line:?}: {error}")))?;
            return if status.success() {
                Ok(())
            } else {
                Err(refused(format!("the shell command {line:?} ended with {status}")))
            };
        };
        let output = command
            .output()
            .map_err(|error| refused(format!("starting the shell command {line:?}: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let first = text.lines().next().unwrap_or("").trim();
        let value = first.parse().ok().filter(|_| output.status.success());
        let value = value.ok_or_else(|| {
            refused(format!("the shell command {line:?} gave {first:?}, which is no integer"))
        })?;
        self.variables.set(slot, Value::Integer(value));
        Ok(())
    }

    #[cold]
    fn fault(&self, fault: Fault) -> Error {
        refused(match fault {
            Fault::Undefined(slot) => format!("undefined variable \"{}\"", self.plan.slots.name(slot)),
            Fault::Malformed(slot) => {
                let mut text = Vec::new();
                self.variables.write(slot, &mut text);
                let text = String::from_utf8_lossy(&text);
                format!("malformed variable \"{}\" value: {text:?}", self.plan.slots.name(slot))
            }
            other => other.to_string(),
        })
    }
}

#[cold]
fn refused(message: String) -> Error {
    Error::new(ErrorClass::Statement, message)
}

#[cold]
fn at_line(error: Error, script: &Script, step: &Step) -> Error {
    error.context(&format!("{}:{}", script.name, step.line))
}

#[inline]
fn one_row(store: &Store, rows: &Rows) -> Result<()> {
    if store.all || rows.len() == 1 { Ok(()) } else { Err(rows_expected(rows.len())) }
}

#[cold]
fn rows_expected(found: usize) -> Error {
    refused(format!("\\gset expects one row, got {found}"))
}

impl VirtualUser for User {
    /// Prepares all statements that can be: one that needs a table which the script itself makes is prepared
    /// when it is first executed.
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        for (index, script) in plan.scripts.iter().enumerate() {
            for step in 0..script.steps.len() {
                self.prepared[index][step] = Prepared::default();
                if plan.mode == QueryMode::Simple {
                    continue;
                }
                if let Command::Sql(sql) = &script.steps[step].command {
                    match self.prepare_one(sql, (index, step), session) {
                        Err(error) if error.class() != ErrorClass::Statement => return Err(error),
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Next {
        let total = self.plan.weights.last().copied().unwrap_or(1);
        // A single script takes no random number, so that its values depend on the seed alone.
        self.script = if self.plan.scripts.len() == 1 {
            0
        } else {
            let drawn = self.random.range(0, total as i64 - 1) as u64;
            self.plan.weights.partition_point(|&sum| sum <= drawn)
        };
        self.repeats = false;
        Next { kind: self.script as u16, keying: Duration::ZERO, thinking: Duration::ZERO }
    }

    /// A repetition begins with the random state and the variables of the first attempt.
    fn execute(&mut self, session: &mut dyn Session) -> Result<Outcome> {
        if self.repeats {
            self.random = self.random_before.clone();
            self.variables.copy_from(&self.variables_before);
        } else {
            self.random_before = self.random.clone();
            self.variables_before.copy_from(&self.variables);
            self.repeats = true;
        }
        let plan = Arc::clone(&self.plan);
        self.run(&plan.scripts[self.script], session)?;
        Ok(Outcome::Committed)
    }

    fn count(&self, _counters: &Counters) {}
}

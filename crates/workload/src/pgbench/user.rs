//! A virtual user: draws a script and executes its commands.
//!
//! If statements are timed, a statement's time starts before its parameters are encoded or its text is
//! assembled, and ends when its result has been read. Client-side commands such as `\set` are not included; a
//! failed attempt records no times.

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{
    Cell, Error, ErrorClass, Result, Rows, Session, Statement, TransactionControl, Value as Parameter,
};
use kelvin_measure::{Clock, Counters, Random, TransactionOutcome};

use super::expression::{Fault, Machine, Value};
use super::options::QueryMode;
use super::script::{self, Command, Script, Sql, SqlPart, Step, Store, Word};
use super::variables::{Slots, Variables, Written};
use crate::{NextTransaction, StatementTime, VirtualUser};

/// State shared by all users.
#[derive(Debug)]
pub(crate) struct PgbenchPlan {
    pub(crate) scripts: Vec<Script>,
    /// Cumulative weights of the scripts.
    pub(crate) weights: Vec<u64>,
    pub(crate) slots: Slots,
    pub(crate) mode: QueryMode,
    /// Values defined before the load, by slot.
    pub(crate) defined: Vec<(u32, String)>,
}

/// A prepared statement of this connection.
#[derive(Debug, Clone, Default)]
struct Prepared {
    statement: Option<Statement>,
    /// For `\gset`: the slot of each column; `None` if no script reads it.
    columns: Vec<Option<u32>>,
}

pub(crate) struct User {
    plan: Arc<PgbenchPlan>,
    random: Random,
    variables: Variables,
    /// The state at the start of the transaction, for a repetition.
    random_before: Random,
    variables_before: Variables,
    /// Whether the next `execute` is a repetition.
    repeats: bool,
    script: usize,
    prepared: Vec<Vec<Prepared>>,
    /// Whether a statement could not be prepared before the load.
    unprepared: bool,
    /// Whether parameters and results have their own types, for servers that do not infer them.
    typed: bool,
    /// Whether statements are collected in a pipeline.
    pipeline: bool,
    machine: Machine,
    clock: Clock,
    times: Vec<StatementTime>,
    /// Reused buffers for statement texts and results.
    text: String,
    name: String,
    rows: Rows,
    results: Vec<Rows>,
}

impl User {
    pub(crate) fn new(plan: Arc<PgbenchPlan>, index: u32, seed: u64, random: Random, clock: &Clock) -> Self {
        let mut variables = Variables::new(&plan.slots);
        let mut set = |name: &str, value: i64| {
            if let Some(slot) = plan.slots.find(name) {
                variables.set(slot, Value::Integer(value));
            }
        };
        set("client_id", i64::from(index));
        set("random_seed", seed as i64);
        // One value per run. It is not the seed itself, since hashes with small seeds are similar.
        set("default_seed", Random::part(seed, 0x6465_6661_756c_7473, 0).bits() as i64);
        for (slot, text) in &plan.defined {
            variables.define(*slot, text);
        }
        let prepared =
            plan.scripts.iter().map(|script| vec![Prepared::default(); script.steps.len()]).collect();
        let timed = |script: &Script| script.steps.iter().filter(|step| step.kind.is_some()).count();
        let times = Vec::with_capacity(plan.scripts.iter().map(timed).max().unwrap_or(0));
        Self {
            random_before: random.clone(),
            variables_before: Variables::new(&plan.slots),
            plan,
            random,
            variables,
            repeats: false,
            script: 0,
            prepared,
            unprepared: false,
            typed: false,
            pipeline: false,
            machine: Machine::default(),
            clock: clock.clone(),
            times,
            text: String::new(),
            name: String::new(),
            rows: Rows::new(),
            results: Vec::new(),
        }
    }

    fn run(&mut self, script: &Script, session: &mut dyn Session) -> Result<()> {
        let mut at = 0;
        while let Some(step) = script.steps.get(at) {
            let place = (self.script, at);
            at += 1;
            let timed = step.kind.map(|kind| (kind, self.clock.now()));
            let outcome = match &step.command {
                Command::Sql(sql) => self.sql(sql, place, session),
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
                    self.prepare_pipeline(script, place, session).map(|()| self.pipeline = true)
                }
                Command::SyncPipeline => session.queue_sync(),
                Command::EndPipeline => {
                    self.pipeline = false;
                    session.flush(&mut self.results)
                }
            };
            outcome.map_err(|error| at_line(error, script, step))?;
            if let Some((kind, began)) = timed {
                let end = self.clock.now();
                self.times.push(StatementTime { kind, took: end.saturating_sub(began), end });
            }
        }
        if session.in_transaction() {
            return Err(Error::new(
                ErrorClass::Statement,
                format!("{}: the script ended inside a transaction: a COMMIT is missing", script.name),
            ));
        }
        Ok(())
    }

    #[inline]
    fn sql(&mut self, sql: &Sql, place: (usize, usize), session: &mut dyn Session) -> Result<()> {
        if self.plan.mode == QueryMode::Simple {
            return self.simple(sql, session);
        }
        let statement = match self.prepared[place.0][place.1].statement {
            Some(statement) => statement,
            None => self.prepare_one(sql, place, session)?,
        };
        match sql.parameters.len() {
            0 => self.execute_with(statement, &[], session)?,
            1..=4 => self.bind::<4>(statement, sql, session)?,
            5..=16 => self.bind::<16>(statement, sql, session)?,
            _ => self.bind::<255>(statement, sql, session)?,
        }
        if let Some(store) = &sql.store {
            one_row(store, &self.rows)?;
            if let Some(row) = self.rows.len().checked_sub(1) {
                for (column, slot) in self.prepared[place.0][place.1].columns.iter().enumerate() {
                    if let Some(slot) = slot {
                        keep(&mut self.variables, *slot, &self.rows, row, column, self.typed)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Executes or queues a statement with the values of its variables; it has at most `N`.
    #[inline]
    fn bind<const N: usize>(
        &mut self,
        statement: Statement,
        sql: &Sql,
        session: &mut dyn Session,
    ) -> Result<()> {
        let mut parameters = [Parameter::Null; N];
        for (parameter, &slot) in parameters.iter_mut().zip(&sql.parameters) {
            *parameter = self.variables.parameter(slot, self.typed);
        }
        let parameters = &parameters[..sql.parameters.len()];
        if self.pipeline {
            session.queue(statement, parameters)
        } else {
            session.execute(statement, parameters, &mut self.rows)
        }
    }

    #[inline]
    fn execute_with(
        &mut self,
        statement: Statement,
        parameters: &[Parameter<'_>],
        session: &mut dyn Session,
    ) -> Result<()> {
        if self.pipeline {
            session.queue(statement, parameters)
        } else {
            session.execute(statement, parameters, &mut self.rows)
        }
    }

    fn simple(&mut self, sql: &Sql, session: &mut dyn Session) -> Result<()> {
        self.text.clear();
        for part in &sql.parts {
            match part {
                SqlPart::Text(text) => self.text.push_str(text),
                SqlPart::Variable(slot, written) => match self.variables.write(*slot, &mut self.text) {
                    Written::Text => {}
                    Written::Null => self.text.push_str("NULL"),
                    Written::Undefined => self.text.push_str(written),
                },
            }
        }
        let Some(store) = &sql.store else { return session.run(&self.text) };
        session.query_text(&self.text, &mut self.results)?;
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
                match self.plan.slots.find(&self.name) {
                    Some(slot) => keep(&mut self.variables, slot, rows, row, column, self.typed)?,
                    None => must_be_name(&self.name)?,
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
        let parse_each_time = self.plan.mode == QueryMode::Extended;
        let statement = session.prepare_text(&sql.numbered, parse_each_time, &mut names)?;
        let columns = if let Some(store) = &sql.store {
            let mut columns = Vec::with_capacity(names.len());
            for name in &names {
                let name = format!("{}{name}", store.prefix);
                must_be_name(&name)?;
                columns.push(self.plan.slots.find(&name));
            }
            columns
        } else {
            session.ignore_rows(statement);
            Vec::new()
        };
        self.prepared[script][step] = Prepared { statement: Some(statement), columns };
        Ok(statement)
    }

    /// Prepares those statements of a pipeline that could not be prepared before the load; inside the
    /// pipeline it is too late.
    fn prepare_pipeline(
        &mut self,
        script: &Script,
        (index, start): (usize, usize),
        session: &mut dyn Session,
    ) -> Result<()> {
        if !self.unprepared {
            return Ok(());
        }
        for (at, step) in script.steps.iter().enumerate().skip(start) {
            match &step.command {
                Command::Sql(sql) if self.prepared[index][at].statement.is_none() => {
                    self.prepare_one(sql, (index, at), session)
                        .map_err(|error| at_line(error, script, step))?;
                }
                Command::EndPipeline => break,
                _ => {}
            }
        }
        Ok(())
    }

    fn sleep(&mut self, duration: script::Duration) -> Result<()> {
        let duration = match duration {
            script::Duration::Fixed(duration) => duration,
            script::Duration::Variable { slot, unit } => {
                let value = super::expression::Lookup::value(&self.variables, slot)
                    .and_then(Value::integer)
                    .map_err(|fault| self.fault(fault))?;
                // A negative sleep is no sleep.
                Duration::from_micros(u64::try_from(value).unwrap_or(0).saturating_mul(unit))
            }
        };
        pause(duration);
        Ok(())
    }

    fn shell(&mut self, slot: Option<u32>, words: &[Word]) -> Result<()> {
        let mut line = String::new();
        for word in words {
            match word {
                Word::Text(text) => line.push_str(text),
                Word::Variable(slot, written) => {
                    if self.variables.write(*slot, &mut line) != Written::Text {
                        return Err(refused(format!("variable {written} of the shell command has no value")));
                    }
                }
            }
            line.push(' ');
        }
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
                Err(refused(format!("the shell command {line:?} failed with {status}")))
            };
        };
        let output = command
            .output()
            .map_err(|error| refused(format!("starting the shell command {line:?}: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let first = text.lines().next().unwrap_or("").trim();
        let value = first.parse().ok().filter(|_| output.status.success());
        let value = value.ok_or_else(|| {
            refused(format!("the shell command {line:?} returned {first:?}, which is not an integer"))
        })?;
        self.variables.set(slot, Value::Integer(value));
        Ok(())
    }

    #[cold]
    fn fault(&self, fault: Fault) -> Error {
        refused(match fault {
            Fault::Undefined(slot) => format!("undefined variable \"{}\"", self.plan.slots.name(slot)),
            Fault::Malformed(slot) => {
                let mut text = String::new();
                self.variables.write(slot, &mut text);
                format!("malformed variable \"{}\" value: {text:?}", self.plan.slots.name(slot))
            }
            other => other.to_string(),
        })
    }
}

/// Suspends the user; all its other waits are for the database.
fn pause(duration: Duration) {
    kelvin_fiber::sleep(duration);
}

/// Assigns a field of a result to a variable. NULL becomes an empty text if all values are text, as in
/// pgbench.
fn keep(
    variables: &mut Variables,
    slot: u32,
    rows: &Rows,
    row: usize,
    column: usize,
    typed: bool,
) -> Result<()> {
    match rows.cell(row, column)? {
        Cell::Int(value) => variables.set(slot, Value::Integer(value)),
        Cell::Float(value) => variables.set(slot, Value::Double(value)),
        Cell::Null if typed => variables.set(slot, Value::Null),
        Cell::Null => variables.set_text(slot, ""),
        _ => {
            let text = std::str::from_utf8(rows.bytes(row, column)?).map_err(|_| {
                refused("a result is not UTF-8 and cannot be stored in a variable".to_owned())
            })?;
            variables.set_text(slot, text);
        }
    }
    Ok(())
}

#[cold]
fn refused(message: String) -> Error {
    Error::new(ErrorClass::Statement, message)
}

#[cold]
fn at_line(error: Error, script: &Script, step: &Step) -> Error {
    error.context(&format!("{}:{}", script.name, step.line))
}

/// Refuses a column name that is not a valid variable name, as pgbench does.
fn must_be_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii();
    if !name.is_empty() && name.chars().all(fits) {
        return Ok(());
    }
    Err(refused(format!(
        "\\gset or \\aset: column name \"{name}\" is not a valid variable name; rename it with AS, using \
        letters, digits and underscores"
    )))
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
    /// Prepares all statements, if possible. A statement on a table that the script itself creates is
    /// prepared before its first execution.
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let plan = Arc::clone(&self.plan);
        self.unprepared = false;
        if !session.infers_types() && !self.typed {
            self.typed = true;
            plan.defined.iter().for_each(|(slot, _)| self.variables.define_double(*slot));
        }
        for (index, script) in plan.scripts.iter().enumerate() {
            for step in 0..script.steps.len() {
                self.prepared[index][step] = Prepared::default();
                if plan.mode == QueryMode::Simple {
                    continue;
                }
                if let Command::Sql(sql) = &script.steps[step].command {
                    match self.prepare_one(sql, (index, step), session) {
                        Ok(_) => {}
                        Err(error) if error.class() == ErrorClass::Statement => self.unprepared = true,
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    fn next(&mut self) -> NextTransaction {
        let total = self.plan.weights.last().copied().unwrap_or(1);
        // A single script draws no random number to choose it, so that its values depend only on the seed.
        self.script = if self.plan.scripts.len() == 1 {
            0
        } else {
            let drawn = self.random.range(0, total as i64 - 1) as u64;
            self.plan.weights.partition_point(|&sum| sum <= drawn)
        };
        self.repeats = false;
        NextTransaction { kind: self.script as u16, keying: Duration::ZERO, thinking: Duration::ZERO }
    }

    /// A repetition starts with the random state and the variables of the first attempt.
    fn execute(&mut self, session: &mut dyn Session) -> Result<TransactionOutcome> {
        if self.repeats {
            self.random = self.random_before.clone();
            self.variables.copy_from(&self.variables_before);
        } else {
            self.random_before = self.random.clone();
            self.variables_before.copy_from(&self.variables);
            self.repeats = true;
        }
        let plan = Arc::clone(&self.plan);
        self.times.clear();
        if let Err(error) = self.run(&plan.scripts[self.script], session) {
            self.times.clear();
            if std::mem::take(&mut self.pipeline) && !session.is_broken() {
                // Queued statements must not be sent with the next transaction.
                let _ = session.control(TransactionControl::Rollback);
            }
            return Err(error);
        }
        Ok(TransactionOutcome::Committed)
    }

    fn statement_times(&self) -> &[StatementTime] {
        &self.times
    }

    fn count(&self, _counters: &Counters) {}
}

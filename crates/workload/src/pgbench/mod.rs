//! pgbench: its built-in workloads and its script language, executed by Kelvin's client.
//!
//! Scripts are compiled before the load. The tables are pgbench's, so that each tool can use tables that the
//! other loaded.

mod builtin;
mod check;
mod dialects;
pub mod expression;
mod history;
mod initialize;
mod kinds;
mod mysql;
mod options;
pub mod script;
mod size;
mod sqlserver;
mod tables;
mod user;
mod variables;

use std::sync::Arc;

use kelvin_database::{Engine, Error, Result, Session};
use kelvin_measure::Clock;
use kelvin_measure::event::{AuditLine, CheckLine};

use crate::{
    BuildProgress, RatePeriod, Stop, TransactionKind, UserRange, VirtualUser, Workload, WorkloadData,
};
use builtin::Builtin;
use expression::Names as _;
pub use options::{Options, PartitionMethod, QueryMode, ScriptChoice};
use script::Script;
pub use size::{size_estimate, size_with_fillfactor, working_set};
pub use tables::Shape;
use tables::TableState;
use variables::Slots;

/// With larger scale factors the teller numbers exceed 32 bits, as in pgbench.
const MAX_SCALE: u32 = 100_000_000;
/// Twice pgbench's limit. Samples could distinguish more: they identify a script or statement by two bytes.
const MOST_SCRIPTS: usize = 128;
/// Sums are read before a run only if that reads less than this many bytes; see [`check::judge`].
const MOST_TO_SUM: u64 = 2 << 30;

/// The workloads pgbench and script.
#[derive(Debug)]
pub struct Pgbench {
    name: &'static str,
    options: Options,
    plan: Arc<user::PgbenchPlan>,
    kinds: Vec<TransactionKind>,
    /// For each script, its built-in script if it is one.
    builtins: Vec<Option<Builtin>>,
    /// The sums before the run.
    before: Option<check::Sums>,
    /// Counts the history's rows.
    history: history::Counter,
}

impl Pgbench {
    /// Creates the workload and compiles its scripts; the error describes an invalid script or option.
    pub fn new(mut options: Options) -> Result<Self> {
        if !(1..=MAX_SCALE).contains(&options.scale()) {
            return Err(Error::usage(format!(
                "scale {} is outside the range 1 to {MAX_SCALE}",
                options.scale()
            )));
        }
        if !(10..=100).contains(&options.fillfactor) {
            return Err(Error::usage(format!(
                "fillfactor {} is outside the range 10 to 100",
                options.fillfactor
            )));
        }
        if options.scripts.is_empty() {
            options.scripts.push(ScriptChoice::builtin("tpcb-like")?);
        }
        if options.scripts.len() > MOST_SCRIPTS {
            return Err(Error::usage(format!(
                "{} scripts are too many; at most {MOST_SCRIPTS} are allowed",
                options.scripts.len()
            )));
        }
        let mut slots = Slots::default();
        let (mut scripts, mut builtins, mut weights, mut sum) = (Vec::new(), Vec::new(), Vec::new(), 0_u64);
        for choice in &options.scripts {
            let builtin = match &choice.text {
                Some(_) => None,
                None => Some(builtin::find(&choice.name).map_err(Error::usage)?),
            };
            let text = choice.text.as_deref().or(builtin.map(|b| b.text)).unwrap_or_default();
            let script = Script::parse(&choice.name, text, options.allow_shell, &mut slots)?;
            if script.pipelines && options.query_mode == QueryMode::Simple {
                return Err(Error::usage(format!(
                    "{} uses a pipeline, which the simple query mode does not support",
                    choice.name
                ))
                .with_help("use the extended or prepared query mode"));
            }
            scripts.push(script);
            builtins.push(builtin);
            sum += u64::from(choice.weight);
            weights.push(sum);
        }
        if sum == 0 {
            return Err(Error::usage(
                "every script has weight 0: at least one weight must be greater than 0",
            ));
        }
        let mut defined = vec![(slots.slot("scale"), options.scale().to_string())];
        for (name, text) in &options.define {
            defined.push((slots.slot(name), text.clone()));
        }
        let mut kinds = kinds::of_scripts(&scripts);
        if options.per_statement {
            kinds::add_statements(&mut scripts, &mut kinds)?;
        }
        let plan = Arc::new(user::PgbenchPlan { scripts, weights, slots, mode: options.query_mode, defined });
        let history = history::Counter::default();
        Ok(Self { name: "pgbench", options, plan, kinds, builtins, before: None, history })
    }

    /// Creates the workload "script": the user's own scripts, without pgbench's tables.
    pub fn script(options: Options) -> Result<Self> {
        if options.scripts.is_empty() {
            return Err(Error::usage("no script is given").with_help("name one or more SQL files"));
        }
        if let Some(choice) = options.scripts.iter().find(|choice| choice.text.is_none()) {
            return Err(Error::usage(format!("the script {:?} is empty", choice.name))
                .with_help("to run pgbench's built-in scripts, use the workload pgbench"));
        }
        Ok(Self { name: "script", ..Self::new(options)? })
    }

    /// Properties of the complete tables in a database; `None` without such tables, and for engines that do
    /// not support them.
    pub fn shape_in(engine: &dyn Engine) -> Result<Option<Shape>> {
        match dialects::of_engine(engine.kind()) {
            Some(tables) => tables.shape(engine.connect()?.as_mut()),
            None => Ok(None),
        }
    }

    /// Vacuums the small tables, whose rows every transaction updates, or all tables (option `vacuum_all`),
    /// before a built-in script runs. Returns whether anything was vacuumed.
    pub fn vacuum(&self, engine: &dyn Engine) -> Result<bool> {
        if self.builtins.iter().all(Option::is_none) || !self.options.vacuum && !self.options.vacuum_all {
            return Ok(false);
        }
        dialects::needed(engine.kind())?.vacuum(engine.connect()?.as_mut(), self.options.vacuum_all)
    }

    /// Name and text of a built-in script, given its name or a prefix.
    ///
    /// # Errors
    /// There is no such script, or the prefix is ambiguous.
    pub fn builtin_text(name: &str) -> Result<(&'static str, &'static str)> {
        builtin::find(name).map(|builtin| (builtin.name, builtin.text)).map_err(Error::usage)
    }

    /// Whether any of the scripts is built in and therefore uses pgbench's tables.
    pub fn uses_tables(&self) -> bool {
        self.builtins.iter().any(Option::is_some)
    }

    /// The options in use, including the default script.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether all scripts have a known effect on the balances and at least one of them writes.
    pub fn is_checked(&self) -> bool {
        self.builtins.iter().all(Option::is_some)
            && self.builtins.iter().flatten().any(|builtin| builtin.writes)
    }

    /// A sentence about the size of the data before they are loaded, compared with the server's cache and
    /// with `memory`: the bytes of this host's memory if the server is on this host.
    pub fn working_set(&self, session: &mut dyn Session, memory: Option<u64>) -> Result<String> {
        let (setting, cache) = dialects::needed(session.engine())?.cache(session)?;
        Ok(working_set(self.options.scale(), self.options.fillfactor, (setting, cache), memory))
    }
}

impl Workload for Pgbench {
    fn name(&self) -> &'static str {
        self.name
    }

    fn kinds(&self) -> &[TransactionKind] {
        &self.kinds
    }

    fn headline(&self) -> &'static str {
        "tps"
    }

    fn headline_per(&self) -> RatePeriod {
        RatePeriod::Second
    }

    fn counters(&self) -> &'static [&'static str] {
        &[]
    }

    fn check_engine(&self, engine: &dyn Engine) -> Result<()> {
        if let Some(tables) = dialects::of_engine(engine.kind()) {
            return tables.must_know(&self.options);
        }
        if self.builtins.iter().all(Option::is_none) {
            return match self.plan.scripts.iter().find(|script| script.pipelines) {
                Some(script) if !engine.capabilities().one_round_trip_batch => Err(Error::usage(format!(
                    "{} uses a pipeline, which {} does not support",
                    script.name,
                    engine.kind()
                ))),
                _ => Ok(()),
            };
        }
        dialects::needed(engine.kind()).map(|_| ())
    }

    fn inspect(&mut self, engine: &dyn Engine) -> Result<Vec<String>> {
        self.check_engine(engine)?;
        let mut notes = Vec::new();
        if self.builtins.iter().any(Option::is_some) {
            let (tables, mut session) = (dialects::needed(engine.kind())?, engine.connect()?);
            match tables.inspect(session.as_mut())? {
                TableState::Complete { scale } if scale == i64::from(self.options.scale()) => {
                    initialize::must_match(tables, session.as_mut(), &self.options)?;
                }
                TableState::Complete { scale } => {
                    return Err(initialize::other_scale(scale, self.options.scale()));
                }
                TableState::Incomplete(lack) => return Err(initialize::incomplete(&lack)),
                TableState::Nothing | TableState::Unfinished => {
                    return Err(Error::usage("the database contains no complete set of pgbench tables")
                        .with_help("build them first"));
                }
            }
            if self.is_checked() && size_estimate(self.options.scale()) <= MOST_TO_SUM {
                self.before = Some(check::sums(session.as_mut())?);
            }
        }
        if self.options.allow_shell {
            notes.push("shell commands were allowed: transaction times include their time".to_owned());
        }
        Ok(notes)
    }

    /// The user's own scripts need no tables of pgbench's.
    fn is_built(&self, engine: &dyn Engine) -> Result<bool> {
        if self.builtins.iter().all(Option::is_none) {
            return Ok(true);
        }
        let (tables, mut session) = (dialects::needed(engine.kind())?, engine.connect()?);
        match tables.inspect(session.as_mut())? {
            TableState::Nothing | TableState::Unfinished => Ok(false),
            TableState::Incomplete(lack) => Err(initialize::incomplete(&lack)),
            TableState::Complete { scale } if scale == i64::from(self.options.scale()) => {
                initialize::must_match(tables, session.as_mut(), &self.options).map(|()| true)
            }
            TableState::Complete { scale } => Err(initialize::other_scale(scale, self.options.scale())),
        }
    }

    fn data(&self, _engine: &dyn Engine) -> Result<Option<WorkloadData>> {
        if self.builtins.iter().all(Option::is_none) {
            return Ok(None);
        }
        let options = &self.options;
        let mut words = format!("scale {}", options.scale());
        if options.fillfactor != 100 {
            words.push_str(&format!(", fillfactor {}", options.fillfactor));
        }
        for (asked, word) in
            [(options.foreign_keys, ", foreign keys"), (options.unlogged_tables, ", unlogged tables")]
        {
            if asked {
                words.push_str(word);
            }
        }
        Ok(Some(WorkloadData { words, can_be_built: true, tables: initialize::TABLES.to_vec() }))
    }

    /// Every built-in script that writes inserts into the history; other scripts may have changed the
    /// balances of branches or tellers.
    fn is_fresh(&self, session: &mut dyn Session) -> Result<bool> {
        let rows = session.query(
            "select (select case when exists (select 1 from pgbench_history) then 1 else 0 end) + \
             (select count(*) from pgbench_branches where bbalance <> 0) + \
             (select count(*) from pgbench_tellers where tbalance <> 0)",
        )?;
        Ok(rows.int(0, 0)? == 0)
    }

    fn build(&self, engine: &dyn Engine, progress: &dyn BuildProgress, stop: &Stop) -> Result<()> {
        self.check_engine(engine)?;
        match dialects::of_engine(engine.kind()) {
            Some(tables) => tables.build(engine, &self.options, progress, stop),
            // The user's own scripts need no tables of pgbench's.
            None => Ok(()),
        }
    }

    fn drop_data(&self, engine: &dyn Engine) -> Result<()> {
        if dialects::of_engine(engine.kind()).is_none() {
            return Ok(());
        }
        initialize::drop_data(engine.connect()?.as_mut())
    }

    fn check(
        &self,
        engine: &dyn Engine,
        _progress: &dyn BuildProgress,
        stop: &Stop,
        each: &mut dyn FnMut(CheckLine),
    ) -> Result<()> {
        if !self.is_checked() || stop.requested() {
            return Ok(());
        }
        // An earlier run with other scripts may have changed balances that this run's scripts do not. Without
        // the sums before the run, only conditions that hold for all scripts can be checked.
        let whole = self.before.is_some()
            && self.builtins.iter().flatten().all(|builtin| builtin.whole || !builtin.writes);
        let now = check::sums(engine.connect()?.as_mut())?;
        check::judge(now, self.before, whole).into_iter().for_each(each);
        Ok(())
    }

    /// Only if every script inserts into the history.
    fn counts_on_server(&self) -> bool {
        self.builtins.iter().all(|builtin| builtin.is_some_and(|builtin| builtin.writes))
    }

    fn headline_count(&self, session: &mut dyn Session) -> Result<u64> {
        if !self.counts_on_server() {
            return Err(Error::usage("the data do not show how many transactions these scripts committed"));
        }
        dialects::needed(session.engine())?.history(&self.history, session)
    }

    /// A shell command blocks the thread that started it.
    fn blocks_threads(&self) -> bool {
        self.options.allow_shell
    }

    fn users(&self, range: UserRange, seed: u64, clock: &Clock) -> Vec<Box<dyn VirtualUser>> {
        range
            .streams(seed)
            .map(|(index, random)| {
                Box::new(user::User::new(Arc::clone(&self.plan), index, seed, random, clock))
                    as Box<dyn VirtualUser>
            })
            .collect()
    }

    fn audit(&self, _counters: &[u64], _users: u32) -> Vec<AuditLine> {
        Vec::new()
    }
}

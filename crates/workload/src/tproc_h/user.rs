//! The virtual users: streams of queries, and the user that executes the refresh functions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kelvin_database::{Error, ErrorClass, Result, Session};
use kelvin_measure::query::{AnswerState, QueryExecution, QueryPlan, QueryTest};
use kelvin_measure::{Clock, Counters, Nanos, TransactionOutcome};

use super::answer::Answer;
use super::dialect::Dialect;
use super::ledger::Ledger;
use super::query::{self, Parameters};
use super::refresh::{self, Orders, WINDOWS};
use super::state::State;
use crate::{NextTransaction, VirtualUser};

/// The counter for rows of answers and of changes.
const ROWS: usize = 0;

/// The kind of a step of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A query, 1 to 22.
    Query(u8),
    /// Inserts new orders.
    Insert,
    /// Deletes old orders.
    Delete,
}

impl Step {
    /// Its name in results.
    pub(super) fn name(self) -> String {
        match self {
            Self::Query(number) => format!("Q{number}"),
            Self::Insert => "RF1".into(),
            Self::Delete => "RF2".into(),
        }
    }
}

/// State shared by all users of a run.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) dialect: &'static dyn Dialect,
    /// The content of the database.
    pub(super) state: State,
    /// How the tables are stored; empty for an unpartitioned row store.
    pub(super) layout: String,
    pub(super) seed: u64,
    /// Use the parameters of the validation run instead of drawn ones.
    pub(super) validate: bool,
    /// Whether the answers to these parameters are published for these data.
    pub(super) has_published: bool,
    /// The number of users, if their query sets repeat without end: it is the distance between the draws of a
    /// user's consecutive sets.
    pub(super) endless: Option<u32>,
    /// Users that have not finished their queries.
    pub(super) querying: AtomicU32,
    /// The steps, in the order of the workload's kinds.
    pub(super) kinds: Vec<Step>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) clock: Clock,
}

impl Shared {
    fn has_queries(&self) -> bool {
        self.querying.load(Ordering::Acquire) > 0
    }
}

/// A trickle refresh: order by order while other users have queries, then the remaining orders in one
/// transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trickle {
    /// The pause after each order.
    pub(super) pause: Duration,
    /// Whether further pairs follow while other users have queries.
    pub(super) pairs_follow: bool,
}

/// A refresh function with some of its orders done.
#[derive(Debug)]
struct PartialRefresh {
    left: Orders,
    begin: Nanos,
    rows: u64,
    transactions: u32,
}

/// A step of a user.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedStep {
    pub(super) step: Step,
    /// The number of the stream or of the pair of refresh functions.
    pub(super) stream: u32,
    /// The number of the draw for the query's parameters.
    pub(super) draw: u32,
}

/// A step and the results of its preparation.
struct Planned {
    step: PlannedStep,
    parameters: Option<Parameters>,
    /// The query; empty for a refresh.
    sql: String,
    plan: Option<QueryPlan>,
}

/// One user.
pub(super) struct User {
    shared: Arc<Shared>,
    test: QueryTest,
    steps: Vec<Planned>,
    /// Number of started steps; the last of them is the current one.
    begun: usize,
    /// The window of this user's last RF1; 0 if it failed.
    window: u32,
    trickle: Option<Trickle>,
    /// The refresh function that is partly done.
    refresh: Option<PartialRefresh>,
    /// Rows of the last answer, for the audit.
    rows: u64,
    /// The failed execution of the current step, which may be repeated.
    failed: Option<QueryExecution>,
}

impl User {
    /// Creates a user with these steps.
    pub(super) fn new(
        shared: &Arc<Shared>,
        test: QueryTest,
        steps: &[PlannedStep],
        trickle: Option<Trickle>,
    ) -> Self {
        let steps: Vec<_> = steps.iter().map(|step| plan(shared, *step)).collect();
        let user = Self {
            shared: Arc::clone(shared),
            test,
            steps,
            begun: 0,
            window: 0,
            trickle,
            refresh: None,
            rows: 0,
            failed: None,
        };
        if user.has_queries() {
            shared.querying.fetch_add(1, Ordering::AcqRel);
        }
        user
    }

    fn has_queries(&self) -> bool {
        self.steps.iter().any(|planned| matches!(planned.step.step, Step::Query(_)))
    }

    /// Whether another pair of refresh functions follows the last one.
    fn refreshes_again(&self) -> bool {
        // After the last window there are no more orders.
        self.trickle.is_some_and(|trickle| trickle.pairs_follow)
            && self.shared.has_queries()
            && self.shared.ledger.next_window() <= WINDOWS as u32
    }

    fn execution(&self, at: Nanos, took: Nanos) -> QueryExecution {
        let planned = &self.steps[self.begun - 1];
        QueryExecution {
            point: 0,
            test: self.test,
            stream: planned.step.stream,
            position: self.begun as u32,
            query: planned.step.step.name(),
            scale: self.shared.state.scale.factor(),
            layout: self.shared.layout.clone(),
            at,
            took,
            rows: None,
            digest: None,
            state: AnswerState::Unchecked,
            detail: String::new(),
            parameters: planned.parameters.as_ref().map(Parameters::describe).unwrap_or_default(),
            plan: planned.plan.clone(),
        }
    }

    /// Executes the current step, which started at `begun`. Returns the answer or the number of changed rows,
    /// and the time of its end.
    fn step(&mut self, session: &mut dyn Session, begun: Nanos) -> Result<(StepResult, Nanos)> {
        let step = self.steps[self.begun - 1].step.step;
        let Step::Query(number) = step else {
            let rows = self.refresh(session, step == Step::Insert, begun)?;
            return Ok((StepResult::Changed(rows), self.shared.clock.now()));
        };
        let planned = &self.steps[self.begun - 1];
        let sql = &planned.sql;
        let rows = session.query(sql)?;
        let end = self.shared.clock.now();
        let answer = Answer::from_rows(number, &rows, self.shared.dialect.has_only_integers())?;
        Ok((StepResult::Answer(number, answer), end))
    }

    /// Inserts or deletes the orders of a window, or the next order of a trickle refresh; returns the number
    /// of changed rows.
    fn refresh(&mut self, session: &mut dyn Session, inserts: bool, begun: Nanos) -> Result<u64> {
        let shared = &self.shared;
        let mut left = if let Some(partial) = &self.refresh {
            partial.left.clone()
        } else {
            if inserts {
                self.window = 0;
            } else if self.window == 0 {
                // The next RF1 uses the same window; if its orders were deleted now, its RF2 would have
                // nothing to delete.
                return Err(Error::usage("RF1 of this pair failed: no orders are deleted"));
            }
            let window = if inserts { shared.ledger.next_window() } else { self.window };
            let one_by_one = self.trickle.is_some();
            (if one_by_one { Orders::each_in_window } else { Orders::in_window })(shared.state.scale, window)?
        };
        let trickles = self.trickle.is_some() && shared.has_queries();
        let orders = if trickles { left.take_first() } else { left.take_all() };
        let rows = if inserts {
            let window = if self.window == 0 { shared.ledger.next_window() } else { self.window };
            let rows = refresh::insert(session, shared.dialect, &orders, window)?;
            if self.window == 0 {
                // Recorded even if later orders of the window fail: these are inserted.
                shared.ledger.begin(window);
                self.window = window;
            }
            rows
        } else {
            refresh::delete(session, &orders)?
        };
        let partial = self.refresh.get_or_insert_with(|| PartialRefresh {
            left: left.clone(),
            begin: begun,
            rows: 0,
            transactions: 0,
        });
        partial.left = left;
        partial.rows += rows;
        partial.transactions += 1;
        Ok(rows)
    }
}

impl User {
    /// Starts over, with the next pair of refresh functions or with new parameters, if steps repeat.
    fn repeat(&mut self) {
        if self.refreshes_again() {
            for planned in &mut self.steps {
                planned.step.stream += 1;
            }
            self.begun = 0;
            return;
        }
        let Some(users) = self.shared.endless else { return };
        for planned in &mut self.steps {
            let draw = planned.step.draw.wrapping_add(users);
            *planned = plan(&self.shared, PlannedStep { draw, ..planned.step });
        }
        self.begun = 0;
    }

    /// Records the failed step, which is not repeated again.
    fn give_up(&mut self) {
        if let Some(failed) = self.failed.take() {
            // The rest of a refresh function is given up, too; if RF1 fails, so is the RF2 of its pair.
            self.refresh = None;
            if failed.query == Step::Insert.name() {
                self.window = 0;
            }
            self.shared.ledger.keep(failed);
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.give_up();
        if self.has_queries() {
            self.shared.querying.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// The result of a step.
enum StepResult {
    Answer(u8, Answer),
    Changed(u64),
}

fn plan(shared: &Shared, step: PlannedStep) -> Planned {
    let Step::Query(number) = step.step else {
        return Planned { step, parameters: None, sql: String::new(), plan: None };
    };
    let scale = shared.state.scale.factor();
    let parameters = Parameters::for_run(number, scale, (shared.seed, step.draw), shared.validate);
    let sql = shared.state.statement(&query::sql(number, shared.dialect, &parameters));
    Planned { step, parameters: Some(parameters), sql, plan: None }
}

impl VirtualUser for User {
    /// Reads the plans before the load starts; not again after a reconnect.
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        self.shared.dialect.set_up_queries(session)?;
        if self.begun > 0 {
            return Ok(());
        }
        for planned in &mut self.steps {
            let Step::Query(_) = planned.step.step else { continue };
            // A query that cannot be explained fails when it is executed.
            planned.plan = match self.shared.dialect.plan(session, &planned.sql) {
                Err(error) if session.is_broken() => return Err(error),
                explained => explained.unwrap_or_default(),
            };
        }
        Ok(())
    }

    fn next(&mut self) -> NextTransaction {
        self.give_up();
        if self.refresh.is_none() {
            if self.begun == self.steps.len() {
                self.repeat();
            }
            // Never beyond the last step: the driver checks whether there is a next one.
            self.begun = (self.begun + 1).min(self.steps.len());
        }
        let step = self.steps[self.begun - 1].step.step;
        let kind = self.shared.kinds.iter().position(|kind| *kind == step).unwrap_or_default();
        let pause = self.trickle.filter(|_| self.shared.has_queries()).map(|trickle| trickle.pause);
        NextTransaction { kind: kind as u16, keying: Duration::ZERO, thinking: pause.unwrap_or_default() }
    }

    fn has_ended(&self) -> bool {
        let is_done = self.refresh.is_none() || self.failed.is_some();
        let follows = self.shared.endless.is_some() || self.refreshes_again();
        is_done && self.begun >= self.steps.len() && !follows
    }

    fn execute(&mut self, session: &mut dyn Session) -> Result<TransactionOutcome> {
        if self.begun == 0 {
            return Err(Error::usage("a user was asked for a query before it had one"));
        }
        // The time of a repeated step includes its failed attempts.
        let earlier = self.failed.take();
        let begin = earlier.as_ref().map_or_else(|| self.shared.clock.now(), |failed| failed.at);
        let begin = self.refresh.as_ref().map_or(begin, |partial| partial.begin);
        match self.step(session, begin) {
            Ok((outcome, end)) => {
                let mut execution = self.execution(begin, end - begin);
                if let Some(failed) = earlier {
                    execution.detail = format!("repeated after: {}", failed.detail);
                }
                match outcome {
                    StepResult::Changed(rows) => {
                        let Some(done) = self.refresh.take_if(|partial| partial.left.is_empty()) else {
                            self.rows = rows;
                            return Ok(TransactionOutcome::Committed);
                        };
                        execution.rows = Some(done.rows);
                        if done.transactions > 1 {
                            execution.detail = format!("in {} transactions", done.transactions);
                        }
                    }
                    StepResult::Answer(number, answer) => {
                        execution.rows = Some(answer.0.len() as u64);
                        execution.digest = Some(answer.digest());
                        if self.shared.has_published {
                            let compared = query::differences(number, &answer.0);
                            execution.state = AnswerState::Published;
                            if let Err(differences) = compared {
                                execution.state = AnswerState::Differs;
                                execution.detail = differences;
                            }
                        }
                    }
                }
                self.rows = execution.rows.unwrap_or_default();
                self.shared.ledger.keep(execution);
                Ok(TransactionOutcome::Committed)
            }
            Err(error) => {
                let mut execution = self.execution(begin, self.shared.clock.now() - begin);
                let timed_out = error.class() == ErrorClass::Timeout;
                execution.state = if timed_out { AnswerState::TimedOut } else { AnswerState::Failed };
                execution.detail = error.to_string();
                self.failed = Some(execution);
                Err(error)
            }
        }
    }

    fn count(&self, counters: &Counters) {
        counters.add(ROWS, self.rows);
    }
}

#[cfg(test)]
mod tests {
    use kelvin_database::Engine as _;
    use kelvin_database::sqlite::SqliteEngine;

    use super::super::schema::{Name, table};
    use super::super::{Scale, dialect, state};
    use super::*;

    fn shared(clock: &Clock) -> Arc<Shared> {
        Arc::new(Shared {
            dialect: dialect::for_engine(kelvin_database::EngineKind::Sqlite).unwrap(),
            state: State {
                scale: Scale::try_from(0.01).unwrap(),
                complete: true,
                refreshes: 0,
                is_ours: true,
                missing: Vec::new(),
                is_upper_case: false,
            },
            layout: String::new(),
            seed: 1,
            validate: false,
            has_published: false,
            endless: None,
            querying: AtomicU32::new(0),
            kinds: vec![Step::Insert, Step::Delete],
            ledger: Arc::default(),
            clock: clock.clone(),
        })
    }

    fn create_tables(session: &mut dyn Session, shared: &Shared) {
        let tables = [Name::Orders, Name::LineItem].map(|name| shared.dialect.create_table(table(name)));
        for sql in state::begin(shared.state.scale).iter().chain(&tables) {
            session.run(sql).unwrap();
        }
    }

    #[test]
    fn a_trickle_refresh_takes_orders_one_by_one_and_the_rest_at_once_when_no_queries_are_left() {
        let directory = tempfile::tempdir().unwrap();
        let engine = SqliteEngine::open(directory.path().join("h.db")).unwrap();
        let (mut session, clock) = (engine.connect().unwrap(), Clock::mock());
        let shared = shared(&clock);
        create_tables(session.as_mut(), &shared);
        shared.querying.store(1, Ordering::Release);
        let steps = [Step::Insert, Step::Delete].map(|step| PlannedStep { step, stream: 1, draw: 0 });
        let pause = Duration::from_millis(10);
        let trickle = Some(Trickle { pause, pairs_follow: true });
        let mut user = User::new(&shared, QueryTest::QuerySets, &steps, trickle);
        let mut orders = || session.query("select count(*) from orders").unwrap().int(0, 0).unwrap();
        let mut other = engine.connect().unwrap();
        let mut one = |user: &mut User| {
            assert!(!user.has_ended());
            let next = user.next();
            user.execute(other.as_mut()).unwrap();
            next.thinking
        };
        for done in 1..=15 {
            assert!(shared.ledger.take().is_empty());
            assert_eq!(one(&mut user), pause);
            clock.advance(pause);
            assert_eq!(orders(), done);
        }
        let inserted = shared.ledger.take();
        assert_eq!((&inserted[0].detail[..], inserted[0].took), ("in 15 transactions", 140_000_000));
        assert!(inserted[0].rows > Some(30));
        for _ in 0..15 {
            one(&mut user);
        }
        assert_eq!(shared.ledger.take()[0].query, "RF2");
        // Another pair; the end of the queries cuts it short.
        one(&mut user);
        assert_eq!((orders(), shared.ledger.next_window()), (16, 3));
        shared.querying.store(0, Ordering::Release);
        assert_eq!((one(&mut user), orders()), (Duration::ZERO, 30));
        one(&mut user);
        assert!(user.has_ended());
        let ended = shared.ledger.take();
        let found: Vec<_> = ended.iter().map(|one| (&one.query[..], one.stream, &one.detail[..])).collect();
        assert_eq!(found, [("RF1", 2, "in 2 transactions"), ("RF2", 2, "")]);
    }

    #[test]
    fn a_failed_rf1_keeps_its_window_and_a_repeated_step_has_the_time_since_its_first_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let engine = SqliteEngine::open(directory.path().join("h.db")).unwrap();
        let (mut session, clock) = (engine.connect().unwrap(), Clock::mock());
        let shared = shared(&clock);
        let steps = [Step::Insert, Step::Delete, Step::Insert, Step::Delete];
        let steps = steps.map(|step| PlannedStep { step, stream: 1, draw: 0 });
        let mut user = User::new(&shared, QueryTest::Throughput, &steps, None);
        // The tables do not exist yet.
        for _ in 0..3 {
            user.next();
            assert!(user.execute(session.as_mut()).is_err());
            assert_eq!(shared.ledger.next_window(), 1);
        }
        clock.advance(Duration::from_secs(3));
        create_tables(session.as_mut(), &shared);
        assert!(user.execute(session.as_mut()).is_ok());
        assert_eq!(shared.ledger.next_window(), 2);
        user.next();
        assert!(user.execute(session.as_mut()).is_ok());
        let ended = shared.ledger.take();
        let states = ended.iter().map(|one| (&one.query[..], one.state)).collect::<Vec<_>>();
        let (failed, done) = (AnswerState::Failed, AnswerState::Unchecked);
        assert_eq!(states, [("RF1", failed), ("RF2", failed), ("RF1", done), ("RF2", done)]);
        assert!(ended[1].detail.contains("RF1 of this pair failed"), "{}", ended[1].detail);
        assert!(ended[2].detail.starts_with("repeated after: ") && ended[2].took == 3_000_000_000);
        // 15 orders with their lines were inserted; the server had none to delete.
        assert!(ended[2].rows > Some(15) && ended[3].rows == Some(0), "{ended:?}");
        assert_eq!((&ended[3].detail[..], ended[3].took), ("", 0));
    }
}

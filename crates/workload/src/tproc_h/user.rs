//! The virtual users: streams of queries, and the one that refreshes.

use std::sync::Arc;
use std::time::Duration;

use kelvin_database::{Error, ErrorClass, Result, Session};
use kelvin_measure::query::{AnswerState, QueryExecution, QueryPlan, QueryTest};
use kelvin_measure::{Clock, Counters, Nanos, TransactionOutcome};

use super::answer::Answer;
use super::dialect::Dialect;
use super::ledger::Ledger;
use super::query::{self, Parameters};
use super::workload::ROWS;
use super::{Scale, refresh};
use crate::{NextTransaction, VirtualUser};

/// What a step of a user's work is.
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

/// What all users of a run share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) dialect: &'static dyn Dialect,
    pub(super) scale: Scale,
    pub(super) seed: u64,
    /// Parameters of the validation run instead of drawn ones.
    pub(super) validate: bool,
    /// Whether the answers to those are published for these data.
    pub(super) has_published: bool,
    /// Of users whose query sets do not end by themselves, their number: a set's parameters are so many draws after those before.
    pub(super) endless: Option<u32>,
    /// The steps, in the order of the workload's kinds.
    pub(super) kinds: Vec<Step>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) clock: Clock,
}

/// A step of a user.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedStep {
    pub(super) step: Step,
    /// The stream, or the number of a pair of refresh functions.
    pub(super) stream: u32,
    /// Which parameters of its query are drawn.
    pub(super) draw: u32,
}

/// One step with what is known of it before it is executed.
struct Planned {
    step: PlannedStep,
    parameters: Option<Parameters>,
    /// The statement, or why there is none.
    sql: std::result::Result<String, String>,
    plan: Option<QueryPlan>,
}

/// One user.
pub(super) struct User {
    shared: Arc<Shared>,
    test: QueryTest,
    steps: Vec<Planned>,
    /// The number of steps that were begun; the last of them is at work.
    begun: usize,
    /// The window of its own last RF1; 0 if that failed.
    window: u32,
    /// Rows of the last answer, for the audit.
    rows: u64,
    /// The step at work has failed, and may be repeated.
    failed: Option<QueryExecution>,
}

impl User {
    /// A user that takes these steps.
    pub(super) fn new(shared: &Arc<Shared>, test: QueryTest, steps: &[PlannedStep]) -> Self {
        let steps = steps.iter().map(|step| plan(shared, *step)).collect();
        Self { shared: Arc::clone(shared), test, steps, begun: 0, window: 0, rows: 0, failed: None }
    }

    fn execution(&self, at: Nanos, took: Nanos) -> QueryExecution {
        let planned = &self.steps[self.begun - 1];
        QueryExecution {
            point: 0,
            test: self.test,
            stream: planned.step.stream,
            position: self.begun as u32,
            query: planned.step.step.name(),
            scale: self.shared.scale.factor(),
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

    /// Executes the step at work; the rows of its answer or those that it changed, and when it was over.
    fn step(&mut self, session: &mut dyn Session) -> Result<(Outcome, Nanos)> {
        let (shared, planned) = (&self.shared, &self.steps[self.begun - 1]);
        let rows = match planned.step.step {
            Step::Query(number) => {
                let sql = planned.sql.as_ref().map_err(|why| Error::usage(why.clone()))?;
                let rows = session.query(sql)?;
                let end = shared.clock.now();
                let answer = Answer::of(number, &rows, shared.dialect.has_only_integers())?;
                return Ok((Outcome::Answer(number, answer), end));
            }
            Step::Insert => {
                let window = shared.ledger.next_window();
                self.window = 0;
                let rows = refresh::insert(session, shared.dialect, shared.scale, window)?;
                shared.ledger.begin(window);
                self.window = window;
                rows
            }
            // The next RF1 takes the same window: without these orders its RF2 would have nothing to delete.
            Step::Delete if self.window == 0 => {
                return Err(Error::usage("RF1 of this pair failed: no orders are deleted"));
            }
            Step::Delete => refresh::delete(session, shared.scale, self.window)?,
        };
        Ok((Outcome::Changed(rows), self.shared.clock.now()))
    }
}

impl User {
    /// Begins another set of the same queries with other parameters, if there is one.
    fn repeat(&mut self) {
        let Some(users) = self.shared.endless else { return };
        for planned in &mut self.steps {
            let draw = planned.step.draw.wrapping_add(users);
            *planned = plan(&self.shared, PlannedStep { draw, ..planned.step });
        }
        self.begun = 0;
    }

    /// The step that has failed is not repeated any more.
    fn give_up(&mut self) {
        if let Some(failed) = self.failed.take() {
            self.shared.ledger.keep(failed);
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// What a step has brought.
enum Outcome {
    Answer(u8, Answer),
    Changed(u64),
}

fn plan(shared: &Shared, step: PlannedStep) -> Planned {
    let Step::Query(number) = step.step else {
        return Planned { step, parameters: None, sql: Err(String::new()), plan: None };
    };
    let scale = shared.scale.factor();
    let parameters = Parameters::for_run(number, scale, (shared.seed, step.draw), shared.validate);
    let sql = query::sql(number, shared.dialect, &parameters).map_err(|error| error.to_string());
    Planned { step, parameters: Some(parameters), sql, plan: None }
}

impl VirtualUser for User {
    /// Before the clock starts, the plans are read: at the start and not after a lost connection.
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        self.shared.dialect.set_up_queries(session)?;
        if self.begun > 0 {
            return Ok(());
        }
        for planned in &mut self.steps {
            let (Step::Query(_), Ok(sql)) = (planned.step.step, &planned.sql) else { continue };
            // What cannot be explained fails when it is run.
            planned.plan = match self.shared.dialect.plan(session, sql) {
                Err(error) if session.is_broken() => return Err(error),
                explained => explained.unwrap_or_default(),
            };
        }
        Ok(())
    }

    fn next(&mut self) -> NextTransaction {
        self.give_up();
        if self.begun == self.steps.len() {
            self.repeat();
        }
        // Never beyond the last: the driver asks whether there is one.
        self.begun = (self.begun + 1).min(self.steps.len());
        let step = self.steps[self.begun - 1].step.step;
        let kind = self.shared.kinds.iter().position(|kind| *kind == step).unwrap_or_default();
        NextTransaction { kind: kind as u16, keying: Duration::ZERO, thinking: Duration::ZERO }
    }

    fn has_ended(&self) -> bool {
        self.begun >= self.steps.len() && self.shared.endless.is_none()
    }

    fn execute(&mut self, session: &mut dyn Session) -> Result<TransactionOutcome> {
        if self.begun == 0 {
            return Err(Error::usage("a user was asked for a query before it had one"));
        }
        // The time of a repeated step has that of the failed attempts in it.
        let earlier = self.failed.take();
        let begin = earlier.as_ref().map_or_else(|| self.shared.clock.now(), |failed| failed.at);
        match self.step(session) {
            Ok((outcome, end)) => {
                let mut execution = self.execution(begin, end - begin);
                if let Some(failed) = earlier {
                    execution.detail = format!("repeated after: {}", failed.detail);
                }
                match outcome {
                    Outcome::Changed(rows) => execution.rows = Some(rows),
                    Outcome::Answer(number, answer) => {
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
    use super::super::{dialect, state};
    use super::*;

    #[test]
    fn a_failed_rf1_keeps_its_window_and_a_repeated_step_has_the_time_since_its_first_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let engine = SqliteEngine::open(directory.path().join("h.db")).unwrap();
        let (mut session, clock) = (engine.connect().unwrap(), Clock::mock());
        let shared = Arc::new(Shared {
            dialect: dialect::of_engine(engine.kind()).unwrap(),
            scale: Scale::try_from(0.01).unwrap(),
            seed: 1,
            validate: false,
            has_published: false,
            endless: None,
            kinds: vec![Step::Insert, Step::Delete],
            ledger: Arc::default(),
            clock: clock.clone(),
        });
        let steps = [Step::Insert, Step::Delete, Step::Insert, Step::Delete];
        let steps = steps.map(|step| PlannedStep { step, stream: 1, draw: 0 });
        let mut user = User::new(&shared, QueryTest::Throughput, &steps);
        // There are no tables yet.
        for _ in 0..3 {
            user.next();
            assert!(user.execute(session.as_mut()).is_err());
            assert_eq!(shared.ledger.next_window(), 1);
        }
        clock.advance(Duration::from_secs(3));
        let tables = [Name::Orders, Name::LineItem].map(|name| shared.dialect.create_table(table(name)));
        for sql in state::begin(shared.scale).iter().chain(&tables) {
            session.run(sql).unwrap();
        }
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
        // 15 orders with their lines came, and the server had none to delete.
        assert!(ended[2].rows > Some(15) && ended[3].rows == Some(0), "{ended:?}");
        assert_eq!((&ended[3].detail[..], ended[3].took), ("", 0));
    }
}

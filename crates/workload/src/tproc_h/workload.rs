//! TPROC-H's implementation of [`Workload`].

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use kelvin_database::{Engine, Error, Result, Session};
use kelvin_measure::event::{AuditLine, CheckLine};
use kelvin_measure::query::{QueryExecution, QueryTest};
use kelvin_measure::query_analysis::QueryAnalysis;
use kelvin_measure::{Clock, labels};

use super::analysis::{self, Queries};
use super::check::has_published;
use super::comments::CommentText;
use super::dialect::Dialect;
use super::query::order_of_stream;
use super::schema::{Name, TABLES, table};
use super::state::{BUILD, LOADED, State};
use super::user::{PlannedStep, Shared, Step, Trickle, User};
use super::{TprocH, check, dialect, load};
use crate::tproc_c::Profile;
use crate::{BuildProgress, Stop, TransactionKind, UserRange, VirtualUser, Workload, WorkloadData};

impl Workload for TprocH {
    fn name(&self) -> &'static str {
        labels::TPROC_H
    }

    fn kinds(&self) -> &[TransactionKind] {
        &self.kinds
    }

    fn headline(&self) -> &'static str {
        "queries/min"
    }

    fn counters(&self) -> &'static [&'static str] {
        &["rows of answers"]
    }

    fn check_engine(&self, engine: &dyn Engine) -> Result<()> {
        dialect::for_engine(engine.kind()).map(drop)
    }

    fn inspect(&mut self, engine: &dyn Engine) -> Result<Vec<String>> {
        let (dialect, mut session) = (dialect::for_engine(engine.kind())?, engine.connect()?);
        let state = State::read(session.as_mut(), dialect)?.ok_or_else(|| {
            Error::usage("the database contains no TPROC-H data")
                .with_help("build them: kelvin build tproc-h")
        })?;
        state.must_match(self.options.scale)?;
        state.must_be_whole()?;
        if !state.complete {
            return Err(Error::usage("the TPROC-H data are incomplete: a build was interrupted")
                .with_help("run the build again: it continues with the missing part"));
        }
        if self.options.refreshes() && !state.is_ours {
            return Err(Error::usage("Kelvin did not build these data, and does not refresh them")
                .with_help("leave out the refresh functions: --no-refresh"));
        }
        let mut notes = Vec::new();
        self.layout = self.layout(session.as_mut(), dialect)?;
        if !self.layout.is_empty() {
            notes.push(format!("lineitem is {}", self.layout));
        }
        if state.is_ours {
            notes.extend(
                load::missing_indexes(session.as_mut(), dialect)?
                    .into_iter()
                    .map(|index| format!("{index} is missing")),
            );
        } else {
            notes.push(
                "Kelvin did not build these data: indexes and statistics are as they were found".into(),
            );
        }
        if state.refreshes > 0 {
            let times = state.refreshes;
            notes.push(format!(
                "refresh functions had changed the data {times} times: answers equal only those of data with \
                 as many changes"
            ));
        }
        if self.options.validate && !has_published(&state) {
            notes.push(
                "answers are published for scale factor 1 and data as loaded only: they are not compared"
                    .into(),
            );
        }
        if let Some(trickle) = self.options.trickle_refresh {
            notes.push(format!(
                "during the queries, orders are inserted and deleted one by one with pauses of {trickle} ms, \
                 which are included in the times of RF1 and RF2"
            ));
        }
        notes.push("derived from TPC-H; these results are not TPC results".into());
        // From here on the options have the database's scale factor: two runs on the same data have the same
        // specification.
        self.options.scale = Some(state.scale);
        self.ledger.begin(state.refreshes);
        self.found = Some((state, dialect));
        Ok(notes)
    }

    fn is_built(&self, engine: &dyn Engine) -> Result<bool> {
        let dialect = dialect::for_engine(engine.kind())?;
        let Some(state) = State::read(engine.connect()?.as_mut(), dialect)? else { return Ok(false) };
        state.must_be_whole()?;
        Ok(state.complete && state.must_match(self.options.scale).is_ok())
    }

    fn data(&self, engine: &dyn Engine) -> Result<Option<WorkloadData>> {
        let state = State::read(engine.connect()?.as_mut(), dialect::for_engine(engine.kind())?)?;
        let scale = state.as_ref().map_or_else(|| self.options.scale_to_build(), |state| state.scale);
        let is_ours = state.is_none_or(|state| state.is_ours);
        let mut words = format!("scale factor {scale}");
        if !is_ours {
            words.push_str(", not built by Kelvin");
        }
        let mut tables: Vec<&'static str> = TABLES.iter().map(|table| table.name).collect();
        if is_ours {
            tables.extend([BUILD, LOADED]);
        }
        Ok(Some(WorkloadData { words, can_be_built: is_ours, tables }))
    }

    fn is_fresh(&self, session: &mut dyn Session) -> Result<bool> {
        let dialect = dialect::for_engine(session.engine())?;
        Ok(State::read(session, dialect)?.is_some_and(|state| state.is_ours && state.refreshes == 0))
    }

    fn build(&self, engine: &dyn Engine, progress: &dyn BuildProgress, stop: &Stop) -> Result<()> {
        load::build(engine, dialect::for_engine(engine.kind())?, &self.options, (progress, stop))
    }

    fn drop_data(&self, engine: &dyn Engine) -> Result<()> {
        load::drop_data(engine, dialect::for_engine(engine.kind())?)
    }

    fn missing_objects(&self, engine: &dyn Engine) -> Result<Vec<String>> {
        let (dialect, mut session) = (dialect::for_engine(engine.kind())?, engine.connect()?);
        match State::read(session.as_mut(), dialect)? {
            Some(state) if state.is_ours && state.complete => {
                load::missing_indexes(session.as_mut(), dialect)
            }
            _ => Ok(Vec::new()),
        }
    }

    fn check(
        &self,
        engine: &dyn Engine,
        progress: &dyn BuildProgress,
        stop: &Stop,
        each: &mut dyn FnMut(CheckLine),
    ) -> Result<()> {
        let dialect = dialect::for_engine(engine.kind())?;
        check::check(engine, (dialect, self.options.validate), (progress, stop), each)
    }

    /// Queries do not change the data.
    fn counts_on_server(&self) -> bool {
        false
    }

    fn headline_count(&self, _session: &mut dyn Session) -> Result<u64> {
        Err(Error::usage("the data do not show how many queries there were"))
    }

    /// Returns no users before [`Workload::inspect`] has found usable data.
    fn users(&self, range: UserRange, seed: u64, clock: &Clock) -> Vec<Box<dyn VirtualUser>> {
        let Some((state, dialect)) = &self.found else { return Vec::new() };
        if self.options.refreshes() {
            // Generated in advance: this takes a second, which must not count as the database's.
            CommentText::shared();
        }
        let shared = Arc::new(Shared {
            dialect: *dialect,
            state: state.clone(),
            layout: self.layout.clone(),
            seed,
            validate: self.options.validate,
            has_published: self.options.validate && has_published(state),
            endless: (self.options.query_sets == 0).then(|| range.total()),
            querying: AtomicU32::new(0),
            kinds: self.steps.clone(),
            ledger: Arc::clone(&self.ledger),
            clock: clock.clone(),
        });
        let numbers = range.first()..range.first() + range.count();
        numbers
            .map(|number| {
                let (test, steps) = self.steps_of(number, range.total());
                let refreshes = number + 1 == range.total() && range.total() > 1;
                let trickle = self.trickle().filter(|_| refreshes);
                Box::new(User::new(&shared, test, &steps, trickle)) as Box<dyn VirtualUser>
            })
            .collect()
    }

    fn analyze(
        &self,
        engine: &dyn Engine,
        (seed, timeout): (u64, Duration),
        (progress, stop): (&dyn BuildProgress, &Stop),
        each: &mut dyn FnMut(QueryAnalysis),
    ) -> Result<()> {
        let Some((state, dialect)) = &self.found else { return Ok(()) };
        if self.options.no_analyze || !dialect.can_analyze() {
            return Ok(());
        }
        let mut numbers = self.options.chosen();
        let unanswered = self.ledger.unanswered();
        numbers.retain(|number| !unanswered.contains(&Step::Query(*number).name()));
        // The parameters of the first stream, or of the first user's first set.
        let draw = u32::from(self.options.profile == Profile::Hammerdb);
        let validate = self.options.validate;
        let queries = Queries { numbers, scale: state.scale, seed, draw, validate };
        analysis::analyze(engine, *dialect, (&queries, timeout), (progress, stop), each)
    }

    fn take_executions(&self) -> Vec<QueryExecution> {
        self.ledger.take()
    }

    /// Called once per point, since it resets the counts.
    fn audit(&self, _counters: &[u64], _users: u32) -> Vec<AuditLine> {
        let tally = self.ledger.take_tally();
        let line = |name: &str, count: u64, samples: u64| AuditLine {
            name: name.into(),
            value: count as f64,
            low: 0.0,
            high: 0.0,
            unit: String::new(),
            samples,
            valid: count == 0,
        };
        let mut lines = vec![line("queries without an answer", tally.failed, tally.executed)];
        if tally.compared > 0 {
            lines.push(line("answers other than published", tally.differing, tally.compared));
        }
        lines
    }
}

impl TprocH {
    /// How lineitem is stored; empty for an unpartitioned row store.
    fn layout(&self, session: &mut dyn Session, dialect: &dyn Dialect) -> Result<String> {
        let lines = table(Name::LineItem);
        let date = dialect.partition_key(session, lines)?;
        let by_columns = dialect.is_by_columns(session, lines)?;
        let refuse = |what: &str, flag: &str| {
            Error::usage(format!("the data are not {what}"))
                .with_help(format!("leave out {flag}, or drop the data: kelvin drop tproc-h"))
        };
        if self.options.partition && date.is_none() {
            return Err(refuse("partitioned", "--partition"));
        }
        if self.options.colstore && !by_columns {
            return Err(refuse("stored by columns", "--colstore"));
        }
        let partitioned = date.map(|date| format!("partitioned by {date}"));
        let parts: Vec<String> =
            partitioned.into_iter().chain(by_columns.then(|| "stored by columns".to_owned())).collect();
        Ok(parts.join(" and "))
    }

    /// The trickle refresh of the refreshing user, if orders are refreshed one by one.
    fn trickle(&self) -> Option<Trickle> {
        let pause = Duration::from_millis(self.options.trickle_refresh?.into());
        Some(Trickle { pause, pairs_follow: self.options.profile == Profile::Hammerdb })
    }

    /// The steps of user `number` of `total`.
    fn steps_of(&self, number: u32, total: u32) -> (QueryTest, Vec<PlannedStep>) {
        let chosen = self.options.chosen();
        let queries = |stream: u32, draw: u32, order: u32| {
            let order = order_of_stream(order).iter().filter(|query| chosen.contains(query));
            order
                .map(move |query| PlannedStep { step: Step::Query(*query), stream, draw })
                .collect::<Vec<_>>()
        };
        let refresh = |step, stream| PlannedStep { step, stream, draw: 0 };
        let refreshes = self.options.refreshes();
        if self.options.profile == Profile::Hammerdb {
            if refreshes && number + 1 == total {
                let pair = vec![refresh(Step::Insert, 1), refresh(Step::Delete, 1)];
                return (QueryTest::QuerySets, pair);
            }
            let total = total - u32::from(refreshes);
            let (user, order) = (number + 1, if total == 1 { 0 } else { number + 1 });
            let sets =
                (0..self.options.query_sets.max(1)).flat_map(|set| queries(user, set * total + user, order));
            return (QueryTest::QuerySets, sets.collect());
        }
        if total == 1 {
            let mut steps = queries(0, 0, 0);
            if refreshes {
                steps.insert(0, refresh(Step::Insert, 0));
                steps.push(refresh(Step::Delete, 0));
            }
            return (QueryTest::Power, steps);
        }
        let streams = total - u32::from(refreshes);
        if number < streams {
            return (QueryTest::Throughput, queries(number + 1, number + 1, number + 1));
        }
        let pairs = (1..=streams).flat_map(|pair| [refresh(Step::Insert, pair), refresh(Step::Delete, pair)]);
        (QueryTest::Throughput, pairs.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tproc_h::Options;

    fn names(workload: &TprocH, number: u32, total: u32) -> (QueryTest, Vec<String>) {
        let (test, steps) = workload.steps_of(number, total);
        (test, steps.iter().map(|one| format!("{}/{}", one.step.name(), one.stream)).collect())
    }

    #[test]
    fn the_power_test_is_one_stream_between_the_refresh_functions() {
        let workload = TprocH::new(Options::default()).unwrap();
        let (test, steps) = names(&workload, 0, 1);
        assert_eq!((test, steps.len()), (QueryTest::Power, 24));
        assert_eq!((&steps[0][..], &steps[1][..], &steps[23][..]), ("RF1/0", "Q14/0", "RF2/0"));
        let chosen = Options { queries: vec![6, 1, 14], no_refresh: true, ..Options::default() };
        let (_, steps) = names(&TprocH::new(chosen).unwrap(), 0, 1);
        assert_eq!(steps, ["Q14/0", "Q6/0", "Q1/0"]);
    }

    #[test]
    fn the_throughput_test_has_streams_and_one_user_that_refreshes_once_for_each() {
        let workload = TprocH::new(Options { streams: Some(2), ..Options::default() }).unwrap();
        let (test, first) = names(&workload, 0, 3);
        assert_eq!((test, &first[0][..], first.len()), (QueryTest::Throughput, "Q21/1", 22));
        assert_eq!(names(&workload, 1, 3).1[0], "Q6/2");
        assert_eq!(names(&workload, 2, 3).1, ["RF1/1", "RF2/1", "RF1/2", "RF2/2"]);
    }

    #[test]
    fn hammerdbs_users_run_query_sets_with_parameters_of_their_own_and_never_refresh() {
        let options = Options { profile: Profile::Hammerdb, query_sets: 2, ..Options::default() };
        let workload = TprocH::new(options).unwrap();
        let (test, steps) = workload.steps_of(0, 1);
        assert_eq!((test, steps.len()), (QueryTest::QuerySets, 44));
        assert!(steps.iter().all(|one| matches!(one.step, Step::Query(_))));
        assert_ne!(steps[0].draw, steps[22].draw);
        assert_eq!(names(&workload, 0, 3).1[0], "Q21/1");
        let draws = |user| workload.steps_of(user, 3).1.iter().map(|one| one.draw).collect::<Vec<_>>();
        assert!(draws(0).iter().all(|draw| !draws(1).contains(draw) && !draws(2).contains(draw)));
    }

    #[test]
    fn the_last_of_hammerdbs_users_refreshes_if_orders_trickle() {
        let options =
            Options { profile: Profile::Hammerdb, trickle_refresh: Some(100), ..Options::default() };
        let workload = TprocH::new(options).unwrap();
        assert_eq!(names(&workload, 2, 3).1, ["RF1/1", "RF2/1"]);
        assert_eq!(names(&workload, 1, 3).1.len(), 22);
        // A single user runs queries in the order of the power test.
        assert_eq!(names(&workload, 0, 2).1[0], "Q14/1");
        assert!(workload.trickle().is_some_and(|trickle| trickle.pairs_follow));
    }
}

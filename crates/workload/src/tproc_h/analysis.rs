//! Executes the queries once more after the load, to analyze their plans.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use kelvin_database::{Engine, Error, Result, Session};
use kelvin_measure::query_analysis::QueryAnalysis;

use super::Scale;
use super::dialect::Dialect;
use super::query::{self, Parameters};
use crate::tproc_c::load::{Job, Unit, run_each};
use crate::{BuildProgress, Stop};

/// The queries and their parameters.
pub(super) struct Queries {
    pub(super) numbers: Vec<u8>,
    pub(super) scale: Scale,
    pub(super) seed: u64,
    pub(super) draw: u32,
    pub(super) validate: bool,
}

/// Executes each query with analysis of its plan and calls `each` with the result. A query that cannot be
/// executed or sampled does not stop the others; the first such error is returned at the end.
pub(super) fn analyze(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    (queries, timeout): (&Queries, Duration),
    (progress, stop): (&dyn BuildProgress, &Stop),
    each: &mut dyn FnMut(QueryAnalysis),
) -> Result<()> {
    let set_up = |session: &mut dyn Session| {
        session.set_timeout(Some(timeout))?;
        dialect.set_up_queries(session)
    };
    // Waits are optional: without a connection for sampling, the plans have none.
    let (watcher, mut failed) = match engine.connect() {
        Ok(watcher) => (Some(watcher), None),
        Err(error) => (None, Some(Error::usage(format!("the queries' waits were not sampled: {error}")))),
    };
    let watcher = Mutex::new(watcher);
    let job = Job { what: "plans analyzed", before: 0, unit: Unit::Task, progress, stop };
    // One connection, since a query may use all cores of the server.
    run_each(
        engine,
        (1, &set_up),
        job,
        &queries.numbers,
        &|session, number, shared| {
            let mut watcher = watcher.lock().unwrap_or_else(PoisonError::into_inner);
            let found = queries.analyze_query((session, watcher.as_deref_mut()), dialect, *number);
            if found.is_err() {
                shared.check_stop()?;
            }
            match found {
                Err(error) if session.is_broken() => Err(error),
                found => Ok(found),
            }
        },
        &mut |at, found| match found {
            Ok(Some(found)) => each(found),
            Ok(None) => {}
            Err(error) => {
                let number = queries.numbers[at];
                failed.get_or_insert(Error::usage(format!("the plan of query {number}: {error}")));
            }
        },
    )?;
    failed.map_or(Ok(()), Err)
}

impl Queries {
    fn analyze_query(
        &self,
        (session, watcher): (&mut dyn Session, Option<&mut (dyn Session + 'static)>),
        dialect: &dyn Dialect,
        number: u8,
    ) -> Result<Option<QueryAnalysis>> {
        let parameters =
            Parameters::for_run(number, self.scale.factor(), (self.seed, self.draw), self.validate);
        let sql = query::sql(number, dialect, &parameters);
        let found = dialect.analyze_query(session, watcher, &sql)?;
        Ok(found.map(|found| QueryAnalysis {
            query: format!("Q{number}"),
            parameters: parameters.describe(),
            ..found
        }))
    }
}

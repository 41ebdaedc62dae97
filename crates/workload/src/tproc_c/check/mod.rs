//! The twelve consistency conditions (TPC-C clause 3.3.2). With many warehouses, each is checked by several
//! queries over ranges of warehouses.

mod conditions;

use kelvin_database::{Engine, Error, Result, Rows, Session};
use kelvin_measure::event::CheckLine;

use super::load::{Job, Unit, connections_of_the_host, interruptible, run_each};
use crate::tproc_c::dialect::Dialect;
use crate::tproc_c::schema::metadata::{Build, BuiltBy};
use crate::{BuildProgress, Stop};
use conditions::{CONDITIONS, Condition, Slice};

/// Warehouses checked by one query: about 3 million order lines, whose groups a server can sort or hash in
/// memory.
const WAREHOUSES_OF_A_QUERY: u32 = 10;

/// Checks all conditions and calls `each` with each outcome, in their order, as soon as it is known. A
/// condition fails if its query fails or finds no rows to examine.
///
/// In data that HammerDB built, violations of the conditions that its loader and routines do not maintain are
/// exempt.
pub(crate) fn check(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    (progress, stop): (&dyn BuildProgress, &Stop),
    each: &mut dyn FnMut(CheckLine),
) -> Result<()> {
    let build = Build::read(engine.connect()?.as_mut(), dialect)?;
    build.as_ref().map_or(Ok(()), Build::must_be_whole)?;
    let warehouses = build.as_ref().map_or(1, |build| build.metadata.warehouses);
    let hammerdbs = build.is_some_and(|build| build.metadata.built_by == BuiltBy::Hammerdb);
    // An embedded database is checked as a whole over one connection: it shares this process and its memory.
    let embedded = engine.capabilities().embedded;
    let connections = if embedded { 1 } else { connections_of_the_host() };
    let queries = queries(warehouses, if embedded { u32::MAX } else { WAREHOUSES_OF_A_QUERY }, connections);
    let mut outcomes: Vec<ConditionResult> = CONDITIONS.iter().map(|_| ConditionResult::default()).collect();
    for (condition, _) in &queries {
        outcomes[*condition].left += 1;
    }
    let set_up = |session: &mut dyn Session| session.run(dialect.check_settings());
    let work = |session: &mut dyn Session, (condition, slice): &(usize, Slice)| {
        let condition = &CONDITIONS[*condition];
        let sql = condition.sql(dialect, *slice);
        if !session.is_broken() {
            return session.query(&sql).and_then(|rows| counted(&rows));
        }
        // If reconnecting fails too, the remaining queries fail with the error of the connection.
        let mut again = engine.connect()?;
        set_up(again.as_mut())?;
        interruptible(again.as_mut(), stop, |session| session.query(&sql)).and_then(|rows| counted(&rows))
    };
    let job = Job { what: "queries of the conditions answered", before: 0, unit: Unit::Task, progress, stop };
    let mut next = 0;
    run_each(
        engine,
        (connections, &set_up),
        job,
        &queries,
        &|session, query, shared| {
            let counted = work(session, query);
            if counted.is_err() {
                shared.check_stop()?;
            }
            Ok(counted)
        },
        &mut |query, counted| {
            outcomes[queries[query].0].add(counted);
            while let Some(outcome) = outcomes.get_mut(next).filter(|outcome| outcome.left == 0) {
                let condition = &CONDITIONS[next];
                let mut line = outcome.line(condition);
                line.exempt =
                    condition.not_kept_by_hammerdb.filter(|_| hammerdbs && !line.holds).map(str::to_owned);
                each(line);
                next += 1;
            }
        },
    )
}

/// The queries: indexes into [`CONDITIONS`], with their ranges.
fn queries(warehouses: u32, of_a_query: u32, connections: usize) -> Vec<(usize, Slice)> {
    let most = warehouses.div_ceil(of_a_query);
    let slices = |condition: &Condition| {
        // Each range scans the whole of a table that has no key by warehouse.
        let most = if condition.scans() { most.min(connections as u32) } else { most };
        Slice::divide(warehouses, most)
    };
    let numbered = CONDITIONS.iter().enumerate();
    numbered
        .flat_map(|(number, condition)| slices(condition).into_iter().map(move |one| (number, one)))
        .collect()
}

/// The result of a query: rows examined, violations, an example.
type Counted = (i64, i64, Option<String>);

fn counted(rows: &Rows) -> Result<Counted> {
    if rows.len() != 1 {
        return Err(Error::protocol(format!("the query returned {} rows instead of one", rows.len())));
    }
    Ok((rows.int(0, 0)?, rows.int(0, 1)?, rows.optional(0, 2, Rows::text)?.map(str::to_owned)))
}

/// The combined results of a condition's queries so far.
#[derive(Default)]
struct ConditionResult {
    /// Queries without a result yet.
    left: usize,
    examined: i64,
    violations: i64,
    example: Option<String>,
    failed: Option<Error>,
}

impl ConditionResult {
    fn add(&mut self, counted: Result<Counted>) {
        self.left -= 1;
        match counted {
            Ok((examined, violations, example)) => {
                self.examined += examined;
                self.violations += violations;
                self.example = [self.example.take(), example].into_iter().flatten().min();
            }
            Err(error) => drop(self.failed.get_or_insert(error)),
        }
    }

    fn line(&self, condition: &Condition) -> CheckLine {
        let what = condition.what;
        let (holds, detail) = match (&self.failed, self.examined, self.violations) {
            (Some(error), ..) => (false, format!("the query failed: {error}")),
            (None, 0, _) => (false, format!("there are no {what} to check")),
            (None, examined, 0) => (true, format!("{examined} {what} checked")),
            (None, examined, violations) => {
                let example = self.example.as_deref().unwrap_or_default();
                (false, format!("{violations} of {examined} {what} violate it; {example}"))
            }
        };
        CheckLine { number: condition.number, name: condition.name.into(), holds, detail, exempt: None }
    }
}

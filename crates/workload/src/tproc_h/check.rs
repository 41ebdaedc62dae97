//! The conditions that complete data meet: numbers of rows, and references between the tables.

use kelvin_database::{Engine, Error, Result, Session};
use kelvin_measure::event::CheckLine;

use super::Scale;
use super::answer::Answer;
use super::dialect::Dialect;
use super::query::{self, Parameters, QUERIES};
use super::schema::{Name, TABLES, table};
use super::state::{State, loaded_rows};
use crate::tproc_c::load::{Job, Unit, run_each};
use crate::{BuildProgress, Stop};

/// Whether published answers to the parameters of the validation run apply to these data.
pub(super) fn has_published(state: &State) -> bool {
    state.refreshes == 0 && state.scale == Scale::default()
}

/// One condition.
enum Condition {
    /// A table has as many rows as the generator generates.
    Rows(Name),
    /// A named query that counts violations.
    None(&'static str, &'static str),
    /// The answer to a query equals the published answer.
    Published(u8),
}

/// Conditions on the references between the tables.
const REFERENCES: [(&str, &str); 6] = [
    (
        "every order has a line",
        "select count(*) from orders where not exists (select * from lineitem where l_orderkey = o_orderkey)",
    ),
    (
        "every line has an order",
        "select count(*) from lineitem left outer join orders on o_orderkey = l_orderkey where o_orderkey is null",
    ),
    (
        "every order has a customer",
        "select count(*) from orders left outer join customer on c_custkey = o_custkey where c_custkey is null",
    ),
    (
        "every line has a part of its supplier",
        "select count(*) from lineitem left outer join partsupp \
         on ps_partkey = l_partkey and ps_suppkey = l_suppkey where ps_partkey is null",
    ),
    (
        "every supplier and every customer has a nation",
        "select (select count(*) from supplier where s_nationkey not between 0 and 24) + \
         (select count(*) from customer where c_nationkey not between 0 and 24)",
    ),
    ("every nation has a region", "select count(*) from nation where n_regionkey not between 0 and 4"),
];

/// Checks all conditions and calls `each` with each outcome, in their order. With `validate` the queries are
/// executed, too, and compared with the published answers for scale factor 1 and data as loaded.
pub(crate) fn check(
    engine: &dyn Engine,
    (dialect, validate): (&dyn Dialect, bool),
    (progress, stop): (&dyn BuildProgress, &Stop),
    each: &mut dyn FnMut(CheckLine),
) -> Result<()> {
    let Some(state) = State::read(engine.connect()?.as_mut(), dialect)? else {
        return Err(Error::usage("the database contains no TPROC-H data")
            .with_help("build them: kelvin build tproc-h"));
    };
    state.must_be_whole()?;
    if validate && !has_published(&state) {
        return Err(Error::usage("answers are published for scale factor 1 and data as loaded only")
            .with_help("leave out --validate"));
    }
    let conditions = conditions(validate);
    let numbers: Vec<usize> = (0..conditions.len()).collect();
    let set_up = |session: &mut dyn Session| dialect.set_up_queries(session);
    let job = Job { what: "conditions checked", before: 0, unit: Unit::Task, progress, stop };
    // One connection, since a query may use all cores of the server.
    run_each(
        engine,
        (1, &set_up),
        job,
        &numbers,
        &|session, number, shared| {
            let found = outcome(session, dialect, &state, &conditions[*number]);
            if found.is_err() {
                shared.check_stop()?;
            }
            Ok(found)
        },
        &mut |number, found| {
            let (name, exempt) = conditions[number].describe(&state);
            let (holds, detail) = match found {
                Ok(Ok(detail)) => (true, detail),
                Ok(Err(detail)) => (false, detail),
                Err(error) => (false, error.to_string()),
            };
            let exempt = exempt.filter(|_| !holds);
            each(CheckLine { number: number as u32 + 1, name, holds, detail, exempt });
        },
    )
}

fn conditions(validate: bool) -> Vec<Condition> {
    let rows = TABLES.iter().map(|table| Condition::Rows(table.id));
    let references = REFERENCES.iter().map(|(name, sql)| Condition::None(name, sql));
    let queries = (1..=QUERIES).filter(|_| validate);
    rows.chain(references).chain(queries.map(Condition::Published)).collect()
}

impl Condition {
    /// Its name, and the reason why a violation is exempt, if it is.
    fn describe(&self, state: &State) -> (String, Option<String>) {
        let refreshed = || Some(format!("refresh functions have changed the data {} times", state.refreshes));
        match self {
            Self::Rows(name) => {
                let changes = matches!(name, Name::Orders | Name::LineItem) && state.refreshes > 0;
                let name = format!("{} has as many rows as the generator makes", table(*name).name);
                (name, if changes { refreshed() } else { None })
            }
            Self::None(name, _) => ((*name).to_owned(), None),
            Self::Published(query) => (format!("the answer to query {query} is the published one"), None),
        }
    }
}

/// Checks a condition: `Ok` with the detail if it holds, else `Err`.
fn outcome(
    session: &mut dyn Session,
    dialect: &dyn Dialect,
    state: &State,
    condition: &Condition,
) -> Result<std::result::Result<String, String>> {
    match condition {
        Condition::Rows(name) => {
            let table = table(*name);
            let found = session
                .query(&state.statement(&format!("select count(*) from {}", table.name)))?
                .int(0, 0)?;
            let expected = match name {
                // The exact number of lines is known only after they have been generated.
                Name::LineItem if state.is_ours => loaded_rows(session, table)?,
                Name::LineItem => return Ok(Ok(format!("{found} rows"))),
                _ => table.rows(state.scale.factor()),
            };
            let detail = format!("{found} of {expected} rows");
            Ok(if found == expected { Ok(detail) } else { Err(detail) })
        }
        Condition::None(_, sql) => {
            let violations = session.query(&state.statement(sql))?.int(0, 0)?;
            Ok(if violations == 0 {
                Ok("0 violations".into())
            } else {
                Err(format!("{violations} violations"))
            })
        }
        Condition::Published(number) => {
            let parameters = Parameters::for_validation(*number, state.scale.factor());
            let sql = query::sql(*number, dialect, &parameters);
            let rows = session.query(&state.statement(&sql))?;
            let answer = Answer::from_rows(*number, &rows, dialect.has_only_integers())?;
            let detail = || format!("{} rows, digest {}", answer.0.len(), answer.digest());
            Ok(query::differences(*number, &answer.0).map(|()| detail()))
        }
    }
}

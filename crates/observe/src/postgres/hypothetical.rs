//! Whether the planner would take indexes that are not there: with HypoPG's hypothetical indexes, where the extension is installed.
//! They are known to one session only; nothing is created, and nothing but the planner runs.

use kelvin_database::postgres::MARK;
use kelvin_database::postgres::explain::Plan;
use kelvin_database::{Result, Session};

use super::plans;

/// What the planner makes of hypothetical indexes.
#[derive(Debug, Clone, PartialEq)]
pub struct HypotheticalUse {
    /// Statements that could be planned.
    pub planned: usize,
    /// Those whose plan takes one of them.
    pub taken: usize,
    /// Of the one that gains most: the planner's cost without them and with them.
    pub costs: Option<(f64, f64)>,
}

/// Plans these normalised texts without and with the indexes of `CREATE INDEX` statements; none where HypoPG is not installed in the
/// database. Plans are generic: they take no value of a parameter into account.
///
/// # Errors
/// When the server fails, or HypoPG refuses an index. A statement that cannot be planned is left out.
pub fn try_indexes(
    session: &mut dyn Session,
    create: &[&str],
    texts: &[&str],
) -> Result<Option<HypotheticalUse>> {
    let installed = format!("SELECT {MARK} count(*)::int8 FROM pg_extension WHERE extname = 'hypopg'");
    if session.query(&installed)?.int(0, 0)? == 0 {
        return Ok(None);
    }
    let version = format!("SELECT {MARK} current_setting('server_version_num')::int8");
    let version = session.query(&version)?.int(0, 0)?;
    let before: Vec<Option<f64>> =
        texts.iter().map(|text| Some(explain(session, version, text)?.0)).collect();
    let mut names = Vec::new();
    for sql in create {
        let made = format!("SELECT {MARK} indexname FROM hypopg_create_index('{}')", sql.replace('\'', "''"));
        names.push(session.query(&made)?.text(0, 0)?.to_owned());
    }
    let mut found = HypotheticalUse { planned: 0, taken: 0, costs: None };
    for (text, before) in texts.iter().zip(before) {
        let (Some(before), Some((after, json))) = (before, explain(session, version, text)) else { continue };
        found.planned += 1;
        // The names are HypoPG's, with the number of the index: no other object has them.
        if names.iter().any(|name| json.contains(name)) {
            found.taken += 1;
            let saves = |(before, after): (f64, f64)| before - after;
            if found.costs.is_none_or(|best| saves((before, after)) > saves(best)) {
                found.costs = Some((before, after));
            }
        }
    }
    session.query(&format!("SELECT {MARK} hypopg_reset()"))?;
    Ok(Some(found))
}

/// The planner's cost, and the plan; none where it cannot be planned.
fn explain(session: &mut dyn Session, version: i64, text: &str) -> Option<(f64, String)> {
    let json = plans::plan(session, version, text).ok()??.json;
    Some((Plan::parse(&json)?.cost?, json))
}

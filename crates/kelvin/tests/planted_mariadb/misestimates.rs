//! Statements that are executed once more to count the rows of their plans.

use kelvin_diagnose::{Change, Remedy, remedies};
use kelvin_measure::sampled_execution::SampledExecution;

use super::*;

/// Outdated statistics: all values but two have changed since. The condition is on a column without
/// statistics.
const TABLES: &str = "CREATE TABLE parts (id INT PRIMARY KEY, a INT, v INT, KEY a (a)) STATS_PERSISTENT = 1, STATS_AUTO_RECALC = 0; \
     INSERT INTO parts SELECT id, id, id FROM h; ANALYZE TABLE parts; UPDATE parts SET a = id % 2; \
     CREATE TABLE few (v INT PRIMARY KEY); INSERT INTO few VALUES (0), (1); \
     CREATE TABLE noted (id INT PRIMARY KEY, note INT); \
     INSERT INTO noted SELECT h.id * 10 + few.v, h.id = 7 FROM h, few; \
     INSERT INTO noted SELECT id + 2, note FROM noted; INSERT INTO noted SELECT id + 4, note FROM noted; \
     CREATE TABLE others (id INT PRIMARY KEY, v INT); INSERT INTO others SELECT id, v FROM h; ANALYZE TABLE few, noted, others";
/// The first statement is repeated, so that many samples of the process list show it.
const JOINS: &str = "select sum(p.v) from few f join parts p on p.a = f.v where f.v < 5;\n";
const FILTERED: &str =
    "select sum(o.v) from noted n straight_join others o on o.id = n.id where n.note = 1;\n";

/// Number of columns with statistics.
fn statistics_count(session: &mut dyn Session) -> i64 {
    let view = if mysql_support::is_mariadb() {
        "mysql.column_stats"
    } else {
        "information_schema.COLUMN_STATISTICS"
    };
    session.query(&format!("SELECT CAST(COUNT(*) AS SIGNED) FROM {view}")).unwrap().int(0, 0).unwrap()
}

#[test]
fn stale_statistics_and_missing_ones_are_named_and_the_advice_corrects_the_estimates() {
    let words = ["--users", "4", "--ramp-up", "1s", "--duration", "5s", "--explain-sample"];
    let of_load = Load { settings: &["--performance-schema=ON"], powers: 12, words: &words };
    let server = start(&of_load, |_| {});
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut session = server.session();
    session.run(TABLES).unwrap();
    let script = JOINS.repeat(4) + FILTERED;
    let place = Place::new();
    let (evidence, findings) = measure(&server, &place, Beside::script(&place, &script), &words);
    let found: Vec<_> = findings.iter().filter(|one| one.id == "misestimate").collect();
    let facts: Vec<_> = found.iter().flat_map(|one| &one.evidence).collect();
    let shows = |what: &str| facts.iter().any(|fact| fact.found.contains(what));
    let samples: Vec<_> =
        evidence.statements(0).unwrap().0.iter().map(|one| (&one.text, &one.sample)).collect();
    let is_complete = shows("Index lookup on kelvin.parts using a") && shows("n.note = ?");
    assert!(is_complete, "{found:#?} {samples:#?}");
    assert!(found[0].title.ends_with("; stale statistics of kelvin.parts"), "{found:#?}");

    let all = remedies(&evidence, &findings);
    let remedy = |title: &str| -> &Remedy {
        all.iter().find(|one| one.title == title).unwrap_or_else(|| panic!("{title}: {all:#?}"))
    };
    // Kelvin does not try it, because a restored dump has new statistics.
    for (title, columns) in [("histogram of kelvin.noted (note)", 1), ("analyze kelvin.parts", 1)] {
        let Change::Manual { how } = &remedy(title).change else { panic!("{title}: {all:#?}") };
        let (statement, _) = how.split_once("; ").unwrap();
        session.run(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        assert_eq!(statistics_count(&mut *session), columns, "{statement}");
    }
    let (evidence, findings) = measure(&server, &place, Beside::script(&place, &script), &words);
    let found: Vec<_> = findings.iter().filter(|one| one.id == "misestimate").collect();
    assert!(found.is_empty(), "{found:#?}");
    let samples: Vec<_> =
        evidence.statements(0).unwrap().0.iter().filter_map(|one| one.sample.as_ref()).collect();
    let executed = samples.iter().filter(|one| matches!(one, SampledExecution::Executed { .. })).count();
    assert_eq!(executed, 2, "{samples:#?}");
}

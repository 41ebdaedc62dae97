//! Indexes that are duplicates, unused, or present but not usable.

use kelvin_diagnose::{Change, Remedy, remedies};
use kelvin_measure::observation::CaptureTime;

use super::*;

/// Each index is named after its state.
const LEDGER: &str = "CREATE TABLE account (id INT PRIMARY KEY, code INT, KEY code (code)); \
     INSERT INTO account VALUES (1, 1), (2, 2); \
     CREATE TABLE ledger (id INT AUTO_INCREMENT, account INT, amount INT, stamp INT, note VARCHAR(20), number INT, code INT, \
     PRIMARY KEY (code, id), KEY counted (id), \
     KEY used (account, amount), KEY again (account, amount), KEY never_used (stamp, note(4)), UNIQUE KEY only_unique (number), \
     FULLTEXT KEY words (note), KEY of_foreign_key (code), FOREIGN KEY (code) REFERENCES account (code))";
/// Many rows per statement, so that a slow machine writes enough of them.
const WRITES: &str = "\\set a random(1, 1000)\n\
     insert into ledger (account, amount, stamp, note, code) select :a, id, id, 'x', 1 from h;\n\
     select count(*) from ledger where account = :a and amount < 5;\n";

fn definitions(session: &mut dyn Session) -> Vec<String> {
    let rows = session
        .query(
            "SELECT CONCAT_WS(' ', INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, SUB_PART, NON_UNIQUE, INDEX_TYPE, COLLATION) \
             FROM information_schema.STATISTICS WHERE TABLE_NAME = 'ledger' ORDER BY 1",
        )
        .unwrap();
    (0..rows.len()).map(|row| rows.text(row, 0).unwrap().to_owned()).collect()
}

/// Applies and undoes a change as `kelvin advise --prove` does, each twice.
fn makes_and_undoes(session: &mut dyn Session, remedy: &Remedy) {
    let Change::Statements { apply, undo, .. } = &remedy.change else { panic!("{remedy:#?}") };
    let before = definitions(session);
    for all in [apply, apply, undo, undo] {
        for statement in all {
            session.run(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        }
        if all == apply {
            assert!(definitions(session).len() < before.len(), "{apply:?}");
        }
    }
    assert_eq!(definitions(session), before);
}

#[test]
fn an_index_that_is_there_twice_and_one_that_is_never_used_are_named_and_no_other() {
    let words = ["--users", "2", "--ramp-up", "1s", "--duration", "5s"];
    let of_load = Load { settings: &["--performance-schema=ON"], powers: 11, words: &words };
    let server = start(&of_load, |_| {});
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut session = server.session();
    session.run(LEDGER).unwrap();
    let place = Place::new();
    let (evidence, findings) = measure(&server, &place, Beside::script(&place, WRITES), &words);
    let named = |id: &str| {
        let of = findings.iter().filter(|one| one.id == id);
        of.flat_map(|one| one.evidence.iter().map(|fact| (fact.what.clone(), fact.found.clone())))
            .filter(|(what, _)| what.starts_with("kelvin."))
            .collect::<Vec<_>>()
    };
    let twice = named("duplicate-index");
    assert_eq!(twice.len(), 1, "{findings:#?}");
    // The optimizer may use either.
    let (again, reason) = &twice[0];
    assert!(["kelvin.ledger.again", "kelvin.ledger.used"].contains(&again.as_str()), "{twice:?}");
    assert!(reason.contains("rows found through it, ") && reason.ends_with('B'), "{reason}");
    let unused: Vec<_> = named("unused-index").into_iter().map(|(name, _)| name).collect();
    assert_eq!(unused, ["kelvin.ledger.never_used"], "{findings:#?}");
    let all = remedies(&evidence, &findings);
    let mut tried = 0;
    for remedy in all.iter().filter(|one| one.title.starts_with("drop ")) {
        if mysql_support::is_mariadb() {
            makes_and_undoes(&mut *session, remedy);
        } else {
            assert!(matches!(remedy.change, Change::Manual { .. }), "{remedy:#?}");
        }
        tried += 1;
    }
    assert_eq!(tried, 2, "{all:#?}");
}

#[test]
fn without_performance_schema_uses_of_indexes_are_unobserved_and_no_index_is_called_unused() {
    let words = ["--users", "1", "--ramp-up", "1s", "--duration", "2s"];
    let of_load = Load { settings: &["--performance-schema=OFF"], powers: 11, words: &words };
    let server = start(&of_load, |_| {});
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    server.session().run(LEDGER).unwrap();
    let place = Place::new();
    let (evidence, findings) = measure(&server, &place, Beside::script(&place, WRITES), &words);
    let found: Vec<_> =
        findings.iter().filter(|one| ["duplicate-index", "unused-index"].contains(&one.id)).collect();
    assert!(found.is_empty(), "{found:#?}");
    assert!(
        evidence.absent().iter().any(|one| one.what.starts_with("uses of indexes")),
        "{:?}",
        evidence.absent()
    );
    let (relations, _) = evidence.relations(CaptureTime::Before).unwrap();
    let of = |name: &str| relations.iter().find(|one| one.name == name).unwrap().enforces;
    let kept = ["PRIMARY", "only_unique", "of_foreign_key"].map(|name| of(&format!("kelvin.ledger.{name}")));
    assert_eq!(kept, [Some(true); 3]);
    assert_eq!((of("kelvin.ledger.used"), of("kelvin.account.code")), (Some(false), Some(true)));
}

/// All rows match, so that the optimizer scans the table, whatever indexes exist.
#[test]
fn an_index_that_is_there_is_not_advised_again() {
    let script = "select sum(length(pad)) from h where v >= 1;\n";
    let words = ["--users", "1", "--ramp-up", "1s", "--duration", "3s"];
    // MySQL gets no advice for indexes.
    let missing = usize::from(mysql_support::is_mariadb());
    for (there, expected) in [("SELECT 1", missing), ("CREATE INDEX there ON h (v)", 0)] {
        let of_load = Load { settings: &["--performance-schema=ON"], powers: 14, words: &words };
        let (evidence, findings) = load(
            &of_load,
            |_| {},
            |server, place| {
                server.session().run(&format!("UPDATE h SET v = 5; {there}; ANALYZE TABLE h")).unwrap();
                Beside::script(place, script)
            },
        );
        let all = remedies(&evidence, &findings);
        let advised = all.iter().filter(|one| one.title == "index on kelvin.h (v)").count();
        let (statements, _) = evidence.statements(0).unwrap();
        let plans: Vec<_> = statements.iter().filter_map(|one| one.plan.as_ref()).collect();
        let reads_all = plans
            .iter()
            .flat_map(|plan| &plan.scans)
            .any(|scan| scan.relation == "h" && scan.index.is_none());
        assert!(reads_all, "{there}: {plans:#?}");
        assert_eq!(advised, expected, "{there}: {all:#?} {statements:#?}");
    }
}

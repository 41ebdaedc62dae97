//! The texts as sent to the server. Their effects are tested on a server in `super::super::tests` and in
//! `tests/same_tables.rs`.

use super::*;

#[test]
fn a_procedure_its_call_and_its_batch_have_the_same_parameters_and_text() {
    for Texts { name, procedure, call, batch } in &ALL {
        let (head, body) = procedure.split_once(" AS\n").unwrap();
        let (declared, same) = batch.split_once(";\n").unwrap();
        assert_eq!(body, same, "{name}");
        let parameters = head.split_once(" @").unwrap().1.replace('@', "");
        let declared = declared.strip_prefix("DECLARE @").unwrap();
        let mut places = call.strip_prefix(&format!("EXEC {name} ")).unwrap().split(", ");
        for (parameter, declared) in parameters.split(", ").zip(declared.split(", @")) {
            assert_eq!(declared, format!("{parameter} = {}", places.next().unwrap()), "{name}");
        }
        assert_eq!(places.next(), None, "{name}");
        // Every parameter is used, and every variable is declared.
        let word = |c: char| c.is_alphanumeric() || c == '_';
        for used in body.split('@').skip(1) {
            let used = used.split(|c| !word(c)).next().unwrap();
            let is_declared = ["ROWCOUNT", ""].contains(&used)
                || parameters.split(", ").any(|one| one.starts_with(&format!("{used} ")))
                || ["int", "decimal", "varchar", "datetime2"]
                    .iter()
                    .any(|kind| body.contains(&format!("@{used} {kind}")));
            assert!(is_declared, "{name}: @{used}");
        }
        for parameter in parameters.split(", ").map(|one| one.split(' ').next().unwrap()) {
            assert!(body.contains(&format!("@{parameter}")), "{name}: @{parameter}");
        }
        // A transaction ends on every path, or by an error, on which XACT_ABORT rolls it back.
        assert!(body.contains("SET XACT_ABORT ON;") && body.contains("COMMIT TRANSACTION;"), "{name}");
    }
}

#[test]
fn a_stock_level_in_its_forms() {
    assert_eq!(STOCK_LEVEL.call, "EXEC kelvin_stock_level $1, $2, $3");
    let declared =
        "DECLARE @home int = $1, @district_number int = $2, @threshold int = $3;\n-- The twenty orders";
    assert!(STOCK_LEVEL.batch.starts_with(declared), "{}", STOCK_LEVEL.batch);
    assert!(
        STOCK_LEVEL.procedure.ends_with("COMMIT TRANSACTION;\nSELECT @low;\n"),
        "{}",
        STOCK_LEVEL.procedure
    );
}

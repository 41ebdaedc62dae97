//! Runs that are exported and imported, as a user does it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{Place, text};

const RUN: [&str; 12] = [
    "run",
    "script",
    "own.sql",
    "--target",
    "sqlite:own.db",
    "--users",
    "1",
    "--no-observe",
    "--ramp-up",
    "0s",
    "--duration",
    "1s",
];

/// The query takes some tenths of a millisecond; with a shorter one, only Kelvin's own work would be
/// measured.
const QUERY: &str = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000) select count(*) from c;\n";

const OTHER: [&str; 2] = ["--store", "other.db"];

/// The output for a store's runs and groups, in every format. The runs have the same numbers in both stores.
fn outputs(place: &Place, store: &[&str]) -> Vec<String> {
    let commands: [&[&str]; 9] = [
        &["runs", "--wide"],
        &["show", "1", "--all"],
        &["show", "2", "--format", "json"],
        &["report", "3", "--html", "-o", "-"],
        &["report", "1", "--csv"],
        &["groups"],
        &["show", "group:1"],
        &["groups", "1", "--format", "json"],
        &["history", "main", "--format", "csv"],
    ];
    commands.iter().map(|command| place.expect(0, &[*command, store].concat())).collect()
}

#[test]
fn an_imported_store_shows_the_same_and_its_origin() {
    let place = Place::new();
    place.write("own.sql", QUERY);
    place.expect(0, &[&RUN[..], &["--repeat", "2", "--label", "twice"]].concat());
    place.expect(0, &[&RUN[..], &["--branch", "main"]].concat());
    let said = place.expect(0, &["export", "all", "all.kelvin"]);
    assert!(said.starts_with("all.kelvin: 3 runs and 1 group"), "{said}");
    let file = ["--store", "all.kelvin"];
    let before = outputs(&place, &[]);
    assert_eq!(outputs(&place, &file), before, "the file as a store");
    let said = place.expect(0, &["import", "all.kelvin", OTHER[0], OTHER[1]]);
    assert!(said.contains("3 runs imported from") && said.contains("run 3 is now run 3"), "{said}");
    assert_eq!(outputs(&place, &OTHER), before, "the store that it was added to");

    // Import into the store that exported them: nothing is duplicated.
    let again = place.expect(0, &["import", "all.kelvin"]);
    assert!(
        again.contains("0 runs imported") && again.contains("group 1 already exists as group 1"),
        "{again}"
    );
    // Compared with a run of that store.
    place.expect(0, &[&RUN[..], &OTHER].concat());
    let compared = place.expect(0, &[&["compare", "3", "4"][..], &OTHER].concat());
    assert!(compared.contains("A was imported: run 3 is run 3 in the store kelvin.db on "), "{compared}");
    assert!(!compared.contains("B was imported"), "{compared}");
    let json = place.expect(0, &["import", "all.kelvin", "--format", "json"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["runs"][0]["was_there"], true);
}

#[test]
fn what_cannot_be_moved_is_refused_with_what_to_do() {
    let place = Place::new();
    place.write("own.sql", QUERY);
    place.expect(0, &RUN);
    place.expect(0, &["export", "last", "one.kelvin"]);
    let whole = std::fs::read(place.path("one.kelvin")).unwrap();
    place.write("cut.kelvin", &whole[..whole.len() / 2]);
    let mut flipped = whole.clone();
    let at = whole.windows(8).position(|bytes| bytes == b"own.sql\"").unwrap();
    flipped[at] ^= 4;
    place.write("flipped.kelvin", &flipped);
    place.write("text.kelvin", "no store");
    for (args, words) in [
        (vec!["export", "last", "one.kelvin"], "one.kelvin already exists"),
        (vec!["export", "99", "new.kelvin"], "no run \"99\""),
        (vec!["export", "group:1", "new.kelvin"], "no group 1"),
        (vec!["export", "last", "none/new.kelvin"], "No such file or directory"),
        (vec!["export", "last"], "<FILE>"),
        (vec!["import", "none.kelvin"], "the file does not exist"),
        (vec!["import", "cut.kelvin"], "it is damaged: it is truncated"),
        (vec!["import", "flipped.kelvin"], "its SHA-256 checksum; obtain the file again"),
        (vec!["import", "text.kelvin"], "it is neither an export nor a store"),
        (vec!["import", "kelvin.db"], "it is the store itself"),
        (vec!["exprt", "last"], "export"),
    ] {
        let output = place.run(&args);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    assert!(!place.path("new.kelvin").exists());
    assert_eq!(place.expect(0, &["runs", "--format", "csv"]).lines().count(), 2);
    // No store is created for a file that cannot be read.
    place.run(&["import", "cut.kelvin", "--store", "new.db"]);
    assert!(!place.path("new.db").exists());
}

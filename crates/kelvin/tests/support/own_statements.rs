//! Kelvin's own statements do not count as statements of a load, whichever role runs Kelvin.

use std::process::Stdio;

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};

use crate::support::Place;

/// Checks runs, `top-sql` and `waits` as a role that may read all statistics but is no superuser, and whose statements the
/// server counts. No other client uses the database; `admin` is a superuser.
pub(crate) fn are_left_out(place: &Place, admin: &Config) {
    let session = |config: &Config| PostgresEngine::new(config.clone()).connect().unwrap();
    session(admin).run("CREATE DATABASE counted").unwrap();
    let mut own = Config { database: "counted".into(), ..admin.clone() };
    session(&own)
        .run(
            "CREATE EXTENSION IF NOT EXISTS pg_stat_statements; CREATE TABLE hot (id int PRIMARY KEY); \
             CREATE ROLE counted LOGIN; GRANT pg_read_all_stats TO counted; GRANT SELECT ON hot TO counted",
        )
        .unwrap();
    own.user = "counted".into();
    let target = own.to_string();
    place.write("only.sql", "SELECT id FROM hot WHERE id = 17;\n");
    let run =
        ["run", "script", "only.sql", "--target", &target, "-u", "1", "--ramp-up", "0s", "-T", "2", "-q"];
    let output = place.run(&run);
    let report = place.report("last");
    let statements = report["points"][0]["observed"]["server_statements"].as_array();
    let texts: Vec<&str> = statements.unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["SELECT id FROM hot WHERE id = $1"], "{output:?}");

    let look = |command, duration| {
        let words = [command, "--target", &target, "--duration", duration, "--json", "-q"];
        place.command(&words).stdout(Stdio::piped()).spawn().unwrap()
    };
    // Another Kelvin starts and ends in the interval; neither explains statements.
    let (top, mut other) = (look("top-sql", "3s"), look("waits", "1s"));
    assert!(other.wait().unwrap().success());
    let shown: serde_json::Value = serde_json::from_slice(&top.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(
        (&shown["counted"], &shown["statements"]),
        (&true.into(), &serde_json::json!([])),
        "{shown:#}"
    );
    // Nor do the statements that request plans.
    place.expect(0, &["top-sql", "--target", &target, "--since-start", "--plans", "-q"]);
    let all =
        place.expect(0, &["top-sql", "--target", &target, "--since-start", "--limit", "99", "--json", "-q"]);
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    let texts: Vec<&str> =
        all["statements"].as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect();
    let foreign = ["hot", "counted", "CREATE EXTENSION"];
    assert!(texts.iter().all(|text| foreign.iter().any(|word| text.contains(word))), "{texts:#?}");
}

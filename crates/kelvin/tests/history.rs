//! Runs on branches, as a CI job makes, judges and shows them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{Place, text};

/// A script that mostly sleeps, so that its speed does not depend on the machine.
fn nap(place: &Place, name: &str, milliseconds: u32) {
    place.write(name, format!("\\sleep {milliseconds} ms\nselect 1;\n"));
}

fn run(place: &Place, script: &str, more: &[&str]) {
    let target = format!("sqlite:{}", place.path("nap.db").display());
    let args = [
        "run",
        "script",
        script,
        "--target",
        &target,
        "--users",
        "1",
        "--transactions",
        "10",
        "--no-observe",
        "-q",
    ];
    let output = place.run(&[&args[..], more].concat());
    assert!(output.status.success() || place.is_noise(), "{}", text(&output.stderr));
}

/// Four runs of a fast script on a branch, four of a slow script on another, and one more on the first.
fn branches() -> Place {
    let place = Place::new();
    nap(&place, "fast.sql", 6);
    nap(&place, "slow.sql", 60);
    for _ in 0..4 {
        run(&place, "fast.sql", &["--branch", "main", "--testbed", "rack 7"]);
    }
    // In the form of a CI server's variables.
    let target = format!("sqlite:{}", place.path("nap.db").display());
    for _ in 0..4 {
        let args = ["run", "script", "slow.sql", "--target", &target, "--users", "1", "--transactions", "10"];
        let mut command = place.command(&[&args[..], &["--no-observe", "-q", "--label", "slow"]].concat());
        let output =
            command.env("KELVIN_BRANCH", "feature/x").env("KELVIN_TESTBED", "rack 7").output().unwrap();
        assert!(output.status.success() || place.is_noise(), "{}", text(&output.stderr));
    }
    run(&place, "fast.sql", &["--branch", "main"]);
    place
}

/// Whether each run counts and its pauses took at most twice the time in its script.
fn is_undisturbed(place: &Place) -> bool {
    (1..=9).all(|number| {
        let run = place.report(&number.to_string());
        let least = if (5..=8).contains(&number) { 0.5 / 0.060 } else { 0.5 / 0.006 };
        run["state"] == "counted" && run["points"][0]["headline_per_second"].as_f64().unwrap() >= least
    })
}

#[test]
fn a_branch_is_kept_shown_gated_and_compared() {
    let mut tries = std::iter::repeat_with(branches).take(8);
    let place = tries.find(is_undisturbed).expect("the machine held up one of nine runs, eight times");
    let shown = place.expect(0, &["history", "main", "--testbed", "rack 7"]);
    assert!(shown.starts_with("tps of script on branch main, testbed rack 7\n"), "{shown}");
    assert!(shown.contains("4 entries: too few to find a change"), "{shown}");
    place.expect(0, &["history", "feature/x", "-m", "mean", "--html", "trend.html"]);
    let page = std::fs::read_to_string(place.path("trend.html")).unwrap();
    assert!(
        page.contains("href=\"reports&#x2f;kelvin.db&#x2f;run-6.html\""),
        "the runs' own pages are beside the store"
    );
    // The testbed of the last run was not given, so it is named after host and processor.
    let json: serde_json::Value =
        serde_json::from_str(&place.expect(0, &["history", "main", "--json"])).unwrap();
    assert_ne!(json["testbed"], "rack 7");
    assert_eq!(json["entries"][0]["runs"], serde_json::json!([9]));

    let gate = |code, more: &[&str]| {
        place.expect(
            code,
            &[&["gate", "--against", "branch:main@rack 7", "--max-regression", "10%"], more].concat(),
        )
    };
    let measures = ["--measure", "tps", "--measure", "mean:20%"];
    let failed = gate(1, &[&["branch:feature/x", "--junit", "gate.xml"], &measures[..]].concat());
    assert!(failed.contains("gate failed: 2 measures of 2 regressed"), "{failed}");
    assert!(std::fs::read_to_string(place.path("gate.xml")).unwrap().contains("failures=\"2\""));
    let markdown = gate(0, &["label:slow", "--measure", "tps:99.9%", "--markdown", "-"]);
    assert!(markdown.starts_with("### ✅ Kelvin gate passed"), "{markdown}");
    // Only the newest run.
    assert!(gate(5, &[]).contains("gate not judged"));
    assert!(gate(5, &["--strict", "--measure", "p99"]).contains("gate not judged"));
    // The candidate's own runs are not in its base.
    let own = place.run(&["gate", "--against", "branch:main@rack 7", "--max-regression", "3%", "1..4"]);
    assert_eq!(own.status.code(), Some(2));
    assert!(text(&own.stderr).contains("they are on the other side"), "{}", text(&own.stderr));

    let compared =
        place.expect(0, &["compare", "branch:main@rack 7", "label:slow", "--html", "compare.html"]);
    assert!(compared.contains("verdict: changed, for the worse: tps of B is"), "{compared}");
    assert!(compared.contains("what differs between A and B\n  spec script.scripts.0.text\n"), "{compared}");
    let json = place.expect(0, &["compare", "1", "5", "label:slow", "--json"]);
    let verdicts: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts.len(), 2);
    assert_eq!(verdicts[0]["points"][0]["verdict"], "not-testable");
}

#[test]
fn bad_names_and_limits_end_with_what_to_write() {
    let place = Place::new();
    nap(&place, "nap.sql", 1);
    run(&place, "nap.sql", &["--branch", "main"]);
    for (line, help) in [
        ("compare 1", "2 values required"),
        ("compare 1 2..", "such as 12..17"),
        ("compare 1 7", "no run \"7\""),
        ("compare 1 group:3", "there are no groups yet"),
        ("compare 1 1", "run 1 is on both sides"),
        ("compare 1 last --noise 1", "such as 3%"),
        ("compare 1 2 3 --html x.html", "two sides"),
        ("history dev", "existing branches: main"),
        ("history --measure p42", "they have tps"),
        ("history --last 0", "at least 1"),
        ("gate --against branch:main", "--max-regression"),
        ("gate --against branch:dev --max-regression 3%", "there are main"),
        ("gate --against 1 --max-regression 3", "such as 3%"),
        ("gate --against 1 --max-regression 100%", "allow every change"),
        ("gate --against 1 --max-regression 3% --measure tps --measure tps:4%", "given twice"),
        ("gate --against 1 --max-regression 3% --measure :4%", "needs a measure"),
        ("run script nap.sql --testbed x", "give --branch NAME"),
        ("run script nap.sql --branch a@b", "is a separator"),
        ("squeeze script nap.sql --branch main", "is not part of a history"),
        ("run script nap.sql --branch main --label group:1", "several runs"),
    ] {
        let output = place.run(&line.split(' ').collect::<Vec<_>>());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.contains(help), "{line}: {stderr}");
    }
}

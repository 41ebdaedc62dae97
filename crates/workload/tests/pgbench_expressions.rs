//! Expressions have exactly pgbench's results as text; random functions follow their documented
//! distributions.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

mod pgbench_support;

use std::io::Write;

use kelvin_measure::Random;
use kelvin_workload::pgbench::expression::{Value, calculate};
use pgbench_support::{Server, pgbench};

const GOOD: &str = include_str!("pgbench_expressions.txt");

fn ours(expression: &str) -> Result<String, String> {
    let mut random = Random::part(1, 1, 1);
    calculate(expression, &mut random).map_err(|error| error.to_string()).map(|value| {
        let mut text = String::new();
        match value {
            Value::Null => text.push_str("null"),
            Value::Boolean(_) => text.push_str("boolean "),
            Value::Integer(_) => text.push_str("int "),
            Value::Double(_) => text.push_str("double "),
        }
        if value != Value::Null {
            value.write(&mut text);
        }
        text
    })
}

/// All valid expressions, in one run of pgbench with `debug`.
#[test]
fn values_equal_pgbench() {
    let server = Server::start();
    let expressions: Vec<&str> =
        GOOD.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//")).collect();
    assert!(expressions.len() >= 250, "{} expressions", expressions.len());
    let mut script = tempfile::NamedTempFile::new().unwrap();
    for expression in &expressions {
        writeln!(script, "\\set x debug({expression})").unwrap();
    }
    let output = pgbench(&server, &["-n", "-t", "1", "-f", script.path().to_str().unwrap()]);
    let log = String::from_utf8_lossy(&output.stderr);
    let theirs: Vec<&str> = log
        .lines()
        .filter(|l| l.starts_with("debug("))
        .filter_map(|l| l.split_once(": ").map(|p| p.1))
        .collect();
    assert_eq!(
        theirs.len(),
        expressions.len(),
        "{}",
        log.lines().rev().take(5).collect::<Vec<_>>().join("\n")
    );
    let wrong: Vec<String> = expressions
        .iter()
        .zip(theirs)
        .filter_map(|(expression, theirs)| {
            let ours = ours(expression);
            (ours.as_deref() != Ok(theirs)).then(|| format!("{expression}: pgbench {theirs}, ours {ours:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Expressions that pgbench refuses, when parsing or evaluating, are refused. One run of pgbench each.
#[test]
fn errors_are_errors_for_both() {
    let server = Server::start();
    let wrong = [
        "1 / 0",
        "1 % 0",
        "mod(1, 0)",
        "1 + true",
        "true = true",
        "true and 1",
        "not 1",
        "1 or true",
        "9223372036854775807 + 1",
        "-9223372036854775808 - 1",
        "9223372036854775807 * 2",
        "-9223372036854775808 / -1",
        "- (-9223372036854775808)",
        "9223372036854775808",
        "int(1e19)",
        "int(0.0 / 0.0)",
        "5.0 & true",
        "double(true)",
        "random(2, 1)",
        "random(-9223372036854775808, 9223372036854775807)",
        "random_gaussian(1, 2, 1.9)",
        "random_exponential(1, 2, 0)",
        "random_zipfian(1, 2, 1.0)",
        "random_zipfian(1, 2, 1000.1)",
        "permute(1, 0, 1)",
        "permute(1, -1, 1)",
        "greatest()",
        "greatest(1, true)",
        "least(true)",
        "pi(1)",
        "random(1)",
        "hash()",
        "hash(1, 2, 3)",
        "nosuch(1)",
        "1 < 2 < 3",
        "1 = 2 = 3",
        "1 +",
        "(1",
        "1)",
        "case when 1 then 2",
        "case 1 when 1 then 2 end",
        "case when true then 1 else 2",
        "1 is 1",
        "1 is not",
        "null is 2",
        ":undefined + 1",
        "1 ? 2",
        "1 2",
        "debug(1, 2)",
        "92233720368547758080",
        "1e400",
        "+ ",
        "1 <> 2 != 3",
        "mod(1.5e30, 2)",
        "sqrt(true)",
        "power(1)",
        "5 && 3",
        "5 || 3",
        "5 ^ 2",
        "1 == 1",
    ];
    let mut different = Vec::new();
    for expression in wrong {
        let mut script = tempfile::NamedTempFile::new().unwrap();
        writeln!(script, "\\set x {expression}").unwrap();
        let output = pgbench(&server, &["-n", "-t", "1", "-f", script.path().to_str().unwrap()]);
        let log = String::from_utf8_lossy(&output.stderr);
        let theirs = log.contains("aborted") || !output.status.success();
        if theirs != ours(expression).is_err() {
            different.push(format!("{expression}: pgbench refuses {theirs}, ours {:?}", ours(expression)));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

fn counts(expression: &str, low: i64, high: i64, draws: usize) -> Vec<f64> {
    let mut random = Random::part(42, 7, 1);
    let mut counts = vec![0.0; (high - low + 1) as usize];
    for _ in 0..draws {
        let Value::Integer(value) = calculate(expression, &mut random).unwrap() else {
            panic!("{expression}")
        };
        assert!((low..=high).contains(&value), "{expression} gave {value}");
        counts[(value - low) as usize] += 1.0;
    }
    counts
}

/// The Wilson–Hilferty bound, which chi-square exceeds once in ten thousand.
fn assert_law(expression: &str, counts: &[f64], shares: &[f64]) {
    let draws: f64 = counts.iter().sum();
    let total: f64 = shares.iter().sum();
    let chi: f64 = counts
        .iter()
        .zip(shares)
        .map(|(n, share)| (n - draws * share / total).powi(2) / (draws * share / total))
        .sum();
    let k = (counts.len() - 1) as f64;
    let bound = k * (1.0 - 2.0 / (9.0 * k) + 3.72 * (2.0 / (9.0 * k)).sqrt()).powi(3);
    assert!(chi < bound, "{expression}: chi-square {chi} above {bound}; {counts:?}");
}

/// The error function (Abramowitz and Stegun 7.1.26), accurate to 1.5e-7.
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let poly = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    (1.0 - poly * (-x * x).exp()).copysign(x)
}

#[test]
fn random_functions_follow_their_documented_laws() {
    const DRAWS: usize = 200_000;
    let expression = "random(-3, 16)";
    assert_law(expression, &counts(expression, -3, 16, DRAWS), &[1.0; 20]);

    for parameter in [0.5, 2.5, 5.0] {
        // f(i) = exp(-parameter * (i - min) / (max - min + 1)) * (1 - exp(-parameter / n)) / (1 - exp(-parameter))
        let expression = format!("random_exponential(1, 20, {parameter})");
        let shares: Vec<f64> = (0..20).map(|i| (-parameter * f64::from(i) / 20.0).exp()).collect();
        assert_law(&expression, &counts(&expression, 1, 20, DRAWS), &shares);
    }
    for parameter in [2.0, 2.5, 4.0] {
        // f(i) = PHI(2 p (i - mu + 0.5) / n) - PHI(2 p (i - mu - 0.5) / n)
        let expression = format!("random_gaussian(1, 20, {parameter})");
        let phi = |x: f64| 0.5 * (1.0 + erf(x / std::f64::consts::SQRT_2));
        let at = |i: f64| phi(2.0 * parameter * (i - 10.5) / 20.0);
        let shares: Vec<f64> = (1..=20).map(|i| at(f64::from(i) + 0.5) - at(f64::from(i) - 0.5)).collect();
        assert_law(&expression, &counts(&expression, 1, 20, DRAWS), &shares);
    }
    for parameter in [1.1, 1.5, 3.0] {
        let expression = format!("random_zipfian(11, 30, {parameter})");
        let shares: Vec<f64> = (1..=20).map(|k| f64::from(k).powf(-parameter)).collect();
        assert_law(&expression, &counts(&expression, 11, 30, DRAWS), &shares);
    }
    for expression in [
        "random(5, 5)",
        "random_gaussian(5, 5, 3)",
        "random_zipfian(5, 5, 1.1)",
        "random_exponential(5, 5, 1)",
    ] {
        counts(expression, 5, 5, 100);
    }
    // Values stay within a large range.
    let mut random = Random::part(1, 1, 1);
    for expression in
        ["random_exponential(0, 9223372036854775806, 0.001)", "random_gaussian(-1, 9223372036854775805, 2)"]
    {
        for _ in 0..10_000 {
            let Value::Integer(value) = calculate(expression, &mut random).unwrap() else { panic!() };
            assert!(value >= -1);
        }
    }
}

#[test]
fn permute_is_a_permutation() {
    let mut random = Random::part(1, 1, 1);
    for size in [1, 2, 3, 10, 64, 1000] {
        let mut seen: Vec<i64> = (0..size)
            .map(|i| match calculate(&format!("permute({i}, {size}, 7)"), &mut random).unwrap() {
                Value::Integer(value) => value,
                other => panic!("{other:?}"),
            })
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..size).collect::<Vec<_>>());
    }
}

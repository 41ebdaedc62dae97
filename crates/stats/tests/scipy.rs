//! What the crate gives against what SciPy 1.14.1 gives: `fixtures/values_of_scipy.py` made `fixtures/scipy.json`, once.

#![allow(clippy::unwrap_used)]

use kelvin_stats::compare::{ComparedSamples, compare};
use kelvin_stats::factorial::{Analysis, Design, Observation};
use kelvin_stats::sequential::Boundary;
use kelvin_stats::{holm, noncentral, permutation, power, rank, scatter, student};
use serde_json::Value;

fn fixture() -> Value {
    serde_json::from_str(include_str!("fixtures/scipy.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn list<'a>(fixture: &'a Value, name: &str) -> &'a [Value] {
    let list = fixture[name].as_array().unwrap();
    assert!(!list.is_empty(), "{name}");
    list
}

#[track_caller]
fn close(found: f64, expected: &Value, within: f64) {
    let expected = expected.as_f64().unwrap();
    assert!((found - expected).abs() <= within * expected.abs().max(1e-3), "{found}, SciPy {expected}");
}

#[test]
fn two_groups() {
    for group in list(&fixture(), "two") {
        let (a, b) = (numbers(&group["a"]), numbers(&group["b"]));
        close(permutation::two_samples(&a, &b).unwrap(), &group["two_samples"], 1e-10);
        close(rank::hodges_lehmann(&a, &b).unwrap(), &group["hodges_lehmann"], 1e-9);
        for (confidence, interval) in group["welch"].as_object().unwrap() {
            let sides = ComparedSamples::Independent { a: &a, b: &b };
            let found = compare(sides, 0.01, confidence.parse().unwrap()).unwrap();
            close(found.ratio.low, &interval[0], 1e-9);
            close(found.ratio.high, &interval[1], 1e-9);
        }
    }
}

#[test]
fn pairs() {
    for group in list(&fixture(), "pairs") {
        let (a, b) = (numbers(&group["a"]), numbers(&group["b"]));
        let found = compare(ComparedSamples::Paired { a: &a, b: &b }, 0.01, 0.95).unwrap();
        close(found.p, &group["sign_flip"], 1e-12);
        close(found.hodges_lehmann.ln(), &group["hodges_lehmann"], 1e-9);
        close(found.ratio.low, &group["interval"][0], 1e-9);
        close(found.ratio.high, &group["interval"][1], 1e-9);
    }
}

#[test]
fn one_group() {
    for group in list(&fixture(), "one") {
        let values = numbers(&group["values"]);
        let (low, high) = student::mean_interval(&values, 0.95).unwrap();
        close(low, &group["mean_interval"][0], 1e-9);
        close(high, &group["mean_interval"][1], 1e-9);
        let found = rank::median_interval(&values, 0.95);
        assert_eq!(found.is_none(), group["median_interval"].is_null(), "{values:?}");
        if let Some(found) = found {
            close(found.low, &group["median_interval"][0], 0.0);
            close(found.high, &group["median_interval"][1], 0.0);
            close(found.confidence, &group["median_interval"][2], 1e-9);
        }
        let found = scatter::coefficient(&values, 0.95).unwrap();
        for (found, expected) in
            [found.cv, found.low, found.high].into_iter().zip(group["coefficient"].as_array().unwrap())
        {
            close(found, expected, 1e-8);
        }
    }
}

#[test]
fn the_noncentral_t_and_the_power_from_it() {
    let fixture = fixture();
    for row in list(&fixture, "noncentral") {
        let found =
            noncentral::below(row[0].as_f64().unwrap(), row[1].as_f64().unwrap(), row[2].as_f64().unwrap());
        let expected = row[3].as_f64().unwrap();
        assert!((found.unwrap() - expected).abs() < 1e-9, "{row}: {found:?}");
    }
    for row in list(&fixture, "planned") {
        let n = row[0].as_u64().unwrap() as u32;
        let given = numbers(row);
        let (scatter, effect, confidence) = (given[1], given[2], given[3]);
        let between = power::detection_power(n, scatter, effect, confidence).unwrap();
        let in_pairs = power::paired_detection_power(n, scatter, effect, confidence).unwrap();
        assert!(
            (between - given[4]).abs() < 1e-8 && (in_pairs - given[5]).abs() < 1e-8,
            "{row} {between} {in_pairs}"
        );
        // The number of runs is the first whose power suffices.
        if n > 4 && between < 0.999 {
            let exactly = power::runs_a_side(scatter, effect, between - 1e-9, confidence).unwrap();
            assert_eq!(exactly, n, "{row}");
        }
    }
}

#[test]
fn trial_a9_quantiles_of_student_far_out() {
    for row in list(&fixture(), "quantiles") {
        let (tail, df) = (row[0].as_f64().unwrap(), row[1].as_f64().unwrap());
        // The upper one is −quantile(tail): 1 − 10⁻¹⁶³ is 1.
        let within = if df > 1e3 { 1e-5 } else { 1e-9 };
        close(-student::quantile(tail, df).unwrap(), &row[2], within);
    }
}

#[test]
fn bounds_of_looks() {
    for plan in list(&fixture(), "sequential") {
        let looks: Vec<u32> = numbers(&plan["looks"]).into_iter().map(|n| n as u32).collect();
        let found = Boundary::normal(&looks, plan["alpha"].as_f64().unwrap()).unwrap();
        for (look, expected) in plan["bounds"].as_array().unwrap().iter().enumerate() {
            close(found.z(look), expected, 1e-6);
        }
    }
}

#[test]
fn many_questions() {
    let fixture = fixture();
    let found = holm::adjust(&numbers(&fixture["holm"]["p"]));
    for (found, expected) in found.iter().zip(fixture["holm"]["adjusted"].as_array().unwrap()) {
        close(*found, expected, 1e-12);
    }
}

#[test]
fn studies_with_and_without_void_runs() {
    let fixture = fixture();
    let studies = list(&fixture, "factorial");
    let mut unbalanced = 0;
    for study in studies {
        let levels: Vec<usize> = numbers(&study["levels"]).into_iter().map(|l| l as usize).collect();
        let observations: Vec<Observation> = study["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let row = numbers(row);
                Observation {
                    cell: vec![row[0] as usize, row[1] as usize],
                    block: row[2] as u32,
                    value: row[3],
                }
            })
            .collect();
        let found = Analysis::from_observations(&Design::new(&levels), &observations, 0.95).unwrap();
        unbalanced += u32::from(!found.balanced);
        close(found.error.sum_of_squares, &study["error"], 1e-8);
        close(found.total.sum_of_squares, &study["total"], 1e-8);
        close(found.blocks.unwrap().sum_of_squares, &study["blocks"], 1e-8);
        assert_eq!(found.error.degrees as u64, study["degrees"].as_u64().unwrap());
        for (effect, expected) in found.effects.iter().zip(study["effects"].as_array().unwrap()) {
            let factors: Vec<usize> = numbers(&expected["factors"]).into_iter().map(|f| f as usize).collect();
            assert_eq!(effect.factors, factors);
            close(effect.sum_of_squares, &expected["squares"], 1e-7);
            close(effect.f.unwrap(), &expected["f"], 1e-7);
            close(effect.p.unwrap(), &expected["p"], 1e-6);
        }
    }
    assert_eq!(unbalanced, 2);
}

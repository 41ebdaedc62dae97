//! Explanations of real outputs of fio 3.33 (short runs), reviewed by hand.

use super::*;

fn parsed(name: &str, text: &str) -> (String, ParsedStream) {
    (name.to_owned(), parse_json(text, Some(Path::new(name))).unwrap())
}

fn buffered() -> (String, ParsedStream) {
    parsed("buffered.json", include_str!("samples/buffered.json"))
}

fn direct() -> (String, ParsedStream) {
    parsed("direct.json", include_str!("samples/direct.json"))
}

#[test]
fn a_buffered_result_is_explained_with_its_warnings() {
    insta::assert_snapshot!("buffered", explained(&[buffered()], 110));
}

#[test]
fn a_limited_job_and_one_that_failed_among_stray_lines() {
    let limited = parsed("limited.json", include_str!("samples/limited.json"));
    insta::assert_snapshot!("limited", explained(&[limited], 110));
}

#[test]
fn two_results_side_by_side() {
    insta::assert_snapshot!("two", explained(&[buffered(), direct()], 110));
}

#[test]
fn a_kelvin_result_lists_targets_and_response_times() {
    let kelvin = parsed("kelvin.json", include_str!("samples/kelvin.json"));
    insta::assert_snapshot!("kelvin", explained(&[kelvin], 110));
}

#[test]
fn what_is_no_result_is_an_error_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("broken.json");
    std::fs::write(&path, "fio: note\n{\n  \"jobs\" : [\n    {,\n").unwrap();
    let error = format!("{:#}", explain(std::slice::from_ref(&path), 100).unwrap_err());
    assert!(error.contains("broken.json:4:6: not JSON: "), "{error}");
    std::fs::write(&path, "read: IOPS=12\n").unwrap();
    let error = format!("{:#}", explain(std::slice::from_ref(&path), 100).unwrap_err());
    assert!(error.contains("no fio JSON result; the first line is \"read: IOPS=12\""), "{error}");
    let error = format!("{:#}", explain(&[directory.path().join("none")], 100).unwrap_err());
    assert!(error.contains("cannot open"), "{error}");
}

//! Reading results in whatever stream they stand.

use std::path::Path;

use kelvin_fio::output::read::parse_json;
use kelvin_fio::output::{json, normal};
use proptest::prelude::*;

use crate::support::{job, jobs, options, outcome, reader};

fn result() -> String {
    json(&outcome(jobs(vec![job("a")]), vec![reader(0)]), &options(), false)
}

#[test]
fn stray_lines_are_reported_with_their_positions_and_several_results_are_several() {
    let lines = result().lines().count() as u32;
    let text = format!("fio: a note\n\nfio: another\n{}{}fio: the end\n{{ not json\n", result(), result());
    // A line that begins as a result would, behind whole ones.
    let error = parse_json(&text, Some(Path::new("x.json"))).unwrap_err().to_string();
    assert!(error.starts_with(&format!("x.json:{}:", 3 + 2 * lines + 2)), "{error}");
    assert!(error.contains("2 complete results precede it"), "{error}");
    let text = text.replace("{ not json\n", "");
    let parsed = parse_json(&text, None).unwrap();
    assert_eq!(parsed.results.iter().map(|result| result.line).collect::<Vec<_>>(), [4, 4 + lines]);
    let stray: Vec<(u32, u32, &str)> =
        parsed.stray.iter().map(|stray| (stray.line, stray.lines, stray.text.as_str())).collect();
    assert_eq!(stray, [(1, 1, "fio: a note"), (3, 1, "fio: another"), (4 + 2 * lines, 1, "fio: the end")]);
}

#[test]
fn text_and_json_in_one_stream_as_fio_writes_them() {
    let all = outcome(jobs(vec![job("a")]), vec![reader(0)]);
    let text = format!("{}{}{}", normal(&all, &options()), result(), normal(&all, &options()));
    let parsed = parse_json(&text, None).unwrap();
    assert_eq!(parsed.results.len(), 1);
    assert_eq!(parsed.results[0].jobs[0].lines[0].1.ios, 2000);
    assert_eq!(parsed.results[0].version, kelvin_fio::output::VERSION);
}

#[test]
fn what_cannot_be_read_is_reported_with_its_position() {
    let message = |text: &str| parse_json(text, Some(Path::new("r.json"))).unwrap_err().to_string();
    assert_eq!(message(""), "r.json:1: no fio JSON result: the input is empty (use --output-format=json)");
    assert!(message("3;fio-3.33;a;0").contains("the first line is \"3;fio-3.33;a;0\""));
    let cut = result();
    let cut = &cut[..cut.len() / 2];
    assert!(message(cut).contains("the result is truncated: was the run killed?"), "{}", message(cut));
    assert_eq!(message("x\n{\n \"jobs\" : [ 1,, 2 ]\n}"), "r.json:3:15: not JSON: expected value");
    // JSON, but no result.
    assert!(message("{\"a\": 1}\n").contains("no fio JSON result"));
    let deep = format!("{}{}", "{\"jobs\":".repeat(2000), "1");
    assert!(message(&deep).contains("not JSON"));
}

#[test]
fn numbers_that_are_none_and_units_of_old_versions() {
    let old = r#"{ "fio version" : "fio-2.21", "timestamp" : 1500000000, "jobs" : [ { "jobname" : "inf: nan, here",
        "read" : { "io_bytes" : 4096, "bw" : 2048, "iops" : 512.0, "runtime" : 2000, "total_ios" : 1024,
        "clat" : { "min" : 10, "max" : 90, "mean" : 50.5, "stddev" : -nan, "percentile" : { "50.000000" : 48, "0.00" : 0 } },
        "iops_mean" : nan, "bw_dev" : inf } } ] }"#;
    let parsed = parse_json(old, None).unwrap();
    let job = &parsed.results[0].jobs[0];
    assert_eq!(job.name, "inf: nan, here");
    let (word, line) = &job.lines[0];
    assert_eq!(word, "read");
    assert_eq!((line.bytes, line.bandwidth), (4 << 20, 2_097_152.0));
    assert_eq!(
        (line.completion.mean, line.completion.deviation, line.completion.count),
        (50_500.0, 0.0, 1024)
    );
    assert_eq!(line.completion.percentile(50.0), Some(48_000.0));
    assert_eq!(parsed.results[0].at, 1_500_000_000_000);
}

#[test]
fn fios_own_outputs_are_read() {
    // In the client mode jobs stand elsewhere and have a machine.
    let client = r#"{"fio version":"fio-3.33","client_stats":[{"jobname":"a","hostname":"h1","read":{"total_ios":1}}]}"#;
    let parsed = parse_json(client, None).unwrap();
    assert_eq!(parsed.results[0].jobs[0].host.as_deref(), Some("h1"));
    let sample = include_str!("../../../kelvin/src/commands/io_explain/samples/limited.json");
    let parsed = parse_json(sample, None).unwrap();
    let names: Vec<&str> = parsed.results[0].jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["paced", "full", "short"]);
    assert_eq!(parsed.results[0].jobs[1].error, 28);
    assert_eq!(parsed.results[0].jobs[0].option(&["rate_iops"]), Some("500"));
    assert_eq!(parsed.stray[0].line, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Nothing that is in a file brings the reader down.
    #[test]
    fn any_text_is_read_or_refused(text in "(\\{|\\}|\\[|\"jobs\"|:|,|nan|-inf|[ -~]|\n|µ){0,80}") {
        let _ = parse_json(&text, None);
    }

    /// A result with a byte changed is still read or refused.
    #[test]
    fn a_damaged_result_is_read_or_refused(place in 0_usize..4000, byte in 32_u8..127) {
        let mut text = result().into_bytes();
        let place = place % text.len();
        text[place] = byte;
        if let Ok(text) = String::from_utf8(text) {
            let _ = parse_json(&text, None);
        }
    }
}

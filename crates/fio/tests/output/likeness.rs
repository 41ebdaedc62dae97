//! Kelvin's normal text has fio's lines: against outputs of fio 3.33 as it wrote them (`fio/*.txt`).

use std::collections::BTreeSet;

use kelvin_fio::output::{banner, normal, terse};

use crate::support::{SECOND, job, jobs, options, outcome, reader};
use crate::texts::rich;

const FIO: [&str; 9] = [
    include_str!("fio/group.txt"),
    include_str!("fio/lattarget.txt"),
    include_str!("fio/mixed.txt"),
    include_str!("fio/nullrw.txt"),
    include_str!("fio/pct.txt"),
    include_str!("fio/ss.txt"),
    include_str!("fio/sync.txt"),
    include_str!("fio/trim.txt"),
    include_str!("fio/verr2.txt"),
];

/// A line without its numbers: words, signs and their positions. Lists whose length depends on the numbers
/// (percentiles, classes) are reduced to their first part.
fn shape(line: &str) -> String {
    let indent = line.len() - line.trim_start().len();
    let words = line.trim_start();
    if words.starts_with('|') {
        return format!("{indent}|th=[]");
    }
    // Names, dates and messages are data.
    if let Some((_, rest)) = words.split_once(": (groupid=") {
        let error = if rest.contains("err= 0") { "none" } else { "some" };
        return format!("{indent}name: (groupid=, jobs=): err={error}: pid=: date");
    }
    if let Some((_, rest)) = words.split_once(": (g=") {
        let rest = rest.split_once("bs=").map_or(rest, |(_, rest)| rest);
        return format!(
            "{indent}name: (g=): rw=, bs={}",
            figures(rest.split("ioengine").next().unwrap_or(rest))
        );
    }
    for (begin, shape) in [
        ("Description  : [", "Description  : []"),
        ("errors    : total=", "errors    : total=, first_error=/<>"),
        ("lat (", "lat (unit)   : class=share"),
        ("Starting ", "Starting"),
        ("fio-3.33", "version"),
    ] {
        if words.starts_with(begin) {
            return format!("{indent}{shape}");
        }
    }
    if words.contains(": ios=") {
        let (_, rest) = words.split_once(": ios=").unwrap();
        return format!("disk: ios={}", figures(rest.split(", aggr").next().unwrap_or(rest)));
    }
    format!("{indent}{}", figures(words))
}

/// Without digits, blanks around them, and the prefixes of units.
fn figures(text: &str) -> String {
    let mut shape = String::new();
    let mut after_digit = false;
    for letter in text.chars() {
        let is_digit = letter.is_ascii_digit() || letter == '.';
        let is_prefix = after_digit && "kKMGTPi".contains(letter);
        if !is_digit && !is_prefix && letter != ' ' {
            shape.push(letter);
        }
        after_digit = is_digit || is_prefix;
    }
    for unit in ["(nsec)", "(usec)", "(msec)"] {
        shape = shape.replace(unit, "(unit)");
    }
    for unit in ["(KiB/s)", "(MiB/s)"] {
        shape = shape.replace(unit, "(B/s)");
    }
    shape
}

fn shapes(text: &str) -> BTreeSet<String> {
    text.lines().filter(|line| !line.trim().is_empty()).map(shape).collect()
}

#[test]
fn every_line_is_one_of_fios_or_is_marked_as_kelvins() {
    let fio: BTreeSet<String> = FIO.iter().flat_map(|text| shapes(text)).collect();
    let rich = rich();
    let text = format!("{}{}", banner(&rich.jobs), normal(&rich, &options()));
    let mut own = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        // A section of Kelvin continues with lines of deeper indentation.
        let indent = line.len() - line.trim_start().len();
        own = line.trim_start().starts_with("kelvin") || (own && indent > 2);
        assert!(
            own || fio.contains(&shape(line)),
            "not a line of fio's: {line:?} ({})\n{fio:#?}",
            shape(line)
        );
    }
}

#[test]
fn every_kind_of_line_that_fio_prints_is_there() {
    let mut all = rich();
    // Features that the rich outcome lacks: trims, a latency target, samples of writes, mixed reporting.
    let mut trimming = reader(2);
    trimming.group = 2;
    trimming.targets[0].directions.0.swap(0, 2);
    trimming.runtime.0.swap(0, 2);
    all.workers.push(trimming);
    let mut trims = job("trims");
    trims.latency.target = Some(300_000);
    trims.latency.window = SECOND;
    all.jobs.jobs.push(trims);
    let mut mixing = reader(3);
    mixing.group = 3;
    all.workers.push(mixing);
    let mut mixed = job("mixed");
    mixed.report.mixed = kelvin_fio::job::Mixed::Mixed;
    all.jobs.jobs.push(mixed);
    let text = format!("{}Starting 5 threads\n{}", banner(&all.jobs), normal(&all, &options()));
    let mine = shapes(&text);
    for (number, text) in FIO.iter().enumerate() {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            // A bug of fio: with unified_rw_reporting=both it adds up times but not I/Os.
            if line.starts_with("  mixed: IOPS=0, BW=0 (0)(0B/") {
                continue;
            }
            assert!(
                mine.contains(&shape(line)),
                "output {number} of fio has {line:?} ({})\n{mine:#?}",
                shape(line)
            );
        }
    }
}

/// Field by field, the content between the semicolons has the same type.
#[test]
fn terse_fields_are_of_fios_kinds() {
    // fio 3.33, `--output-format=terse`: a job of reads with a latency target.
    let fio = "3;fio-3.33;a;0;0;1984;55111;13777;36;3;131;7.358571;9.886416;13;1286;79.952198;137.591734;1.000000%=18";
    let outcome = outcome(jobs(vec![job("a")]), vec![reader(0)]);
    let mine = terse(&outcome, &options()).unwrap();
    let kind = |field: &str| -> String {
        match field {
            _ if field.starts_with("fio-3.33") => "version".into(),
            _ if field.parse::<u64>().is_ok() => "whole".into(),
            _ if field.parse::<f64>().is_ok() => "real".into(),
            _ => field.replace(|letter: char| letter.is_ascii_digit(), ""),
        }
    };
    let fields: Vec<String> = fio.split(';').map(kind).collect();
    let mine: Vec<String> = mine.split(';').take(fields.len()).map(kind).collect();
    assert_eq!(mine, fields);
}

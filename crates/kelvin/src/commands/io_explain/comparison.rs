//! Compares several results: first the options that differ, then the metrics in the same units.

use std::collections::BTreeSet;

use kelvin_measure::text::{NONE, significant};
use kelvin_storage::output::read::{IoResult, JobResult, LineResult};

use super::Side;
use super::result_text::{mean_depth, times};

/// Compares the jobs of all results. If all results have jobs with the same names, each job is compared with
/// those of its name; otherwise one table has all jobs.
pub(super) fn compare_results(results: &[(&str, &IoResult)]) -> String {
    let mut text = String::new();
    let Some((_, first)) = results.first() else { return text };
    let all_in = |name: &str| results.iter().all(|(_, result)| find_job(result, name).is_some());
    let mut names: Vec<&str> = first.jobs.iter().map(|job| job.name.as_str()).collect();
    names.dedup();
    names.retain(|name| all_in(name));
    let whole = results.iter().all(|(_, result)| result.jobs.len() == names.len());
    if whole && !names.is_empty() {
        for name in names {
            let sides: Vec<Side<'_>> = results
                .iter()
                .filter_map(|(file, result)| {
                    Some(Side { name: (*file).to_owned(), result, job: find_job(result, name)? })
                })
                .collect();
            table(&mut text, name, &sides);
        }
    } else {
        let sides: Vec<Side<'_>> = results
            .iter()
            .flat_map(|(file, result)| {
                result.jobs.iter().map(move |job| Side {
                    name: if result.jobs.len() == 1 {
                        (*file).to_owned()
                    } else {
                        format!("{file}: {}", job.name)
                    },
                    result,
                    job,
                })
            })
            .collect();
        table(&mut text, "all jobs", &sides);
    }
    text
}

fn find_job<'a>(result: &'a IoResult, name: &str) -> Option<&'a JobResult> {
    result.jobs.iter().find(|job| job.name == name)
}

/// A table row: a label, and a value for each side.
type Row = (String, Vec<String>);

fn table(text: &mut String, title: &str, sides: &[Side<'_>]) {
    // Columns are named by letters, because paths may be long.
    let letters: Vec<String> = (0..sides.len())
        .map(|place| match u8::try_from(place) {
            Ok(place) if place < 26 => char::from(b'A' + place).to_string(),
            _ => format!("#{}", place + 1),
        })
        .collect();
    text.push_str(&format!("{title}, side by side\n"));
    for (letter, side) in letters.iter().zip(sides) {
        text.push_str(&format!("  {letter}  {} ({})\n", side.name, side.result.version));
    }
    let differing = differing(sides);
    text.push_str(if differing.is_empty() {
        "\n  Their options are the same.\n"
    } else {
        "\n  Options that differ:\n"
    });
    print(text, &letters, &differing);
    text.push_str("\n  Figures:\n");
    print(text, &letters, &figures(sides));
    if let [one, other] = sides {
        ratios(text, one, other);
    }
}

/// Options with more than one value, except the job's name.
fn differing(sides: &[Side<'_>]) -> Vec<Row> {
    let names: BTreeSet<&str> =
        sides.iter().flat_map(|side| &side.job.options).map(|(name, _)| name.as_str()).collect();
    names
        .into_iter()
        .filter(|name| *name != "name")
        .filter_map(|name| {
            let values: Vec<String> = sides
                .iter()
                .map(|side| side.job.option(&[name]).unwrap_or("(not given)").to_owned())
                .collect();
            let same = values.windows(2).all(|pair| pair.first() == pair.last());
            (!same).then(|| (name.to_owned(), values))
        })
        .collect()
}

fn line<'a>(side: &Side<'a>, word: &str) -> Option<&'a LineResult> {
    side.job.lines.iter().find(|(known, _)| known == word).map(|(_, line)| line)
}

fn figures(sides: &[Side<'_>]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let micros = |nanos: f64| significant(nanos / 1e3);
    for word in ["read", "write", "trim", "mixed"] {
        if sides.iter().all(|side| line(side, word).is_none()) {
            continue;
        }
        let mut row = |what: &str, figure: &dyn Fn(&LineResult) -> Option<String>| {
            let values: Vec<String> = sides
                .iter()
                .map(|side| line(side, word).and_then(figure).unwrap_or_else(|| NONE.into()))
                .collect();
            // A row without any value is left out.
            if values.iter().any(|value| value != NONE) {
                rows.push((format!("{word} {what}"), values));
            }
        };
        row("IOPS", &|line| Some(significant(line.iops)));
        row("MB/s", &|line| Some(significant(line.bandwidth / 1e6)));
        row("KiB per I/O", &|line| Some(significant(line.bytes as f64 / line.ios.max(1) as f64 / 1024.0)));
        row("seconds", &|line| Some(significant(line.runtime as f64 / 1e3)));
        row("total mean µs", &|line| (line.total.count > 0).then(|| micros(line.total.mean)));
        row("completion mean µs", &|line| (line.completion.count > 0).then(|| micros(line.completion.mean)));
        for percent in [50.0, 99.0, 99.9, 99.99] {
            row(&format!("completion p{percent} µs"), &|line| {
                line.completion.percentile(percent).map(micros)
            });
        }
        row("completion max µs", &|line| {
            (line.completion.count > 0).then(|| micros(line.completion.greatest))
        });
    }
    let mut row = |what: &str, figure: &dyn Fn(&JobResult) -> Option<String>| {
        let values: Vec<String> =
            sides.iter().map(|side| figure(side.job).unwrap_or_else(|| NONE.into())).collect();
        if values.iter().any(|value| value != NONE) {
            rows.push((what.to_owned(), values));
        }
    };
    row("actual depth", &|job| mean_depth(job).map(significant));
    row("CPU % user", &|job| Some(significant(job.cpu.0)));
    row("CPU % system", &|job| Some(significant(job.cpu.1)));
    row("errors", &|job| (job.error != 0 || job.errors > 0).then(|| significant(job.errors.max(1) as f64)));
    rows
}

/// Prints columns as wide as their contents.
fn print(text: &mut String, letters: &[String], rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let length = |text: &str| text.chars().count();
    let first = rows.iter().map(|(what, _)| length(what)).max().unwrap_or(0);
    let widths: Vec<usize> = letters
        .iter()
        .enumerate()
        .map(|(place, letter)| {
            let values = rows.iter().filter_map(|(_, values)| values.get(place)).map(|value| length(value));
            values.max().unwrap_or(0).max(length(letter))
        })
        .collect();
    let mut write = |what: &str, values: &[String]| {
        text.push_str(&format!("    {what}{:1$}", "", first - length(what)));
        for (value, width) in values.iter().zip(&widths) {
            text.push_str(&format!("  {:1$}{value}", "", width - length(value)));
        }
        text.push('\n');
    };
    write("", letters);
    for (what, values) in rows {
        write(what, values);
    }
}

/// The ratios of the main metrics of two sides, with a note on the limits of single runs.
fn ratios(text: &mut String, one: &Side<'_>, other: &Side<'_>) {
    for word in ["read", "write", "trim", "mixed"] {
        let (Some(a), Some(b)) = (line(one, word), line(other, word)) else { continue };
        if a.iops <= 0.0 || times(a).mean <= 0.0 {
            continue;
        }
        text.push_str(&format!(
            "    {word}: B has {} times the IOPS of A and {} times its mean latency\n",
            significant(b.iops / a.iops),
            significant(times(b).mean / times(a).mean)
        ));
    }
    text.push_str(
        "    One run of each: only repeats can show whether this difference exceeds their variation.\n",
    );
}

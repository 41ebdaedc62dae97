//! Job texts: made complete when they are read, changed without being understood, and written from jobs.

use std::fmt::Write as _;
use std::path::Path;

use kelvin_storage::job::Jobs;
use kelvin_storage::jobfile;

/// Files that include each other deeper than this do it in a circle.
const DEEPEST: u32 = 16;
/// The option that makes a job wait for the previous ones, by its names.
const WALLS: [&str; 2] = ["stonewall", "wait_for_previous"];
/// A job file longer than this is none.
const LONGEST: u64 = 4 << 20;

/// The text of a job file in which included files and environment variables are expanded, so that it does not depend on
/// anything outside of it.
///
/// # Errors
/// When a file cannot be read, as text.
pub fn resolved(path: &Path) -> Result<String, String> {
    let mut out = String::new();
    add_file(&mut out, path, 0)?;
    Ok(out)
}

fn add_file(out: &mut String, path: &Path, depth: u32) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    if depth > DEEPEST {
        return Err(format!("{}: files include each other more than {DEEPEST} levels deep", path.display()));
    }
    if std::fs::metadata(path).map_err(failed)?.len() > LONGEST {
        return Err(format!("{} is too long for a job file ({LONGEST} bytes allowed)", path.display()));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with(['#', ';']) {
            let _ = writeln!(out, "{line}");
            continue;
        }
        let line = expanded(line, |name| std::env::var(name).ok());
        match line.trim().strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t', '='])) {
            Some(name) => {
                let named = Path::new(name.trim_start_matches([' ', '\t', '=']));
                let beside = path.parent().unwrap_or(Path::new("")).join(named);
                let found = if named.is_relative() && !named.exists() { beside } else { named.to_owned() };
                add_file(out, &found, depth + 1)?;
            }
            None => {
                let _ = writeln!(out, "{line}");
            }
        }
    }
    Ok(())
}

/// A line with `${NAME}` replaced by its variable. One that is not set stays, for the parser to refuse it with its place.
fn expanded(line: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else { break };
        out.push_str(&rest[..at]);
        match variable(&rest[at + 2..at + end]) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[at..=at + end]),
        }
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    out
}

/// The text with options appended to every job, where they override earlier ones.
pub(crate) fn with_options(text: &str, set: &[(&str, String)]) -> String {
    if set.is_empty() {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut in_job = false;
    let close = |out: &mut String, in_job: bool| {
        for (name, value) in set.iter().filter(|_| in_job) {
            let _ = writeln!(out, "{name}={value}");
        }
    };
    for line in text.lines() {
        if line.trim_start().starts_with('[') {
            close(&mut out, in_job);
            let section = line.trim().trim_start_matches('[').trim_end_matches(']').trim();
            in_job = !section.eq_ignore_ascii_case("global");
        }
        let _ = writeln!(out, "{line}");
    }
    close(&mut out, in_job);
    out
}

/// An equivalent job file. The options are those given, as they were written.
pub fn jobs_to_text(jobs: &Jobs) -> String {
    let mut out = String::new();
    let mut section = |name: &str, options: &[(String, String)]| {
        let _ = writeln!(out, "[{name}]");
        for (option, value) in options {
            let _ =
                if value.is_empty() { writeln!(out, "{option}") } else { writeln!(out, "{option}={value}") };
        }
    };
    if !jobs.global.is_empty() {
        section("global", &jobfile::without_order(&jobs.global));
    }
    for job in &jobs.jobs {
        // A name that a file could not hold as a value is in the brackets alone.
        let fits = |name: &str, value: &str| {
            name != "name" || !value.contains([';', '#', '$']) && value.trim() == value
        };
        let mut options: Vec<(String, String)> = jobfile::without_order(&job.given)
            .into_iter()
            .filter(|(name, value)| fits(name, value))
            .collect();
        // Between job files there is an implicit wall.
        if job.course.stonewall && !options.iter().any(|(name, _)| WALLS.contains(&name.as_str())) {
            options.push((WALLS[0].into(), String::new()));
        }
        section(&job.name, &options);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_includes_and_asks_of_the_environment_is_in_its_text() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("common.inc"), "size=1m\n").unwrap();
        std::fs::write(path("job.fio"), "; ${PATH} stays\n[global]\ninclude common.inc\n[a]\nfilename=x\n")
            .unwrap();
        assert_eq!(
            resolved(&path("job.fio")).unwrap(),
            "; ${PATH} stays\n[global]\nsize=1m\n[a]\nfilename=x\n"
        );
        std::fs::write(path("circle.fio"), format!("include {}\n", path("circle.fio").display())).unwrap();
        assert!(resolved(&path("circle.fio")).unwrap_err().contains("16 levels deep"));
        assert!(resolved(&path("none.fio")).unwrap_err().contains("none.fio"));
    }

    #[test]
    fn variables_are_replaced_and_nothing_else() {
        let known = |name: &str| (name == "A").then(|| "1".to_owned());
        for (line, expected) in [
            ("x=${A}${B}2", "x=1${B}2"),
            ("x=$A", "x=$A"),
            ("x=${A", "x=${A"),
            ("${A}}", "1}"),
            ("é${A}é", "é1é"),
        ] {
            assert_eq!(expanded(line, known), expected);
        }
    }

    #[test]
    fn options_are_put_on_top_of_every_job_but_not_of_the_defaults() {
        let text = "[global]\nbs=4k\n[a]\nrw=read\n[b]\n";
        assert_eq!(
            with_options(text, &[("bs", "8k".into()), ("iodepth", "4".into())]),
            "[global]\nbs=4k\n[a]\nrw=read\nbs=8k\niodepth=4\n[b]\nbs=8k\niodepth=4\n"
        );
        assert_eq!(with_options(text, &[]), text);
    }
}

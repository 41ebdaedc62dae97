//! Tests of the documents and the program's texts: every command line in the documents parses, and no text for users has a
//! phrase of the list of those that puzzled readers.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use command_lines::{documents, files, repository, shell_lines};

use super::Cli;

#[path = "../../tests/support/command_lines.rs"]
mod command_lines;

/// Phrases that readers did not understand, with what to write in their place.
const FORBIDDEN: [(&str, &str); 24] = [
    ("no witness", "OS counters do not confirm it"),
    ("one of something else", "does not measure the database"),
    ("nothing about the next run", "within-run precision only"),
    ("it does not hold that", "check failed:"),
    ("void than may be", "too many void runs"),
    ("next to nothing of it", "less than 0.1 % of the window"),
    ("whole pages", "full-page images"),
    ("more lines of evidence", "more detail: --all"),
    ("looks a second", "samples per second"),
    ("user stood ready", "arrivals with an idle user"),
    ("ever stood ready", "no user was idle"),
    ("it takes 1000, missed", "insufficient samples"),
    ("stand in full", "details in"),
    ("that is told of", "current"),
    ("one only can be", "change one thing at a time"),
    ("tells its price", "measures its overhead"),
    ("not to be had", "unavailable"),
    ("named absent", "listed as missing"),
    ("this host's to choose", "controlled by the hypervisor"),
    ("are two questions", "cannot be combined"),
    ("do what its line says", "see the remedy listed"),
    ("the log's latches", "LWLocks of the WAL"),
    ("s worth {", "effective seconds"),
    ("say nothing but", "print only"),
];

/// The words of a shell's line up to a comment, a redirection or a pipe; none where quotes do not match.
fn split_words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut begun, mut quote) = (String::new(), false, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, '#' | '>' | '|') if !begun => break,
            (None, ' ') => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (None, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    quote.is_none().then_some(words)
}

/// The command lines of a document without the command's name.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in shell_lines(text) {
        let command = line.split("  #").next().unwrap_or_default();
        for part in [" && ", " | ", "; ", "\n"]
            .iter()
            .fold(vec![command], |parts, end| parts.into_iter().flat_map(|part| part.split(end)).collect())
        {
            let part = part.trim().trim_start_matches("do ").trim_end_matches(" &");
            let own = ["kelvin ", "./target/release/kelvin "];
            found.extend(own.iter().find_map(|own| part.strip_prefix(own)).map(str::to_owned));
        }
    }
    found
}

/// Whether the command line would be understood; files that it names need not be there.
fn understood(line: &str, script: &Path) -> Result<(), String> {
    let words = split_words(line).ok_or("quotes do not match")?;
    let with_files = words.iter().map(|word| match word.split_once(".sql") {
        Some((_, weight)) => OsString::from(format!("{}{weight}", script.display())),
        None => OsString::from(word),
    });
    let all: Vec<OsString> = std::iter::once("kelvin".into()).chain(with_files).collect();
    // A command line with a file accepts the flags of the file's workload.
    let file = all.iter().position(|word| {
        let word = word.to_str().unwrap_or_default();
        Path::new(word).extension().is_some_and(|end| end == "toml") && !word.contains('=')
    });
    let of_file =
        ["run", "squeeze", "build", "check", "drop"].contains(&words.first().map_or("", String::as_str));
    let workloads: &[Option<&str>] = match file {
        Some(2) if of_file => {
            &[Some("tproc-c"), Some("tproc-h"), Some("pgbench"), Some("script"), Some("scan"), Some("io")]
        }
        _ => &[None],
    };
    let of_workloads = workloads.iter().map(|workload| {
        let mut all = all.clone();
        if let (Some(workload), Some(file)) = (workload, file) {
            all[file] = (*workload).into();
        }
        all
    });
    let of_scenario = (file == Some(2) && words[0] == "run").then(|| {
        let mut all = all.clone();
        all.insert(1, "scenario".into());
        all
    });
    let mut errors = Vec::new();
    for all in of_workloads.chain(of_scenario) {
        match Cli::try_parse_from(super::io::arrange(all)) {
            Ok(_) => return Ok(()),
            Err(error) if !error.use_stderr() => return Ok(()),
            Err(error) => errors.push(error.to_string()),
        }
    }
    Err(errors.concat())
}

#[test]
fn every_command_line_of_the_documents_is_understood() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.sql");
    std::fs::write(&script, "select 1").unwrap();
    let (mut seen, mut wrong) = (0, Vec::new());
    for (path, text) in documents() {
        for line in commands(&text) {
            // An abbreviated command line cannot be checked.
            if line.contains('…') {
                continue;
            }
            seen += 1;
            if let Err(why) = understood(&line, &script) {
                wrong.push(format!("{}: kelvin {line}\n{why}", path.display()));
            }
        }
    }
    assert!(seen > 100, "{seen} command lines were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrong_command_line_is_noticed() {
    let script = Path::new("/nowhere.sql");
    assert_eq!(split_words("run x -D 'a b=c'  # why").unwrap(), ["run", "x", "-D", "a b=c"]);
    assert_eq!(
        commands(
            "text kelvin no\n\n    kelvin runs && kelvin show \\\n    last\n    fio a.fio | kelvin io explain -\n"
        ),
        ["runs", "show last", "io explain -"]
    );
    let looped = "```\nfor a in b c; do\n  kelvin io $a.fio\ndone\n```\nkelvin no\n";
    assert_eq!(shell_lines(looped), ["for a in b c; do\nkelvin io $a.fio\ndone"]);
    assert_eq!(commands(looped), ["io $a.fio"]);
    assert!(understood("runs --limit 3", script).is_ok());
    assert!(
        understood("runs --limits 3", script).is_err()
            && understood("run tproc-c --usres 3", script).is_err()
    );
}

/// The source of a file without comments and tests, with its broken literals joined.
fn source(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//")).map(str::trim);
    lines.map(|line| line.strip_suffix('\\').unwrap_or(line)).collect::<Vec<_>>().join(" ")
}

fn help(command: &mut clap::Command, into: &mut String) {
    into.push_str(&command.render_long_help().to_string());
    for inner in command.get_subcommands_mut() {
        help(inner, into);
    }
}

#[test]
fn no_puzzling_phrase_is_left() {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let mut all: Vec<(PathBuf, String)> =
        documents().into_iter().map(|(path, text)| (path, flat(&text))).collect();
    let mut cli = Cli::command();
    cli.build();
    let mut shown = String::new();
    help(&mut cli, &mut shown);
    assert!(shown.len() > 20_000, "the help of all commands");
    all.push(("--help".into(), flat(&shown)));
    for end in [".rs", ".html", ".sql"] {
        let mut sources = Vec::new();
        files(&repository().join("crates"), end, &mut sources);
        let own = |path: &PathBuf| {
            let path = path.to_str().unwrap();
            path.contains("/src/") && !path.ends_with("args/documents.rs") && !path.ends_with("tests.rs")
        };
        let read = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).unwrap();
            let text = if end == ".rs" { source(&text) } else { text };
            (path, flat(&text))
        };
        all.extend(sources.into_iter().filter(own).map(read));
    }
    let mut found = Vec::new();
    for (path, text) in &all {
        for (phrase, instead) in FORBIDDEN.iter().filter(|(phrase, _)| text.contains(phrase)) {
            found.push(format!("{}: \"{phrase}\"; write: {instead}", path.display()));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_glossary_names_types_that_exist_and_no_term_of_the_users() {
    let users_terms = std::fs::read_to_string(repository().join("docs/terms.md")).unwrap();
    let text = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let glossary = text.split("\n## ").find_map(|part| part.strip_prefix("Glossary")).unwrap();
    let terms: Vec<Vec<&str>> = glossary
        .lines()
        .filter(|line| line.ends_with("` |"))
        .map(|line| line.split(" | ").collect())
        .collect();
    assert!(terms.len() >= 40, "{} terms", terms.len());
    for term in terms {
        let [name, _, path] = term[..] else { panic!("{term:?}") };
        let name = name.trim_start_matches("| ");
        assert!(!users_terms.contains(&format!("\n| {name} |")), "{name} is in docs/terms.md");
        let path: Vec<&str> = path.trim_matches(['`', ' ', '|']).split("::").collect();
        let mut sources = Vec::new();
        files(&repository().join("crates").join(path[0]).join("src"), ".rs", &mut sources);
        let declared = ["struct", "enum", "trait"].map(|kind| format!(" {kind} {}", path[path.len() - 1]));
        let found = sources.iter().any(|source| {
            let text = std::fs::read_to_string(source).unwrap();
            let is_whole =
                |(at, start): (usize, &str)| !text[at + start.len()..].starts_with(char::is_alphanumeric);
            declared.iter().any(|start| text.match_indices(start.as_str()).any(is_whole))
        });
        assert!(found, "{}: {name} is not there", path.join("::"));
    }
}

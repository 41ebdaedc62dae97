//! Scripts behave in the evaluator as in the installed tclsh.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::format_collect, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

use kelvin_hammerdb::tcl::{Host, Interpreter};
use kelvin_hammerdb::{HostError, Position};
use proptest::prelude::*;

const RECORDED: [&str; 25] = [
    "dbset",
    "diset",
    "giset",
    "print",
    "loadscript",
    "vuset",
    "vucreate",
    "vudestroy",
    "vurun",
    "buildschema",
    "checkschema",
    "deleteschema",
    "tcset",
    "tcstart",
    "tcstatus",
    "tcstop",
    "metset",
    "metstart",
    "metstatus",
    "metstop",
    "job",
    "jobs",
    "librarycheck",
    "runtimer",
    "waittocomplete",
];

/// A host that only records, like `scripts/recorder.tcl` in tclsh.
#[derive(Default)]
struct Recorder(Vec<String>);

impl Host for Recorder {
    fn call(&mut self, name: &str, arguments: &[String], _: &Position) -> Option<Result<String, HostError>> {
        match name {
            "numberOfCPUs" => Some(Ok("6".into())),
            "numberOfWHs" => Some(Ok("50".into())),
            _ if !self.knows(name) => None,
            _ => {
                self.0.push(format!("{name} {}", arguments.join("|")).replace('\n', "\\n"));
                Some(Ok(if name == "vurun" { "Benchmark Run jobid=A1".into() } else { String::new() }))
            }
        }
    }

    fn print(&mut self, text: &str) {
        self.0.push(format!("puts: {}", text.strip_suffix('\n').unwrap_or(text).replace('\n', "\\n")));
    }

    fn knows(&self, name: &str) -> bool {
        RECORDED.contains(&name) || name.starts_with("numberOf")
    }

    fn replacement(&self, _: &str) -> Option<&'static str> {
        None
    }

    fn wait(&mut self, _: u64) -> Result<(), HostError> {
        Ok(())
    }
}

fn evaluated(script: &Path, directories: &[PathBuf], environment: &[(&str, &str)]) -> Vec<String> {
    let mut host = Recorder::default();
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    match Interpreter::new(&mut host, directories, environment).run_file(script) {
        Ok(0) => {}
        Ok(status) => host.0.push(format!("exit {status}")),
        Err(fault) => host.0.push(format!("error: {}", fault.message)),
    }
    host.0
}

fn by_tclsh(script: &Path, directory: &Path, environment: &[(&str, &str)]) -> Vec<String> {
    let recorder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/recorder.tcl");
    let output = Command::new("tclsh")
        .arg(recorder)
        .arg(script)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LC_ALL", "C.UTF-8")
        .envs(environment.iter().copied())
        .output()
        .expect("tclsh must be installed: apt-get install tcl");
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter(|line| *line != "exit 0")
        .map(str::to_owned)
        .collect()
}

/// Error messages may differ in wording. That there is an error, and where, must agree.
fn comparable(lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| if line.starts_with("error: ") { "error".into() } else { line }).collect()
}

fn both(script: &Path, directory: &Path, environment: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let mut directories = vec![directory.to_owned()];
    directories.extend(script.parent().map(Path::to_owned));
    directories
        .extend(environment.iter().find(|(name, _)| *name == "TMP").map(|(_, value)| PathBuf::from(value)));
    let ours = evaluated(script, &directories, environment);
    (comparable(ours), comparable(by_tclsh(script, directory, environment)))
}

fn text_does_the_same(text: &str) {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.tcl");
    std::fs::write(&script, text).unwrap();
    let (ours, theirs) = both(&script, directory.path(), &[("PROFILE", "2")]);
    assert_eq!(ours, theirs, "of the script\n{text}");
}

#[test]
fn scripts_of_every_construct_do_what_they_do_in_tclsh() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let script = entry.unwrap().path();
        if script.file_name().is_some_and(|name| name == "recorder.tcl") {
            continue;
        }
        for profile in [Some("2"), Some("0"), None] {
            let directory = tempfile::tempdir().unwrap();
            let temporary = directory.path().display().to_string();
            let mut environment = vec![("TMP", temporary.as_str())];
            environment.extend(profile.map(|profile| ("PROFILEID", profile)));
            let (ours, theirs) = both(&script, directory.path(), &environment);
            assert_eq!(ours, theirs, "{} with PROFILEID {profile:?}", script.display());
            assert!(!theirs.is_empty(), "{} does nothing", script.display());
        }
        count += 1;
    }
    assert!(count >= 4, "only {count} scripts in {}", folder.display());
}

/// The sample scripts of an installed HammerDB, which are not in this repository.
#[test]
#[ignore = "needs HammerDB's directory in KELVIN_TEST_HAMMERDB"]
fn samples_of_hammerdb_do_what_they_do_in_tclsh() {
    fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                scripts(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "tcl") {
                found.push(path);
            }
        }
    }
    let root = PathBuf::from(std::env::var_os("KELVIN_TEST_HAMMERDB").expect("KELVIN_TEST_HAMMERDB"));
    let mut found = Vec::new();
    scripts(&root.join("scripts/tcl"), &mut found);
    let mut compared = 0;
    for script in &found {
        let name = script.file_name().unwrap().to_string_lossy();
        if name.starts_with("generic_") || name.contains("_result") {
            continue;
        }
        for profile in ["0", "2"] {
            let temporary = tempfile::tempdir().unwrap();
            let text = temporary.path().display().to_string();
            let (ours, theirs) = both(script, &root, &[("TMP", &text), ("PROFILEID", profile)]);
            assert_eq!(ours, theirs, "{}", script.display());
            compared += 1;
        }
    }
    assert!(compared >= 100, "only {compared} runs");
    println!("{compared} runs of {} scripts agree", found.len());
}

/// Expressions of integers, strings and comparisons.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (-50_i64..50).prop_map(|value| value.to_string()),
        (0_u32..100).prop_map(|value| format!("{}.{}", value / 10, value % 10)),
        Just("$seven".to_owned()),
        Just("[numberOfCPUs]".to_owned()),
        Just("true".to_owned()),
        Just("\"a$seven\"".to_owned()),
        Just("{b c}".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operators = [
            "+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "eq", "ne", "in", "ni", "&&", "||",
            "&", "|", "^", "<<",
        ];
        prop_oneof![
            (inner.clone(), prop::sample::select(operators.to_vec()), inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            (prop::sample::select(vec!["-", "!", "+", "~"]), inner.clone())
                .prop_map(|(sign, value)| format!("{sign}{value}")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(test, yes, no)| format!("({test} ? {yes} : {no})")),
            (prop::sample::select(vec!["int", "abs", "round", "double"]), inner)
                .prop_map(|(function, value)| format!("{function}({value})")),
        ]
    })
}

/// List elements with every character that needs quoting.
fn element() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec!["a", "b1", " ", "{", "}", "\\", "$x", "[", "]", "\"", ";", "#", "é"]),
        0..6,
    )
    .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_expressions_have_tclshs_values(expressions in prop::collection::vec(expression(), 12)) {
        let mut text = String::from("set seven 7\n");
        for expression in expressions {
            text.push_str(&format!("if {{[catch {{expr {{{expression}}}}} value]}} {{puts failed}} else {{puts $value}}\n"));
        }
        text_does_the_same(&text);
    }

    #[test]
    fn random_lists_are_quoted_and_read_as_by_tclsh(elements in prop::collection::vec(element(), 1..8)) {
        let mut text = String::from("set all {}\n");
        for element in &elements {
            let quoted: String = element.chars().map(|found| format!("\\u{:04x}", u32::from(found))).collect();
            text.push_str(&format!("lappend all \"{quoted}\"\n"));
        }
        text.push_str("puts $all\nputs [llength $all]\nforeach one $all {puts <$one>}\nputs [join $all ,]\nputs [lindex $all end]\n");
        text.push_str("puts [lrange $all 1 end-1]\nputs [lreplace $all 0 0 new]\nputs [lsearch -exact $all b1]\nputs [split $all { b}]\n");
        text_does_the_same(&text);
    }

    #[test]
    fn no_text_makes_the_evaluator_panic(text in "[a-z$\\[\\]{}\"\\\\ \n;#()0-9:+*-]{0,200}") {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("script.tcl");
        std::fs::write(&script, text).unwrap();
        let _ = evaluated(&script, &[directory.path().to_owned()], &[]);
    }
}

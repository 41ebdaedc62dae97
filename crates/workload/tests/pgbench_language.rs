//! No script text causes a panic, a hang, or a stack overflow.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail as its tests do")]

use std::time::{Duration, Instant};

use kelvin_measure::Random;
use kelvin_workload::Workload;
use kelvin_workload::pgbench::expression::calculate;
use kelvin_workload::pgbench::{Options, Pgbench, QueryMode, ScriptChoice};
use proptest::prelude::*;

fn compile(text: &str) -> Result<Pgbench, String> {
    let scripts = vec![ScriptChoice { name: "t.sql".into(), weight: 1, text: Some(text.into()) }];
    let options = Options {
        scripts,
        query_mode: QueryMode::Prepared,
        per_statement: true,
        allow_shell: true,
        ..Options::default()
    };
    Pgbench::new(options).map_err(|error| error.to_string())
}

fn value(text: &str) -> Result<String, String> {
    calculate(text, &mut Random::part(1, 2, 3)).map_err(|error| error.to_string()).map(|value| {
        let mut written = String::new();
        value.write(&mut written);
        written
    })
}

/// The elements of scripts and expressions, and of errors in them.
const PIECES: &[&str] = &[
    "\\set a ",
    "\\if ",
    "\\elif ",
    "\\else\n",
    "\\endif\n",
    "\\sleep 1 ",
    "\\sleep :a us\n",
    "\\gset",
    "\\aset p_",
    "\\shell ",
    "\\setshell b ",
    "\\startpipeline\n",
    "\\syncpipeline\n",
    "\\endpipeline\n",
    "\\;",
    "\\:",
    "\\",
    "\n",
    "\r\n",
    " ",
    ";",
    "select ",
    ":a",
    "::int",
    ":",
    "'",
    "''",
    "E'\\'",
    "\"",
    "$$",
    "$tag$",
    "$1",
    "--",
    "/*",
    "*/",
    "(",
    ")",
    "[",
    "1",
    "0.5e3",
    "1e400",
    "9223372036854775807",
    "9223372036854775808",
    "-",
    "+",
    "*",
    "/",
    "%",
    "<<",
    ">>",
    "<",
    "=",
    "<>",
    "and ",
    "or ",
    "not ",
    "is ",
    "null ",
    "true ",
    "case ",
    "when ",
    "then ",
    "else ",
    "end ",
    "random(",
    "random_zipfian(",
    "random_gaussian(",
    "permute(",
    "hash(",
    "pow(",
    "abs(",
    "greatest(",
    ",",
    "é",
    "\u{feff}",
    "\0",
    "begin ",
    "atomic ",
    "create function f() ",
    "t",
];

/// 2000 cases, unless PROPTEST_CASES sets more.
fn config() -> ProptestConfig {
    let given = ProptestConfig::default();
    ProptestConfig { cases: given.cases.max(2000), ..given }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_text_is_compiled_or_refused(text in "\\PC*") {
        let _ = compile(&text);
        let _ = value(&text);
    }

    #[test]
    fn any_pieces_are_compiled_or_refused(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        let text = pieces.concat();
        match compile(&text) {
            Ok(workload) => {
                let kinds = workload.kinds();
                prop_assert!(kinds[1..].iter().all(|k| k.statement_of == Some(0) && k.name.chars().count() < 90));
                prop_assert!(kinds.iter().all(|kind| !kind.name.contains('\n')));
            }
            Err(error) => prop_assert!(error.starts_with("t.sql:"), "{}", error),
        }
        if let Ok(written) = value(&text) {
            prop_assert!(!written.is_empty());
        }
    }

    #[test]
    fn integers_mean_what_they_say(a in any::<i32>(), b in 1..1000_i32) {
        let (a, b) = (i64::from(a), i64::from(b));
        prop_assert_eq!(value(&format!("({a}) * {b} - ({a}) % {b}")), Ok((a * b - a % b).to_string()));
        let drawn: i64 = value(&format!("random({a}, {a} + {b})")).unwrap().parse().unwrap();
        prop_assert!((a..=a + b).contains(&drawn));
    }
}

#[test]
fn deep_nesting_is_refused_and_not_a_stack_overflow() {
    const DEEP: usize = 100_000;
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("-", "1", ""),
        ("~", "1", ""),
        ("not ", "true", ""),
        ("abs(", "1", ")"),
        ("case when true then ", "1", " end"),
        ("case when ", "true", " then true end"),
        ("1 + (", "1", ")"),
        ("true and (", "true", ")"),
    ] {
        let text = format!("{}{middle}{}", open.repeat(DEEP), close.repeat(DEEP));
        let error = value(&text).unwrap_err();
        assert!(error.contains("nested too deeply"), "{open}: {}", &error[..200.min(error.len())]);
        let error = compile(&format!("\\set a {text}\nselect :a;")).unwrap_err();
        assert!(error.contains("nested too deeply"), "{open}");
        let text = format!("{}{middle}{}", open.repeat(50), close.repeat(50));
        assert!(value(&text).is_ok(), "{open}");
    }
    // A chain is not nested.
    assert_eq!(value(&format!("0{}", "+1".repeat(DEEP))).unwrap(), DEEP.to_string());
    // Nested branches do not use the stack, either.
    let text = format!("{}select 1;\n{}", "\\if 1\n".repeat(DEEP), "\\endif\n".repeat(DEEP));
    compile(&text).unwrap();
    assert!(compile(&"\\if 1\n".repeat(DEEP)).unwrap_err().contains("no matching \\endif"));
}

/// A script from a file has at most a megabyte. Compiling it takes moments, whatever it contains.
#[test]
fn long_scripts_take_no_time_that_grows_with_their_square() {
    let began = Instant::now();
    for piece in [
        "x;\n",
        ";",
        "\\set a 1\n",
        "\\set a \\\n",
        "':a'",
        "':a' ",
        "$a",
        "$a ",
        "$a$;$a$",
        "/* ",
        "(",
        "--\n",
        "e'",
        "1:2",
        ":::",
        "\n",
        "create function f() begin case ",
        "\\if 1\n",
        "\\elif 1\n",
        "case when ",
        "select \\;",
        "\\sleep 1 us\n",
        "\" \" ",
        "\\",
        "é ",
        "a b ",
    ] {
        let text = piece.repeat((1 << 20) / piece.len());
        let _ = compile(&text);
        let _ = value(&text);
        assert!(began.elapsed() < Duration::from_secs(100), "{piece:?} takes {:?}", began.elapsed());
    }
}

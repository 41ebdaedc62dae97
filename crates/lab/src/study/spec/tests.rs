use proptest::prelude::*;

use super::*;
use crate::study::{Template, study_toml};

fn parse(text: &str) -> Result<Study, String> {
    Study::parse(text, "study.toml", Path::new("/nowhere")).map_err(|error| error.to_string())
}

fn with(from: &str, to: &str) -> Result<Study, String> {
    let text = study_toml(Template::Ab, "s");
    assert!(text.contains(from), "{from}");
    parse(&text.replacen(from, to, 1))
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let huge = (0..2000).map(|level| level.to_string()).collect::<Vec<_>>().join(",");
    let mut seen = String::new();
    for (from, to) in [
        ("blocks = 6", "block = 6"),
        ("blocks = 6", "blocks = 0"),
        ("blocks = 6", "blocks = 4294967296"),
        ("blocks = 6", "blocks = 1001"),
        ("smallest-effect = \"3%\"", "smallest-effect = 0.03"),
        ("smallest-effect = \"3%\"", "smallest-effect = \"0%\""),
        ("metric = \"nopm\"               #", "metric = \"tpm\" #"),
        ("direction = \"higher\"          #", "direction = \"up\" #"),
        ("factor = \"users\"", "factor = \"user\""),
        ("to = \"2\"", "to = \"3\""),
        ("to = \"2\"", "to = \"1\""),
        ("{ metric = \"nopm\", direction = \"same\", by = \"5%\" },", ""),
        ("{ metric = \"nopm\",", "{ metric = \"mean\", direction = \"same\" }, { metric = \"nopm\","),
        ("levels = [1, 2]", "levels = []"),
        ("levels = [1, 2]", "levels = [1]"),
        ("levels = [1, 2]", "levels = [1, 1]"),
        ("levels = [1, 2]", "levels = [1, 2, 3]"),
        ("levels = [1, 2]", &format!("levels = [{huge}]")),
        ("spec = \"load.users\"\n", ""),
        ("spec = \"load.users\"\n", "spec = \"load.user\"\n"),
        ("levels = [1, 2]\nspec = \"load.users\"\n", "levels = [\"1,2\", \"2,4\"]\nspec = \"load.users\"\n"),
        ("spec = \"load.users\"\n", "setting = \"work_mem\"\n"),
        ("[design]", "[[factor]]\nname = \"users\"\nlevels = [1, 2]\nspec = \"load.retries\"\n\n[design]"),
        ("kind = \"ab\"  ", "kind = \"fractional\""),
        ("kind = \"ab\"  ", "kind = \"ab\"\ngenerators = [\"D=ABC\"]"),
        ("ramp-up = \"5s\"", "ramp-up = \"5\""),
        ("workload = \"tproc-c\"", "workload = \"tpcc\""),
        ("ramp-up = \"5s\"", "users = [1, 2]"),
        ("warehouses = 1", "warehouses = 0"),
        ("target = \"sqlite\"", "target = \"postgres://u:hush@h/d\""),
        ("[run]\n", "metrics = [\"p95\"]\n[run]\n"),
        ("[universe]", "metrics = [\"p95\", \"speed\"]\n[universe]"),
        ("[universe]", "metrics = [\"p95\", \"p95\"]\n[universe]"),
        ("name = \"s\"", "name = \"\""),
    ] {
        let error = with(from, to).unwrap_err();
        assert!(!error.contains("hush"), "{error}");
        let cut = |line: &str| line.chars().take(150).collect::<String>();
        let shown = error.lines().map(cut).collect::<Vec<_>>().join("\n");
        seen.push_str(&format!("## {}\n{shown}\n\n", to.chars().take(60).collect::<String>().trim()));
    }
    insta::assert_snapshot!(seen);
}

fn factorial(factors: usize, levels: usize, kind: &str) -> Result<Study, String> {
    let mut text = study_toml(Template::Factorial, "s");
    let begin = text.find("# The first level of each").unwrap();
    let end = text.find("[design]").unwrap();
    let levels: Vec<String> = (0..levels).map(|level| format!("\"{level}\"")).collect();
    let mut each = String::new();
    for index in 0..factors {
        let name = if index == 0 { "commit".into() } else { format!("f{index}") };
        let levels = levels.join(", ");
        each.push_str(&format!(
            "[[factor]]\nname = \"{name}\"\nlevels = [{levels}]\nkernel = \"vm.f{index}\"\n"
        ));
    }
    text.replace_range(begin..end, &each);
    let text = text.replace("kind = \"factorial\"", kind);
    parse(&text.replace("from = \"on\"", "from = \"0\"").replace("to = \"off\"", "to = \"1\""))
}

#[test]
fn huge_designs_have_a_limit() {
    assert_eq!(factorial(3, 3, "kind = \"factorial\"").unwrap().cells().len(), 27);
    for (factors, levels, expected) in [
        (11, 2, "more than 1024 cells"),
        (16, 64, "more than 1024 cells"),
        (17, 2, "17 factors are too many; at most 16"),
        (1, 65, "has 65 levels; at most 64"),
        (0, 2, "a study needs at least one"),
    ] {
        let error = factorial(factors, levels, "kind = \"factorial\"").unwrap_err();
        assert!(error.contains(expected), "{factors} × {levels}: {error}");
    }
    let error = factorial(10, 2, "kind = \"factorial\"\nblocks = 10 #").unwrap_err();
    assert!(error.contains("duplicate key") || error.contains("a study may have at most"), "{error}");
}

#[test]
fn a_fraction_has_its_cells_and_its_aliases() {
    let study = factorial(4, 2, "kind = \"fractional\"\ngenerators = [\"D=ABC\"]").unwrap();
    let plan = crate::study::StudyPlan::of(&study);
    assert_eq!((plan.cells.len(), plan.resolution), (8, Some(4)));
    assert_eq!(plan.cells[0].name(), "commit=0 f1=0 f2=0 f3=0", "the base comes first");
    assert!(plan.aliases.iter().any(|set| set.contains(&"AB".into()) && set.contains(&"CD".into())));
    for cell in &plan.cells {
        let high = |letter: usize| cell.0[letter].level == "1";
        // x_D = x_A x_B x_C in ±1: D is high when an odd number of the others is high.
        assert_eq!(high(3), (0..3).filter(|&letter| high(letter)).count() % 2 == 1);
    }
    assert!(
        factorial(4, 2, "kind = \"fractional\"\ngenerators = [\"D=\"]").unwrap_err().contains("generators")
    );
    assert!(
        factorial(4, 3, "kind = \"fractional\"\ngenerators = [\"D=ABC\"]")
            .unwrap_err()
            .contains("two levels")
    );
}

#[test]
fn a_run_may_stand_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = study_toml(Template::Ab, "s");
    let (before, run) = text.split_once("[run]\n").unwrap();
    // A key without a table has to precede the tables.
    let text = before.replacen("[universe]", "run = \"run.toml\"\n[universe]", 1);
    std::fs::write(folder.path().join("run.toml"), run.replace("[run.", "[")).unwrap();
    let inline = parse(&study_toml(Template::Ab, "s")).unwrap();
    assert_eq!(Study::parse(&text, "study.toml", folder.path()).unwrap(), inline);
    let error = Study::parse(&text, "study.toml", Path::new("/nowhere")).unwrap_err().to_string();
    assert!(error.contains("line") && error.contains("/nowhere/run.toml"), "{error}");
}

#[test]
fn what_is_observed_is_asked_for_once() {
    let study =
        with("[universe]", "metrics = [\"p99\", \"host.cpu.total.user\", \"sqlite.wal.bytes\"]\n[universe]")
            .unwrap();
    assert_eq!(study.observed(), ["host.cpu.total.user", "sqlite.wal.bytes"]);
    assert_eq!(study.base().name(), "users=1");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,80}", at in 0.0..1.0_f64, length in 0_usize..40) {
        let _ = parse(&text);
        // A study with a replaced part.
        let mut study = study_toml(Template::Ab, "s");
        let near = |at: usize| (0..=at.min(study.len())).rev().find(|&at| study.is_char_boundary(at)).unwrap();
        let begin = near((study.len() as f64 * at) as usize);
        let end = near(begin + length).max(begin);
        study.replace_range(begin..end, &text);
        let _ = parse(&study);
    }
}

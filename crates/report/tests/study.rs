//! The page and the text of a study: from the study's file and a ledger, through the analysis.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;

use kelvin_analysis::{Analysis, StudyPageContent, analyze};
use kelvin_diagnose::{Better, KeyFigure, NoisePrice};
use kelvin_lab::study::{
    Attempt, Deviation, LedgerEntry, LedgerEvent, Lock, Results, StoredRunFacts, Study, StudyPlan, notebook,
};
use kelvin_report::study;
use kelvin_stats::bootstrap::Resampler;
use kelvin_store::RunId;

const NUMA: &str = r#"
name = "numa and <huge> pages"
question = "What do NUMA and huge pages do to NOPM, alone & together?"

[universe]
machine = "two sockets | one used"

[goal]
metric = "nopm"
direction = "higher"
smallest-effect = "1%"

[hypothesis]
statement = "Huge pages raise NOPM by 2 % or more"
mechanism = "fewer misses of the TLB"
factor = "huge-pages"
from = "off"
to = "on"
rivals = ["<script>alert(1)</script>"]
predicts = [
    { metric = "nopm", direction = "higher", by = "2%" },
    { metric = "cpu", direction = "lower" },
    { metric = "wal", direction = "same" },
    { metric = "p99", direction = "higher", by = "20%" },
]

[[factor]]
name = "numa"
levels = ["local", "remote"]
setting = "application_name"

[[factor]]
name = "huge-pages"
levels = ["off", "on"]
setting = "huge_pages"

[design]
kind = "factorial"
blocks = BLOCKS
control = true

[run]
workload = "tproc-c"
target = "postgres"
"#;

/// FIELD.md 2: NOPM and IPC by cell.
fn field(cell: &str) -> (f64, f64) {
    match (cell.contains("numa=local"), cell.contains("huge-pages=on")) {
        (true, true) => (800_831.0, 0.75),
        (false, true) => (764_983.0, 0.68),
        (true, false) => (771_149.0, 0.70),
        (false, false) => (716_298.0, 0.62),
    }
}

fn timestamp(second: u64) -> jiff::Timestamp {
    format!("2026-11-21T20:{:02}:{:02}Z", second / 60 % 60, second % 60).parse().unwrap()
}

struct SimulatedStudy {
    study: Study,
    entries: Vec<LedgerEntry>,
    stored: BTreeMap<i64, StoredRunFacts>,
}

/// Every planned run, around the values of its cell; the noise of a treatment totals zero over the blocks.
fn simulate(text: &str, nopm: impl Fn(&str) -> f64, cv: f64) -> SimulatedStudy {
    let study = Study::parse(text, "study.toml", Path::new(".")).unwrap();
    let plan = StudyPlan::new(&study);
    let mut random = Resampler::new(11);
    let mut noise: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for treatment in &plan.treatments {
        let raw: Vec<f64> = (0..study.design.blocks).map(|_| random.normal() * cv).collect();
        let mean = raw.iter().sum::<f64>() / raw.len() as f64;
        noise.insert(treatment.name.clone(), raw.into_iter().map(|v| v - mean).collect());
    }
    let mut entries = Vec::new();
    let mut stored = BTreeMap::new();
    for (place, &run) in plan.runs.iter().enumerate() {
        let name = plan.treatment(run).name.clone();
        let factor = noise[&name][run.block as usize].exp() * (1.0 + 0.002 * f64::from(run.block));
        let value = nopm(&name) * factor;
        let attempt = Attempt { place: place as u32, block: run.block, treatment: name.clone() };
        let results = results(place as i64 + 1, value);
        entries.push(LedgerEntry {
            at: timestamp(place as u64),
            event: LedgerEvent::Measured { attempt, results },
        });
        let limit = Some("CPU".into());
        stored.insert(
            place as i64 + 1,
            StoredRunFacts { ipc: Some(field(&name).1 * factor), limit, ..StoredRunFacts::default() },
        );
    }
    SimulatedStudy { study, entries, stored }
}

fn results(run: i64, nopm: f64) -> Results {
    let figure = |id: &str, name: &str, unit: &str, better, value| KeyFigure {
        id: id.into(),
        name: name.into(),
        unit: unit.into(),
        better,
        value,
        at_least: false,
    };
    let figures = vec![
        figure("nopm", "NOPM", "per minute", Some(Better::Higher), Some(nopm)),
        figure("p99", "latency p99", "ms", Some(Better::Lower), Some(4.0e6 / nopm)),
        figure("cpu", "CPU/transaction", "µs", Some(Better::Lower), Some(1.6e8 / nopm)),
        figure("wal", "log/transaction", "bytes", Some(Better::Lower), Some(4000.0 + nopm % 7.0)),
        figure("server-instructions", "server instructions/transaction", "1", Some(Better::Lower), None),
    ];
    Results { run: RunId(run), seconds: 60.0, figures }
}

impl SimulatedStudy {
    fn analysis(&self) -> Analysis {
        analyze(&kelvin_lab::study::analysis_input(&self.study, &self.entries, &self.stored)).unwrap()
    }

    fn dossier(&self, notebook: &str) -> StudyPageContent {
        let mut lock = Lock::new(&self.study, "0.1.0", 0).unwrap();
        lock.at = timestamp(0);
        let page = |run: i64| (run == 3).then(|| format!("runs/run-{run}.html"));
        kelvin_lab::study::study_page_content(
            &self.study,
            Some(&lock),
            &self.entries,
            notebook,
            self.analysis(),
            &page,
        )
    }
}

fn numa(blocks: u32) -> SimulatedStudy {
    simulate(&NUMA.replace("BLOCKS", &blocks.to_string()), |cell| field(cell).0, 0.003)
}

/// With a void run that was repeated, a deviation, and an attempt that failed.
fn eventful() -> SimulatedStudy {
    let mut simulated = numa(6);
    let LedgerEvent::Measured { attempt, results } = simulated.entries[4].event.clone() else {
        unreachable!()
    };
    let place = simulated.entries.len() as u32;
    let mut slow = results.clone();
    slow.figures[0].value = Some(400_000.0);
    let why = vec!["the window holds a checkpoint | \u{1b}[31mred".to_owned()];
    simulated.entries[4].event = LedgerEvent::Void { attempt: attempt.clone(), why, results: slow };
    let again = Attempt { place, ..attempt.clone() };
    let mut second = results;
    second.run = RunId(i64::from(place) + 1);
    let deviation = Deviation {
        of: "study.toml".into(),
        key: "design.blocks".into(),
        from: Some("8".into()),
        to: Some("6".into()),
    };
    let failed = Attempt { place: place + 1, ..attempt };
    for event in [
        LedgerEvent::Deviation(deviation),
        LedgerEvent::Measured { attempt: again, results: second },
        LedgerEvent::Failed { attempt: failed, why: "the server is gone".into() },
    ] {
        simulated.entries.push(LedgerEntry { at: timestamp(900), event });
    }
    simulated
}

fn notebook(of: &SimulatedStudy) -> String {
    let template = notebook::template(&of.study);
    template.replace(
        "## 2 Decl",
        "NOPM was *low*: <b>716,298</b>.\nIt had been 800,000.\n\n```\nnumactl -H | head\n```\n\n## 2 Decl",
    )
}

#[test]
fn the_field_study_as_text() {
    insta::assert_snapshot!(study::text(&eventful().analysis()));
}

#[test]
fn the_field_study_as_markdown() {
    let simulated = eventful();
    insta::assert_snapshot!(study::markdown(&simulated.dossier(&notebook(&simulated))));
}

#[test]
fn every_line_of_the_text_fits_its_page() {
    for of in [eventful(), numa(1), numa(2), fraction(), users(), interaction()] {
        for line in study::text(&of.analysis()).lines() {
            assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
        }
    }
}

#[test]
fn the_page_is_the_same_every_time_and_nobody_writes_html_into_it() {
    let simulated = eventful();
    let html = study::html(&simulated.dossier(&notebook(&simulated))).unwrap();
    assert_eq!(html, study::html(&eventful().dossier(&notebook(&simulated))).unwrap());
    assert!(!html.contains("<script") && !html.contains("<b>716"), "a script or a person's tag");
    assert!(html.contains("numa and &lt;huge&gt; pages") && html.contains("&lt;b&gt;716,298"));
    assert!(!html.contains("http://") && !html.contains("https://"), "the page needs the network");
    assert!(html.contains("href=\"runs&#x2f;run-3.html\"") || html.contains("href=\"runs/run-3.html\""));
    for phase in kelvin_analysis::notes::PHASES {
        assert!(html.contains(&format!("</span>{phase}</h2>")), "{phase}");
    }
    for percent in ["100.00", "95.52", "96.29", "89.44"] {
        assert!(html.contains(&format!("<td>{percent}</td>")), "{percent}");
    }
    assert!(!html.contains("NaN") && !html.contains("undefined"));
    write_page(&html, "numa.html");
}

/// Pages for visual inspection: `KELVIN_LOOK=DIR cargo test -p kelvin-report --test study`.
fn write_page(html: &str, name: &str) {
    if let Some(directory) = std::env::var_os("KELVIN_LOOK") {
        std::fs::write(Path::new(&directory).join(name), html).unwrap();
    }
}

#[test]
fn one_block_says_that_it_has_no_error() {
    let simulated = numa(1);
    let text = study::text(&simulated.analysis());
    insta::assert_snapshot!(text);
    write_page(&study::html(&simulated.dossier("")).unwrap(), "one.html");
}

#[test]
fn a_study_without_any_run_has_its_page() {
    let mut simulated = numa(6);
    simulated.entries.clear();
    insta::assert_snapshot!(study::text(&simulated.analysis()));
    let html = study::html(&simulated.dossier("")).unwrap();
    assert!(html.contains("No run was measured") && html.contains("nothing has been run yet"));
    write_page(&html, "none.html");
}

#[test]
fn trial_d5_a_study_whose_runs_accept_noise_says_so_everywhere() {
    let mut simulated = numa(4);
    let said = |simulated: &SimulatedStudy, words: &str| {
        let dossier = simulated.dossier("");
        let flat = study::text(&simulated.analysis()).split_whitespace().collect::<Vec<_>>().join(" ");
        for text in [flat, study::markdown(&dossier), study::html(&dossier).unwrap()] {
            assert_eq!(text.contains("(--accept-noise)"), !words.is_empty(), "{text}");
            assert!(text.contains(words), "{text}");
        }
    };
    said(&simulated, "");
    // One run accepted noise; its cost is known.
    let first = simulated.stored.get_mut(&1).unwrap();
    first.accepts_noise = true;
    first.noise = Some(NoisePrice { low: 0.0, estimate: 0.1, high: 0.21, accepted: true });
    said(&simulated, "noise is accepted (--accept-noise): foreign CPU explains up to 21 % of the result");
    // The store is missing, but the study's file declares it for all runs.
    simulated.stored.clear();
    simulated.study.run.accept_noise = true;
    said(&simulated, "noise is accepted in 20 measured windows (--accept-noise): its cost is not known");
}

#[test]
fn a_study_of_void_runs_says_so() {
    let mut simulated = numa(4);
    for entry in &mut simulated.entries {
        let LedgerEvent::Measured { attempt, results } = entry.event.clone() else { continue };
        entry.event = LedgerEvent::Void { attempt, results, why: vec!["not steady".into()] };
    }
    let found = simulated.analysis();
    let text = study::text(&found);
    assert!(text.contains("every run is void"), "{text}");
    assert!(text.contains("The conclusion depends on whether they count."), "{text}");
    let markdown = study::markdown(&simulated.dossier(""));
    assert!(markdown.contains("| not steady |"));
}

fn interaction() -> SimulatedStudy {
    let nopm = |cell: &str| match (cell.contains("numa=local"), cell.contains("huge-pages=on")) {
        (true, false) => 100_000.0,
        (false, true) => 110_000.0,
        (true, true) | (false, false) => 96_000.0,
    };
    simulate(&NUMA.replace("BLOCKS", "6"), nopm, 0.004)
}

#[test]
fn what_one_factor_at_a_time_gets_wrong_is_said() {
    let simulated = interaction();
    let text = study::text(&simulated.analysis());
    let section = text.split("\n\n").find(|part| part.starts_with("one factor at a time")).unwrap();
    insta::assert_snapshot!(section);
    write_page(&study::html(&simulated.dossier("")).unwrap(), "interaction.html");
}

fn fraction() -> SimulatedStudy {
    let factor = |name: &str| {
        format!("[[factor]]\nname = \"{name}\"\nlevels = [\"off\", \"on\"]\nsetting = \"{name}\"\n\n")
    };
    let head = NUMA.split("[[factor]]").next().unwrap().replace("huge-pages", "jit");
    let factors: String = ["jit", "fsync", "geqo", "wal_compression"].into_iter().map(factor).collect();
    let text = format!(
        "{head}{factors}[design]\nkind = \"fractional\"\ngenerators = [\"D=ABC\"]\nblocks = \
        5\n\n[run]\nworkload = \"tproc-c\"\ntarget = \"postgres\"\n"
    );
    let on = |cell: &str, factor: &str| f64::from(u8::from(cell.contains(&format!("{factor}=on"))));
    simulate(&text, |cell| 1e5 * (1.0 + 0.05 * on(cell, "jit") - 0.03 * on(cell, "wal_compression")), 0.004)
}

#[test]
fn a_fraction_has_its_aliases_beside_every_effect() {
    let simulated = fraction();
    insta::assert_snapshot!(study::text(&simulated.analysis()));
    let html = study::html(&simulated.dossier("")).unwrap();
    assert!(html.contains("D=ABC with A jit, B fsync") && html.contains("fsync × geqo × wal_compression"));
    write_page(&html, "fraction.html");
}

fn users() -> SimulatedStudy {
    let head = NUMA.split("[[factor]]").next().unwrap();
    let head = head
        .replace("factor = \"huge-pages\"", "factor = \"users\"")
        .replace("from = \"off\"", "from = \"1\"");
    let head = head.replace("to = \"on\"", "to = \"4\"");
    let text = format!(
        "{head}[[factor]]\nname = \"users\"\nlevels = [1, 2, 4, 8, 16]\nspec = \
        \"load.users\"\n\n[design]\nkind = \"sweep\"\nblocks = 4\n\n[run]\nworkload = \"tproc-c\"\ntarget = \
        \"postgres\"\n"
    );
    let nopm = |cell: &str| {
        let n: f64 = cell.trim_start_matches("users=").parse().unwrap();
        20_000.0 * n / (1.0 + 0.06 * (n - 1.0) + 0.004 * n * (n - 1.0))
    };
    simulate(&text, nopm, 0.004)
}

#[test]
fn a_sweep_over_users_has_a_fitted_model() {
    let simulated = users();
    let found = simulated.analysis();
    assert!(found.sweep.as_ref().unwrap().law.is_some(), "{:?}", found.sweep);
    let text = study::text(&found);
    assert!(text.contains("Universal Scalability Law"), "{text}");
    let html = study::html(&simulated.dossier("")).unwrap();
    assert!(html.contains("fitted (USL)"));
    write_page(&html, "users.html");
}

#[test]
fn questions_are_written_as_toml_that_can_be_read_back() {
    let found = eventful().analysis();
    let text = study::next_toml(&found);
    insta::assert_snapshot!(text);
    let read: toml::Table = text.parse().unwrap();
    assert_eq!(read["next"].as_array().unwrap().len(), found.next.len());
}

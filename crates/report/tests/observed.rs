//! Observations of host and database, in every format.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::observed::judged;
use common::{GOOD, Shape, stored};
use kelvin_report::{OtherProcessRow, RunReport, compare, csv, html, json, markdown, text};
use kelvin_store::{RunId, Store};

fn seen(shape: Shape) -> RunReport {
    common::observed(&tempfile::tempdir().unwrap().path().join("k.db"), shape, Some("base"))
}

fn plain(report: &RunReport) -> String {
    text::render(report, text::Options::default())
}

fn parsed(report: &RunReport) -> serde_json::Value {
    serde_json::from_str(&json::render(report).unwrap()).unwrap()
}

#[test]
fn text_has_the_verdict_and_the_findings_first() {
    insta::assert_snapshot!(plain(&judged(seen(GOOD))));
}

#[test]
fn a_run_with_findings_ends_on_one_screen() {
    let report = judged(seen(GOOD));
    let shown = text::brief(&report, text::Options::default());
    let mut long = report.clone();
    for finding in &mut long.findings {
        finding.title = finding.title.repeat(4);
        finding.next = format!("Try `kelvin doctor`. {}", finding.next.repeat(4));
    }
    long.findings.extend(report.findings.clone());
    let full = text::brief(&long, text::Options::default());
    for text in [&shown, &full] {
        assert!(text.lines().count() <= 20, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(!text.contains('`'), "marks are for the page: {text}");
    }
    insta::assert_snapshot!(format!("{shown}\n## long\n{full}"));
}

#[test]
fn a_run_with_nothing_to_find_says_so_and_one_that_nobody_watched_says_nothing() {
    let mut report = seen(GOOD);
    report.findings.clear();
    assert!(plain(&report).contains("\nfindings: none that puts these results in doubt\n"));
    assert!(html::render(&report).unwrap().contains("None that puts these results in doubt."));
    let mut long = judged(seen(GOOD));
    let fact = kelvin_report::EvidenceLine::new("one more", "figure");
    long.findings[0].evidence = vec![fact.clone(); 7];
    long.findings[1].evidence = vec![fact; 3];
    let shown = plain(&long);
    assert_eq!(shown.matches("one more: figure").count(), 7, "{shown}");
    assert!(shown.contains("\nmore detail (3 lines): kelvin show --all\n"), "{shown}");
    report.findings = judged(seen(GOOD)).findings.split_off(2);
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = flat(plain(&report));
    let hidden = "1 note, 1 finding below the run's precision";
    assert!(shown.contains(&format!("in doubt; {hidden}: kelvin show --all")), "{shown}");
    assert!(!shown.contains("the hypervisor took 0.3 %"), "{shown}");
    let all = flat(text::render(&report, text::Options { all: true, ..text::Options::default() }));
    assert!(all.contains("effect: up to 0.3 % of the figure, below the precision of the run"), "{all}");
    assert!(html::render(&report).unwrap().contains(&format!("<summary>{}", hidden.replace('\'', "&#x27;"))));
    let unseen = stored(&tempfile::tempdir().unwrap().path().join("k.db"), GOOD, None);
    let (text, page, json) = (plain(&unseen), html::render(&unseen).unwrap(), parsed(&unseen));
    assert!(!text.contains("findings") && !text.contains("host and database"), "{text}");
    assert!(!page.contains("<h2>Findings") && !page.contains("What could not be observed"));
    assert!(json["points"][0]["observed"].is_null() && json["findings"].as_array().unwrap().is_empty());
    assert_eq!(csv::observed(&unseen), "run,point,users,second,part\r\n");
}

#[test]
fn three_findings_come_first_and_the_others_are_counted() {
    let mut report = judged(seen(GOOD));
    let serious = report.findings[..2].to_vec();
    for number in 0..2 {
        for mut again in serious.clone() {
            again.title = format!("{} ({number})", again.title);
            (again.point, again.id) = (None, ["first-copy", "second-copy"][number]);
            report.findings.push(again);
        }
    }
    report.findings.sort_by_key(|finding| finding.severity);
    let all = text::render(&report, text::Options { all: true, ..text::Options::default() });
    let several = [plain(&report), markdown::render(&report, false), all, markdown::render(&report, true)];
    let heads = |text: &str| {
        let of = |text: &str, lead: &str| text.lines().filter(|line| line.starts_with(lead)).count();
        ["red", "amber"].map(|word| of(text, &format!("{word} ")) + of(text, &format!("- **{word}**: ")))
    };
    // With `all`, there is also one whose effect is below the run's precision.
    assert_eq!(several.each_ref().map(|text| heads(text)), [[3, 0], [3, 0], [3, 4], [3, 4]]);
    let counted = "and 3 amber findings, 1 note, 1 finding below the run's precision";
    assert_eq!(
        several.each_ref().map(|text| text.contains(counted)),
        [true, true, false, false],
        "{several:?}"
    );
    let page = html::render(&report).unwrap();
    assert!(
        page.contains("3 more findings") && page.matches("<article class=\"finding amber\"").count() == 4
    );
}

#[test]
fn other_processes_are_listed_with_what_they_took_and_their_shares() {
    let mut report = seen(GOOD);
    let row = |name: &str, cpus, io: f64| OtherProcessRow {
        name: name.into(),
        processes: 3,
        cpus,
        cpu_percent: Some(50.0 * cpus),
        memory_bytes: 2e9,
        memory_percent: Some(25.0),
        io_bytes_per_s: io,
        io_percent: (io > 0.0).then_some(90.0),
    };
    report.points[0].observed.as_mut().unwrap().other_processes =
        vec![row("cc1plus", 0.5, 0.0), row("<backup>", 0.1, 3e7)];
    let text = plain(&report).split_whitespace().collect::<Vec<_>>().join(" ");
    let compiler = " others cc1plus: 0.50 CPUs (25.0 %), 2.0 GB of memory (25.0 %) <backup>: ";
    assert!(text.contains(compiler) && text.contains("30.0 MB/s of I/O (90.0 %)"), "{text}");
    let page = html::render(&report).unwrap();
    let cells = "&lt;backup&gt;</th><td>3</td><td>0.10</td><td>5.0 %</td>";
    assert!(page.contains(cells), "{}", &page[page.find("Other processes").unwrap()..][..1500]);
    assert_eq!(parsed(&report)["points"][0]["observed"]["other_processes"][0]["memory_percent"], 25.0);
}

#[test]
fn lines_keep_to_80_columns_and_colour_adds_nothing_but_colour() {
    let mut report = judged(seen(Shape { users: &[4, 8], seconds: 10, ..GOOD }));
    report.not_seen.lost = vec![kelvin_measure::observation::UnavailableMetrics {
        what: "postgres".into(),
        why: "the connection of the observer was closed by the server; what is seen of it ends there".into(),
    }];
    let shown = plain(&report);
    for line in shown.lines().filter(|line| !line.starts_with("repeat")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(shown.contains("31 % lower while it did (4 virtual users)"), "{shown}");
    assert!(shown.contains("\nlost: postgres: the connection"), "{shown}");
    let coloured = text::render(&report, text::Options { colour: true, ..Default::default() });
    let mut stripped = String::new();
    for (index, part) in coloured.split("\x1b[").enumerate() {
        stripped.push_str(if index == 0 { part } else { part.split_once('m').unwrap().1 });
    }
    assert_eq!(stripped, shown);
    assert!(coloured.contains("\x1b[33mamber"), "{coloured}");
}

#[test]
fn json_has_findings_verdict_and_what_was_seen() {
    let json = parsed(&judged(seen(GOOD)));
    let point = &json["points"][0];
    let mut observed = point["observed"].clone();
    assert_eq!(observed["metrics"].as_array().unwrap().len(), 41);
    observed["metrics"].as_array_mut().unwrap().truncate(2);
    let shown = serde_json::json!({
        "schema": json["schema"], "findings": json["findings"], "absent": json["absent"], "lost": json["lost"],
        "verdict": point["verdict"], "observed": observed,
    });
    insta::assert_snapshot!(serde_json::to_string_pretty(&shown).unwrap());
}

#[test]
fn what_happens_again_and_again_is_counted_in_the_text() {
    let mut report = seen(GOOD);
    let rows = &mut report.points[0].observed.as_mut().unwrap().occurrences;
    let mut again = rows[0].clone();
    // Five of twenty seconds, four more that start before those have ended, and one that has not ended.
    (again.from_s, again.to_s) = (11.0, Some(15.0));
    rows.push(again.clone());
    (again.from_s, again.to_s) = (19.0, None);
    rows.push(again.clone());
    (again.from_s, again.to_s) = (-9.0, Some(-1.0));
    rows.push(again);
    rows.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    let shown = plain(&report);
    assert!(
        shown.contains("events       3 times checkpoint (requested), in 40 % of the window\n"),
        "{shown}"
    );
    assert!(shown.contains("             autovacuum of public.new_order from 15.0 s to 17.0 s\n"), "{shown}");
    report.points[0].observed.as_mut().unwrap().occurrences.clear();
    assert!(plain(&report).contains("\nevents       no checkpoint and no autovacuum\n"));
}

/// The columns of `csv::observed` by name.
fn column(table: &str, name: &str) -> Vec<f64> {
    let mut lines = table.lines();
    let place = lines.next().unwrap().split(',').position(|field| field == name).unwrap();
    lines.filter_map(|line| line.split(',').nth(place)?.parse().ok()).collect()
}

#[test]
fn means_are_those_of_the_seconds() {
    let report = seen(GOOD);
    let observed = report.points[0].observed.as_ref().unwrap();
    let table = csv::observed(&report);
    let rows = table.lines().count() - 1;
    assert_eq!(rows, 23, "{table}");
    assert!(table.lines().nth(1).unwrap().starts_with("1,0,8,-3,ramp-up,"));
    let measured = |name: &str| column(&table, name)[3..].to_vec();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let metric = observed.metrics.iter().find(|m| m.name == "host.disk.vda.w_s").unwrap();
    assert!((metric.mean / mean(&measured("host.disk.vda.w_s")) - 1.0).abs() < 1e-3, "{metric:?}");
    let shares = &observed.processors[0];
    let sum = shares.user_percent
        + shares.system_percent
        + shares.iowait_percent
        + shares.irq_percent
        + shares.steal_percent
        + shares.idle_percent;
    assert!((sum - 100.0).abs() < 1e-4, "{sum}");
    // The mean time of a write is over all writes, most of which were in the burst.
    let (waits, rates) = (measured("host.disk.vda.w_await"), measured("host.disk.vda.w_s"));
    let weighted: f64 = waits.iter().zip(&rates).map(|(w, r)| w * r).sum::<f64>() / rates.iter().sum::<f64>();
    let data = observed.devices.iter().find(|d| d.holds == ["data"]).unwrap();
    assert!((data.w_await_ms.unwrap() / weighted - 1.0).abs() < 0.02, "{data:?} {weighted}");
    assert!(data.w_await_ms.unwrap() > 1.5 * mean(&waits));
    assert_eq!(data.r_await_ms.map(|ms| ms > 0.3 && ms < 0.5), Some(true));
    let log = &observed.devices[0];
    assert_eq!((log.holds.as_slice(), log.r_await_ms), (&["log".to_owned()][..], None));
    assert_eq!(observed.devices.len(), 2, "a device that holds and does nothing is left out");
    let sessions = observed.sessions.as_ref().unwrap();
    let by_second: f64 = ["CPU", "IO", "Lock", "LWLock", "Client"]
        .iter()
        .map(|class| mean(&measured(&format!("sessions {class}"))))
        .sum();
    assert!((sessions.active / by_second - 1.0).abs() < 0.03, "{} {by_second}", sessions.active);
    let shares: f64 = sessions.classes.iter().map(|class| class.share_percent).sum();
    assert!((shares - 100.0).abs() < 1e-9);
    assert!(sessions.waits.iter().any(|w| w.backend == "checkpointer" && w.share_percent.is_none()));
    let checkpoint = &observed.occurrences[0];
    assert_eq!((checkpoint.from_s, checkpoint.to_s), (8.0, Some(13.0)));
}

#[test]
fn the_page_has_one_axis_of_time_and_escapes_what_the_server_says() {
    let report = judged(seen(GOOD));
    let page = html::render(&report).unwrap();
    let order: Vec<usize> = [
        "limit the throughput together.",
        "<ol class=\"top\"",
        "id=\"overview-0\"",
        "<h2>What limits the throughput",
        "<h2>Findings",
        "id=\"throughput-0\"",
        "<figcaption>CPU time",
        "<figcaption>Active sessions",
        "<figcaption>Device vdb: log, throughput",
        "<figcaption>Device vda: data, throughput",
        "<figcaption>WAL written",
        "What the sessions waited for",
        "Top statements",
        "What could not be observed",
    ]
    .iter()
    .map(|part| page.find(part).unwrap_or_else(|| panic!("no {part}")))
    .collect();
    assert!(order.is_sorted(), "{order:?}");
    assert!(page.contains("s_w_id = $5 &lt;b&gt;") && !page.contains("$5 <b>"));
    assert!(page.contains("max_wal_size is 64 MB &lt;small&gt;"));
    let json = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(json).unwrap();
    let point = &data["points"][0];
    let seconds = point["t"].as_array().unwrap().len();
    let charts = point["seen"]["charts"].as_array().unwrap();
    assert_eq!(charts.len(), 7);
    for chart in charts {
        for column in chart["columns"].as_array().unwrap() {
            assert_eq!(column.as_array().unwrap().len(), seconds, "{chart}");
        }
    }
    assert_eq!(point["seen"]["bands"][0][0], 8.0);
    assert!(!page.contains("NaN") && !page.contains("Infinity"));
}

#[test]
fn the_page_draws_what_the_storage_got_by_stream() {
    let report = common::traced(&tempfile::tempdir().unwrap().path().join("k.db"), GOOD);
    let page = html::render(&report).unwrap();
    assert!(page.contains("<figcaption>Storage by stream, requests"), "no caption");
    let json = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(json).unwrap();
    let point = &data["points"][0];
    let chart = |of: &str| {
        let charts = point["seen"]["charts"].as_array().unwrap();
        charts.iter().find(|chart| chart["title"] == format!("Storage by stream, {of}")).unwrap()
    };
    let bytes = chart("throughput");
    let names: Vec<&str> =
        bytes["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    // By bytes: the data started late. The eighth one is the others combined.
    let first = ["PostgreSQL WAL", "PostgreSQL temporary", "PostgreSQL other", "PostgreSQL data"];
    assert_eq!(names[..4], first, "{names:?}");
    assert_eq!((names.len(), names[7], &bytes["colours"][7]), (8, "others", &serde_json::json!(8)));
    let at = |chart: &serde_json::Value, column: usize, second: i64| {
        let seconds = point["t"].as_array().unwrap();
        let place = seconds.iter().position(|one| one.as_i64() == Some(second)).unwrap();
        chart["columns"][column][place].clone()
    };
    assert_eq!((at(bytes, 0, 5), at(bytes, 3, 5), at(bytes, 3, 15)), (8.0.into(), 0.0.into(), 4.0.into()));
    assert_eq!(at(bytes, 7, 5), 1.0, "8 MB/s by the eighth");
    assert_eq!(at(chart("requests"), 0, 5), 976.6);
    let sequential = chart("sequential share of the bytes");
    assert_eq!((at(sequential, 0, 5), at(sequential, 0, 14)), (50.0.into(), serde_json::Value::Null));
    assert_eq!(sequential["names"].as_array().unwrap().len(), 7, "shares do not add up");
    assert!(at(chart("depth: requests in flight at an arrival"), 3, 5).is_null(), "it had no request yet");
}

#[test]
fn ten_minutes_make_a_page_of_a_quarter_megabyte() {
    let report = seen(Shape { seconds: 600, ramp_up: 60, new_orders: 20, ..GOOD });
    let size = html::render(&report).unwrap().len();
    assert!(size < 250_000, "{size} bytes");
}

#[test]
fn an_earlier_run_is_looked_back_at_and_runs_are_compared_by_what_was_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("k.db");
    for seed in [1, 2] {
        common::observed(&path, Shape { seed, seconds: 8, ..GOOD }, None);
    }
    let store = Store::open(&path).unwrap();
    let [first, second] = [1, 2].map(|id| store.load(RunId(id)).unwrap());
    assert_eq!(
        (store.previous_run(&first).unwrap(), store.previous_run(&second).unwrap()),
        (None, Some(RunId(1)))
    );
    let (a, b) = (RunReport::load(&store, RunId(1)).unwrap(), RunReport::load(&store, RunId(2)).unwrap());
    let mut found = compare::compare(&[&a], &[&b]).unwrap();
    found.findings = judged(seen(GOOD)).findings;
    let shown = compare::text(&found);
    let (finding, differs) =
        (shown.find("\nred    a requested").unwrap(), shown.find("no relevant difference").unwrap());
    assert!(finding < differs && !shown.contains("huge pages"), "{shown}");
}

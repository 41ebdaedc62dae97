//! Runs with several sources of load: the hosts of a fleet, the tenants of a scenario.

use kelvin_report::{RunReport, csv, html, markdown, text};

use super::common::{self, GOOD, Shape, stored};
use super::report;

#[test]
fn the_hosts_of_a_fleet_are_in_every_format() {
    let swept = report(Shape { users: &[4, 8, 16], hosts: &[1, 2, 4], ..GOOD });
    let text = text::render(&swept, text::Options::default());
    let parts: Vec<&str> = text.split("\n\n").collect();
    let part = |first: &str| parts.iter().rev().find(|part| part.starts_with(first)).unwrap().to_owned();
    insta::assert_snapshot!(
        "hosts_of_a_fleet",
        format!("{}\n\n{}", part("host "), part("throughput per host"))
    );
    let json = serde_json::to_value(&swept).unwrap();
    let generator = &json["points"][1]["generator"];
    assert_eq!(generator["hosts"][1]["host"], "load2");
    assert_eq!(
        (generator["start"]["skew_us"].as_f64(), generator["start"]["at_most_us"].as_f64()),
        (Some(20.0), Some(220.0))
    );
    assert_eq!(generator["hosts"][0]["cpu_host_percent"], 25.0);
    assert!(json["points"][0]["generator"]["start"].is_null(), "one host is not apart from itself");
    let page = html::render(&swept).unwrap();
    for words in
        ["<h3>Hosts of the fleet</h3>", "<h2>Hosts</h2>", "load4", "ms with the bounds of their clocks"]
    {
        assert!(page.contains(words), "{words}");
    }
    let lost = report(Shape { users: &[8], hosts: &[2], valid: false, ..GOOD });
    assert!(text::render(&lost, text::Options::default()).contains("load2 was lost: no beat for 10 s"));
    assert!(html::render(&lost).unwrap().contains("(lost: no beat for 10 s)"));
    assert!(!html::render(&report(GOOD)).unwrap().contains("Hosts of the fleet"));
}

#[test]
fn several_sources_add_rows_and_change_no_figure() {
    let shape = Shape { seconds: 6, errors: true, ..GOOD };
    let directory = tempfile::tempdir().unwrap();
    let one = stored(&directory.path().join("one.db"), shape, None);
    let two = common::of_two_sources(&directory.path().join("two.db"), shape);
    let json = |report: &RunReport| serde_json::to_value(report).unwrap();
    let (whole, mut apart) = (json(&one), json(&two));
    let sources = apart["points"][0].as_object_mut().unwrap().remove("sources").unwrap();
    assert_eq!(whole, apart, "the sum of the sources is the run");
    let errors = one.points[0].errors.iter().map(|error| error.count).sum();
    for (figure, of_run) in [("headline_count", one.points[0].throughput.headline_count), ("errors", errors)]
    {
        let each = sources.as_array().unwrap().iter().map(|source| source[figure].as_u64().unwrap());
        assert_eq!(each.sum::<u64>(), of_run, "{figure}");
    }
    let text = text::render(&two, text::Options::default());
    let table = text.split("\n\n").find(|part| part.starts_with("source ")).unwrap();
    insta::assert_snapshot!(table);
    assert_eq!(text.replace(&format!("\n{table}\n"), ""), text::render(&one, text::Options::default()));
    // In CSV the last column names the source; it is empty in the rows of the run.
    let mut by_source = String::new();
    for table in [csv::series, csv::summary] {
        let (whole, apart) = (table(&one), table(&two));
        let (header, rows) = apart.split_once("\r\n").unwrap();
        let of_run = rows.lines().filter_map(|row| row.strip_suffix(','));
        let of_run: Vec<&str> = header.strip_suffix(",source").into_iter().chain(of_run).collect();
        assert_eq!(of_run, whole.lines().collect::<Vec<_>>());
        by_source.extend(rows.lines().filter(|row| row.ends_with("load2\"")).map(|row| format!("{row}\n")));
    }
    insta::assert_snapshot!("rows_of_several_sources_as_csv", by_source);
    let page = html::render(&two).unwrap();
    assert!(page.contains("<h3>By source</h3>") && page.contains(r#""name":"shop, load2""#), "{page}");
    let page = html::render(&one).unwrap();
    assert!(!page.contains("<h3>By source</h3>") && !page.contains(r#""sources""#));
}

#[test]
fn tenants_of_a_scenario_are_shown_each_and_never_added_up() {
    let directory = tempfile::tempdir().unwrap();
    let report = common::scenario::stored(&directory.path().join("k.db"));
    // Oltp ran 100 per second, then 50; dss 4,000 while it was on. Over the window their sum would be 2,076.
    let rates: Vec<f64> =
        report.points[0].sources.iter().map(|s| s.throughput.transactions_per_second.unwrap()).collect();
    assert!((rates[0] - 76.0).abs() < 1.0 && (rates[1] - 4000.0).abs() < 1.0, "{rates:?}");
    let page = html::render(&report).unwrap();
    let visible = page.split("<script").next().unwrap();
    let texts = [text::render(&report, text::Options::default()), markdown::render(&report, false)];
    for shown in texts.iter().map(String::as_str).chain([visible]) {
        assert!(!shown.contains("2,076") && !shown.contains("2,07"), "{shown}");
        assert!(!shown.contains("a database") && shown.contains("colocation"), "{shown}");
        assert!(shown.contains("oltp at"), "{shown}");
    }
    assert!(visible.contains("<h1>colocation &lt;1&gt;</h1>") && visible.contains("scenario with 2 tenants"));
    assert!(visible.contains("Throughput of each tenant, transactions and I"), "{visible}");
    assert!(!visible.contains("class=\"all\""), "{visible}");
    // The charts have a column for each tenant, and a number for each step.
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let point = &data["points"][0];
    assert_eq!((&data["scenario"], &point["sources"][0]["name"]), (&true.into(), &"oltp".into()));
    assert_eq!(point["sources"][0]["headline"][1], 101.0);
    let reads = &point["sources"][1]["headline"];
    assert!(reads[1] == 0.0 && reads[30] == 4000.0, "{reads}");
    assert!(point["sources"][1]["p99"][30].as_f64().unwrap() > 9.0, "{point}");
    let steps: Vec<_> = point["marks"].as_array().unwrap().iter().filter(|mark| mark[1] == "step").collect();
    assert_eq!(
        steps.iter().map(|step| step[2].as_str().unwrap()).collect::<Vec<_>>(),
        ["start oltp", "start dss", "the end"]
    );
    assert!(visible.contains("2: start dss"), "the legend says what the numbers mean");
    insta::assert_snapshot!(texts[0]);
}

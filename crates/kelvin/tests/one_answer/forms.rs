//! Compares headline, times, verdict and state of a run in all formats with the JSON report.

use kelvin_report::{RunReport, csv, html, json, markdown, pgbench, text};
use serde_json::Value;

use super::{between, flat};

const TIMES: [&str; 6] = ["mean_us", "p50_us", "p95_us", "p99_us", "p999_us", "max_us"];

struct Forms {
    json: Value,
    text: String,
    brief: String,
    page: String,
    markdown: String,
    csv: Vec<Vec<String>>,
    pgbench: String,
}

/// What was compared, to show that a walk over runs compared anything.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) times: usize,
    pub(crate) bounds: usize,
    pub(crate) verdicts: usize,
    pub(crate) headlines: usize,
}

/// Compares all formats of a run. `row` is its line in the list of runs.
pub(super) fn walk(name: &str, report: &RunReport, row: &str, compared: &mut Compared) {
    let csv = csv::summary(report);
    let forms = Forms {
        json: serde_json::from_str(&json::render(report).unwrap()).unwrap(),
        text: flat(&text::render(report, text::Options { all: true, ..Default::default() })),
        brief: flat(&text::brief(report, text::Options::default())),
        page: html::render(report).unwrap().replace("&#x27;", "'"),
        markdown: markdown::render(report, true).replace('\\', ""),
        csv: csv.lines().map(|line| line.split(',').map(Into::into).collect()).collect(),
        pgbench: pgbench::render(report),
    };
    forms.states(name);
    forms.headline(name, report, row, compared);
    forms.verdicts(name, compared);
    for point in forms.json["points"].as_array().unwrap() {
        forms.times(name, report, point, compared);
    }
}

impl Forms {
    fn states(&self, name: &str) {
        let state = self.json["state"].as_str().unwrap();
        assert!(self.markdown.contains(&format!("State: {state}")), "{name}: {}", self.markdown);
        assert!(self.brief.contains(&format!("state {state}")), "{name}: {}", self.brief);
        assert!(self.pgbench.contains(&format!("kelvin state: {state}")), "{name}: {}", self.pgbench);
        let column = self.csv[0].iter().position(|field| field == "state").unwrap();
        // A label or a target could contain a comma; those of these runs do not.
        assert!(self.csv[1..].iter().all(|row| row[column] == state), "{name}");
    }

    fn headline(&self, name: &str, report: &RunReport, row: &str, compared: &mut Compared) {
        let Some(best) = report.best() else { return };
        let per = format!("headline_per_{}", self.json["headline_per"].as_str().unwrap());
        let point =
            self.json["points"].as_array().unwrap().iter().find(|p| p["point"] == best.point).unwrap();
        let Some(value) = point[&per].as_f64() else { return };
        compared.headlines += 1;
        let headline = &report.headline;
        let shown = between(&self.markdown, "**", &format!(" {headline}**")).unwrap();
        let read: f64 = shown.replace(',', "").parse().unwrap();
        assert!((read - value).abs() <= 0.51, "{name}: {shown} for {value}");
        let whole = format!("{shown} {headline}");
        for (form, text) in [("brief", &self.brief), ("page", &self.page)] {
            assert!(text.contains(&whole), "{name}: no {whole:?} in the {form}\n{text}");
        }
        assert!(self.text.contains(shown), "{name}: no {shown:?} in the text");
        // The list has no value for a run whose window did not close, and truncates values to its columns.
        let counts_agree = point["invariants"].as_array().unwrap().iter().all(|one| one["holds"] == true);
        if best.closed && report.points.len() == 1 && counts_agree {
            assert!(flat(row).contains(shown), "{name}: no {shown:?} in {row}");
        }
        let column = self.csv[0].iter().position(|field| field == "headline_per_second").unwrap();
        let each = point["headline_per_second"].as_f64().unwrap();
        let number = best.point.to_string();
        for row in self.csv[1..].iter().filter(|row| row[7] == number) {
            let printed: f64 = row[column].parse().unwrap();
            assert!((printed - each).abs() < 0.06, "{name}: {printed} for {each} in CSV");
        }
        if report.points.len() == 1 {
            let tps: f64 = between(&self.pgbench, "tps = ", " ").unwrap().parse().unwrap();
            let all = point["transactions_per_second"].as_f64().unwrap();
            assert!((tps - all).abs() < 1e-3, "{name}: {tps} for {all} in pgbench's lines");
        }
    }

    fn verdicts(&self, name: &str, compared: &mut Compared) {
        let points = self.json["points"].as_array().unwrap();
        for point in points {
            let Some(sentence) = point["verdict"]["sentence"].as_str() else { continue };
            compared.verdicts += 1;
            let sentence = flat(sentence);
            let forms = [("text", self.text.clone()), ("Markdown", flat(&self.markdown))];
            for (form, text) in forms {
                let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
                assert!(
                    text.contains(&sentence.replace('`', "")) || text.contains(&sentence),
                    "{name}: no {sentence:?} in the {form}\n{text}"
                );
            }
            let page = flat(&self.page).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
            let page = page.replace("<code>", "`").replace("</code>", "`").replace("&quot;", "\"");
            assert!(page.contains(&sentence), "{name}: no {sentence:?} on the page");
        }
    }

    /// Compares each row of response and service times: JSON, CSV, Markdown, text and page.
    fn times(&self, name: &str, report: &RunReport, point: &Value, compared: &mut Compared) {
        let number = point["point"].to_string();
        let (io, several) = (report.is_io(), report.points.len() > 1);
        for (rows, all, word) in
            [("response", "response_all", Some("response")), ("latency", "latency_all", None)]
        {
            let of_all = Some(&point[all]).filter(|all| all.is_object());
            for row in point[rows].as_array().unwrap().iter().chain(of_all) {
                let kind = row["kind"].as_str().unwrap();
                let is = |fields: &&Vec<String>| {
                    fields[7] == number && fields[12] == kind && (fields[23] == "response") == word.is_some()
                };
                let fields = self.csv[1..].iter().find(is).unwrap_or_else(|| panic!("{name}: {kind} in CSV"));
                for (place, time) in TIMES.iter().enumerate() {
                    let (printed, value) = (fields[17 + place].parse::<f64>().ok(), row[*time].as_f64());
                    let same = match (printed, value) {
                        (Some(printed), Some(value)) => (printed - value).abs() < 0.06,
                        (printed, value) => printed == value,
                    };
                    assert!(same, "{name}: {kind} {time}: {printed:?} in CSV, {value:?} in JSON");
                    compared.times += usize::from(value.is_some());
                }
                let bounds: Vec<&str> =
                    row["at_least"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
                compared.bounds += bounds.len();
                let last = fields.last().unwrap();
                assert_eq!(*last, bounds.join(" "), "{name}: {kind}: bounds in CSV");
                if io || several || kind == "all" && point[rows].as_array().unwrap().len() < 2 {
                    continue;
                }
                self.as_shown(name, row, kind, word);
            }
        }
    }

    fn as_shown(&self, name: &str, row: &Value, kind: &str, word: Option<&str>) {
        let begins = |line: &&str| match word {
            Some(word) => line.starts_with(&format!("| {word}: {kind} |")),
            None => line.starts_with("| service: ") && line.contains(&format!(": {kind} |")),
        };
        let line = self.markdown.lines().find(begins);
        let line = line.unwrap_or_else(|| panic!("{name}: no {kind} in\n{}", self.markdown));
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let cells = &cells[2..];
        for (cell, time) in cells.iter().zip(TIMES) {
            let bound = row["at_least"].as_array().unwrap().iter().any(|name| name == time);
            assert_eq!(cell.starts_with('≥'), bound, "{name}: {kind} {time}: {cell}");
            let shown = cell.trim_start_matches(['≥', ' ']).replace(',', "").parse::<f64>().ok();
            let same = match (shown, row[time].as_f64()) {
                (Some(shown), Some(value)) => (shown * 1e3 - value).abs() <= (value * 0.006).max(0.51),
                (shown, value) => shown.is_none() && value.is_none(),
            };
            assert!(same, "{name}: {kind} {time}: {cell} for {}", row[time]);
        }
        assert!(self.text.contains(&cells.join(" ")), "{name}: {kind}: no {cells:?} in\n{}", self.text);
        let on_page = format!("<td>{}</td>", cells.join("</td><td>"));
        assert!(self.page.contains(&on_page), "{name}: {kind}: no {on_page} on the page");
    }
}

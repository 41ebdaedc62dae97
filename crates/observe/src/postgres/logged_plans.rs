//! Plans that `auto_explain` wrote into the server's log, as text or JSON with `log_analyze`: where the planner had expected other numbers of
//! rows than there were.

use std::collections::BTreeMap;

use kelvin_database::postgres::MARK;
use kelvin_database::postgres::explain::{Node, Plan};
use kelvin_measure::Nanos;
use kelvin_measure::observation::Occurrence;
use serde_json::Value;

use super::link::Link;
use crate::server::figures::SHORT_TEXT;
use crate::server::statement_text::masked;

/// Bytes of a plan that is read.
const LONGEST: usize = 256 << 10;
/// Maximum number of nodes with wrong row estimates that are reported, each once.
const MOST: usize = 20;
/// From so many times as many or as few.
const TIMES: f64 = 100.0;

/// A plan's node with another number of rows than expected.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LoggedMisestimate {
    /// "Seq Scan on parts: select …".
    subject: String,
    estimated: f64,
    actual: f64,
}

/// Follows the plans in a log.
#[derive(Debug, Default)]
pub(super) struct LoggedPlans {
    /// A plan whose end was not read yet.
    pending: Option<String>,
    /// No line has come since the last time. The text format has no end, and the server writes a message at once.
    is_quiet: bool,
    found: Vec<LoggedMisestimate>,
    /// The subjects that were reported.
    reported: Vec<String>,
}

impl LoggedPlans {
    /// Part of the log was left out.
    pub(super) fn interrupted(&mut self) {
        self.pending = None;
    }

    /// Takes a line. Those of a plan begin with a tab, which the server puts after each line end within a message.
    pub(super) fn line(&mut self, text: &str) {
        self.is_quiet = false;
        let Some(line) = text.strip_prefix('\t') else {
            self.finish();
            let begins = text.ends_with(" plan:") && text.contains(" duration: ");
            self.pending = begins.then(String::new);
            return;
        };
        let Some(plan) = &mut self.pending else { return };
        if plan.len() + line.len() > LONGEST {
            self.pending = None;
            return;
        }
        plan.push_str(line);
        plan.push('\n');
        if line == "}" && plan.starts_with('{') {
            self.finish();
        }
    }

    fn finish(&mut self) {
        let plan = self.pending.take().unwrap_or_default();
        if self.reported.len() >= MOST {
            return;
        }
        self.found.extend(misestimate(&plan).filter(|_| self.found.len() < MOST));
    }

    /// What was found since the last time and not reported before.
    pub(super) fn news(&mut self, now: Nanos, number: &mut dyn FnMut() -> u32) -> Vec<Occurrence> {
        if std::mem::replace(&mut self.is_quiet, true) {
            self.finish();
        }
        let mut news = Vec::new();
        for one in std::mem::take(&mut self.found) {
            if self.reported.len() >= MOST || self.reported.contains(&one.subject) {
                continue;
            }
            self.reported.push(one.subject.clone());
            news.push(Occurrence {
                id: number(),
                kind: "misestimate".into(),
                subject: one.subject,
                from: now,
                to: Some(now),
                figures: BTreeMap::from([
                    ("estimated_rows".to_owned(), one.estimated),
                    ("actual_rows".to_owned(), one.actual),
                ]),
            });
        }
        news
    }
}

/// Why the plans that `auto_explain` logs are not read, if it logs any; `has_log` is whether the log can be read.
pub(super) fn unread(link: &mut Link, has_log: bool) -> Option<String> {
    let setting = |name: &str| format!("coalesce(current_setting('auto_explain.{name}', true), '')");
    let asked = link.with(|session, _| {
        let names = ["log_min_duration", "log_format", "log_analyze"].map(setting).join(", ");
        let rows = session.query(&format!("SELECT {MARK} {names}"))?;
        Ok([rows.text(0, 0)?.to_owned(), rows.text(0, 1)?.to_owned(), rows.text(0, 2)?.to_owned()])
    });
    let [duration, format, analyze] = asked.ok()?;
    // Without a format the module is not loaded.
    if format.is_empty() || matches!(duration.as_str(), "" | "-1") {
        return None;
    }
    let mut why = Vec::new();
    if !matches!(format.as_str(), "text" | "json") {
        why.push(format!("auto_explain.log_format is {format}; set it to text or json"));
    }
    if analyze != "on" {
        why.push("auto_explain.log_analyze is off; turn it on (measuring costs time)".into());
    }
    if !has_log {
        why.push("log_checkpoints is off, or the server's log cannot be read here".into());
    }
    (!why.is_empty()).then(|| why.join(", and "))
}

/// Of a plan that `auto_explain` logged, with its statement.
fn misestimate(logged: &str) -> Option<LoggedMisestimate> {
    let (text, plan) = if logged.starts_with('{') {
        let value: Value = serde_json::from_str(logged).ok()?;
        (value.get("Query Text").and_then(Value::as_str).map(str::to_owned), Plan::from_value(&value)?)
    } else {
        let (text, plan) = Plan::of_logged_text(logged)?;
        (Some(text), plan)
    };
    let text = text.map(|text| masked(&text, SHORT_TEXT));
    // A cursor may not have asked for all rows.
    let node: &Node = plan.misestimated(true).filter(|node| node.missed() >= TIMES)?;
    let statement = text.map_or_else(String::new, |text| format!(": {text}"));
    Some(LoggedMisestimate {
        subject: format!("{}{statement}", node.label()),
        estimated: node.estimated,
        actual: node.actual?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As PostgreSQL 15 writes it with auto_explain.log_format = json and log_analyze.
    const LOGGED: &str = "2026-11-24 03:01:02.345 UTC [77] LOG:  duration: 4.321 ms  plan:\n\
        \t{\n\t  \"Query Text\": \"select * from parts where a = 5 and b = 'x';\",\n\t  \"Plan\": {\n\
        \t    \"Node Type\": \"Seq Scan\",\n\t    \"Relation Name\": \"parts\",\n\t    \"Alias\": \"parts\",\n\
        \t    \"Plan Rows\": 10,\n\t    \"Actual Rows\": 5000,\n\t    \"Actual Loops\": 1\n\t  }\n\t}\n";

    fn read(plans: &mut LoggedPlans, text: &str) -> Vec<Occurrence> {
        for line in text.lines() {
            plans.line(line);
        }
        plans.news(7, &mut || 3)
    }

    #[test]
    fn a_plan_of_the_log_is_reported_once_with_its_statement_and_without_its_values() {
        let mut plans = LoggedPlans::default();
        let (begin, end) = LOGGED.split_at(200);
        // In two readings, of whole lines each.
        let at = begin.rfind('\n').unwrap() + 1;
        assert_eq!(read(&mut plans, &begin[..at]), []);
        let found = read(&mut plans, &format!("{}{end}", &begin[at..]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].subject, "Seq Scan on parts: select * from parts where a = ? and b = ?;");
        assert_eq!((found[0].figures["estimated_rows"], found[0].figures["actual_rows"]), (10.0, 5000.0));
        assert_eq!(read(&mut plans, LOGGED), [], "once");
        let mut others = LoggedPlans::default();
        assert_eq!(read(&mut others, &LOGGED.replace("5000", "900")), [], "ninety times");
        assert_eq!(read(&mut others, &LOGGED.replace("Actual Rows", "Other")), [], "without log_analyze");
        // A cursor that was read in part.
        let few = LOGGED.replace("5000", "1").replace("\"Plan Rows\": 10", "\"Plan Rows\": 10000");
        assert_eq!(read(&mut others, &few), []);
        // Something else between.
        others.line("LOG:  duration: 1 ms  plan:");
        others.interrupted();
        assert_eq!(read(&mut others, &LOGGED[LOGGED.find('\n').unwrap() + 1..]), []);
    }

    #[test]
    fn a_plan_as_text_ends_with_the_next_message_or_when_nothing_more_comes() {
        let text = "LOG:  duration: 4.321 ms  plan:\n\tQuery Text: select * from parts\n\twhere a = 5;\n\
            \tSeq Scan on parts  (cost=0.00..1.00 rows=10 width=4) (actual rows=5000 loops=1)\n\t  Filter: (a = 5)\n";
        let mut plans = LoggedPlans::default();
        assert_eq!(read(&mut plans, text), []);
        let found = read(&mut plans, "");
        assert_eq!(found[0].subject, "Seq Scan on parts: select * from parts where a = ?;");
        assert_eq!((found[0].figures["estimated_rows"], found[0].figures["actual_rows"]), (10.0, 5000.0));
        let mut plans = LoggedPlans::default();
        assert_eq!(read(&mut plans, &format!("{text}LOG:  x\n")), found);
        let mut plans = LoggedPlans::default();
        assert_eq!(read(&mut plans, &text.replace("5000", "900")), []);
        assert_eq!(read(&mut plans, "LOG:  x\n"), []);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(lines in proptest::collection::vec("\t?[{}\"a-z:, 0-9]{0,20}", 0..20)) {
            let mut plans = LoggedPlans::default();
            plans.line("LOG:  duration: 1 ms  plan:");
            for line in &lines {
                plans.line(line);
            }
            plans.line("\t}");
            let _ = plans.news(0, &mut || 0);
        }
    }
}

//! Whether the database still held what an earlier run had done to it.

use kelvin_measure::observation::CaptureTime;

use super::FindingDefinition;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text::percent;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "not-reset", question: "Had an earlier run already changed the database?", find };

/// Below this, what an earlier run left behind is less than what runs differ by anyway.
const GROWTH: f64 = 0.02;

fn find(evidence: &Evidence) -> Vec<Finding> {
    // What differs after a reset differs because the earlier run had other data, not because it had changed these.
    if evidence.built() || was_reset(evidence) {
        return Vec::new();
    }
    let Some(earlier) = evidence.earlier.as_deref() else { return Vec::new() };
    let mut facts = Vec::new();
    if let (Some(before), Some(now)) = (size(earlier), size(evidence))
        && now > before * (1.0 + GROWTH)
    {
        facts.push(EvidenceLine::new(
            "size of the database when the load began",
            format!(
                "{:.1} MB, in the earlier run {:.1} MB ({} more)",
                now / 1e6,
                before / 1e6,
                percent(now / before - 1.0)
            ),
        ));
    }
    let grown = |of: &Evidence| {
        let (relations, _) = of.relations(CaptureTime::Before)?;
        let rows = relations.iter().filter(|relation| relation.kind == "table");
        Some(rows.filter_map(|relation| Some((relation.name.clone(), relation.rows?))).collect::<Vec<_>>())
    };
    if let (Some(before), Some(now)) = (grown(earlier), grown(evidence)) {
        let more = now.iter().filter_map(|(name, rows)| {
            let old = before.iter().find(|(of, _)| of == name)?.1;
            // Estimates move a little by themselves.
            (*rows as f64 > old as f64 * 1.02 && *rows > old + 100).then_some((name, old, *rows))
        });
        facts.extend(more.take(5).map(|(name, old, rows)| {
            EvidenceLine::new(format!("rows of {name}"), format!("{rows}, in the earlier run {old}"))
        }));
    }
    if facts.is_empty() {
        return Vec::new();
    }
    let run = earlier.context.run.map_or("an earlier run".to_owned(), |run| format!("run {run}"));
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!("The database has not been reset since {run}"),
        evidence: facts,
        effect: Effect::unknown("the cost of more data and dead rows cannot be measured within one run"),
        below_precision: false,
        threshold:
            "2 % more bytes, or 2 % more rows in a table, than at the start of the earlier run on the same \
            target, with no build in between"
                .into(),
        next:
            "Give runs that you compare the same data: `--reset auto` builds the data once and restores it \
            before every run."
                .into(),
    }]
}

/// Whether the data were restored before the run: a run that asks for it ends when that fails.
fn was_reset(evidence: &Evidence) -> bool {
    let how = evidence.context.spec("/reset/how").and_then(serde_json::Value::as_str);
    how.is_some_and(|how| how != "none")
}

fn size(of: &Evidence) -> Option<f64> {
    let recorded = of.context.environment("/database_bytes").and_then(serde_json::Value::as_f64);
    recorded
        .or_else(|| of.relations(CaptureTime::Before).map(|(_, bytes)| bytes as f64))
        .filter(|bytes| *bytes > 0.0)
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::{Event, Phase};
    use serde_json::json;

    use super::*;
    use crate::scene::Scene;

    #[test]
    fn trial_d8_growth_since_the_earlier_run_is_reported_where_it_is_news() {
        let sized = |bytes: u64| {
            let mut scene = Scene::healthy();
            scene.environment["database_bytes"] = json!(bytes);
            scene
        };
        let found = |scene: Scene, earlier: Option<Scene>| {
            let mut evidence = scene.evidence();
            evidence.earlier = earlier.map(|scene| Box::new(scene.evidence()));
            find(&evidence).len()
        };
        assert_eq!(found(sized(110_000_000), None), 0);
        assert_eq!(found(sized(110_000_000), Some(sized(100_000_000))), 1);
        assert_eq!(found(sized(100_000_000), Some(sized(100_100_000))), 0, "built again");
        assert_eq!(found(sized(101_000_000), Some(sized(100_000_000))), 0, "1 % is no news");
        assert_eq!(found(Scene::healthy(), Some(sized(100_000_000))), 0);
        let reset = |how: &str| Scene { spec: json!({ "reset": { "how": how } }), ..sized(110_000_000) };
        assert_eq!(found(reset("auto"), Some(sized(100_000_000))), 0);
        assert_eq!(found(reset("none"), Some(sized(100_000_000))), 1);
        let built = Event::Phase { point: 0, phase: Phase::Build, at: 0, users: 0, planned: None };
        let built = Scene { more: vec![built], ..sized(110_000_000) };
        assert_eq!(found(built, Some(sized(100_000_000))), 0);
    }
}

//! Whether the host has effectively changed since the last measurement.

use serde_json::Value;

use super::FindingDefinition;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text::percent;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "machine-changed",
    question: "Has the machine changed since the last run?",
    find,
};

/// Facts that affect results, and their names.
const FIELDS: [(&str, &str); 14] = [
    ("/client_host/kernel", "kernel"),
    ("/client_host/operating_system", "operating system"),
    ("/client_host/cpu/model", "CPU model"),
    ("/client_host/cpu/threads", "hardware threads"),
    ("/client_host/cpu/governors", "frequency governor"),
    ("/client_host/cpu/mitigations", "mitigations"),
    ("/client_host/cpu/numa_nodes", "NUMA nodes"),
    ("/client_host/memory/swap_bytes", "swap bytes"),
    ("/client_host/memory/huge_pages", "huge pages"),
    ("/client_host/memory/transparent_huge_pages", "transparent huge pages"),
    ("/client_host/memory/swappiness", "swappiness"),
    ("/client_host/clock_source", "clock source"),
    ("/client_host/cgroup_cpu_limit", "CPU limit of the control group"),
    ("/client_host/cgroup_memory_limit", "memory limit of the control group"),
];

/// Mean frequencies vary by less than this from run to run.
const FREQUENCY: f64 = 0.05;
/// The memory reserved by the kernel varies slightly from boot to boot.
const MEMORY: f64 = 0.01;

fn find(evidence: &Evidence) -> Vec<Finding> {
    let Some(earlier) = evidence.earlier.as_deref() else { return Vec::new() };
    let name = |of: &Evidence| of.context.environment("/client_host/name").cloned();
    if name(evidence).is_none() || name(evidence) != name(earlier) {
        return Vec::new();
    }
    let mut facts: Vec<EvidenceLine> = FIELDS
        .iter()
        .filter_map(|(path, what)| {
            let (before, now) = (earlier.context.environment(path)?, evidence.context.environment(path)?);
            (before != now).then(|| {
                EvidenceLine::new(
                    *what,
                    format!("{}, previously {}", describe_value(now), describe_value(before)),
                )
            })
        })
        .collect();
    let memory = |of: &Evidence| of.context.environment("/client_host/memory/total_bytes")?.as_f64();
    if let (Some(before), Some(now)) = (memory(earlier), memory(evidence))
        && (now - before).abs() > MEMORY * before
    {
        facts.push(EvidenceLine::new("memory bytes", format!("{now:.0}, previously {before:.0}")));
    }
    facts.extend(frequency(earlier, evidence));
    if facts.is_empty() {
        return Vec::new();
    }
    let run = earlier.context.run.map_or("the previous run".to_owned(), |run| format!("run {run}"));
    let things: Vec<&str> = facts.iter().map(|fact| fact.what.as_str()).collect();
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!("The machine has changed since {run}: {}", things.join(", ")),
        evidence: facts,
        effect: Effect::unknown("no counter shows how the change affected the result"),
        below_precision: false,
        threshold: "any difference that can affect results; for mean CPU frequency 5 %, for memory 1 %"
            .into(),
        next: "Do not compare the two runs as if only the factor under study differed: restore the machine, \
            or repeat the earlier measurement on this one."
            .into(),
    }]
}

fn frequency(earlier: &Evidence, evidence: &Evidence) -> Option<EvidenceLine> {
    let of = |of: &Evidence| of.mean(of.points().next()?.point, metric::CPU_FREQUENCY);
    let (before, now) = (of(earlier)?, of(evidence)?);
    let change = now / before - 1.0;
    (change.abs() > FREQUENCY).then(|| {
        EvidenceLine::new(
            "CPU frequency",
            format!("{now:.0} MHz, previously {before:.0} MHz ({})", percent(change)),
        )
    })
}

/// A value as a person would write it.
pub(super) fn describe_value(value: &Value) -> String {
    match value {
        Value::Null => "not given".into(),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(describe_value).collect::<Vec<_>>().join(", "),
        Value::Object(all) => {
            let each = all.iter().map(|(name, value)| format!("{name}: {}", describe_value(value)));
            each.collect::<Vec<_>>().join("; ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scene::Scene;

    #[test]
    fn differences_of_the_same_host_are_reported() {
        let mut scene = Scene::healthy().metric("host.cpu.total.frequency", 3000.0);
        scene.environment["client_host"]["cpu"]["governors"] = json!(["performance"]);
        let earlier = |scene: &Scene| Some(Box::new(scene.evidence()));
        let mut evidence = scene.evidence();
        assert_eq!(find(&evidence), [], "nothing to compare with");
        evidence.earlier = earlier(&scene);
        assert_eq!(find(&evidence), []);
        scene = scene.metric("host.cpu.total.frequency", 2400.0);
        scene.environment["client_host"]["cpu"]["governors"] = json!(["powersave"]);
        evidence.earlier = earlier(&scene);
        let found = find(&evidence);
        assert_eq!(found[0].evidence[0].found, "performance, previously powersave");
        assert_eq!((found[0].severity, found[0].evidence.len()), (Severity::Amber, 2), "{found:?}");
        scene.environment["client_host"]["name"] = json!("another");
        evidence.earlier = earlier(&scene);
        assert_eq!(find(&evidence), []);
    }
}

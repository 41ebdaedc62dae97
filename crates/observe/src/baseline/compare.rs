//! Two baselines beside each other.

use serde::Serialize;

use super::{Baseline, BaselineFact, BaselineMetric};

/// A figure of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// The figure's name.
    pub name: String,
    /// Its value before, in the figure's unit.
    pub before: f64,
    /// Its value now.
    pub now: f64,
    /// Now through before.
    pub ratio: f64,
    /// Whether it differs by more than [`super::BaselineMetricKind::bound`] allows.
    pub beyond: bool,
    /// Whether it is better than before; only meant where it is beyond.
    pub better: bool,
}

/// A fact that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub label: String,
    /// What it was; none where it was not known.
    pub before: Option<String>,
    /// What it is; none where it is not known any more.
    pub now: Option<String>,
}

/// What two baselines differ in.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Comparison {
    /// Figures of both, in the order of the newer.
    pub lines: Vec<Line>,
    /// Facts that changed.
    pub changed: Vec<Changed>,
    /// Why the figures are not compared, where they are not.
    pub why_not: Option<String>,
}

impl Comparison {
    /// The line of a figure.
    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }
}

/// Compares a baseline with one before it, of the same host.
pub fn compare(now: &Baseline, before: &Baseline) -> Comparison {
    let why_not = if now.method != before.method {
        Some("the earlier report is from a version of kelvin that uses another method".to_owned())
    } else if now.build != before.build {
        Some(format!("the earlier report is from a {} build of kelvin", before.build))
    } else {
        None
    };
    let lines = match why_not {
        Some(_) => Vec::new(),
        None => now.figures.iter().filter_map(|figure| line(figure, now, before)).collect(),
    };
    Comparison { lines, changed: changed(now, before), why_not }
}

fn line(now: &BaselineMetric, at: &Baseline, was: &Baseline) -> Option<Line> {
    let before = was.figures.iter().find(|before| before.name == now.name)?;
    let bound = now.kind.bound()?;
    // Of another directory, database or size they are figures of something else.
    let ground = match now.name.split('.').next()? {
        "sync" => "sync.file-system",
        "disk" => "disk.file-system",
        "database" => "database.target",
        "memory" => "memory.tested",
        _ => "",
    };
    if at.fact(ground) != was.fact(ground) {
        return None;
    }
    let ratio = now.value / before.value;
    if !ratio.is_finite() || before.unit != now.unit {
        return None;
    }
    let beyond = ratio > 1.0 + bound || ratio < 1.0 / (1.0 + bound);
    let better = (ratio > 1.0) == now.kind.more_is_better();
    Some(Line { name: now.name.clone(), before: before.value, now: now.value, ratio, beyond, better })
}

/// Facts that come and go with every reading.
fn is_momentary(fact: &BaselineFact) -> bool {
    matches!(fact.name.as_str(), "database.active" | "clock.monotonic")
}

fn changed(now: &Baseline, before: &Baseline) -> Vec<Changed> {
    let other_database = now.fact("database.target") != before.fact("database.target");
    let skip = |fact: &&BaselineFact| {
        is_momentary(fact)
            || other_database && fact.name.starts_with("database.") && fact.name != "database.target"
    };
    let mut changed: Vec<Changed> = now
        .facts
        .iter()
        .filter(|fact| !skip(fact) && before.fact(&fact.name) != Some(&fact.value))
        .map(|fact| Changed {
            name: fact.name.clone(),
            label: fact.label.clone(),
            before: before.fact(&fact.name).map(str::to_owned),
            now: Some(fact.value.clone()),
        })
        .collect();
    let gone = before.facts.iter().filter(|fact| !skip(fact) && now.fact(&fact.name).is_none());
    changed.extend(gone.map(|fact| Changed {
        name: fact.name.clone(),
        label: fact.label.clone(),
        before: Some(fact.value.clone()),
        now: None,
    }));
    // What was not asked for this time, or last time, has not changed.
    changed.retain(|one| {
        let asked = ["sync.", "disk.", "database."].iter().any(|part| one.name.starts_with(part));
        !asked || one.before.is_some() && one.now.is_some()
    });
    changed
}

#[cfg(test)]
mod tests {
    use super::super::BaselineMetricKind;
    use super::*;

    fn baseline(speed: f64, latency: f64, governor: &str) -> Baseline {
        let mut baseline = Baseline::new();
        baseline.put("processor.single-thread", "speed", speed, "M/s", BaselineMetricKind::Speed, 9);
        baseline.put("sync.p50", "sync", latency, "µs", BaselineMetricKind::Latency, 900);
        baseline.put("host.steal", "steal", 3.0, "%", BaselineMetricKind::Disturbance, 1);
        baseline.add_fact("processor.governor", "governor", governor);
        baseline.add_fact("sync.file-system", "directory", "/a");
        baseline
    }

    #[test]
    fn five_per_cent_of_a_speed_and_thirty_of_a_latency_are_beyond() {
        let before = baseline(100.0, 100.0, "performance");
        let of = |speed, latency| {
            let found = compare(&baseline(speed, latency, "performance"), &before);
            assert_eq!((found.lines.len(), found.changed.len()), (2, 0));
            (found.lines[0].beyond, found.lines[0].better, found.lines[1].beyond, found.lines[1].better)
        };
        assert_eq!(of(104.9, 129.0), (false, true, false, false));
        assert_eq!(of(105.1, 131.0), (true, true, true, false));
        assert_eq!(of(95.3, 77.0), (false, false, false, true));
        assert_eq!(of(95.1, 76.0), (true, false, true, true));
    }

    #[test]
    fn what_is_of_something_else_is_not_compared() {
        let before = baseline(100.0, 100.0, "performance");
        let mut now = baseline(100.0, 500.0, "powersave");
        now.facts[1].value = "/b".into();
        let found = compare(&now, &before);
        assert!(found.line("sync.p50").is_none() && found.line("host.steal").is_none());
        assert_eq!(found.changed.len(), 2);
        now.facts.pop();
        assert_eq!(compare(&now, &before).changed.len(), 1, "not asked for is not changed");
        now.method += 1;
        let found = compare(&now, &before);
        assert!(found.lines.is_empty() && found.why_not.is_some());
    }
}

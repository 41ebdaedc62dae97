//! Whether a run counts. Only the states are defined here; the judgement is made by `kelvin_diagnose::judge`, which has
//! the findings.

use kelvin_measure::event::{AuditLine, CheckLine, Event, Status};
use kelvin_measure::invariant::Invariant;
use serde::{Deserialize, Serialize};

/// Whether anybody still writes the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Liveness {
    /// It has its end.
    Ended,
    /// It has no end yet, and its process lives.
    Running,
    /// It has no end, and its process no longer exists: killed, crashed, or the machine went down.
    Killed,
}

/// Whether a run, or one of its points, can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// It was measured to its planned end and its results are valid.
    Counted,
    /// It was measured to its planned end, and its results must not be used.
    Void,
    /// It has not reached its planned end: interrupted, killed, or still running. Its results cover a part.
    Partial,
    /// It was ended by an error.
    Failed,
}

impl RunState {
    /// Its label, the same in every output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Void => "void",
            Self::Partial => "partial",
            Self::Failed => "failed",
        }
    }
}

/// A state with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// The state.
    pub state: RunState,
    /// Why it does not count, as sentences without their full stop; empty when it does.
    pub reasons: Vec<String>,
}

impl Judgement {
    /// Counted without reasons, else void.
    pub fn from_reasons(reasons: Vec<String>) -> Self {
        let state = if reasons.is_empty() { RunState::Counted } else { RunState::Void };
        Self { state, reasons }
    }

    /// The state of a run that did not reach its planned end; `None` for one that did.
    pub fn of_end(status: Status, liveness: Liveness, error: Option<&str>) -> Option<Self> {
        let (state, reason) = match (status, liveness) {
            (Status::Complete, _) => return None,
            (Status::Interrupted, _) => {
                (RunState::Partial, "it was interrupted; its results cover the shorter window".to_owned())
            }
            (Status::Failed, _) => {
                let error = error.map_or(String::new(), |error| format!(": {error}"));
                (RunState::Failed, format!("it ended with an error{error}"))
            }
            (Status::Partial, Liveness::Running) => (RunState::Partial, "it is still running".to_owned()),
            (Status::Partial, _) => {
                (RunState::Partial, "it was killed before its end; its last seconds are missing".to_owned())
            }
        };
        Some(Self { state, reasons: vec![reason] })
    }

    /// The same with an objection from its group: a study excludes runs for reasons that are in no run's events.
    #[must_use]
    pub fn with_void(mut self, void: Option<&str>) -> Self {
        // A study may exclude a run for the run's own reason.
        if let Some(void) =
            void.filter(|void| !self.reasons.iter().any(|known| void.contains(known.as_str())))
        {
            self.reasons.push(void.to_owned());
            if self.state == RunState::Counted {
                self.state = RunState::Void;
            }
        }
        self
    }

    /// Whether the run counts.
    pub fn counts(&self) -> bool {
        self.state == RunState::Counted
    }

    /// Its [`words`](Self::words) if it does not count.
    pub fn why_not(&self) -> Option<String> {
        (!self.counts()).then(|| self.describe())
    }

    /// "counted", "void: check failed: …; …".
    pub fn describe(&self) -> String {
        let word = self.state.word();
        if self.reasons.is_empty() { word.to_owned() } else { format!("{word}: {}", self.reasons.join("; ")) }
    }
}

/// Why an invariant voids its point; none when it holds or could not be judged.
pub fn broken_invariant(invariant: &Invariant) -> Option<String> {
    (!invariant.holds).then(|| format!("check failed: {} ({})", invariant.name, invariant.evidence))
}

/// Why a line of the self-audit voids its point; none when it holds.
pub fn failed_audit(line: &AuditLine) -> Option<String> {
    let value = (line.value * 1e4).round() / 1e4;
    (!line.valid).then(|| format!("self-audit failed: {} is {value}{}", line.name, line.unit))
}

/// Why a consistency condition voids its run; none when it holds.
pub fn broken_condition(line: &CheckLine) -> Option<String> {
    line.fails().then(|| format!("condition {} does not hold, {}: {}", line.number, line.name, line.detail))
}

/// Whether the list of runs shows an event. Invariants are shown if they are violated: most events of that kind need
/// not be read for the list.
pub(crate) fn is_listed(event: &Event) -> bool {
    match event {
        Event::Window(_) | Event::Errors(_) | Event::MaximumRate(_) | Event::Finished { .. } => true,
        Event::Audit { lines, .. } => lines.iter().any(|line| !line.valid),
        Event::Invariant { invariant, .. } => !invariant.holds,
        Event::Check { line, .. } => !line.holds,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::Phase;

    use super::*;

    #[test]
    fn every_end_has_its_state_and_only_a_complete_run_can_count() {
        let of =
            |status, liveness| Judgement::of_end(status, liveness, Some("disk full")).map(|j| j.describe());
        assert_eq!(of(Status::Complete, Liveness::Ended), None);
        for (status, liveness, words) in [
            (Status::Interrupted, Liveness::Ended, "partial: it was interrupted"),
            (Status::Partial, Liveness::Running, "partial: it is still running"),
            (Status::Partial, Liveness::Killed, "partial: it was killed"),
            (Status::Failed, Liveness::Ended, "failed: it ended with an error: disk full"),
        ] {
            assert!(of(status, liveness).unwrap().starts_with(words), "{words}");
        }
        assert_eq!(Judgement::from_reasons(Vec::new()).describe(), "counted");
        assert_eq!(Judgement::from_reasons(vec!["a".into(), "b".into()]).describe(), "void: a; b");
    }

    #[test]
    fn the_list_reads_what_must_hold_only_where_it_does_not() {
        let audit = |valid| {
            let line = |valid| AuditLine {
                name: "a".into(),
                value: 1.0,
                low: 0.0,
                high: 2.0,
                unit: String::new(),
                samples: 1,
                valid,
            };
            Event::Audit { point: 0, lines: vec![line(true), line(valid)] }
        };
        let invariant = |holds| Event::Invariant { point: 0, invariant: Invariant::new("a", holds, "1 = 2") };
        let check = |holds| {
            let line = CheckLine {
                number: 1,
                name: "a".into(),
                holds,
                detail: "\"holds\":false".into(),
                exempt: None,
            };
            Event::Check { phase: Phase::CheckAfter, line }
        };
        for (held, broken) in
            [(audit(true), audit(false)), (invariant(true), invariant(false)), (check(true), check(false))]
        {
            assert!(!is_listed(&held) && is_listed(&broken), "{held:?}");
        }
        assert!(is_listed(&Event::Finished { status: Status::Complete, error: None }));
    }
}

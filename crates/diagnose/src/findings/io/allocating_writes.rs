//! Whether writes had to find or convert space, or only overwrote.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::{ProbedTargetKind, StorageFacts, TargetFacts};

use super::{IoFindingDefinition, doing, share};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-allocating-writes",
    question: "Did writes only overwrite, or did the filesystem have to allocate space?",
    find,
};

/// Share of the region.
const AMBER: f64 = 0.05;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    if doing(facts, Direction::Write).next().is_none() {
        return Vec::new();
    }
    let mut evidence = Vec::new();
    let (mut least, mut most) = (0.0_f64, 0.0_f64);
    for target in
        facts.targets.iter().filter(|target| target.written && target.kind == ProbedTargetKind::File)
    {
        let (part, facts) = of_target(target);
        if part >= AMBER {
            (least, most) = (if least == 0.0 { part } else { least.min(part) }, most.max(part));
            evidence.extend(facts);
        }
    }
    if evidence.is_empty() {
        return Vec::new();
    }
    evidence.truncate(6);
    let part = if text::percent(least) == text::percent(most) {
        text::percent(most)
    } else {
        format!("{} to {}", text::percent(least), text::percent(most))
    };
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!(
            "{part} of the written region had no blocks to overwrite: the filesystem allocates or converts \
            space"
        ),
        evidence,
        effect: Effect::unknown(
            "the filesystem's own time is part of each write and is not timed separately",
        ),
        below_precision: false,
        threshold: "5 % of a file's region: beyond its end, in holes, in extents that were never written \
            (FIEMAP), or in extents shared with another file (copied on the first write)"
            .into(),
        next:
            "To measure overwrites, fill the files first with `--prepare` (or `overwrite=1`) and run again; \
            otherwise state that the result is for writing new data."
                .into(),
    }]
}

fn of_target(target: &TargetFacts) -> (f64, Vec<EvidenceLine>) {
    let span = target.span();
    let path = target.path.display();
    let mut facts = Vec::new();
    let mut new = 0;
    let mut add = |what: &str, bytes: u64| {
        if bytes > 0 {
            new += bytes;
            facts.push(EvidenceLine::new(
                format!("{path}: {what}"),
                format!("{} of {}", text::storage(bytes as f64), text::storage(span as f64)),
            ));
        }
    };
    match (target.size, target.after.as_ref().map(|after| after.size)) {
        (Some(size), _) => add("beyond its end", target.region.1.saturating_sub(size.max(target.region.0))),
        // Created during the run, and not examined again when the jobs began.
        (None, Some(size)) => add("created by the run", span.min(size.saturating_sub(target.region.0))),
        (None, None) => {}
    }
    if let Some(coverage) = &target.coverage {
        add("holes", coverage.hole);
        add("reserved and never written", coverage.unwritten);
        add("shared with another file", coverage.shared);
    }
    (share(new, span), facts)
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, before, reading, severities};
    use super::*;

    #[test]
    fn what_cannot_be_overwritten_is_reported() {
        let with = |change: &dyn Fn(&mut TargetFacts)| {
            let mut facts = before();
            change(&mut facts.targets[0]);
            facts
        };
        assert_eq!(severities(&ABOUT, &before()), []);
        let unwritten = with(&|target| target.coverage.as_mut().unwrap().unwritten = 8 << 30);
        assert_eq!(severities(&ABOUT, &unwritten), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &reading(unwritten)), []);
        assert_eq!(
            severities(&ABOUT, &with(&|target| target.coverage.as_mut().unwrap().shared = 4 << 30)),
            [Severity::Amber]
        );
        assert_eq!(severities(&ABOUT, &with(&|target| target.size = Some(1 << 30))), [Severity::Amber]);
        assert_eq!(severities(&ABOUT, &with(&|target| target.coverage.as_mut().unwrap().hole = 1 << 20)), []);
        let mut made = after();
        (made.targets[0].size, made.targets[0].coverage) = (None, None);
        assert_eq!(severities(&ABOUT, &made), [Severity::Amber]);
    }
}

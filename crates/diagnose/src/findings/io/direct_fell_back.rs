//! Whether I/O past the page cache really went past it.

use kelvin_measure::text;
use kelvin_storage::probe::{ProbedTargetKind, StorageFacts, TargetFacts};

use super::IoFindingDefinition;
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-direct-fell-back",
    question: "Did O_DIRECT bypass the page cache, or did the filesystem fall back to it?",
    find,
};

/// Share of what was moved, or of the region where that is smaller, which is in the cache afterwards and was not before.
const SHARE: f64 = 0.05;
/// Fewer bytes may be another's.
const FEWEST: u64 = 1 << 20;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    if facts.run.is_none() {
        return Vec::new();
    }
    facts.targets.iter().filter_map(of_target).collect()
}

fn of_target(target: &TargetFacts) -> Option<Finding> {
    if target.kind != ProbedTargetKind::File || !target.direct || target.buffered {
        return None;
    }
    let after = target.after.as_ref()?;
    // A file that grew may have been laid out after it was examined.
    let unchanged = target.size == Some(after.size);
    let (before, cached) = (target.cached?, after.cached?);
    let came = cached.bytes.saturating_sub(before.bytes);
    let moved: u64 = after.moved.iter().map(|(_, bytes)| bytes).sum();
    let most = moved.min(target.span());
    if !unchanged || came < FEWEST || (came as f64) < SHARE * most as f64 {
        return None;
    }
    let mut evidence = vec![
        EvidenceLine::new("page cache of the file before", text::storage(before.bytes as f64)),
        EvidenceLine::new("after", text::storage(cached.bytes as f64)),
        EvidenceLine::new("the jobs moved", text::storage(moved as f64)),
    ];
    evidence.extend(target.filesystem.as_ref().map(|filesystem| {
        let options = if filesystem.options.is_empty() {
            String::new()
        } else {
            format!(" ({})", filesystem.options.join(","))
        };
        EvidenceLine::new("filesystem", format!("{}{options}", filesystem.kind))
    }));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Red,
        point: None,
        title: format!(
            "The filesystem moved {} of {} through the page cache despite O_DIRECT",
            text::storage(came as f64),
            target.path.display()
        ),
        evidence,
        effect: Effect::unknown("how often cached pages were read again is not counted"),
        below_precision: false,
        threshold: "5 % of the bytes moved (or of the region), and at least 1 MiB, that cachestat(2) finds \
            in the page cache after the run but not before"
            .into(),
        next: "Find out why the filesystem falls back (data=journal, filesystem encryption or compression, \
            misaligned lengths or offsets), or measure the device itself."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use kelvin_storage::probe::Cached;

    use super::super::staged::{after, buffered, severities};
    use super::*;

    #[test]
    fn pages_that_came_in_spite_of_direct_are_reported() {
        let with = |bytes| {
            let mut facts = after();
            facts.targets[0].after.as_mut().unwrap().cached = Some(Cached { bytes, dirty: 0 });
            facts
        };
        assert_eq!(severities(&ABOUT, &with(0)), []);
        assert_eq!(severities(&ABOUT, &with(64 << 20)), []);
        assert_eq!(severities(&ABOUT, &with(6 << 30)), [Severity::Red]);
        assert_eq!(severities(&ABOUT, &buffered(with(6 << 30))), []);
        let mut there = with(6 << 30);
        there.targets[0].cached = Some(Cached { bytes: 6 << 30, dirty: 0 });
        assert_eq!(severities(&ABOUT, &there), [], "they were there before");
        let mut grown = with(6 << 30);
        grown.targets[0].size = Some(0);
        assert_eq!(severities(&ABOUT, &grown), []);
    }
}

//! Whether the data can be made smaller than it seems.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::{Content, JobFacts, LayerKind, StorageFacts, TargetFacts};

use super::{IoFindingDefinition, device_of, doing, filled_first, share};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-compressible",
    question: "Can the storage compress or deduplicate the data?",
    find,
};

/// The remaining size after compression, and the share of distinct blocks, below which data is not incompressible.
const LEFT: f64 = 0.9;
const DISTINCT: f64 = 0.9;
/// Minimum number of blocks.
const FEWEST: u32 = 8;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    let read = facts
        .targets
        .iter()
        .enumerate()
        .filter(|(place, target)| target.read && !filled_first(facts, *place));
    let read = read.filter_map(|(_, target)| {
        let shown = small(target.sample.as_ref()?);
        let encoded =
            target.coverage.as_ref().is_some_and(|coverage| share(coverage.encoded, coverage.bytes) > 0.05);
        if shown.is_empty() && (!encoded || target.encrypted) {
            return None;
        }
        let title = format!("The data in {} can be compressed or deduplicated", target.path.display());
        Some(finding(title, shown, reason(facts, target)))
    });
    let written = doing(facts, Direction::Write).filter_map(|job| {
        let buffers = job.buffers.as_ref()?;
        let mut shown = small(buffers);
        if share(u64::from(buffers.zero), u64::from(buffers.blocks)) > 1.0 - DISTINCT {
            shown.push(EvidenceLine::new(
                "blocks of zeros",
                format!("{} of {}", buffers.zero, buffers.blocks),
            ));
        }
        (!shown.is_empty()).then(|| {
            let title = format!("The data that job {} writes can be compressed or deduplicated", job.name);
            finding(title, shown, targets_of(facts, job).find_map(|target| reason(facts, target)))
        })
    });
    read.chain(written).collect()
}

fn targets_of<'a>(facts: &'a StorageFacts, job: &'a JobFacts) -> impl Iterator<Item = &'a TargetFacts> {
    job.targets.iter().filter_map(|place| facts.targets.get(*place))
}

/// The evidence that blocks can be compressed; empty if they cannot.
fn small(content: &Content) -> Vec<EvidenceLine> {
    let data = content.blocks.saturating_sub(content.zero);
    if data < FEWEST {
        return Vec::new();
    }
    let distinct = share(u64::from(content.distinct), u64::from(data));
    let mut shown = Vec::new();
    if content.compressed < LEFT {
        shown.push(EvidenceLine::new(
            "block size after zlib (level 1), on average",
            text::percent(content.compressed),
        ));
    }
    if distinct < DISTINCT {
        shown.push(EvidenceLine::new("distinct blocks", format!("{} of {data}", content.distinct)));
    }
    shown
}

/// The layer that compresses or deduplicates, as far as it can be determined.
fn reason(facts: &StorageFacts, target: &TargetFacts) -> Option<EvidenceLine> {
    if target.compressed {
        return Some(EvidenceLine::new(target.path.display().to_string(), "compressed by the filesystem"));
    }
    if let Some(filesystem) = &target.filesystem
        && let Some(option) = filesystem.options.iter().find(|option| option.starts_with("compress"))
    {
        return Some(EvidenceLine::new(format!("mount option of {}", filesystem.point.display()), option));
    }
    if let Some(coverage) =
        target.coverage.as_ref().filter(|coverage| coverage.encoded > 0 && !target.encrypted)
    {
        return Some(EvidenceLine::new(
            "compressed by the filesystem (FIEMAP)",
            text::storage(coverage.encoded as f64),
        ));
    }
    let layer = device_of(facts, target)?
        .layers
        .iter()
        .find(|layer| matches!(layer.kind, LayerKind::Zram | LayerKind::Vdo))?;
    Some(EvidenceLine::new(
        layer.device.clone(),
        format!("compresses {}", layer.detail).trim_end().to_owned(),
    ))
}

fn finding(title: String, mut evidence: Vec<EvidenceLine>, reason: Option<EvidenceLine>) -> Finding {
    let severity = if reason.is_some() { Severity::Amber } else { Severity::Note };
    evidence.extend(reason);
    Finding {
        id: ABOUT.id,
        severity,
        point: None,
        title,
        evidence,
        effect: Effect::unknown("how far the storage reduces such data is not visible"),
        below_precision: false,
        threshold: "zlib compresses the sampled blocks to less than 90 %, or fewer than 90 % of them are \
            distinct; amber if a filesystem or layer is known to compress or deduplicate. Some SSDs and \
            arrays do this without reporting it"
            .into(),
        next: "Fill the target with random data (`--prepare`), and use `refill_buffers=1` without \
            `zero_buffers` and patterns; or match the real data with `buffer_compress_percentage=` and \
            `dedupe_percentage=`."
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use kelvin_storage::probe::Layer;

    use super::super::staged::{before, severities};
    use super::*;

    #[test]
    fn compressible_and_equal_blocks_are_reported() {
        let read = |compressed, distinct| {
            let mut facts = before();
            let sample = facts.targets[0].sample.as_mut().unwrap();
            (sample.compressed, sample.distinct) = (compressed, distinct);
            facts
        };
        assert_eq!(severities(&ABOUT, &read(1.0, 64)), []);
        assert_eq!(severities(&ABOUT, &read(0.5, 64)), [Severity::Note]);
        assert_eq!(severities(&ABOUT, &read(1.0, 10)), [Severity::Note]);
        let mut zram = read(0.5, 64);
        zram.devices[0].layers =
            vec![Layer { device: "zram0".into(), kind: LayerKind::Zram, detail: "lz4".into() }];
        assert_eq!(severities(&ABOUT, &zram), [Severity::Amber]);
        let mut mounted = read(0.5, 64);
        mounted.targets[0].filesystem.as_mut().unwrap().options = vec!["compress=zstd:3".into()];
        assert_eq!(severities(&ABOUT, &mounted), [Severity::Amber]);
        let mut encoded = read(1.0, 64);
        encoded.targets[0].coverage.as_mut().unwrap().encoded = 4 << 30;
        assert_eq!(severities(&ABOUT, &encoded), [Severity::Amber]);
        encoded.targets[0].encrypted = true;
        assert_eq!(severities(&ABOUT, &encoded), []);
    }

    #[test]
    fn so_are_the_jobs_own_buffers() {
        let mut facts = before();
        facts.jobs[0].buffers.as_mut().unwrap().compressed = 0.3;
        assert_eq!(severities(&ABOUT, &facts), [Severity::Note]);
        (facts.jobs[0].buffers.as_mut().unwrap().compressed, facts.jobs[0].buffers.as_mut().unwrap().zero) =
            (1.0, 64);
        assert_eq!(severities(&ABOUT, &facts), [Severity::Note], "zero_buffers");
        facts.jobs[0].does.0[1] = false;
        assert_eq!(severities(&ABOUT, &facts), []);
    }
}

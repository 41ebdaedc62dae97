//! The one table of options: what can be written in a job file, what it means, and what is refused with which reason.
//! Parsing, help, `--showcmd` and refusal read it.

mod blocks;
mod buffers;
mod depth;
mod engine;
pub(crate) mod engines;
mod entry;
mod errors;
mod job;
mod logs;
mod pattern;
mod process;
mod rate;
mod refused;
mod replay;
mod report;
mod sync;
mod targets;
mod timing;
mod verify;
mod zoned;

pub(crate) use entry::{Effect, OptionEntry, ValueKind};

/// The options by family, in the order in which help shows them.
pub(crate) const FAMILIES: &[(&str, &[OptionEntry])] = &[
    ("job", job::OPTIONS),
    ("targets", targets::OPTIONS),
    ("I/O pattern", pattern::OPTIONS),
    ("zones", zoned::OPTIONS),
    ("block size", blocks::OPTIONS),
    ("buffers", buffers::OPTIONS),
    ("sync", sync::OPTIONS),
    ("I/O engine", engine::OPTIONS),
    ("I/O depth", depth::OPTIONS),
    ("I/O rate", rate::OPTIONS),
    ("timing", timing::OPTIONS),
    ("threads and environment", process::OPTIONS),
    ("verification", verify::OPTIONS),
    ("trace replay", replay::OPTIONS),
    ("errors", errors::OPTIONS),
    ("logs", logs::OPTIONS),
    ("reporting", report::OPTIONS),
    ("not supported", refused::OPTIONS),
];

/// All options.
pub(crate) fn all_options() -> impl Iterator<Item = &'static OptionEntry> {
    FAMILIES.iter().flat_map(|(_, entries)| entries.iter())
}

/// The option of this name or alias.
pub(crate) fn find(name: &str) -> Option<&'static OptionEntry> {
    all_options().find(|entry| entry.is(name))
}

/// All names and aliases.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all_options().flat_map(|entry| std::iter::once(entry.name).chain(entry.aliases.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_for_one_option() {
        let mut seen = std::collections::BTreeSet::new();
        for name in names() {
            assert!(seen.insert(name), "{name} is there twice");
        }
    }

    #[test]
    fn help_is_there_and_brief() {
        for entry in all_options() {
            assert!(!entry.help.is_empty() && entry.help.len() < 100, "{}: {}", entry.name, entry.help);
            if let Effect::Refused(reason) | Effect::Ignored(reason, _) = entry.effect {
                assert!(!reason.is_empty(), "{}", entry.name);
            }
        }
    }
}

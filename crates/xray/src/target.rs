//! Where the devices of X-Ray's machines are on this host.

use std::collections::BTreeMap;
use std::path::Path;

use crate::fault::{Fault, Location, hint};
use crate::scenario::Scenario;

/// What a flag `--map` or `--bind` is about, and what is to be used for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// What stands before the first `=`; empty where there is none.
    pub subject: String,
    /// What stands behind it.
    pub value: String,
}

impl Assignment {
    /// Reads `SUBJECT=VALUE`, or `VALUE` alone.
    pub fn parse(text: &str) -> Self {
        let (subject, value) = text.split_once('=').unwrap_or(("", text));
        Self { subject: subject.trim().to_owned(), value: value.to_owned() }
    }
}

/// The fault of a flag.
pub(crate) fn flag_fault(flag: &str, assignment: &Assignment, message: String) -> Fault {
    let written = if assignment.subject.is_empty() {
        assignment.value.clone()
    } else {
        format!("{}={}", assignment.subject, assignment.value)
    };
    Fault { location: Location { file: format!("{flag} {written}").into(), line: 0 }, message }
}

/// The targets of a scenario's devices.
#[derive(Debug)]
pub(crate) struct Targets {
    /// Of a group's device; `{copy}` stands for the number of the copy.
    patterns: BTreeMap<(String, String), String>,
}

impl Targets {
    /// Places each device of each group: by the flags `--map`, and where they say nothing as a file below `directory`.
    /// The flags are `DIR`, `GROUP=DIR`, `DEVICE=TARGET` and `GROUP:DEVICE=TARGET`; a later one overrides an earlier.
    pub(crate) fn new(scenario: &Scenario, directory: &Path, maps: &[Assignment]) -> Result<Self, Fault> {
        let mut devices: Vec<(String, String)> = Vec::new();
        for workload in &scenario.workloads {
            let used = workload.job.devices().into_iter().map(|device| (workload.group.clone(), device));
            devices.extend(used);
        }
        let mut patterns = BTreeMap::new();
        let file = |directory: &str, group: &str, device: &str| {
            format!("{}/{}-{{copy}}-{}", directory.trim_end_matches('/'), slug(group), slug(short(device)))
        };
        let default = directory.to_string_lossy();
        for (group, device) in &devices {
            patterns.insert((group.clone(), device.clone()), file(&default, group, device));
        }
        for map in maps {
            let mut matched = false;
            for ((group, device), pattern) in &mut patterns {
                let Some(kind) = matches(map, group, device) else { continue };
                matched = true;
                let target =
                    map.value.replace("{group}", &slug(group)).replace("{device}", &slug(short(device)));
                *pattern = match kind {
                    Kind::Directory => file(&target, group, device),
                    Kind::Target => target,
                };
            }
            if map.value.is_empty() {
                return Err(flag_fault("--map", map, "names no file, device or directory".into()));
            }
            if !matched && !map.subject.is_empty() {
                return Err(flag_fault("--map", map, unknown(map, &patterns)));
            }
        }
        Ok(Self { patterns })
    }

    /// The target of a device; `copy` is the number of the copy, or what stands for it.
    pub(crate) fn target(&self, group: &str, device: &str, copy: &str) -> String {
        let key = (group.to_owned(), device.to_owned());
        self.patterns.get(&key).map_or_else(String::new, |pattern| pattern.replace("{copy}", copy))
    }

    /// Refuses two devices in the same place: they would be the same data. `copies` is the number of a group's copies.
    pub(crate) fn check(&self, copies: &dyn Fn(&str) -> u32) -> Result<(), Fault> {
        let mut places: BTreeMap<String, String> = BTreeMap::new();
        for ((group, device), pattern) in &self.patterns {
            let fault = |message: String| Fault {
                location: Location { file: "--map".into(), line: 0 },
                message: format!("{group}:{device}: {message}"),
            };
            let copies = copies(group);
            if copies > 1 && !pattern.contains("{copy}") {
                return Err(fault(format!(
                    "{copies} copies of the group would use {pattern}: write {{copy}} where the number of the copy \
                     belongs"
                )));
            }
            for copy in 1..=copies {
                let place = pattern.replace("{copy}", &copy.to_string());
                let user = format!("{group}:{device} (copy {copy})");
                if let Some(other) = places.insert(place.clone(), user) {
                    return Err(fault(format!("is in the same place as {other}: {place}")));
                }
            }
        }
        Ok(())
    }
}

enum Kind {
    Directory,
    Target,
}

/// Whether a flag is about a device.
fn matches(map: &Assignment, group: &str, device: &str) -> Option<Kind> {
    let is_device = |name: &str| name == device || name == short(device);
    if map.subject.is_empty() || map.subject == group {
        return Some(Kind::Directory);
    }
    let of_group =
        || map.subject.split_once(':').is_some_and(|(name, rest)| name == group && is_device(rest));
    (is_device(&map.subject) || of_group()).then_some(Kind::Target)
}

fn unknown(map: &Assignment, patterns: &BTreeMap<(String, String), String>) -> String {
    let mut known: Vec<String> = Vec::new();
    for (group, device) in patterns.keys() {
        known.extend([group.clone(), device.clone(), format!("{group}:{device}")]);
    }
    known.dedup();
    let hint = hint(&map.subject, known.iter().map(String::as_str));
    format!("{} is not a group, device or GROUP:DEVICE of the scenario{hint}", map.subject)
}

/// A device's name without its directory.
fn short(device: &str) -> &str {
    device.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(device)
}

/// A name of letters, digits and dashes.
pub(crate) fn slug(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            text.push(c.to_ascii_lowercase());
        } else if !text.ends_with('-') && !text.is_empty() {
            text.push('-');
        }
    }
    let text = text.trim_end_matches('-');
    if text.is_empty() { "x".to_owned() } else { text.to_owned() }
}

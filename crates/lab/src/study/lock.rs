//! The hypothesis and everything that determines the answer, fixed before the runs.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{EnvironmentFacts, Study, StudyError};

/// `lock.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lock {
    /// The time of locking.
    pub at: jiff::Timestamp,
    /// The version of Kelvin that locked it.
    pub kelvin: String,
    /// SHA-256 of `parts` as JSON without white space, keys in order; hexadecimal.
    pub sha256: String,
    /// Number of runs started before: their results were known when the hypothesis was fixed.
    pub runs_before: usize,
    /// The fixed values: every value of `study.toml` that determines the answer, defaults included, by its path.
    pub parts: BTreeMap<String, Value>,
}

/// A difference from the lock, or from the previous session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Deviation {
    /// The origin: "study.toml", "lock.json", "plan" (without a lock) or "environment".
    pub of: String,
    /// The path or name of the value.
    pub key: String,
    /// The previous value; none if there was none.
    pub from: Option<String>,
    /// The present value; none if there is none.
    pub to: Option<String>,
}

impl Lock {
    /// Locks a study in its present form.
    pub fn of(study: &Study, kelvin: &str, runs_before: usize) -> Result<Self, StudyError> {
        let parts = parts(study)?;
        let sha256 = hash(&parts)?;
        Ok(Self { at: jiff::Timestamp::now(), kelvin: kelvin.into(), sha256, runs_before, parts })
    }

    /// Reads the file; none if it does not exist.
    pub fn read(path: &Path) -> Result<Option<Self>, StudyError> {
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StudyError::File { what: "read", path: path.into(), source }),
        };
        let wrong = |error: serde_json::Error| StudyError::Parse {
            path: path.display().to_string(),
            message: format!("this is not the lock of a study: {error}"),
        };
        serde_json::from_slice(&text).map(Some).map_err(wrong)
    }

    /// Writes the file, which must not exist yet.
    pub fn write(&self, path: &Path) -> Result<(), StudyError> {
        let failed = |source| StudyError::File { what: "write", path: path.into(), source };
        let mut text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        text.push('\n');
        // A temporary file first: a power failure must not leave half a lock.
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist_noclobber(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// All differences from the lock, in the order of the paths. A modified lock file is one of them.
    pub fn deviations(&self, study: &Study) -> Result<Vec<Deviation>, StudyError> {
        let mut found = Vec::new();
        let hash_of_parts = hash(&self.parts)?;
        if hash_of_parts != self.sha256 {
            found.push(Deviation {
                of: "lock.json".into(),
                key: "sha256".into(),
                from: Some(self.sha256.clone()),
                to: Some(hash_of_parts),
            });
        }
        found.extend(differences("study.toml", &self.parts, &parts(study)?));
        Ok(found)
    }
}

impl Deviation {
    /// The deviation as text: "study.toml design.blocks: 6 → 4".
    pub fn describe(&self) -> String {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
        format!("{} {}: {} → {}", self.of, self.key, value(&self.from), value(&self.to))
    }
}

/// The differences between the environments of two sessions.
pub(super) fn environment(before: &EnvironmentFacts, now: &EnvironmentFacts) -> Vec<Deviation> {
    let values = |facts: &EnvironmentFacts| -> BTreeMap<String, Value> {
        facts.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect()
    };
    differences("environment", &values(before), &values(now))
}

fn differences(of: &str, before: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>) -> Vec<Deviation> {
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let differing = keys.into_iter().filter(|&key| before.get(key) != now.get(key));
    differing
        .map(|key| Deviation {
            of: of.into(),
            key: key.clone(),
            from: before.get(key).map(shown),
            to: now.get(key).map(shown),
        })
        .collect()
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Every value that determines the answer, by its path. The title, the universe and the link to the parent do not.
fn parts(study: &Study) -> Result<BTreeMap<String, Value>, StudyError> {
    let unfit = |error: &dyn std::fmt::Display| {
        StudyError::Refused(format!("the study cannot be written as JSON: {error}"))
    };
    let json = |value: serde_json::Result<Value>| value.map_err(|error| unfit(&error));
    let run: toml::Table = toml::from_str(&study.run.to_toml()).map_err(|error| unfit(&error))?;
    let mut parts = BTreeMap::new();
    flatten(&mut parts, "question".into(), Value::String(study.question.clone()));
    flatten(&mut parts, "goal".into(), json(serde_json::to_value(&study.goal))?);
    flatten(&mut parts, "hypothesis".into(), json(serde_json::to_value(&study.hypothesis))?);
    flatten(&mut parts, "factor".into(), json(serde_json::to_value(&study.factors))?);
    flatten(&mut parts, "design".into(), json(serde_json::to_value(&study.design))?);
    flatten(&mut parts, "metrics".into(), json(serde_json::to_value(&study.metrics))?);
    flatten(&mut parts, "run".into(), json(serde_json::to_value(&run))?);
    Ok(parts)
}

/// Tables, and lists of tables, become paths. A table with a name has that name in its path, so that an additional
/// one does not change the paths of the others.
fn flatten(into: &mut BTreeMap<String, Value>, path: String, value: Value) {
    match value {
        Value::Object(table) if !table.is_empty() => {
            for (key, value) in table {
                flatten(into, format!("{path}.{key}"), value);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.into_iter().enumerate() {
                let name =
                    ["name", "metric"].iter().find_map(|&key| item.get(key)?.as_str().map(str::to_owned));
                let name = name.unwrap_or_else(|| index.to_string());
                flatten(into, format!("{path}.{name}"), item);
            }
        }
        Value::String(text) => {
            into.insert(path, Value::String(kelvin_measure::redact(&text)));
        }
        other => {
            into.insert(path, other);
        }
    }
}

fn hash(parts: &BTreeMap<String, Value>) -> Result<String, StudyError> {
    let text = serde_json::to_string(parts)
        .map_err(|error| StudyError::Refused(format!("the study cannot be written as JSON: {error}")))?;
    let digits = |byte: &u8| [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16));
    Ok(Sha256::digest(text.as_bytes()).iter().flat_map(digits).flatten().collect())
}

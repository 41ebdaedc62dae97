//! The description of a snapshot.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{Error, Result};

/// Changes whenever older descriptions could no longer be understood.
const FORMAT: u32 = 1;

/// How a snapshot is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotMethod {
    /// A database beside the one it is of, copied by the server.
    Template,
    /// Copied files: SQLite's, or the data directory of a stopped managed server.
    Files,
    /// A file of `pg_dump`.
    Dump,
}

impl SnapshotMethod {
    /// The word on the command line and in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Template => "template",
            Self::Files => "files",
            Self::Dump => "dump",
        }
    }
}

impl fmt::Display for SnapshotMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What data a snapshot holds: two with the same contents can stand for one another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// The workload's name, such as "tproc-c"; "script" for tables that are not kelvin's.
    pub workload: String,
    /// Everything that decides the data, as text: size, seed, shape.
    pub data: String,
    /// Product and version of the database.
    pub engine: String,
    /// Whether the data were as their build had left them. What a user keeps by hand may have been run on.
    pub fresh: bool,
}

impl Contents {
    /// What is another in `wanted`, as text; none when the data are the same. Freshness is not compared.
    pub fn difference(&self, wanted: &Self) -> Option<String> {
        let pairs = [
            ("workload", &self.workload, &wanted.workload),
            ("data", &self.data, &wanted.data),
            ("engine", &self.engine, &wanted.engine),
        ];
        let other = pairs.iter().filter(|(_, here, asked)| here != asked);
        let words: Vec<String> =
            other.map(|(what, here, asked)| format!("{what} {here:?}, not {asked:?}")).collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

/// The name of a snapshot of exactly these contents, kept in this way: of others the name is another.
pub fn new_name(contents: &Contents, way: SnapshotMethod) -> String {
    let Contents { workload, data, engine, fresh } = contents;
    let text = format!("{workload}\0{data}\0{engine}\0{fresh}\0{way}");
    format!("{}-{}", contents.workload, hex(&text, 4))
}

/// The first `bytes` bytes of the text's SHA-256 as hexadecimal digits.
pub(crate) fn hex(text: &str, bytes: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(bytes).fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

/// By which files that were changed after they were saved are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    /// Number of files.
    pub files: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// The newest time of modification, in nanoseconds since 1970.
    pub newest: i64,
}

/// A complete snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotInfo {
    format: u32,
    /// Its name.
    pub name: String,
    /// How it is kept.
    pub way: SnapshotMethod,
    /// The database that it is of, without a password.
    pub target: String,
    /// Seconds since 1970 when it was saved.
    pub created: i64,
    /// Bytes that it takes.
    pub bytes: u64,
    /// What it holds.
    pub contents: Contents,
    /// The state of its files; none where the server keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

impl SnapshotInfo {
    pub(crate) fn new(
        name: &str,
        way: SnapshotMethod,
        target: String,
        bytes: u64,
        contents: &Contents,
    ) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            format: FORMAT,
            name: name.to_owned(),
            way,
            target,
            created: now.as_secs() as i64,
            bytes,
            contents: contents.clone(),
            seal: None,
        }
    }

    pub(crate) fn to_text(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| Error::usage(error.to_string()))
    }

    /// None for text that is no description, or one of another format.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let about: Self = toml::from_str(text).ok()?;
        (about.format == FORMAT && super::check_name(&about.name).is_ok()).then_some(about)
    }

    /// Refuses files that are not as they were saved.
    pub(crate) fn must_be_sealed(&self, found: Seal) -> Result<()> {
        match self.seal {
            Some(seal) if seal == found => Ok(()),
            _ => Err(Error::usage(format!(
                "the snapshot {:?} was changed: its files differ from the saved ones",
                self.name
            ))
            .with_help(format!(
                "remove it, and it will be created again: kelvin snapshot drop {}",
                self.name
            ))),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn contents() -> Contents {
        Contents {
            workload: "tproc-c".into(),
            data: "1 warehouse, seed 1".into(),
            engine: "PostgreSQL 15.18".into(),
            fresh: true,
        }
    }

    #[test]
    fn other_contents_have_another_name() {
        let one = contents();
        let names: std::collections::BTreeSet<String> = [
            one.clone(),
            Contents { data: "2 warehouses, seed 1".into(), ..one.clone() },
            Contents { engine: "PostgreSQL 15.19".into(), ..one.clone() },
            Contents { fresh: false, ..one.clone() },
        ]
        .iter()
        .map(|contents| new_name(contents, SnapshotMethod::Template))
        .collect();
        assert_eq!(names.len(), 4);
        assert!(!names.contains(&new_name(&one, SnapshotMethod::Dump)), "two keepers, two snapshots");
        assert!(names.iter().all(|name| crate::snapshot::check_name(name).is_ok()), "{names:?}");
        let other = Contents { data: "2 warehouses, seed 1".into(), ..one.clone() };
        assert_eq!(
            one.difference(&other).unwrap(),
            "data \"1 warehouse, seed 1\", not \"2 warehouses, seed 1\""
        );
        assert_eq!(one.difference(&Contents { fresh: false, ..one.clone() }), None);
    }

    #[test]
    fn a_description_is_read_as_it_was_written() {
        let mut about = SnapshotInfo::new("a-1", SnapshotMethod::Files, "sqlite:/x".into(), 5, &contents());
        about.seal = Some(Seal { files: 1, bytes: 5, newest: 7 });
        assert_eq!(SnapshotInfo::from_text(&about.to_text().unwrap()), Some(about.clone()));
        about.must_be_sealed(Seal { files: 1, bytes: 5, newest: 7 }).unwrap();
        let error = about.must_be_sealed(Seal { files: 1, bytes: 5, newest: 8 }).unwrap_err();
        assert!(error.message().contains("was changed"), "{error}");
        let newer = about.to_text().unwrap().replace("format = 1", "format = 2");
        assert_eq!(SnapshotInfo::from_text(&newer), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "(?s).{0,200}") {
            let _ = SnapshotInfo::from_text(&text);
        }
    }
}

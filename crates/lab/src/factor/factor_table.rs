//! The table of a factor in a file, and its conversion from and to a [`Factor`].

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::level::{Bound, Level, LevelValue};
use super::{Factor, FactorKind};

/// The keys of a factor.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Written {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setting: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    huge_pages: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spec: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mount: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sql: Option<bool>,
    /// Last: a table of levels ends the plain keys of a TOML table.
    levels: Levels,
}

/// The levels, in the order of the file.
#[derive(Debug, Clone)]
struct Levels(Vec<Level>);

impl TryFrom<Written> for Factor {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let name = written.name;
        let hows: Vec<FactorKind> = [
            written.setting.map(FactorKind::Setting),
            written.bind.map(|text| Bound::read(&text).map(FactorKind::Bind)).transpose()?,
            written.huge_pages.filter(|yes| *yes).map(|_| FactorKind::HugePages),
            written.kernel.map(FactorKind::Kernel),
            written.spec.map(FactorKind::Spec),
            written.mount.map(FactorKind::Mount),
            written.command.filter(|yes| *yes).map(|_| FactorKind::Command),
            written.sql.filter(|yes| *yes).map(|_| FactorKind::Sql),
        ]
        .into_iter()
        .flatten()
        .collect();
        let [how] = <[FactorKind; 1]>::try_from(hows).map_err(|hows| {
            let what = if hows.is_empty() { "no key defines" } else { "several keys define" };
            format!(
                "factor {name:?}: {what} what it changes; give one of setting, bind, huge-pages, kernel, spec, mount, \
                 command, sql"
            )
        })?;
        Self::new(&name, written.levels.0, how).map_err(|error| error.to_string())
    }
}

impl From<Factor> for Written {
    fn from(factor: Factor) -> Self {
        let mut written = Self {
            name: factor.name,
            setting: None,
            bind: None,
            huge_pages: None,
            kernel: None,
            spec: None,
            mount: None,
            command: None,
            sql: None,
            levels: Levels(factor.levels),
        };
        match factor.how {
            FactorKind::Setting(name) => written.setting = Some(name),
            FactorKind::Bind(bound) => written.bind = Some(bound.name().into()),
            FactorKind::HugePages => written.huge_pages = Some(true),
            FactorKind::Kernel(key) => written.kernel = Some(key),
            FactorKind::Spec(path) => written.spec = Some(path),
            FactorKind::Mount(directory) => written.mount = Some(directory),
            FactorKind::Command => written.command = Some(true),
            FactorKind::Sql => written.sql = Some(true),
        }
        written
    }
}

impl Serialize for Levels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Written as a list if that is equivalent: every name equals its value.
        if self.0.iter().all(|level| *level == Level::of(level.value.clone())) {
            return serializer.collect_seq(self.0.iter().map(|level| &level.value));
        }
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for level in &self.0 {
            map.serialize_entry(&level.name, &level.value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Levels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListOrTable;
        impl<'de> Visitor<'de> for ListOrTable {
            type Value = Levels;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of levels, or a table of their names and values")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Levels, A::Error> {
                let mut levels = Vec::new();
                while let Some(value) = list.next_element::<LevelValue>()? {
                    levels.push(Level::of(value));
                }
                Ok(Levels(levels))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Levels, A::Error> {
                let mut levels = Vec::new();
                while let Some((name, value)) = table.next_entry::<String, LevelValue>()? {
                    levels.push(Level { name, value });
                }
                Ok(Levels(levels))
            }
        }
        deserializer.deserialize_any(ListOrTable)
    }
}

//! A factor as the design sees it: a name and its levels, whatever is changed for them.

use std::collections::BTreeSet;

use super::design::MOST_LEVELS;

/// A factor's name and the names of its levels, the base level first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its levels in the order of the file.
    pub levels: Vec<String>,
}

/// A name stands in a cell's, between "=" and a blank, and in tables.
const LONGEST_NAME: usize = 40;

impl Axis {
    /// Of a `[[factor]]` table.
    ///
    /// # Errors
    /// What is wrong with its name or its levels.
    pub(super) fn of(table: &toml::Table) -> Result<Self, String> {
        let name = match table.get("name") {
            Some(toml::Value::String(name)) => name.clone(),
            Some(_) => return Err("a factor's name is a text".into()),
            None => return Err("a factor needs a name".into()),
        };
        named("factor", &name)?;
        let levels: Vec<String> = match table.get("levels") {
            Some(toml::Value::Array(values)) => {
                values.iter().map(level).collect::<Option<_>>().ok_or_else(|| {
                    format!(
                        "the levels of \"{name}\" are texts, numbers, true or false; to give a level another name \
                         than its value, write levels = {{ name = value, … }}"
                    )
                })?
            }
            Some(toml::Value::Table(values)) => values.keys().cloned().collect(),
            Some(_) => return Err(format!("the levels of \"{name}\" are a list or a table")),
            None => return Err(format!("factor \"{name}\" needs levels, such as levels = [\"off\", \"on\"]")),
        };
        if !(2..=MOST_LEVELS).contains(&levels.len()) {
            return Err(format!(
                "factor \"{name}\" has {} levels; it takes two to vary something, and {MOST_LEVELS} at most",
                levels.len()
            ));
        }
        let mut seen = BTreeSet::new();
        for level in &levels {
            named("level", level)?;
            if !seen.insert(level) {
                return Err(format!("factor \"{name}\" has the level \"{level}\" twice"));
            }
        }
        Ok(Self { name, levels })
    }
}

fn level(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => None,
    }
}

fn named(what: &str, name: &str) -> Result<(), String> {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && c != '=';
    if name.is_empty() || name.chars().count() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(format!(
            "the {what} name \"{}\" is not one of 1 to {LONGEST_NAME} characters without blanks and \"=\"{}",
            name.escape_debug(),
            if what == "level" { "; name its value: levels = { name = value, … }" } else { "" }
        ));
    }
    Ok(())
}

//! The file's values with their places, and what is put in for `${NAME}`.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use kelvin_run::{nearest, spec};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::error::Refusal;

/// A value with its place.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

/// The most copies of a tenant, and rounds of steps.
pub(crate) const MOST_COPIES: usize = 1000;

/// Numbers of copies and rounds, as the text that values are parsed from.
static NUMBERS: LazyLock<Vec<String>> =
    LazyLock::new(|| (1..=MOST_COPIES).map(|number| number.to_string()).collect());

/// A number of a copy or a round, from 1.
pub(crate) fn number(number: usize) -> DeValue<'static> {
    let text = NUMBERS.get(number.wrapping_sub(1)).map_or("0", String::as_str);
    DeValue::parse(text).map_or(DeValue::Boolean(false), Spanned::into_inner)
}

/// What stands for which name; later ones hide earlier ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names<'a>(Vec<(Cow<'a, str>, DeValue<'a>)>);

impl<'a> Names<'a> {
    /// The same and one more.
    pub(crate) fn with(&self, name: impl Into<Cow<'a, str>>, value: DeValue<'a>) -> Self {
        let mut more = self.clone();
        more.0.push((name.into(), value));
        more
    }

    fn find(&self, name: &str) -> Result<&DeValue<'a>, String> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value).ok_or_else(|| {
            let meant = nearest(name, self.0.iter().map(|(known, _)| known.as_ref()));
            let meant = meant.map_or_else(String::new, |meant| format!("; did you mean ${{{meant}}}?"));
            format!("there is no parameter \"{name}\"{meant}; $${{ is a literal ${{")
        })
    }

    /// Puts values in for all names in all strings of `value`.
    pub(crate) fn put_into(&self, value: &mut Value<'a>) -> Result<(), Refusal> {
        let span = value.span();
        match value.get_mut() {
            DeValue::String(text) if text.contains("${") => {
                let new = self.expanded(text).map_err(|message| (span, message))?;
                *value.get_mut() = new;
                Ok(())
            }
            DeValue::Array(items) => items.iter_mut().try_for_each(|item| self.put_into(item)),
            DeValue::Table(table) => table.iter_mut().try_for_each(|(_, item)| self.put_into(item)),
            _ => Ok(()),
        }
    }

    fn expanded(&self, text: &str) -> Result<DeValue<'a>, String> {
        let whole = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        if let Some(name) = whole.filter(|name| !name.contains(['$', '{', '}'])) {
            return self.find(name).cloned();
        }
        let (mut done, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find("${") {
            if let Some(before) = rest[..at].strip_suffix('$') {
                done.push_str(before);
                done.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            done.push_str(&rest[..at]);
            let (name, behind) = rest[at + 2..]
                .split_once('}')
                .ok_or_else(|| "${ has no end; $${ is a literal ${".to_owned())?;
            match self.find(name)? {
                DeValue::String(value) => done.push_str(value),
                DeValue::Integer(value) => done.push_str(&value.to_string()),
                DeValue::Float(value) => done.push_str(&value.to_string()),
                DeValue::Boolean(value) => done.push_str(&value.to_string()),
                other => return Err(format!("${{{name}}} is a {}, not text", other.type_str())),
            }
            rest = behind;
        }
        done.push_str(rest);
        Ok(DeValue::String(Cow::Owned(done)))
    }
}

/// What a value says as a type.
pub(crate) fn read<T: DeserializeOwned>(value: Value<'_>) -> Result<T, Refusal> {
    let whole = value.span();
    T::deserialize(ValueDeserializer::from(value)).map_err(|error| refusal(&error, whole))
}

/// What the parser says.
pub(crate) fn refusal(error: &toml::de::Error, whole: Range<usize>) -> Refusal {
    (error.span().unwrap_or(whole), spec::with_suggestion(error.message()))
}

/// A table, taken out of another one; none if there is none.
pub(crate) fn take_table<'a>(
    from: &mut DeTable<'a>,
    key: &str,
) -> Result<Option<(Range<usize>, DeTable<'a>)>, Refusal> {
    let Some(value) = from.remove(key) else { return Ok(None) };
    let span = value.span();
    match value.into_inner() {
        DeValue::Table(table) => Ok(Some((span, table))),
        other => Err((span, format!("\"{key}\" must be a table, but is a {}", other.type_str()))),
    }
}

/// A list, taken out of a table; empty if there is none.
pub(crate) fn take_list<'a>(from: &mut DeTable<'a>, key: &str) -> Result<Vec<Value<'a>>, Refusal> {
    let Some(value) = from.remove(key) else { return Ok(Vec::new()) };
    let span = value.span();
    match value.into_inner() {
        DeValue::Array(items) => Ok(items.into_iter().collect()),
        other => Err((span, format!("\"{key}\" must be a list, but is a {}", other.type_str()))),
    }
}

//! Parameters: what whoever runs a scenario may choose, within the bounds that its file sets.

use std::ops::Range;

use kelvin_run::spec::Span;
use serde::Deserialize;
use toml::Value;

use crate::document::{self, Value as Placed};
use crate::error::Refusal;

/// The types of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Type {
    Integer,
    Number,
    Duration,
    Text,
    Boolean,
}

impl Type {
    fn word(self) -> &'static str {
        match self {
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Duration => "a duration such as \"30s\"",
            Self::Text => "a text",
            Self::Boolean => "true or false",
        }
    }

    /// A value as the file has it.
    fn takes(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Integer | Self::Number, Value::Integer(_))
            | (Self::Text, Value::String(_))
            | (Self::Boolean, Value::Boolean(_)) => true,
            (Self::Number, Value::Float(number)) => number.is_finite(),
            (Self::Duration, Value::String(text)) => text.parse::<Span>().is_ok(),
            _ => false,
        }
    }

    /// A value as the command line has it.
    fn parse(self, text: &str) -> Option<Value> {
        let value = match self {
            Self::Integer => Value::Integer(text.parse().ok()?),
            Self::Number => Value::Float(text.parse().ok()?),
            Self::Duration | Self::Text => Value::String(text.into()),
            Self::Boolean => Value::Boolean(text.parse().ok()?),
        };
        Some(value).filter(|value| self.takes(value))
    }

    /// Where it stands among others of its type; none for types without an order.
    fn order(self, value: &Value) -> Option<f64> {
        match (self, value) {
            (Self::Integer | Self::Number, Value::Integer(number)) => Some(*number as f64),
            (Self::Number, Value::Float(number)) => Some(*number),
            (Self::Duration, Value::String(text)) => {
                text.parse::<Span>().ok().map(|span| span.duration().as_secs_f64())
            }
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    r#type: Type,
    default: Value,
    min: Option<Value>,
    max: Option<Value>,
    choices: Option<Vec<Value>>,
    description: Option<String>,
}

/// A parameter with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its value as TOML.
    pub value: String,
    /// The value that it has when nobody chooses, as TOML.
    pub default: String,
    /// What it may be, as text: "a number, 1 to 100".
    pub range: String,
    /// What it is for.
    pub description: Option<String>,
}

impl Parameter {
    /// Reads `[parameters.NAME]`; `chosen` is what somebody chose instead of the default.
    pub(crate) fn read(name: &str, value: Placed<'_>, chosen: Option<&str>) -> Result<Self, Refusal> {
        let span = value.span();
        let table: Table = document::read(value)?;
        let of = |message: String| -> Refusal { (span.clone(), format!("parameter {name}: {message}")) };
        let kind = table.r#type;
        let ends = [("min", &table.min), ("max", &table.max)];
        for (key, end) in ends.iter().filter_map(|(key, end)| Some((key, end.as_ref()?))) {
            if !kind.takes(end) || kind.order(end).is_none() {
                return Err(of(format!("{key} = {end} does not suit {}", kind.word())));
            }
        }
        if let Some(choice) = table.choices.iter().flatten().find(|choice| !kind.takes(choice)) {
            return Err(of(format!("the choice {choice} is not {}", kind.word())));
        }
        if !kind.takes(&table.default) {
            return Err(of(format!("the default {} is not {}", table.default, kind.word())));
        }
        table.check(&table.default).map_err(|why| of(format!("the default {} {why}", table.default)))?;
        let value = match chosen {
            None => table.default.clone(),
            Some(text) => {
                let value =
                    kind.parse(text).ok_or_else(|| of(format!("\"{text}\" is not {}", kind.word())))?;
                table.check(&value).map_err(|why| of(format!("{text} {why}")))?;
                value
            }
        };
        Ok(Self {
            name: name.into(),
            value: value.to_string(),
            default: table.default.to_string(),
            range: table.range(),
            description: table.description,
        })
    }
}

impl Table {
    /// Why a value cannot be taken.
    fn check(&self, value: &Value) -> Result<(), String> {
        let at = self.r#type.order(value);
        let order = |end: &Option<Value>| end.as_ref().and_then(|end| self.r#type.order(end));
        let below = at.zip(order(&self.min)).is_some_and(|(at, min)| at < min);
        let above = at.zip(order(&self.max)).is_some_and(|(at, max)| at > max);
        let chosen = self.choices.as_ref().is_none_or(|choices| {
            choices.contains(value)
                || at.is_some_and(|at| choices.iter().any(|one| self.r#type.order(one) == Some(at)))
        });
        if below || above || !chosen {
            return Err(format!("is out of range: {}", self.range()));
        }
        Ok(())
    }

    fn range(&self) -> String {
        let word = self.r#type.word();
        if let Some(choices) = &self.choices {
            let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
            return format!("one of {}", choices.join(", "));
        }
        match (&self.min, &self.max) {
            (Some(min), Some(max)) => format!("{word}, {min} to {max}"),
            (Some(min), None) => format!("{word}, at least {min}"),
            (None, Some(max)) => format!("{word}, at most {max}"),
            (None, None) => word.into(),
        }
    }
}

/// Refuses a choice of a parameter that the file does not have.
pub(crate) fn unknown(chosen: &str, known: &[Parameter]) -> String {
    let meant = kelvin_run::nearest(chosen, known.iter().map(|parameter| parameter.name.as_str()));
    let meant = meant.map_or_else(String::new, |meant| format!(" (did you mean {meant}?)"));
    format!("there is no parameter \"{chosen}\"{meant}")
}

/// The place of nothing in particular.
pub(crate) const NOWHERE: Range<usize> = 0..0;

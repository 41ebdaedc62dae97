//! A client's variables, by slot. Names exist only while scripts are compiled.

use std::collections::HashMap;

use kelvin_database::Value as Parameter;

use super::expression::{Fault, Lookup, Names, Value};

/// Maps names to slots. All scripts of a run share it, as pgbench's clients share their variables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    names: HashMap<String, u32>,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The slot of a name that a script uses.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    pub(crate) fn name(&self, slot: u32) -> &str {
        self.names.iter().find(|(_, found)| **found == slot).map_or("?", |(name, _)| name)
    }
}

impl Names for Slots {
    fn slot(&mut self, name: &str) -> u32 {
        if let Some(&slot) = self.names.get(name) {
            return slot;
        }
        let slot = self.names.len() as u32;
        self.names.insert(name.to_owned(), slot);
        slot
    }
}

/// Content of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Content {
    #[default]
    Undefined,
    Value(Value),
    /// Text from the command line or from a result.
    Text,
}

#[derive(Debug, Clone, Default)]
struct Variable {
    content: Content,
    /// The text itself, or the text of a double if a statement needs it.
    text: String,
}

impl Variable {
    fn has_text(&self) -> bool {
        matches!(self.content, Content::Text | Content::Value(Value::Double(_)))
    }
}

/// The variables of one client.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    variables: Vec<Variable>,
}

impl Variables {
    pub(crate) fn new(slots: &Slots) -> Self {
        Self { variables: vec![Variable::default(); slots.len()] }
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: u32, value: Value) {
        if let Some(variable) = self.variables.get_mut(slot as usize) {
            variable.content = Content::Value(value);
            if let Value::Double(_) = value {
                variable.text.clear();
                value.write(&mut variable.text);
            }
        }
    }

    pub(crate) fn set_text(&mut self, slot: u32, text: &str) {
        if let Some(variable) = self.variables.get_mut(slot as usize) {
            variable.content = Content::Text;
            variable.text.clear();
            variable.text.push_str(text);
        }
    }

    /// Defines a variable from external text. A number in canonical form is stored as a number, so that it is
    /// not parsed at each evaluation.
    pub(crate) fn define(&mut self, slot: u32, text: &str) {
        match text.parse::<i64>() {
            Ok(value) if value.to_string() == text => self.set(slot, Value::Integer(value)),
            _ => self.set_text(slot, text),
        }
    }

    /// Converts defined text with a fraction or exponent to a double; used where types are sent.
    pub(crate) fn define_double(&mut self, slot: u32) {
        let Some(variable) = self.variables.get(slot as usize) else { return };
        let numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
        if variable.content == Content::Text
            && variable.text.bytes().all(numeric)
            && variable.text.contains(['.', 'e', 'E'])
            && let Ok(value) = variable.text.parse()
        {
            self.set(slot, Value::Double(value));
        }
    }

    /// The variable as a parameter: with its own type if `typed`, otherwise as text or integer. NULL if it is
    /// undefined.
    #[inline]
    pub(crate) fn parameter(&self, slot: u32, typed: bool) -> Parameter<'_> {
        let Some(variable) = self.variables.get(slot as usize) else { return Parameter::Null };
        match variable.content {
            Content::Value(Value::Integer(value)) => Parameter::Int(value),
            Content::Undefined | Content::Value(Value::Null) => Parameter::Null,
            Content::Value(Value::Boolean(value)) if typed => Parameter::Int(value.into()),
            Content::Value(Value::Boolean(value)) => Parameter::Text(if value { "true" } else { "false" }),
            Content::Value(Value::Double(value)) if typed => Parameter::Float(value),
            Content::Value(Value::Double(_)) | Content::Text => Parameter::Text(&variable.text),
        }
    }

    /// Appends the variable's text and returns its kind. Appends nothing for NULL or an undefined variable.
    #[inline]
    pub(crate) fn write(&self, slot: u32, into: &mut String) -> Written {
        match self.variables.get(slot as usize).map(|variable| (variable.content, &variable.text)) {
            None | Some((Content::Undefined, _)) => Written::Undefined,
            Some((Content::Value(Value::Null), _)) => Written::Null,
            Some((Content::Text | Content::Value(Value::Double(_)), text)) => {
                into.push_str(text);
                Written::Text
            }
            Some((Content::Value(value), _)) => {
                value.write(into);
                Written::Text
            }
        }
    }

    /// Copies `other`, reusing memory.
    #[inline]
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.variables.resize_with(other.variables.len(), Variable::default);
        for (mine, theirs) in self.variables.iter_mut().zip(&other.variables) {
            mine.content = theirs.content;
            if theirs.has_text() {
                mine.text.clear();
                mine.text.push_str(&theirs.text);
            }
        }
    }
}

/// The kind of value that [`Variables::write`] has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Undefined,
    Null,
    Text,
}

impl Lookup for Variables {
    fn value(&self, slot: u32) -> Result<Value, Fault> {
        let variable = self.variables.get(slot as usize).ok_or(Fault::Undefined(slot))?;
        match variable.content {
            Content::Undefined => Err(Fault::Undefined(slot)),
            Content::Value(value) => Ok(value),
            Content::Text => Value::from_text(&variable.text).ok_or(Fault::Malformed(slot)),
        }
    }
}

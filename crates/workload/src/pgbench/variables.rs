//! A client's variables, by slot. Names exist only while scripts are compiled.

use std::collections::HashMap;

use super::expression::{Fault, Lookup, Names, Value};

/// Names to slots, shared by all scripts of a run as pgbench's clients share their variables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    names: HashMap<String, u32>,
}

impl Slots {
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// The slot of a name that a script mentions.
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

/// What a variable holds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Content {
    #[default]
    Undefined,
    Value(Value),
    /// Text from the command line or a result.
    Text,
}

#[derive(Debug, Clone, Default)]
struct Variable {
    content: Content,
    text: Vec<u8>,
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
        }
    }

    pub(crate) fn set_text(&mut self, slot: u32, text: &[u8]) {
        if let Some(variable) = self.variables.get_mut(slot as usize) {
            variable.content = Content::Text;
            variable.text.clear();
            variable.text.extend_from_slice(text);
        }
    }

    /// Appends the variable's text and tells what it was: nothing is appended for NULL and the undefined.
    #[inline]
    pub(crate) fn write(&self, slot: u32, into: &mut Vec<u8>) -> Written {
        match self.variables.get(slot as usize).map(|variable| (variable.content, &variable.text)) {
            None | Some((Content::Undefined, _)) => Written::Undefined,
            Some((Content::Value(Value::Null), _)) => Written::Null,
            Some((Content::Value(value), _)) => {
                value.write(into);
                Written::Text
            }
            Some((Content::Text, text)) => {
                into.extend_from_slice(text);
                Written::Text
            }
        }
    }

    /// Makes these the same as `other`, reusing memory.
    #[inline]
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.variables.resize_with(other.variables.len(), Variable::default);
        for (mine, theirs) in self.variables.iter_mut().zip(&other.variables) {
            mine.content = theirs.content;
            if theirs.content == Content::Text {
                mine.text.clear();
                mine.text.extend_from_slice(&theirs.text);
            }
        }
    }
}

/// What [`Variables::write`] found.
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
            Content::Text => std::str::from_utf8(&variable.text)
                .map_err(|_| Fault::Malformed(slot))
                .and_then(|text| Value::from_text(text).ok_or(Fault::Malformed(slot))),
        }
    }
}

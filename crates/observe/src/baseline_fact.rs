//! A fact about a host or a database, as text.

use kelvin_database::ServerFault;
use serde::{Deserialize, Serialize};

/// How the names of facts begin that are faults of the server's version.
const FAULT: &str = "database.fault.";

/// A fact as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineFact {
    /// Stable, dotted: "processor.governor", "database.fsync".
    pub name: String,
    /// The label, for display.
    pub label: String,
    /// The fact.
    pub value: String,
}

impl BaselineFact {
    pub(crate) fn new(name: &str, label: &str, value: impl Into<String>) -> Self {
        Self { name: name.into(), label: label.into(), value: value.into() }
    }

    /// A fault in one line, as a run on such a server reports it.
    pub(crate) fn from_fault(fault: &ServerFault) -> Self {
        let value = format!("{}: {}. {} ({})", fault.versions, fault.what, fault.effect, fault.source);
        Self::new(&format!("{FAULT}{}", fault.id), "known fault", value)
    }

    /// Whether it is a fault of the server's version.
    pub(crate) fn is_fault(&self) -> bool {
        self.name.starts_with(FAULT)
    }
}

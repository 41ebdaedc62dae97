//! The source of an event: the generator, the tenant, and the host.
//!
//! A run on one host has one source, [`SourceId::LOCAL`], which is never declared or written to JSON. Others are
//! declared once by an [`Event::Source`](crate::Event::Source) before their first event. Metrics and wait groups belong to the source that
//! declares them; their indexes are those of the run, so that they are assigned where the streams of several sources
//! are merged.

use serde::{Deserialize, Serialize};

/// A source by its number among those of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceId(pub u16);

impl SourceId {
    /// This process: its generator, its observations, and the run as a whole.
    pub const LOCAL: Self = Self(0);

    /// Whether it is [`SourceId::LOCAL`].
    pub fn is_local(&self) -> bool {
        *self == Self::LOCAL
    }
}

/// The machine of a host: hosts of a fleet that have the same one share its CPUs and disks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The kernel's number of its boot, which distinguishes machines. The machine's own identifier is not: containers of one
    /// machine have different ones, and copies of one image have the same.
    pub boot: String,
    /// CPUs that are online.
    pub cpus: u32,
}

/// Description of a source; missing parts are those of the local one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The generator, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<u16>,
    /// The tenant that generates the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The database that the tenant's load is on, as text without a password. Tenants with the same one share what was seen of
    /// its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The host's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The host's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

impl Source {
    /// As text, as far as it was declared: "shop, generator 1, db2"; else its number.
    pub fn describe(&self, id: SourceId) -> String {
        let generator = self.generator.map(|number| format!("generator {number}"));
        let parts = [self.tenant.clone(), generator, self.host.clone()];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        match (parts.is_empty(), id.is_local()) {
            (false, _) => parts.join(", "),
            (true, true) => "local".into(),
            (true, false) => format!("source {}", id.0),
        }
    }
}

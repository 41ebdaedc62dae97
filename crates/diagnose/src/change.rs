//! Changes, as data.

use serde::Serialize;

/// What a remedy changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Change {
    /// A setting of the server.
    Setting {
        /// Its name.
        name: String,
        /// Its value in the run, as the server reads it.
        before: String,
        /// The value to try.
        value: String,
    },
    /// A setting of the host on which the server runs.
    Host {
        /// Which.
        what: HostSetting,
        /// Its value in the run.
        before: String,
        /// The value to try.
        value: String,
    },
    /// What Kelvin cannot make and undo between two runs.
    Manual {
        /// How the user makes it, and compares it.
        how: String,
    },
    /// SQL statements in the database. They have no further effect when they are repeated.
    Statements {
        /// Applied one after another.
        apply: Vec<String>,
        /// Undo them; none where only restored data do.
        undo: Vec<String>,
        /// Run on the side without the change, so that a comparison shows the change and not what it needs besides, such as
        /// ANALYZE.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        control: Vec<String>,
    },
}

impl Change {
    /// Statistics that cannot be put back, in a database whose data cannot be restored with the old ones.
    pub(crate) fn by_hand(statements: &str) -> Self {
        let how =
            format!("{statements}; compare plans and times of runs before and after it on the same data");
        Self::Manual { how }
    }
}

/// A setting of a host, as a factor of a study names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostSetting {
    /// The page size of the server's shared memory: "off", "2M", "1G".
    HugePages,
    /// A kernel setting: a file below `/sys`.
    Kernel(String),
}

/// A name for what a change makes in a table, which says what it is, ends with a hash of table and columns, and fits into PostgreSQL's 63 bytes.
pub(crate) fn advised_name(table: &str, columns: &[String]) -> String {
    let plain = table.rsplit('.').next().unwrap_or(table);
    let all = columns.join("_");
    // FNV-1a of 32 bits, over what no two of them have in common.
    let bytes = format!("{table}\0{}", columns.join("\0"));
    let hash =
        bytes.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // A dot would be read as one between two parts of a name.
    let mut name = format!("kelvin_advice_{plain}_{}", all.replace('.', "_"));
    while name.len() > 54 {
        name.pop();
    }
    format!("{name}_{hash:08x}")
}

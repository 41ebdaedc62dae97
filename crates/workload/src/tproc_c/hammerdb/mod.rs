//! The `hammerdb` profile: calls stored routines with HammerDB's interface. In a database that HammerDB
//! built, they are found in the catalog. In a database that Kelvin builds, routines with the same interface
//! are created, so that HammerDB can drive it, too; their texts are Kelvin's.
//!
//! The server draws items and lines inside these routines, so a run is not reproducible from its seed.

mod driver;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlserver;

pub(crate) use driver::Driver;
use kelvin_database::Error;

/// The routines that are called, in the order of the transaction types.
const NAMES: [&str; 5] = ["neword", "payment", "delivery", "slev", "ostat"];

/// The five routines of a database.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Routines {
    /// "functions" or "procedures".
    kind: &'static str,
    /// How they deviate from the specification, if HammerDB created them.
    deviations: Option<&'static str>,
    /// Whether an order with an unused item is rolled back.
    pub(crate) roll_back: bool,
}

impl Routines {
    /// Sentences for the result.
    pub(crate) fn notes(&self) -> Vec<String> {
        let kind = self.kind;
        let which = match self.deviations {
            Some(_) => format!("drives HammerDB's stored {kind}"),
            None => format!("drives stored {kind} with HammerDB's interface, created by kelvin"),
        };
        let mut notes = vec![which, "not reproducible: the server generates the inputs".into()];
        notes.extend(self.deviations.map(|these| {
            format!("HammerDB's routines deviate from the specification, and the self-audit allows for it: {these}")
        }));
        notes
    }
}

/// The error for a database whose routines do not match their names.
fn unknown(name: &str, what: &str) -> Error {
    Error::usage(format!("the stored routine {name} {what}"))
        .with_help("use --calls statements or --calls pipelined, or rebuild the database")
}

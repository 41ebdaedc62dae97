//! The `hammerdb` profile: HammerDB's stored routines, as its interface describes them. In a database that
//! HammerDB built they are found in the catalog and driven; in one that we build, routines of the same interface are
//! made, so that HammerDB can drive it. The routines' own texts are ours.
//!
//! Inside these routines the server draws items and lines, so a run of them cannot be repeated from its seed.

mod driver;
pub(crate) mod mysql;
pub(crate) mod postgres;
pub(crate) mod sqlserver;

pub(crate) use driver::Driver;
use kelvin_database::Error;

/// The routines that are called, in the order of the transaction types.
const NAMES: [&str; 5] = ["neword", "payment", "delivery", "slev", "ostat"];

/// The five routines that a database has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Routines {
    /// "functions" or "procedures".
    kind: &'static str,
    /// How HammerDB's own, if it made them, differ from the specification.
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

/// A database whose routines are not those that their names promise.
fn unknown(name: &str, what: &str) -> Error {
    Error::usage(format!("the stored routine {name} {what}"))
        .with_help("use --calls statements or --calls pipelined, or rebuild the database")
}

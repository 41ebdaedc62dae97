//! The methods by which snapshots of a database can be kept.

use super::SnapshotMethod;

/// The methods by which snapshots of a database can be kept, as far as its engine, its server and this host decide it.
#[derive(Debug, Clone)]
pub struct SnapshotMethods {
    /// Why templates are not possible, with a remedy.
    pub no_template: Option<String>,
    /// Why copies of the files are not possible, with a remedy.
    pub no_files: Option<String>,
    /// Why dumps are not possible from this host, with a remedy.
    pub no_dump: Option<String>,
    /// The fastest method, and why it is; why there is only a dump, if that.
    pub fastest: Result<(SnapshotMethod, &'static str), String>,
    /// The methods that restore tables of others as well, which a user confirms by naming one; the best first.
    pub confirming: &'static [SnapshotMethod],
    /// Whether the database is a file, not one of a server.
    pub is_file: bool,
}

impl SnapshotMethods {
    /// Why this method is not possible.
    pub fn refusal(&self, way: SnapshotMethod) -> Option<&String> {
        match way {
            SnapshotMethod::Template => self.no_template.as_ref(),
            SnapshotMethod::Files => self.no_files.as_ref(),
            SnapshotMethod::Dump => self.no_dump.as_ref(),
        }
    }

    /// The flags that name the confirming methods.
    pub fn naming(&self) -> impl Iterator<Item = String> {
        self.confirming.iter().map(|way| format!("--reset {way}"))
    }
}

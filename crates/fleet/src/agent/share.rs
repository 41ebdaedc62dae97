//! Sends an agent's own store of a run to the controller.

use std::io::Read as _;

use kelvin_store::{Exporter, Store};

use super::{AgentOptions, Result};
use crate::bus::{Bus, LARGEST_FILE};
use crate::error::FleetError;
use crate::subject::{Name, Subjects};

/// Exports a run from the agent's store into the agent's bucket.
pub(super) fn send(options: &AgentOptions, bus: &Bus, subjects: &Subjects, run: &Name) -> Result<()> {
    let refused = |error: kelvin_store::Error| FleetError::Refused(error.to_string());
    let store = Store::open_read_only(&options.store).map_err(refused)?;
    let id = store.find(run.as_str()).map_err(refused)?;
    let stored = store.load(id).map_err(refused)?;
    if stored.info.label.as_deref() != Some(run.as_str()) {
        return Err(FleetError::Refused(format!("it has no run {run}")));
    }
    let exporter = Exporter {
        runs: [id].into(),
        host: options.name.to_string(),
        kelvin_version: stored.info.kelvin_version,
        ..Exporter::default()
    };
    let file = options.store.with_file_name(format!("{}-{run}.share", options.name));
    // A file left by a killed agent.
    let _none = std::fs::remove_file(&file);
    exporter.write(&store, &file).map_err(refused)?;
    let content = std::fs::File::open(&file).and_then(|opened| {
        let mut content = Vec::new();
        opened.take(LARGEST_FILE + 1).read_to_end(&mut content)?;
        Ok(content)
    });
    let _removed = std::fs::remove_file(&file);
    let content = content.map_err(FleetError::file(&file))?;
    if content.len() as u64 > LARGEST_FILE {
        return Err(FleetError::Refused(format!("its file has more than {LARGEST_FILE} bytes")));
    }
    bus.put_file(&subjects.bucket(&options.name), &content)
}

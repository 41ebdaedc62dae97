//! The agents' stored runs, and what runs have left on the NATS server.

use std::io::Write;
use std::time::Duration;

use crate::bus::StoredStream;

use super::{Answer, Bus, Command, FleetError, Name, Result, Subjects, clean, encode};

/// Time limit for an agent to export and send its file.
const PATIENCE: Duration = Duration::from_mins(9);

/// The stored runs of a lab.
pub struct FleetFiles {
    bus: Bus,
    subjects: Subjects,
}

impl FleetFiles {
    /// The stored runs of this lab.
    pub fn new(bus: Bus, lab: &Name) -> Self {
        Self { bus, subjects: Subjects::for_lab(lab) }
    }

    /// Writes an agent's store of a run into `file`, through the server's object store. Returns its size in
    /// bytes.
    ///
    /// # Errors
    /// When the agent does not answer or does not have the run, or when the file is too large or damaged.
    pub fn fetch(&self, agent: &Name, run: &Name, file: &mut dyn Write) -> Result<u64> {
        let failed = |why: String| FleetError::Agent { agent: agent.to_string(), why };
        let bucket = self.subjects.bucket(agent);
        self.bus.make_bucket(&bucket)?;
        let question = (self.subjects.command(agent), encode(&Command::Share { run: run.clone() })?);
        let answer = self.bus.ask::<Answer>(vec![question], PATIENCE).pop();
        let fetched = match answer {
            Some(Ok(Answer::Accepted)) => {
                self.bus.get_file(&bucket, file).map_err(|error| failed(error.to_string()))
            }
            Some(Ok(Answer::Refused(why))) => Err(failed(clean(&why))),
            Some(Err(error)) => Err(failed(error.to_string())),
            Some(Ok(_)) | None => Err(failed("it sent an unexpected answer".into())),
        };
        let removed = self.bus.remove_bucket(&bucket);
        let size = fetched?;
        removed.map(|()| size)
    }

    /// The runs with messages on the server, with their sizes in bytes.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn stored_runs(&self) -> Result<Vec<(Name, u64)>> {
        let prefix = self.subjects.streams();
        let streams = self.bus.streams(&prefix)?;
        // Another lab's name may begin with this one's, but names of runs do not contain that character.
        let run = |stream: &StoredStream| {
            let run = stream.name.strip_prefix(&prefix).filter(|run| !run.contains('_'))?;
            Some((run.parse().ok()?, stream.bytes))
        };
        Ok(streams.iter().filter_map(run).collect())
    }

    /// Removes a run from the server.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn remove_run(&self, run: &Name) -> Result<()> {
        self.bus.remove_stream(&self.subjects.stream(run))
    }
}

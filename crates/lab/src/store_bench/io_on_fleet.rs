//! A run of I/O jobs on the hosts of a fleet, stored like any other.

use kelvin_measure::Clock;
use kelvin_run::fleet::Fleet;
use kelvin_run::io::FleetIoRun;
use kelvin_run::{Environment, RunError, Spec};
use kelvin_store::NewRun;

use super::{CompletedRun, Result, StoreBench, StoreBenchError, new_run_of_jobs};

impl StoreBench<'_> {
    /// Every host runs every job. The result contains the sum and the results of each host.
    pub(super) fn run_io_on_fleet(
        &mut self,
        spec: &Spec,
        fleet: &dyn Fleet,
        notes: Vec<String>,
    ) -> Result<CompletedRun> {
        let refused = |error: RunError| StoreBenchError::Refused(error.to_string());
        let run = FleetIoRun::new(spec, fleet).map_err(refused)?;
        let environment = Environment::of_files(run.target(), None);
        let info = NewRun {
            command: self.origin.command.clone(),
            counter_names: run.counters(),
            notes: notes.into_iter().chain(run.notes()).collect(),
            ..new_run_of_jobs(spec, run.target(), run.series(), &environment)?
        };
        let (clock, stop) = (Clock::real(), self.stop.clone());
        let (done, _) = self.record(&info, &environment, spec, |sink| run.execute(&clock, &stop, sink))?;
        Ok(done)
    }
}

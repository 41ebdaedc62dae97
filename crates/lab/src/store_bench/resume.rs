//! Resumes a fleet's run in another process after its controller died.

use kelvin_measure::event::{Phase, Status};
use kelvin_measure::invariant::HOSTS_STAYED;
use kelvin_measure::{Clock, Event, SECOND, Sink, labels};
use kelvin_run::driver::BegunPoint;
use kelvin_run::fleet::RemoteGenerators;
use kelvin_run::{RunError, Spec};
use kelvin_store::{Liveness, RunId, StoredRun};

use super::{CompletedRun, Result, StoreBench, StoreBenchError};

/// A started run that is to be resumed.
pub struct BegunRun {
    /// The run as stored.
    pub stored: StoredRun,
    /// Its specification.
    pub spec: Spec,
    /// The hosts of its fleet, in order.
    pub hosts: Vec<String>,
    /// The point in progress.
    pub point: u32,
}

impl BegunRun {
    /// Reads a run from the store.
    ///
    /// # Errors
    /// When it has ended, is still being written, or has no fleet.
    pub fn read(store: &kelvin_store::Store, id: RunId) -> Result<Self> {
        let stored = store.load(id)?;
        let refused = |why: String| Err(StoreBenchError::Refused(why));
        match stored.liveness {
            Liveness::Killed => {}
            Liveness::Running => return refused(format!("run {id} is still running")),
            Liveness::Ended => return refused(format!("run {id} has ended: there is nothing to resume")),
        }
        let mut hosts: Vec<_> =
            stored.sources().filter_map(|(source, of)| Some((source, of.host.clone()?))).collect();
        hosts.sort();
        if hosts.is_empty() || stored.info.workload == labels::IO {
            return refused(format!(
                "run {id} has no users on hosts of a fleet; its results so far are kept"
            ));
        }
        let spec = Spec::parse(&stored.info.spec_toml, "the stored specification")
            .map_err(|error| StoreBenchError::Refused(error.to_string()))?;
        let closed = stored.points().iter().filter(|point| point.window.is_some()).count();
        let hosts = hosts.into_iter().map(|(_, host)| host).collect();
        Ok(Self { spec, hosts, point: closed as u32, stored })
    }
}

impl StoreBench<'_> {
    /// Resumes a run whose process was killed: receives the results of its fleet's hosts until they end, and
    /// completes the run. `rejoin` returns the generators of a point, given its number and the number of hosts.
    ///
    /// # Errors
    /// When another process has the run, or the hosts cannot be reached.
    pub fn resume<'f>(
        &mut self,
        run: BegunRun,
        rejoin: impl FnOnce((u32, u32), &Clock) -> Box<dyn RemoteGenerators + 'f>,
    ) -> Result<CompletedRun> {
        let BegunRun { stored, spec, hosts, point } = run;
        let (id, clock) = (stored.id, Clock::real());
        let refused = |error: RunError| StoreBenchError::Refused(error.to_string());
        let begun = stored.points().into_iter().find(|one| one.point == point);
        let load = &spec.load;
        let count = load.hosts_of(point as usize).unwrap_or(hosts.len() as u32).min(hosts.len() as u32);
        let mut writer = self.store.resume_run(id, point)?;
        let generators = rejoin((point, count), &clock);
        self.live.begin(id, &stored.info, &spec);
        for (source, of) in stored.sources() {
            // The view draws the sum of all sources.
            let _shown = self.live.event(&Event::Source { id: source, source: of.clone() });
        }
        let at = |wanted: Phase| {
            let mut phases = begun.iter().flat_map(|point| &point.phases);
            phases.find(|span| span.phase == wanted).map(|span| span.start)
        };
        let measured = at(Phase::Measure);
        let open = measured.or_else(|| Some(at(Phase::RampUp)? + load.ramp_up.nanos()));
        let (Some(open), Some(begun)) = (open, &begun) else {
            // No part of it was measured; agents that are ready for it learn that there is nothing to do.
            drop(generators);
            let ended = point as usize >= load.points().len() && !load.find_max;
            let when =
                if ended { "after its last point".into() } else { format!("before point {point} began") };
            let error = Some(format!("its controller died {when}"));
            writer
                .event(&Event::Finished { status: Status::Failed, error })
                .map_err(RunError::Sink)
                .map_err(refused)?;
            drop(writer);
            self.live.end();
            return self.ended(id, Ok(()));
        };
        let reached = stored.last_second(point).map_or(0, |last| (last + 1).max(0) as u64 * SECOND);
        let point = BegunPoint {
            index: point,
            users: begun.users,
            hosts: &hosts[..count as usize],
            series: &stored.info.kinds,
            counters: stored.info.counter_names.len(),
            load,
            open,
            reached: open + reached,
            measuring: measured.is_some(),
            accept_noise: spec.accept_noise,
        };
        let mut sinks = (&mut writer, &mut *self.live);
        let done = point.finish(generators, (&clock, self.stop), &mut sinks);
        let all = load.points().len() as u32 == point.index + 1 && !load.find_max;
        let done = done.and_then(|result| {
            let stayed = result.invariants.iter().all(|one| one.holds || one.name != HOSTS_STAYED);
            // A run that reached its planned end is void by its own invariant.
            let (status, error) = match (result.interrupted, all && stayed) {
                (true, _) => (Status::Interrupted, None),
                (false, true) => (Status::Complete, None),
                (false, false) => (Status::Failed, Some("its controller died before its end".to_owned())),
            };
            sinks.event(&Event::Finished { status, error })?;
            Ok(result)
        });
        let summed = match &done {
            Ok(result) => writer.set_totals(point.index, &result.totals),
            Err(_) => Ok(()),
        };
        drop(writer);
        self.live.end();
        let kept = self.ended(id, done.map(drop))?;
        summed.map(|()| kept).map_err(StoreBenchError::kept)
    }
}

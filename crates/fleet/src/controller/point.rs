//! One point of a run on the agents: armed, started simultaneously, and received until each agent has ended
//! or is lost.

use std::time::{Duration, Instant};

use kelvin_measure::Nanos;
use kelvin_measure::event::{ClockEnd, HostClock};
use kelvin_run::RunError;
use kelvin_run::driver::LoadTimes;
use kelvin_run::fleet::{GeneratorMessage, RemoteGenerators};
use kelvin_workload::Stop;

use super::exchanges::AgentClocks;
use super::{FleetAgent, LOST, NatsFleet, SUSPECT, Sequenced, UNREACHABLE, sequenced, started};
use crate::bus::Task;
use crate::message::{Command, OutputItem, clean, encode};

/// The start is at least this far ahead, and at least this many times the slowest exchange.
const NOTICE: Duration = Duration::from_secs(2);
const ROUND_TRIPS: u32 = 20;

/// Exchanges immediately before the start and after the end.
const EXCHANGES: u32 = 8;

/// Time limit of the answers to the order to start.
const STARTED: Duration = Duration::from_secs(1);

/// The number of decoded messages after which a call returns, since a decoded histogram takes 270 kB.
const AT_ONCE: usize = 16;

/// The state of an agent.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// It has sent its end, or is lost.
    ended: bool,
    lost: bool,
    suspect: bool,
    /// Since when its beats do not count, because it was restarted or has left the run.
    gone: Option<Instant>,
}

/// The generators of one point.
pub(super) struct ArmedPoint<'a> {
    fleet: &'a NatsFleet,
    point: u32,
    agents: Vec<FleetAgent>,
    clocks: AgentClocks,
    progress: Vec<Progress>,
    times: Option<LoadTimes>,
    /// The agents' clocks minus the controller's in nanoseconds, as used for the start.
    offsets: Vec<i128>,
    /// The offsets used for the end of the window.
    end_offsets: Vec<i128>,
    exchanging: Option<Task>,
}

impl<'a> ArmedPoint<'a> {
    pub(super) fn new(
        fleet: &'a NatsFleet,
        point: u32,
        agents: Vec<FleetAgent>,
        clocks: AgentClocks,
    ) -> Self {
        let progress = vec![Progress::default(); agents.len()];
        let (times, offsets, exchanging) = (None, Vec::new(), None);
        Self {
            fleet,
            point,
            agents,
            clocks,
            progress,
            times,
            end_offsets: offsets.clone(),
            offsets,
            exchanging,
        }
    }

    pub(super) fn exchange(&self, times: u32) {
        self.clocks.exchange(&self.fleet.bus, times);
    }

    /// Why the point cannot be armed: an agent has refused or is lost. `None` if it can.
    pub(super) fn refusal(&mut self) -> Option<String> {
        let messages = self.poll();
        let refusal = |(number, message)| {
            let agent: &FleetAgent = &self.agents[number];
            match message {
                GeneratorMessage::Failed(why) | GeneratorMessage::Lost(why) => {
                    Some(format!("agent {}: {why}", agent.name))
                }
                GeneratorMessage::Ended(_) => Some(format!("agent {} ended too early", agent.name)),
                GeneratorMessage::Event(_) | GeneratorMessage::Suspect(_) => None,
            }
        };
        messages.into_iter().find_map(refusal)
    }

    fn all(&self, command: impl Fn(usize) -> Command) {
        for (number, agent) in
            self.agents.iter().enumerate().filter(|(number, _)| !self.progress[*number].ended)
        {
            self.fleet.order(&agent.name, &command(number));
        }
    }

    /// Decodes some of the agents' messages about this point; adds none when none is left.
    fn outputs(&mut self, messages: &mut Vec<(usize, GeneratorMessage)>) {
        let mut inbox = self.fleet.inbox();
        while messages.len() < AT_ONCE
            && let Some((number, output)) = inbox.take()
        {
            let failed = |why: String| (number, GeneratorMessage::Failed(why));
            let output = match output {
                Ok(output) => output,
                // From an agent that is not used by this point.
                Err(_) if number >= self.agents.len() => continue,
                Err(error) => {
                    messages.push(failed(error.to_string()));
                    self.progress[number].ended = true;
                    continue;
                }
            };
            let placed = sequenced(&mut inbox.next[number], output.sequence);
            if placed == Sequenced::Again || number >= self.agents.len() {
                continue;
            }
            if let Sequenced::After(from, to) = placed
                && !self.progress[number].ended
            {
                messages.push(failed(format!("its messages {from} to {to} are lost")));
                self.progress[number].ended = true;
            }
            for item in output.items {
                let progress = &mut self.progress[number];
                let (OutputItem::Event { point, .. }
                | OutputItem::Ended { point, .. }
                | OutputItem::Failed { point, .. }) = &item;
                if *point != self.point || progress.ended {
                    continue;
                }
                messages.push(match item {
                    OutputItem::Event { event, .. } => (number, GeneratorMessage::Event(event)),
                    OutputItem::Ended { report, .. } => {
                        progress.ended = true;
                        (number, GeneratorMessage::Ended(report))
                    }
                    OutputItem::Failed { why, .. } => {
                        progress.ended = true;
                        failed(clean(&why))
                    }
                });
            }
        }
    }

    /// Reports agents whose beats are missing.
    fn silences(&mut self, messages: &mut Vec<(usize, GeneratorMessage)>) {
        let (back, away) = {
            let mut inbox = self.fleet.inbox();
            if self.fleet.bus.is_connected() {
                if inbox.away.take().is_some() {
                    inbox.back = Some(Instant::now());
                }
            } else {
                inbox.away.get_or_insert_with(Instant::now);
            }
            (inbox.back, inbox.away)
        };
        for (number, agent) in self.agents.iter().enumerate() {
            let progress = &mut self.progress[number];
            if progress.ended {
                continue;
            }
            if let Some(since) = away {
                if since.elapsed() > UNREACHABLE {
                    (progress.ended, progress.lost) = (true, true);
                    let why = format!("the NATS server was unreachable for {} s", UNREACHABLE.as_secs());
                    messages.push((number, GeneratorMessage::Lost(why)));
                }
                continue;
            }
            let mut silence = self.fleet.silence(agent, back);
            if self.fleet.is_ours(agent) {
                progress.gone = None;
            } else {
                // Its last messages may still arrive.
                silence = silence.max(progress.gone.get_or_insert_with(Instant::now).elapsed());
            }
            if silence >= LOST {
                (progress.ended, progress.lost) = (true, true);
                let why = format!("no message from it for {} s", LOST.as_secs());
                messages.push((number, GeneratorMessage::Lost(why)));
            } else if silence >= SUSPECT && !progress.suspect {
                progress.suspect = true;
                let why = format!("no message from it for {} s", SUSPECT.as_secs());
                messages.push((number, GeneratorMessage::Suspect(why)));
            } else if silence < SUSPECT {
                progress.suspect = false;
            }
        }
    }
}

impl RemoteGenerators for ArmedPoint<'_> {
    fn notice(&self) -> Duration {
        // Before the start time is chosen, since exchanges with a slow agent take long.
        self.exchange(EXCHANGES);
        let slowest =
            self.clocks.estimates().iter().filter_map(crate::clock::ClockEstimate::smallest_delay).max();
        NOTICE.max(ROUND_TRIPS * Duration::from_nanos(slowest.unwrap_or(0)))
    }

    fn start(&mut self, times: LoadTimes) -> Result<(), RunError> {
        let mut commands = Vec::with_capacity(self.agents.len());
        for (agent, estimate) in self.agents.iter().zip(self.clocks.estimates()) {
            let offset = estimate.at(times.begin).ok_or_else(|| {
                RunError::Start(format!("agent {}: it does not answer clock requests", agent.name))
            })?;
            self.offsets.push(offset.nanos);
            let times = times.shifted(offset.nanos);
            let start = Command::Start { run: self.fleet.run.clone(), point: self.point, times };
            commands.push(encode(&start).map_err(started)?);
        }
        // Never requested: the answers arrive, or the start fails, before anyone could request a stop.
        let stop = Stop::new();
        self.fleet.ask(commands, STARTED, &stop, &mut || Ok(()))?;
        self.times = Some(times);
        self.end_offsets.clone_from(&self.offsets);
        self.exchanging = Some(self.clocks.go_on(&self.fleet.bus));
        Ok(())
    }

    fn end_at(&mut self, times: LoadTimes) {
        // With the current estimates, since clocks may have drifted since the start.
        let estimates = self.clocks.estimates();
        for (number, used) in self.end_offsets.iter_mut().enumerate() {
            let known = estimates.get(number).and_then(|estimate| estimate.at(times.close));
            *used = known.map_or(*used, |known| known.nanos);
        }
        if self.times.is_some_and(|planned| times.close < planned.close) {
            self.times = Some(times);
        }
        let ordered = |number: usize| {
            let times = times.shifted(self.end_offsets.get(number).copied().unwrap_or(0));
            Command::EndAt { run: self.fleet.run.clone(), point: self.point, times }
        };
        self.all(ordered);
    }

    fn abort(&mut self) {
        self.all(|_| Command::Abort { run: self.fleet.run.clone() });
    }

    fn poll(&mut self) -> Vec<(usize, GeneratorMessage)> {
        let mut messages = Vec::new();
        self.outputs(&mut messages);
        // An agent with unread messages is not silent.
        if messages.is_empty() {
            self.silences(&mut messages);
        }
        messages
    }

    fn clocks(&mut self) -> Vec<Option<HostClock>> {
        self.exchanging = None;
        self.exchange(EXCHANGES);
        let (begin, close) = self.times.map_or((0, Nanos::MAX), |times| (times.begin, times.close));
        let estimates = self.clocks.estimates();
        let of = |(number, (agent, estimate)): (usize, (&FleetAgent, crate::clock::ClockEstimate))| {
            let used = *self.offsets.get(number)?;
            let known = estimate.at(begin)?;
            let end = || {
                let known = estimate.at(close).filter(|_| close < Nanos::MAX)?;
                let error = i64::try_from(self.end_offsets.get(number)? - known.nanos).ok()?;
                Some(ClockEnd { error, bound: known.bound })
            };
            Some(HostClock {
                offset: i64::try_from(used).ok()?,
                bound: known.bound,
                drift_ppb: known.drift.round() as i64,
                // The agent began when its clock showed the ordered time plus the offset in use.
                start_error: i64::try_from(used - known.nanos).ok()?,
                end: end(),
                exchanges: estimate.count(),
                round_trip: estimate.smallest_delay()?,
                synchronisation: agent.synchronisation.clone(),
            })
        };
        self.agents.iter().zip(estimates).enumerate().map(of).collect()
    }
}

impl Drop for ArmedPoint<'_> {
    fn drop(&mut self) {
        if self.progress.iter().any(|progress| !progress.ended) {
            self.abort();
        }
    }
}

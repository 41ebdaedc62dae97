//! The controller's side of a fleet: finds the agents, has them open the run's target, and implements `Fleet`
//! for the run.

mod exchanges;
mod files;
mod inbox;
mod point;
mod rejoin;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kelvin_database::process_sessions::set_connection;
use kelvin_measure::Machine;
use kelvin_run::fleet::{Fleet, FleetPoint, RemoteGenerators};
use kelvin_run::{RunError, Spec};
use kelvin_workload::Stop;

use crate::agent::ALONE;
use crate::bus::{Bus, Incoming, Task};
use crate::error::FleetError;
use crate::message::{
    AgentState, Answer, Arm, Assembler, Beat, Command, ControllerBeat, Prepare, clean, decode, encode,
};
use crate::subject::{Name, Subjects};
use exchanges::AgentClocks;
pub use files::FleetFiles;
use inbox::Inbox;
use point::ArmedPoint;
pub use rejoin::{FLEET_NOTE, run_in_note};

type Result<T> = std::result::Result<T, FleetError>;

/// How long to wait for agents called by name, and for any agents.
const CALL: Duration = Duration::from_secs(5);
const ANY: Duration = Duration::from_millis(1500);

/// How long an agent may take to open the target.
const OPENING: Duration = Duration::from_mins(2);

/// Time limit for answers to commands that take no time.
const NOTED: Duration = Duration::from_secs(5);

/// Interval of the controller's beats.
const BEAT: Duration = Duration::from_secs(1);

/// Time without a beat after which an agent is suspect, and lost.
const SUSPECT: Duration = Duration::from_secs(3);
const LOST: Duration = Duration::from_secs(10);

/// Time without the NATS server after which every agent is lost.
const UNREACHABLE: Duration = Duration::from_secs(30);

/// How often the agents' states are checked while they prepare.
const TICK: Duration = Duration::from_millis(20);

/// Exchanges of times when the users are connected.
const EXCHANGES: u32 = 16;

/// An agent of the run.
#[derive(Debug, Clone)]
struct FleetAgent {
    name: Name,
    process: u64,
    synchronisation: Option<String>,
}

/// The newest beat of each agent, and when it arrived.
#[derive(Default)]
struct HeardBeats(Mutex<HashMap<Name, (Instant, Beat)>>);

impl HeardBeats {
    /// Asks all agents for a beat, and stores their beats while the task exists.
    fn call(bus: &Bus, subjects: &Subjects) -> Result<(Arc<Self>, Task)> {
        let heard = Arc::new(Self::default());
        let hears = Arc::clone(&heard);
        let task = bus.subscribe(&subjects.beats(), move |incoming| {
            // An agent's key permits only its own beats, so the subject shows the sender.
            let own = |beat: &Beat| incoming.subject.ends_with(&format!(".{}", beat.agent));
            if let Some(beat) = decode(&incoming.payload).ok().filter(own) {
                hears.beats().insert(beat.agent.clone(), (Instant::now(), beat));
            }
        })?;
        bus.flush();
        bus.publish(&subjects.hello(), &())?;
        Ok((heard, task))
    }

    fn beats(&self) -> MutexGuard<'_, HashMap<Name, (Instant, Beat)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The agents of a run.
pub struct NatsFleet {
    bus: Arc<Bus>,
    subjects: Subjects,
    run: Name,
    spec: String,
    agents: Mutex<Vec<FleetAgent>>,
    names: Vec<Name>,
    heard: Arc<HeardBeats>,
    /// Start of listening for agents.
    since: Instant,
    inbox: Mutex<Inbox>,
    prepared: AtomicBool,
    ended: AtomicBool,
    _tasks: Vec<Task>,
    follow: Mutex<Option<Task>>,
}

/// How a message continues the sequence of its agent.
#[derive(Debug, PartialEq, Eq)]
enum Sequenced {
    Next,
    /// A message that was sent again because its confirmation was lost.
    Again,
    /// The first and the last number of the lost messages before it.
    After(u64, u64),
}

/// Classifies a message by its number; `next` is the expected number and is advanced.
fn sequenced(next: &mut u64, sequence: u64) -> Sequenced {
    let due = *next;
    if sequence < due {
        return Sequenced::Again;
    }
    // Another host may send any number.
    *next = sequence.saturating_add(1);
    if sequence == due { Sequenced::Next } else { Sequenced::After(due, sequence - 1) }
}

/// The newest beats of the agents that answer within `patience`, sorted by name.
pub fn find_agents(bus: &Bus, lab: &Name, patience: Duration) -> Result<Vec<Beat>> {
    let (heard, _listening) = HeardBeats::call(bus, &Subjects::for_lab(lab))?;
    std::thread::sleep(patience);
    let mut found: Vec<_> = heard.beats().values().map(|(_, beat)| beat.clone()).collect();
    found.sort_by(|a, b| a.agent.cmp(&b.agent));
    Ok(found)
}

/// Agents that have answered.
pub struct CalledAgents {
    bus: Arc<Bus>,
    subjects: Subjects,
    agents: Vec<FleetAgent>,
    heard: Arc<HeardBeats>,
    beats: Task,
}

impl CalledAgents {
    /// Calls the agents with these names, or without names all idle agents.
    pub fn call(bus: Bus, lab: &Name, names: &[Name]) -> Result<Self> {
        let (bus, subjects) = (Arc::new(bus), Subjects::for_lab(lab));
        let (heard, beats) = HeardBeats::call(&bus, &subjects)?;
        let agents = wait_for_agents(&heard, names).map_err(|error| match &bus.take_refusals()[..] {
            [] => error,
            refusals => {
                let refusals = refusals.join("; ");
                FleetError::Refused(format!("{error}; the NATS server refuses: {refusals}"))
            }
        })?;
        Ok(Self { bus, subjects, agents, heard, beats })
    }

    /// The number of agents.
    pub fn count(&self) -> u32 {
        self.agents.len() as u32
    }

    /// Uses the first `count` agents for a run of this specification.
    pub fn take(mut self, count: u32, spec: &Spec) -> Result<NatsFleet> {
        self.agents.truncate(count as usize);
        let Self { bus, subjects, agents, heard, beats } = self;
        let run: Name = format!("{}-{}", jiff::Timestamp::now().as_millisecond(), std::process::id())
            .parse()
            .map_err(FleetError::Message)?;
        let beating = beat_for(&bus, subjects.controller(&run), &run);
        let knowing = know_connections(&bus, &subjects.beats(), &run)?;
        let inbox = Mutex::new(Inbox::of_agents(agents.len()));
        Ok(NatsFleet {
            names: agents.iter().map(|agent| agent.name.clone()).collect(),
            bus,
            subjects,
            run,
            spec: spec.to_toml(),
            agents: Mutex::new(agents),
            heard,
            since: Instant::now(),
            inbox,
            prepared: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            _tasks: vec![beats, beating, knowing],
            follow: Mutex::new(None),
        })
    }
}

impl NatsFleet {
    /// The run's name within the lab, by which agents label their own stores.
    pub fn run(&self) -> &Name {
        &self.run
    }

    /// Leaves the agents and the stored messages as they are. The agents stop by themselves.
    pub fn leave(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Ends the run: agents close their stores. The messages on the server are removed when all agents have
    /// confirmed, and the run `is_kept` elsewhere or has no messages.
    pub fn finish(&self, is_kept: bool) -> Result<()> {
        if self.ended.swap(true, Ordering::AcqRel) || !self.prepared.load(Ordering::Acquire) {
            return Ok(());
        }
        let end = encode(&Command::End { run: self.run.clone() })?;
        let (mut left, since) = (self.names.clone(), Instant::now());
        while !left.is_empty() && since.elapsed() < LOST {
            let questions = left.iter().map(|name| (self.subjects.command(name), end.clone())).collect();
            let mut answers = self.bus.ask::<Answer>(questions, NOTED).into_iter();
            left.retain(|_| !matches!(answers.next(), Some(Ok(Answer::Accepted))));
            if !left.is_empty() {
                std::thread::sleep(SUSPECT / 10);
            }
        }
        // An agent without a confirmation may still send messages, which stay on the server.
        let is_needed = !is_kept && self.inbox().next.iter().any(|next| *next > 0);
        if !left.is_empty() || is_needed {
            return Ok(());
        }
        self.bus.remove_stream(&self.subjects.stream(&self.run))
    }

    fn agents(&self) -> MutexGuard<'_, Vec<FleetAgent>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a command without waiting for an answer.
    fn order(&self, name: &Name, command: &Command) {
        // An agent that does not receive it stops by itself.
        let _lost = self.bus.publish(&self.subjects.command(name), command);
    }

    /// Has the agents open the target. Called at the first point, when the data exist.
    fn prepare(
        &self,
        stop: &Stop,
        waiting: &mut dyn FnMut() -> std::result::Result<(), RunError>,
    ) -> std::result::Result<(), RunError> {
        if self.prepared.load(Ordering::Acquire) {
            return Ok(());
        }
        let stream = self.subjects.stream(&self.run);
        self.bus.make_stream(&stream, vec![self.subjects.outputs(&self.run)]).map_err(started)?;
        let hosts = self.names.len() as u32;
        let of_host = |host| {
            let prepare = Prepare {
                run: self.run.clone(),
                spec: self.spec.clone(),
                host: (host, hosts),
                alone: ALONE.as_secs_f64(),
            };
            encode(&Command::Prepare(prepare)).map_err(started)
        };
        let commands = (0..hosts).map(of_host).collect::<std::result::Result<_, _>>()?;
        self.prepared.store(true, Ordering::Release);
        let answers = self.ask(commands, OPENING, stop, waiting)?;
        for (agent, answer) in self.agents().iter_mut().zip(answers) {
            if let Answer::Prepared { synchronisation } = answer {
                agent.synchronisation = synchronisation.as_deref().map(clean);
            }
        }
        *self.follow.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(self.follow(stream, 0, Arc::default()));
        Ok(())
    }

    /// Passes the agents' messages to the inbox, up to the sequence `all_until` even if there is no room.
    /// `reached` is set to the sequence of the last message passed.
    fn follow(&self, stream: String, all_until: u64, reached: Arc<AtomicU64>) -> Task {
        let numbers: HashMap<String, usize> = (0..)
            .zip(&self.names)
            .map(|(number, name)| (self.subjects.output(&self.run, name), number))
            .collect();
        let mut parts: Vec<Assembler> = self.names.iter().map(|_| Assembler::default()).collect();
        let entry = self.inbox().entry();
        let room = entry.clone();
        let mut take = move |incoming: Incoming| {
            let Some(&number) = numbers.get(&incoming.subject) else { return true };
            match parts[number].take(&incoming.payload) {
                Ok(Some(message)) => entry.put(number, Ok(message)),
                Ok(None) => true,
                Err(error) => entry.put(number, Err(error)),
            }
        };
        let has_room = move |next: u64| next <= all_until || room.has_room();
        self.bus.follow(stream, has_room, move |sequence, incoming| {
            let more = take(incoming);
            reached.store(sequence, Ordering::Release);
            more
        })
    }

    /// Sends a command to each of the first agents, and waits for all answers. A refusal is an error.
    fn ask(
        &self,
        commands: Vec<Vec<u8>>,
        patience: Duration,
        stop: &Stop,
        waiting: &mut dyn FnMut() -> std::result::Result<(), RunError>,
    ) -> std::result::Result<Vec<Answer>, RunError> {
        let count = commands.len();
        let questions = self.names.iter().map(|name| self.subjects.command(name)).zip(commands).collect();
        let asked = self.bus.ask_each::<Answer>(questions, patience);
        let mut answers: Vec<Option<Answer>> = (0..count).map(|_| None).collect();
        let mut refused = Vec::new();
        let mut left = count;
        while left > 0 {
            if stop.requested() {
                return Err(RunError::Interrupted);
            }
            waiting()?;
            let Ok((number, answer)) = asked.answers.recv_timeout(TICK) else { continue };
            left -= 1;
            let agent = &self.names[number];
            match answer {
                Ok(Answer::Refused(why)) => refused.push(format!("agent {agent}: {}", clean(&why))),
                Ok(answer) => answers[number] = Some(answer),
                Err(error) => refused.push(format!("agent {agent}: {error}")),
            }
        }
        if refused.is_empty() {
            return Ok(answers.into_iter().flatten().collect());
        }
        refused.sort();
        Err(RunError::Start(refused.join("; ")))
    }

    /// The number of connected users, and whether all of the point's users are connected.
    fn connected(&self, point: &FleetPoint<'_>) -> (u64, bool) {
        let beats = self.heard.beats();
        let (mut users, mut all) = (0, true);
        for (name, assignment) in self.names.iter().zip(point.assignments) {
            let of = assignment.point;
            match beats.get(name).map(|(_, beat)| &beat.state) {
                Some(AgentState::Armed { point }) if *point == of => {
                    users += u64::from(assignment.range.count());
                }
                Some(AgentState::Connecting { point, done }) if *point == of => {
                    (users, all) = (users + (*done).min(assignment.range.count().into()), false);
                }
                _ => all = false,
            }
        }
        (users, all)
    }

    /// Time since an agent's last beat, not counting time without the server.
    fn silence(&self, agent: &FleetAgent, back: Option<Instant>) -> Duration {
        let beats = self.heard.beats();
        let heard = beats.get(&agent.name).map_or(self.since, |(heard, _)| *heard);
        back.map_or(heard, |back| back.max(heard)).elapsed()
    }

    /// Whether the agent is still the one that was armed, neither restarted nor released from the run.
    fn is_ours(&self, agent: &FleetAgent) -> bool {
        let ours = |(_, beat): &(Instant, Beat)| {
            beat.process == agent.process && beat.run.as_ref() == Some(&self.run)
        };
        self.heard.beats().get(&agent.name).is_some_and(ours)
    }
}

impl Fleet for NatsFleet {
    fn hosts(&self) -> Vec<String> {
        self.names.iter().map(Name::to_string).collect()
    }

    fn machines(&self) -> Vec<Option<Machine>> {
        let beats = self.heard.beats();
        // From another host: a boot ID is not longer than this.
        let of =
            |(_, beat): &(Instant, Beat)| beat.machine.clone().filter(|machine| machine.boot.len() <= 64);
        self.names.iter().map(|name| beats.get(name).and_then(of)).collect()
    }

    fn arm<'a>(
        &'a self,
        point: &FleetPoint<'_>,
        connected: &mut dyn FnMut(u64) -> std::result::Result<(), RunError>,
    ) -> std::result::Result<Box<dyn RemoteGenerators + 'a>, RunError> {
        self.prepare(point.stop, &mut || connected(0))?;
        let count = point.assignments.len();
        if count > self.names.len() {
            let there = self.names.len();
            return Err(RunError::Start(format!("{count} hosts are needed; the fleet has {there}")));
        }
        let index = point.assignments.first().map_or(0, |assignment| assignment.point);
        let arm = |assignment: &kelvin_run::fleet::GeneratorAssignment| {
            encode(&Command::Arm(Box::new(Arm { run: self.run.clone(), assignment: assignment.clone() })))
        };
        let commands: Result<Vec<Vec<u8>>> = point.assignments.iter().map(arm).collect();
        let subjects = self.names[..count].iter().map(|name| self.subjects.clock(name)).collect();
        let clocks = AgentClocks::new(subjects, point.clock);
        // From here on, dropping it ends the load of the agents that are armed.
        let mut armed = ArmedPoint::new(self, index, self.agents()[..count].to_vec(), clocks);
        self.ask(commands.map_err(started)?, NOTED, point.stop, &mut || connected(0))?;
        loop {
            if point.stop.requested() {
                return Err(RunError::Interrupted);
            }
            if let Some(why) = armed.refusal() {
                return Err(RunError::Start(why));
            }
            let (users, all) = self.connected(point);
            connected(users)?;
            if all {
                break;
            }
            std::thread::sleep(TICK);
        }
        armed.exchange(EXCHANGES);
        Ok(Box::new(armed))
    }
}

impl Drop for NatsFleet {
    fn drop(&mut self) {
        if !self.ended.load(Ordering::Acquire) && self.prepared.load(Ordering::Acquire) {
            for name in &self.names {
                self.order(name, &Command::End { run: self.run.clone() });
            }
        }
    }
}

/// The error of a run that cannot start.
#[allow(clippy::needless_pass_by_value, reason = "the form that map_err wants")]
fn started(error: FleetError) -> RunError {
    RunError::Start(error.to_string())
}

/// Sends the controller's beats while the task exists.
fn beat_for(bus: &Bus, subject: String, run: &Name) -> Task {
    let (client, beat) = (bus.client(), encode(&ControllerBeat { run: run.clone() }).unwrap_or_default());
    bus.spawn(async move {
        loop {
            if client.connection_state() == async_nats::connection::State::Connected {
                // The next one follows.
                let _lost = client.publish(subject.clone(), beat.clone().into()).await;
            }
            tokio::time::sleep(BEAT).await;
        }
    })
}

/// Registers the connections of a run's agents as the run's own, for servers that do not show the name of a
/// session.
fn know_connections(bus: &Bus, beats: &str, run: &Name) -> Result<Task> {
    let (run, mut known) = (run.clone(), HashMap::<Name, BTreeSet<u32>>::new());
    bus.subscribe(beats, move |incoming| {
        let Ok(beat) = decode::<Beat>(&incoming.payload) else { return };
        let own = incoming.subject.ends_with(&format!(".{}", beat.agent));
        if !own || beat.run.as_ref() != Some(&run) {
            return;
        }
        let known = known.entry(beat.agent).or_default();
        known.difference(&beat.connections).for_each(|&number| set_connection(number, false));
        beat.connections.difference(known).for_each(|&number| set_connection(number, true));
        *known = beat.connections;
    })
}

/// Waits for beats of all these agents, or for some time for any agents.
fn wait_for_agents(heard: &HeardBeats, names: &[Name]) -> Result<Vec<FleetAgent>> {
    let since = Instant::now();
    loop {
        let beats = heard.beats();
        let missing: Vec<String> =
            names.iter().filter(|name| !beats.contains_key(name)).map(Name::to_string).collect();
        let waited = since.elapsed();
        let done = if names.is_empty() { waited > ANY } else { missing.is_empty() };
        if !done && waited <= CALL {
            drop(beats);
            std::thread::sleep(TICK);
            continue;
        }
        if !missing.is_empty() {
            let mut there: Vec<String> = beats.keys().map(Name::to_string).collect();
            there.sort();
            let there = if there.is_empty() { "none".into() } else { there.join(", ") };
            return Err(FleetError::Refused(format!(
                "no answer from {}; agents that answer: {there}",
                missing.join(", ")
            )));
        }
        let mut chosen: Vec<&Beat> = match names {
            [] => {
                beats.values().map(|(_, beat)| beat).filter(|beat| beat.state == AgentState::Idle).collect()
            }
            names => names.iter().filter_map(|name| beats.get(name)).map(|(_, beat)| beat).collect(),
        };
        if names.is_empty() {
            chosen.sort_by(|a, b| a.agent.cmp(&b.agent));
        }
        if chosen.is_empty() {
            return Err(FleetError::Refused("no idle agent answers; start some with kelvin agent".into()));
        }
        return chosen.into_iter().map(usable).collect();
    }
}

/// Checks that an agent has this version and is idle.
fn usable(beat: &Beat) -> Result<FleetAgent> {
    let agent = beat.agent.to_string();
    let own = env!("CARGO_PKG_VERSION");
    if beat.kelvin != own {
        let why = format!("it runs kelvin {}, but this is kelvin {own}", clean(&beat.kelvin));
        return Err(FleetError::Agent { agent, why });
    }
    if beat.state != AgentState::Idle {
        let run = beat.run.as_ref().map_or("another run".into(), |run| format!("run {run}"));
        return Err(FleetError::Agent { agent, why: format!("it works for {run}") });
    }
    Ok(FleetAgent { name: beat.agent.clone(), process: beat.process, synchronisation: None })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each message counts once, in the order of the numbers, and every gap is detected.
        #[test]
        fn messages_that_are_repeated_or_missing_are_noticed(
            sequences in prop::collection::vec(prop_oneof![9 => 0_u64..12, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1)], 0..30),
        ) {
            let (mut next, mut seen) = (0, Vec::<u64>::new());
            for sequence in sequences {
                match sequenced(&mut next, sequence) {
                    Sequenced::Next => {
                        let due = seen.last().map_or(0, |last| last.saturating_add(1));
                        prop_assert_eq!(sequence, due);
                    }
                    Sequenced::Again => prop_assert!(seen.last().is_some_and(|last| sequence <= *last)),
                    Sequenced::After(from, to) => {
                        prop_assert!(from <= to && to + 1 == sequence);
                        prop_assert_eq!(from, seen.last().map_or(0, |last| last + 1));
                    }
                }
                if seen.last().is_none_or(|last| sequence > *last) {
                    seen.push(sequence);
                }
            }
        }
    }
}

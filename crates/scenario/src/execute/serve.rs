//! The process of a tenant with limits, from the inside: it reads what its load is and the timeline's orders, and writes what
//! its load does.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use kelvin_database::process_sessions;
use kelvin_lab::limits::{HeldLimits, Limits};
use kelvin_lab::store_bench::{io_run, reopen_tenant};
use kelvin_measure::Clock;
use kelvin_run::Spec;
use kelvin_run::spec::Observe;
use kelvin_workload::Stop;

use super::prepare::{IoFacts, PreparedLoad};
use super::process::{Assignment, Order, Report, origin_of};
use super::{Conditions, Message, Stage, Turn, tenant};
use crate::scenario::Scenario;
use crate::tenant::Tenant;
use crate::timeline::Timeline;

/// How often it is seen that a turn is armed or has begun.
const TICK: Duration = Duration::from_millis(2);

/// Runs the load that the first line of `input` describes, as the later ones order, and reports it to `output`. The end of
/// the input ends the load at once: whoever ordered it is gone.
///
/// # Errors
/// When the first line is no description of a load.
pub fn serve_tenant(input: &mut impl BufRead, output: &mut (impl Write + Send)) -> Result<(), String> {
    let mut line = String::new();
    input.read_line(&mut line).map_err(|error| error.to_string())?;
    let assignment: Assignment = serde_json::from_str(&line)
        .map_err(|error| format!("`kelvin run` starts this command for a tenant with limits: {error}"))?;
    if !process_sessions::join_run(&assignment.session_name) {
        return Err("this process has sessions of another run".into());
    }
    let conditions = Conditions { devices: assignment.devices.clone(), ..Conditions::default() };
    let stop = Stop::new();
    let prepared = prepare(&assignment, &stop);
    let (scenario, load) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return say(output, &Report::Failed(why)).map_err(|error| error.to_string()),
    };
    let limits = HeldLimits::hold(&[]).map_err(|error| error.to_string())?;
    let stage = Stage {
        scenario: &scenario,
        conditions: &conditions,
        clock: clock_since(assignment.origin),
        turns: vec![assignment.lasts.iter().map(|lasts| Turn::new(*lasts)).collect()],
        limits: Mutex::new(limits),
        stop: &stop,
        abandoned: AtomicBool::new(false),
    };
    let (sender, messages) = mpsc::channel();
    std::thread::scope(|scope| {
        let (stage, load) = (&stage, &load);
        scope.spawn(move || tenant::run(stage, 0, load, &sender));
        scope.spawn(move || {
            if report(stage, &messages, output).is_err() {
                abandon(stage);
            }
        });
        obey(stage, input);
    });
    Ok(())
}

/// The load as a scenario with one tenant.
fn prepare(assignment: &Assignment, stop: &Stop) -> Result<(Scenario, PreparedLoad), String> {
    let mut spec = Spec::parse(&assignment.spec, &assignment.name).map_err(|error| error.to_string())?;
    let load = if spec.is_io() {
        let run = io_run(&spec, &assignment.devices, None).map_err(|error| error.to_string())?;
        PreparedLoad::Io(IoFacts::of_run(&run))
    } else {
        let prepared = reopen_tenant(&mut spec, stop).map_err(|error| error.to_string())?;
        PreparedLoad::Database(Box::new((spec.clone(), prepared)))
    };
    let name = assignment.name.clone();
    let tenant = Tenant {
        name: name.clone(),
        group: name.clone(),
        spec,
        users: assignment.users,
        host: None,
        limits: Limits::default(),
        server_limits: Limits::default(),
    };
    let scenario = Scenario {
        name,
        description: None,
        label: None,
        seed: 0,
        accept_noise: assignment.accept_noise,
        observe: Observe::default(),
        parameters: Vec::new(),
        tenants: vec![tenant],
        steps: Vec::new(),
        expect: Vec::new(),
        timeline: Timeline { steps: Vec::new(), seconds: 0.0, at_least: false },
        directory: PathBuf::new(),
        text: String::new(),
    };
    Ok((scenario, load))
}

/// The scenario's clock: that of the kernel, which both processes have, from the same origin.
fn clock_since(origin: u64) -> Clock {
    let now = Instant::now();
    let since = Duration::from_nanos(origin_of(&Clock::Real(now)).saturating_sub(origin));
    Clock::Real(now.checked_sub(since).unwrap_or(now))
}

/// Follows the orders until there are no more.
fn obey(stage: &Stage<'_>, input: &mut impl BufRead) {
    for line in input.lines() {
        let Some(order) = line.ok().and_then(|line| serde_json::from_str(&line).ok()) else { break };
        let (Order::Begin { turn, .. } | Order::Change { turn, .. } | Order::Stop { turn }) = order;
        let Some(turn) = stage.turns[0].get(turn) else { break };
        match order {
            Order::Begin { at, .. } => turn.control.begin_at(at),
            Order::Change { at, change, .. } => turn.control.change_at(at, change),
            Order::Stop { .. } => turn.stop.request(),
        }
    }
    abandon(stage);
}

/// Ends every turn at once.
fn abandon(stage: &Stage<'_>) {
    for turn in stage.turns.iter().flatten() {
        turn.stop.request();
        turn.stop.request();
    }
}

/// Writes what the load does, and how far its turns are.
fn report(stage: &Stage<'_>, messages: &Receiver<Message>, output: &mut impl Write) -> std::io::Result<()> {
    let turns = &stage.turns[0];
    let (mut armed, mut begun) = (vec![false; turns.len()], vec![false; turns.len()]);
    let (mut ended, mut seen) = (0, 0);
    loop {
        if let Some(open) = process_sessions::changed_connections(&mut seen) {
            say(output, &Report::Connections(open))?;
        }
        let message = messages.recv_timeout(TICK);
        for (turn, control) in turns.iter().map(|turn| &turn.control).enumerate() {
            if control.is_armed() && !control.is_ended() && !std::mem::replace(&mut armed[turn], true) {
                say(output, &Report::Armed { turn })?;
            }
            if let Some(at) = control.begun().filter(|_| !std::mem::replace(&mut begun[turn], true)) {
                say(output, &Report::Begun { turn, at })?;
            }
        }
        match message {
            Ok(Message::Event(_, event)) => say(output, &Report::Event(event))?,
            Ok(Message::Ended(_, outcome)) => {
                say(output, &Report::Ended { turn: ended, outcome: *outcome })?;
                ended += 1;
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return say(output, &Report::Done),
        }
    }
}

fn say(output: &mut impl Write, report: &Report) -> std::io::Result<()> {
    let mut text = serde_json::to_string(report)?;
    text.push('\n');
    output.write_all(text.as_bytes())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_processes_have_one_clock() {
        let ours = Clock::Real(Instant::now().checked_sub(Duration::from_secs(7)).unwrap());
        let theirs = clock_since(origin_of(&ours));
        let (before, between, after) = (ours.now(), theirs.now(), ours.now());
        // By how much one of a hundred readings in a row can be wrong.
        let wrong = 1_000_000;
        assert!(before <= between + wrong && between <= after + wrong, "{before} {between} {after}");
    }
}

//! The process of a tenant with limits, as the scenario sees it: the timeline's orders go to it over its standard input,
//! what its load does comes back over its standard output, a line of JSON each.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use kelvin_database::process_sessions;
use kelvin_measure::event::Event;
use kelvin_measure::{Clock, Nanos, SECOND};
use kelvin_run::control::Change;
use kelvin_run::spec::Span;
use serde::{Deserialize, Serialize};

use super::prepare::PreparedLoad;
use super::tenant::TurnOutcome;
use super::{Message, Stage};

/// How often the timeline's orders are looked for; they come with hundreds of milliseconds' notice.
const TICK: Duration = Duration::from_millis(5);

/// A process that was asked to stop at once is killed after this time.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often two clocks are read to know what one shows when the other is at its origin.
const READINGS: u32 = 100;

/// The longest line that a process may write: the histograms of a second need far less.
const LONGEST: usize = 64 << 20;

/// The first line to the process: what its load is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Assignment {
    /// The tenant's name.
    pub(super) name: String,
    /// What the sessions of this run are called, by which its watchers know them.
    pub(super) session_name: String,
    /// Its specification, with what was taken from the database.
    pub(super) spec: String,
    /// The most users of any step.
    pub(super) users: u32,
    /// The planned length of each turn.
    pub(super) lasts: Vec<Option<Span>>,
    pub(super) accept_noise: bool,
    /// Block devices that may be written to whatever they hold.
    pub(super) devices: Vec<PathBuf>,
    /// The origin of the scenario's clock, in nanoseconds of the kernel's monotonic clock.
    pub(super) origin: Nanos,
}

/// A later line to the process. The end of its input ends it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Order {
    /// A turn is to begin then.
    Begin { turn: usize, at: Nanos },
    /// Its load is to change then.
    Change { turn: usize, at: Nanos, change: Change },
    /// It is to end now; asked twice, at once.
    Stop { turn: usize },
}

/// A line from the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Report {
    /// A turn waits for its beginning.
    Armed { turn: usize },
    /// It began then.
    Begun { turn: usize, at: Nanos },
    /// The numbers of its open connections, for servers that list no names.
    Connections(BTreeSet<u32>),
    /// An event of it.
    Event(Event),
    /// It has ended.
    Ended { turn: usize, outcome: TurnOutcome },
    /// There is no load: why.
    Failed(String),
    /// All that there was to do is done.
    Done,
}

/// Runs all turns of a tenant in a process of its own.
pub(super) fn run(
    stage: &Stage<'_>,
    tenant: usize,
    started: Result<Child, String>,
    sender: &Sender<Message>,
) {
    let failed = match started {
        Ok(child) => relay(stage, tenant, child, sender),
        Err(why) => Err(format!("cannot start its process: {why}")),
    };
    if let Err(why) = failed {
        let begun = stage.turns[tenant].iter().find(|turn| !turn.control.is_ended());
        let begun = begun.and_then(|turn| turn.control.begun());
        let outcome =
            TurnOutcome { begun, ended_by_step: true, window: None, totals: None, error: Some(why) };
        // Nobody listens only when the run is lost.
        let _lost = sender.send(Message::Ended(tenant, Box::new(outcome)));
    }
    for turn in &stage.turns[tenant] {
        turn.control.end();
    }
}

/// Starts the process under its limits, and says what its load is.
pub(super) fn start(stage: &Stage<'_>, tenant: usize, load: &PreparedLoad) -> Result<Child, String> {
    use std::os::unix::process::CommandExt;
    let of = &stage.scenario.tenants[tenant];
    let (program, arguments) = stage.conditions.tenant_command.split_first().ok_or("no command is known")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C is for the scenario, which ends its tenants in their order.
        .process_group(0)
        .spawn()
        .map_err(|error| error.to_string())?;
    let assignment = Assignment {
        name: of.name.clone(),
        session_name: process_sessions::session_name().into(),
        spec: if let PreparedLoad::Database(load) = load { load.0.to_toml() } else { of.spec.to_toml() },
        users: of.users,
        lasts: stage.turns[tenant].iter().map(|turn| turn.lasts).collect(),
        accept_noise: stage.scenario.accept_noise,
        devices: stage.conditions.devices.clone(),
        origin: origin_of(&stage.clock),
    };
    // It waits for its first line: nothing of its work is done before the limits hold.
    let held = stage.limits().take(tenant, child.id());
    let sent = held.and_then(|()| {
        let input = child.stdin.as_mut().ok_or("it has no input")?;
        send(input, &assignment).map_err(|error| error.to_string())
    });
    match sent {
        Ok(()) => Ok(child),
        Err(why) => {
            end(&mut child);
            Err(why)
        }
    }
}

/// A clock's origin on the kernel's monotonic clock, in nanoseconds. Of readings that others can interrupt, a limit of CPU
/// time among them, the one counts that took least.
pub(super) fn origin_of(clock: &Clock) -> Nanos {
    let reading = |_| {
        let before = clock.now();
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let took = clock.now() - before;
        let monotonic = time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos;
        (took, monotonic.saturating_sub(before + took / 2))
    };
    (0..READINGS).map(reading).min().map_or(0, |(_, origin)| origin)
}

fn end(child: &mut Child) {
    // It may have ended meanwhile.
    let _ended = child.kill();
    let _reaped = child.wait();
}

fn send(output: &mut impl Write, line: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Forwards orders and reports until the process has ended.
fn relay(stage: &Stage<'_>, tenant: usize, mut child: Child, sender: &Sender<Message>) -> Result<(), String> {
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        end(&mut child);
        return Err("it has no input or no output".into());
    };
    let over = AtomicBool::new(false);
    let heard = std::thread::scope(|scope| {
        let listener = scope.spawn(|| {
            let heard = listen(stage, tenant, output, sender);
            over.store(true, Ordering::Release);
            heard
        });
        forward(stage, tenant, &mut input, &mut child, &over);
        // The end of its input, should it still be there.
        drop(input);
        listener.join().unwrap_or_else(|_| Err("the thread that listens to it panicked".into()))
    });
    if heard.is_err() {
        let _ended = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    match heard {
        Ok(true) => Ok(()),
        Ok(false) if stage.limits().was_killed_for_memory(tenant) => Err(format!(
            "the kernel killed its process because it exceeded its memory limit ({})",
            stage.scenario.tenants[tenant].limits.describe()
        )),
        Ok(false) => Err(format!("its process ended ({status})")),
        Err(why) => Err(why),
    }
}

/// Sends the timeline's orders on until all is over.
fn forward(stage: &Stage<'_>, tenant: usize, input: &mut ChildStdin, child: &mut Child, over: &AtomicBool) {
    let turns = &stage.turns[tenant];
    let (mut begun, mut stops) = (vec![false; turns.len()], vec![0; turns.len()]);
    let mut hurried: Option<Instant> = None;
    while !over.load(Ordering::Acquire) {
        for (index, turn) in turns.iter().enumerate().filter(|(_, turn)| !turn.control.is_ended()) {
            let (begins, changes) = turn.control.relay();
            let mut orders = Vec::new();
            if let Some(at) = begins.filter(|_| !std::mem::replace(&mut begun[index], begins.is_some())) {
                orders.push(Order::Begin { turn: index, at });
            }
            orders.extend(changes.into_iter().map(|(at, change)| Order::Change { turn: index, at, change }));
            let asked = u8::from(turn.stop.requested()) + u8::from(turn.stop.is_immediate());
            orders.extend((stops[index]..asked).map(|_| Order::Stop { turn: index }));
            stops[index] = asked;
            if asked > 1 {
                hurried.get_or_insert_with(Instant::now);
            }
            // That nobody reads them is seen by who listens.
            let _gone = orders.iter().try_for_each(|order| send(input, order));
        }
        if hurried.is_some_and(|since| since.elapsed() > PATIENCE) {
            let _ended = child.kill();
        }
        std::thread::sleep(TICK);
    }
}

/// Takes what the process says until its output ends; whether it came to an orderly end.
fn listen(
    stage: &Stage<'_>,
    tenant: usize,
    output: ChildStdout,
    sender: &Sender<Message>,
) -> Result<bool, String> {
    let turns = &stage.turns[tenant];
    let (mut output, mut line) = (BufReader::new(output), Vec::new());
    let mut connections = OfProcess::default();
    while next_line(&mut output, LONGEST, &mut line)? {
        let report: Report = serde_json::from_slice(&line)
            .map_err(|error| format!("its process sent an invalid message: {error}"))?;
        let heard = |turn: usize, begun| {
            if let Some(turn) = turns.get(turn) {
                turn.control.set_armed(begun);
            }
        };
        match report {
            Report::Connections(open) => connections.set(open),
            Report::Armed { turn } => heard(turn, None),
            Report::Begun { turn, at } => heard(turn, Some(at)),
            // Nobody listens only when the run is lost, and then the turns are asked to stop.
            Report::Event(event) => drop(sender.send(Message::Event(tenant, event))),
            Report::Ended { turn, outcome } => {
                if outcome.begun.is_some() {
                    heard(turn, outcome.begun);
                }
                let _lost = sender.send(Message::Ended(tenant, Box::new(outcome)));
                if let Some(turn) = turns.get(turn) {
                    turn.control.end();
                }
            }
            Report::Failed(why) => return Err(why),
            Report::Done => return Ok(true),
        }
    }
    Ok(false)
}

/// The connections of a tenant's process, which this run's watchers know as long as it lives.
#[derive(Default)]
struct OfProcess(BTreeSet<u32>);

impl OfProcess {
    fn set(&mut self, open: BTreeSet<u32>) {
        self.0.difference(&open).for_each(|&number| process_sessions::set_connection(number, false));
        open.difference(&self.0).for_each(|&number| process_sessions::set_connection(number, true));
        self.0 = open;
    }
}

impl Drop for OfProcess {
    fn drop(&mut self) {
        self.set(BTreeSet::new());
    }
}

/// Takes the next line; false when there is none. A line without its end is of a process that died while it wrote it.
fn next_line(input: &mut impl BufRead, longest: usize, line: &mut Vec<u8>) -> Result<bool, String> {
    line.clear();
    input
        .take(longest as u64)
        .read_until(b'\n', line)
        .map_err(|error| format!("the messages of its process cannot be read: {error}"))?;
    if line.last() != Some(&b'\n') && line.len() >= longest {
        return Err(format!("its process sent a line of more than {longest} bytes"));
    }
    Ok(line.last() == Some(&b'\n'))
}

#[cfg(test)]
mod tests {
    use kelvin_measure::Histogram;
    use kelvin_measure::event::{KindCounts, LoadPart, Second};

    use super::*;

    #[test]
    fn a_line_has_an_end_and_a_limit() {
        let (mut input, mut line) = (&b"one\ntwo\nhal"[..], Vec::new());
        for expected in ["one\n", "two\n"] {
            assert_eq!((next_line(&mut input, 4, &mut line), &line[..]), (Ok(true), expected.as_bytes()));
        }
        assert_eq!(next_line(&mut input, 4, &mut line), Ok(false));
        assert_eq!(next_line(&mut input, 4, &mut line), Ok(false));
        let why = next_line(&mut &b"five\n"[..], 4, &mut line).unwrap_err();
        assert!(why.contains("more than 4 bytes"), "{why}");
    }

    #[test]
    fn connections_of_the_process_are_this_runs_as_long_as_it_lives() {
        let mut seen = 0;
        let mut open = || process_sessions::changed_connections(&mut seen);
        open();
        let mut connections = OfProcess::default();
        connections.set([7, 8].into());
        assert_eq!(open(), Some([7, 8].into()));
        connections.set([8, 9].into());
        assert_eq!((open(), open()), (Some([8, 9].into()), None));
        drop(connections);
        assert_eq!(open(), Some([].into()));
    }

    #[test]
    fn what_goes_through_the_pipe_is_what_comes_out() {
        let mut latency = Histogram::new();
        (1..5000).for_each(|value| latency.record(value * 1000));
        let kinds = vec![KindCounts { committed: 4999, latency, ..KindCounts::default() }];
        let second = Second { point: 0, second: 3, part: LoadPart::Measured, kinds };
        let line = serde_json::to_string(&Report::Event(Event::Second(second.clone()))).unwrap();
        let Report::Event(Event::Second(back)) = serde_json::from_str(&line).unwrap() else {
            panic!("{line}")
        };
        assert_eq!((back.second, back.kinds[0].committed), (3, 4999));
        let buckets = |second: &Second| second.kinds[0].latency.buckets().collect::<Vec<_>>();
        assert_eq!(buckets(&back), buckets(&second));
        let order = Order::Change { turn: 1, at: u64::MAX, change: Change::Rate(0.1) };
        let line = serde_json::to_string(&order).unwrap();
        assert_eq!(format!("{:?}", serde_json::from_str::<Order>(&line).unwrap()), format!("{order:?}"));
    }
}

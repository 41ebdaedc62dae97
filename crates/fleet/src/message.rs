//! What controller and agents say to each other, as JSON with a version. Nothing in it is trusted: sizes have limits, names are
//! parts of subjects, and an agent does only what its own list allows.

use std::collections::BTreeSet;

use kelvin_measure::{Event, Machine, text};
use kelvin_run::driver::{GeneratorReport, LoadTimes};
use kelvin_run::fleet::GeneratorAssignment;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::subject::Name;

/// Raised when a message changes its meaning: hosts with different ones do not work together.
pub(crate) const VERSION: u32 = 1;

/// The longest message that is read: a report of 100,000 users with all its histograms needs less.
const LONGEST: usize = 32 << 20;

/// The longest text that an agent is shown or that it shows.
const LONGEST_TEXT: usize = 2_000;

#[derive(Serialize)]
struct Sent<'a, T> {
    version: u32,
    body: &'a T,
}

#[derive(Deserialize)]
struct Received<T> {
    body: T,
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

/// A message as it is sent.
pub(crate) fn encode(body: &impl Serialize) -> Result<Vec<u8>, FleetError> {
    serde_json::to_vec(&Sent { version: VERSION, body })
        .map_err(|error| FleetError::Message(error.to_string()))
}

/// A message as it was received.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FleetError> {
    if bytes.len() > LONGEST {
        return Err(FleetError::Message(format!(
            "a message of {} bytes; at most {LONGEST} are allowed",
            bytes.len()
        )));
    }
    let of = |error: serde_json::Error| FleetError::Message(error.to_string());
    let Version { version } = serde_json::from_slice(bytes).map_err(of)?;
    if version != VERSION {
        return Err(FleetError::Message(format!(
            "the other side uses message version {version}, this one {VERSION}: use the same kelvin version \
             on all hosts"
        )));
    }
    serde_json::from_slice::<Received<T>>(bytes).map(|received| received.body).map_err(of)
}

/// Text of another host, for people: short, and without anything that steers a terminal.
pub(crate) fn clean(text: &str) -> String {
    text::cut(text, LONGEST_TEXT)
}

/// What the controller wants of an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Command {
    /// Open the target of a run's specification.
    Prepare(Prepare),
    /// Connect the users of a point, and wait.
    Arm(Box<Arm>),
    /// Start then, by the agent's own clock.
    Start {
        /// The run.
        run: Name,
        /// Its point.
        point: u32,
        /// The times.
        times: LoadTimes,
    },
    /// The load ends then, earlier than planned.
    EndAt {
        /// The run.
        run: Name,
        /// Its point.
        point: u32,
        /// The times.
        times: LoadTimes,
    },
    /// End the load at once.
    Abort {
        /// The run.
        run: Name,
    },
    /// The run is over.
    End {
        /// The run.
        run: Name,
    },
    /// Put the agent's own file of a run that is over into its bucket.
    Share {
        /// The run.
        run: Name,
    },
}

/// A run that is about to begin.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Prepare {
    pub(crate) run: Name,
    /// The specification.
    pub(crate) spec: String,
    /// The agent's number in the run, from 0, and the number of agents.
    pub(crate) host: (u32, u32),
    /// How long the agent goes on without hearing the controller, in seconds; no longer than its own limit.
    pub(crate) alone: f64,
}

/// A generator's part of a point.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Arm {
    pub(crate) run: Name,
    pub(crate) assignment: GeneratorAssignment,
}

/// An agent's answer to a command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// It is done, or under way.
    Accepted,
    /// The target is open.
    Prepared {
        /// What the host says of its clock.
        synchronisation: Option<String>,
    },
    /// It is not done: why.
    Refused(String),
}

/// What an agent is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentState {
    /// Waits for a run.
    Idle,
    /// Opens the target of a run.
    Preparing,
    /// Waits for a point of its run.
    Prepared,
    /// Connects users of a point: so many so far.
    Connecting {
        /// The point.
        point: u32,
        /// Users connected.
        done: u64,
    },
    /// All users are connected and wait for the start.
    Armed {
        /// The point.
        point: u32,
    },
    /// The load is on.
    Running {
        /// The point.
        point: u32,
    },
}

/// A sign of life of an agent, once a second and when its state changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Beat {
    /// The agent.
    pub agent: Name,
    /// The host's name.
    pub host: String,
    /// CPUs that it may use.
    pub cpus: u32,
    /// Its machine, which other agents may share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Its version of Kelvin.
    pub kelvin: String,
    /// The process, which distinguishes an agent from one that was started again.
    pub process: u64,
    /// The run that it works for.
    pub run: Option<Name>,
    /// What it is doing.
    pub state: AgentState,
    /// The connections that servers know by number, for those that do not show the name of a session.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub connections: BTreeSet<u32>,
}

/// The controller's sign of life.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ControllerBeat {
    pub(crate) run: Name,
}

/// The clock's question has no content; this is the answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClockAnswer {
    /// When the question came and when the answer went, by the agent's clock.
    pub(crate) t1: u64,
    pub(crate) t2: u64,
}

/// A stored message of an agent: what happened since its last one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Output {
    /// From 0, over the whole run.
    pub(crate) sequence: u64,
    pub(crate) items: Vec<OutputItem>,
}

/// A part of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum OutputItem {
    /// An event of a point.
    Event {
        /// The point.
        point: u32,
        /// The event.
        event: Event,
    },
    /// A point's generator has ended.
    Ended {
        /// The point.
        point: u32,
        /// What it says.
        report: Box<GeneratorReport>,
    },
    /// It has not come to its end: why.
    Failed {
        /// The point.
        point: u32,
        /// Why.
        why: String,
    },
}

/// Cuts a message into pieces that a server takes, each with a line that says which piece it is.
pub(crate) fn pieces(message: &[u8], most: usize) -> Vec<Vec<u8>> {
    let room = most.saturating_sub(64).max(1024);
    let parts = message.len().div_ceil(room).max(1);
    let piece = |(part, bytes): (usize, &[u8])| {
        let mut piece = format!("{part}/{parts}\n").into_bytes();
        piece.extend_from_slice(bytes);
        piece
    };
    if message.is_empty() {
        return vec![piece((0, message))];
    }
    message.chunks(room).enumerate().map(piece).collect()
}

/// Puts pieces together that come in their order.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    message: Vec<u8>,
    next: usize,
    /// The parts of this message.
    parts: usize,
    /// The parts of the last complete message.
    complete: usize,
}

impl Assembler {
    /// Takes a piece; the message when it was the last one. A piece that does not follow begins anew, or is an error.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<Option<Vec<u8>>, FleetError> {
        let broken = |why: &str| FleetError::Message(format!("a stored message {why}"));
        let end = piece.iter().take(32).position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| broken("has no number of its part"))?;
        let head = std::str::from_utf8(&piece[..end]).ok().and_then(|head| head.split_once('/'));
        let number = |text: &str| text.parse::<usize>().ok();
        let numbers = head.and_then(|(part, parts)| number(part).zip(number(parts)));
        let (part, parts) = numbers.ok_or_else(|| broken("has no number of its part"))?;
        if part == 0 {
            // A part that was sent again after its answer was lost begins the message again.
            (self.message, self.next, self.parts) = (Vec::new(), 0, parts);
        } else if self.next.checked_sub(1) == Some(part)
            || self.next == 0 && parts == self.complete && parts.checked_sub(1) == Some(part)
        {
            return Ok(None);
        }
        if part != self.next || part >= parts || parts != self.parts {
            return Err(broken("lacks a part"));
        }
        self.message.extend_from_slice(&piece[end + 1..]);
        if self.message.len() > LONGEST {
            return Err(broken("is too long"));
        }
        self.next += 1;
        if self.next < parts {
            return Ok(None);
        }
        (self.next, self.complete) = (0, parts);
        Ok(Some(std::mem::take(&mut self.message)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn another_version_is_refused_before_its_content_is_read() {
        let error = decode::<Answer>(br#"{"version":99,"body":{"new":1}}"#).unwrap_err().to_string();
        assert!(error.contains("version 99") && error.contains("same kelvin"), "{error}");
        assert!(decode::<Answer>(b"{").is_err());
        let bytes = encode(&Answer::Refused("busy".into())).unwrap();
        assert!(matches!(decode(&bytes), Ok(Answer::Refused(why)) if why == "busy"));
        assert!(decode::<Answer>(&vec![b' '; LONGEST + 1]).unwrap_err().to_string().contains("allowed"));
    }

    proptest! {
        #[test]
        fn pieces_become_the_message(message in prop::collection::vec(any::<u8>(), 0..20_000), most in 0_usize..9_000, again in any::<bool>()) {
            let mut assembler = Assembler::default();
            let pieces = pieces(&message, most);
            let mut back = None;
            for piece in &pieces {
                prop_assert!(back.is_none());
                back = assembler.take(piece).unwrap();
                if again && (back.is_none() || pieces.len() > 1) {
                    prop_assert!(assembler.take(piece).unwrap().is_none());
                }
            }
            prop_assert_eq!(back, Some(message));
        }

        #[test]
        fn any_bytes_are_a_piece_or_an_error(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..10)) {
            let mut assembler = Assembler::default();
            for piece in pieces {
                drop(assembler.take(&piece));
            }
        }

        /// A message is what one sender's parts are, in their order, or there is none.
        #[test]
        fn no_order_of_numbered_parts_makes_a_message_of_others(
            parts in prop::collection::vec((extreme(), extreme()), 0..12),
        ) {
            let mut assembler = Assembler::default();
            let mut since_first: Vec<(usize, usize)> = Vec::new();
            for (part, parts) in parts {
                let piece = format!("{part}/{parts}\n{part},");
                if part == 0 {
                    since_first.clear();
                }
                let taken = assembler.take(piece.as_bytes());
                if !since_first.contains(&(part, parts)) {
                    since_first.push((part, parts));
                }
                if let Ok(Some(message)) = taken {
                    let whole = (0..parts).fold(String::new(), |whole, part| whole + &format!("{part},"));
                    prop_assert_eq!(String::from_utf8(message).unwrap(), whole);
                    let each = (0..parts).all(|part| since_first.contains(&(part, parts)));
                    prop_assert!(each, "{parts} parts of {since_first:?}");
                }
            }
        }

        /// Whatever comes instead of a message is refused: bytes, JSON of another shape, and messages cut or changed in a byte.
        #[test]
        fn any_bytes_are_a_message_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            which in 0..SENT.len(),
            (at, put, cut) in (any::<prop::sample::Index>(), any::<u8>(), any::<bool>()),
        ) {
            read_all(&bytes);
            let mut sent = SENT[which].as_bytes().to_vec();
            prop_assert!(read_all(&sent), "{}", SENT[which]);
            let at = at.index(sent.len());
            if cut {
                sent.truncate(at);
                prop_assert!(!read_all(&sent), "a part of a message");
            } else {
                sent[at] = put;
                read_all(&sent);
            }
        }

        /// Nothing that nests, is long or is large brings the reader down.
        #[test]
        fn json_of_any_size_is_read_or_refused(depth in 0..5_000_usize, number in any::<u64>(), text in ".{0,300}") {
            let text = serde_json::to_string(&text).unwrap();
            for body in [
                format!("{}{}", "[".repeat(depth), "]".repeat(depth)),
                format!("{}1{}", "{\"event\":".repeat(depth), "}".repeat(depth)),
                format!("{{\"refused\":{text}}}"),
                format!("{{\"abort\":{{\"run\":{text}}}}}"),
                format!("{{\"sequence\":{number},\"items\":[{{\"failed\":{{\"point\":{number},\"why\":{text}}}}}]}}"),
                format!("{{\"t1\":{number},\"t2\":-{number}}}"),
            ] {
                read_all(format!("{{\"version\":1,\"body\":{body}}}").as_bytes());
            }
        }
    }

    fn extreme() -> impl Strategy<Value = usize> {
        prop_oneof![4 => 0_usize..4, 1 => Just(usize::MAX), 1 => Just(usize::MAX - 1)]
    }

    /// Whether it is any of the messages.
    fn read_all(bytes: &[u8]) -> bool {
        let read = [
            decode::<Command>(bytes).is_ok(),
            decode::<Answer>(bytes).is_ok(),
            decode::<Beat>(bytes).is_ok(),
            decode::<ControllerBeat>(bytes).is_ok(),
            decode::<ClockAnswer>(bytes).is_ok(),
            decode::<Output>(bytes).is_ok(),
        ];
        read.contains(&true)
    }

    /// One of each that has a form of its own.
    const SENT: [&str; 7] = [
        r#"{"version":1,"body":{"prepare":{"run":"1-2","spec":"workload = \"tproc-c\"","host":[0,2],"alone":15.0}}}"#,
        r#"{"version":1,"body":{"start":{"run":"1-2","point":0,"times":{"begin":1,"open":2,"close":3,"end":4}}}}"#,
        r#"{"version":1,"body":{"prepared":{"synchronisation":null}}}"#,
        r#"{"version":1,"body":{"agent":"g1","host":"h","cpus":2,"kelvin":"0.1.0","process":7,"run":null,"state":{"connecting":{"point":0,"done":3}},"connections":[1,2]}}"#,
        r#"{"version":1,"body":{"run":"1-2"}}"#,
        r#"{"version":1,"body":{"t1":1,"t2":2}}"#,
        r#"{"version":1,"body":{"sequence":0,"items":[{"failed":{"point":0,"why":"no"}}]}}"#,
    ];

    #[test]
    fn text_of_others_steers_no_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\nc"), "a [2Jb c");
        assert_eq!(clean(&"x".repeat(5000)).chars().count(), LONGEST_TEXT);
    }
}

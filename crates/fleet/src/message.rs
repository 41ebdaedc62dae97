//! The messages between controller and agents, as JSON with a version. They are not trusted: sizes are
//! limited, names are checked as parts of subjects, and an agent does only what its own list allows.

use std::collections::BTreeSet;

use kelvin_measure::{Event, Machine, text};
use kelvin_run::driver::{GeneratorReport, LoadTimes};
use kelvin_run::fleet::GeneratorAssignment;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::subject::Name;

/// Incremented when a message changes its meaning. Hosts with different versions do not work together.
pub(crate) const VERSION: u32 = 1;

/// The longest message that is read, in bytes. A report of 100,000 users with all its histograms is shorter.
const LONGEST: usize = 32 << 20;

/// The longest text from another host that is shown, in characters.
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

/// Encodes a message.
pub(crate) fn encode(body: &impl Serialize) -> Result<Vec<u8>, FleetError> {
    serde_json::to_vec(&Sent { version: VERSION, body })
        .map_err(|error| FleetError::Message(error.to_string()))
}

/// Decodes a message.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FleetError> {
    if bytes.len() > LONGEST {
        return Err(FleetError::Message(format!(
            "a message of {} bytes; {LONGEST} are allowed",
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

/// Makes text of another host safe to show: limits its length and removes control characters.
pub(crate) fn clean(text: &str) -> String {
    text::cut(text, LONGEST_TEXT)
}

/// A command from the controller to an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Command {
    /// Open the target of a run's specification.
    Prepare(Prepare),
    /// Connect the users of a point, and wait for the start.
    Arm(Box<Arm>),
    /// Start at these times of the agent's own clock.
    Start {
        /// The run.
        run: Name,
        /// Its point.
        point: u32,
        /// The times.
        times: LoadTimes,
    },
    /// End the load at these times, earlier than planned.
    EndAt {
        /// The run.
        run: Name,
        /// Its point.
        point: u32,
        /// The times.
        times: LoadTimes,
    },
    /// Stop the load immediately.
    Abort {
        /// The run.
        run: Name,
    },
    /// The run is over.
    End {
        /// The run.
        run: Name,
    },
    /// Put the agent's own store of a finished run into its bucket.
    Share {
        /// The run.
        run: Name,
    },
}

/// The run that an agent is to prepare.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Prepare {
    pub(crate) run: Name,
    /// The specification.
    pub(crate) spec: String,
    /// The agent's number in the run, from 0, and the number of agents.
    pub(crate) host: (u32, u32),
    /// How long the agent continues without messages from the controller, in seconds; limited by its own
    /// setting.
    pub(crate) alone: f64,
}

/// A generator's assignment in a point.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Arm {
    pub(crate) run: Name,
    pub(crate) assignment: GeneratorAssignment,
}

/// An agent's answer to a command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The command was executed, or its execution has begun.
    Accepted,
    /// The target is open.
    Prepared {
        /// The state of the host's clock synchronisation.
        synchronisation: Option<String>,
    },
    /// The command was refused, with the reason.
    Refused(String),
}

/// The state of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentState {
    /// Waiting for a run.
    Idle,
    /// Opening the target of a run.
    Preparing,
    /// Waiting for a point of its run.
    Prepared,
    /// Connecting the users of a point.
    Connecting {
        /// The point.
        point: u32,
        /// Users connected so far.
        done: u64,
    },
    /// All users are connected and wait for the start.
    Armed {
        /// The point.
        point: u32,
    },
    /// Running the load.
    Running {
        /// The point.
        point: u32,
    },
}

/// A beat of an agent, sent once a second and when its state changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Beat {
    /// The agent.
    pub agent: Name,
    /// The host's name.
    pub host: String,
    /// CPUs that the agent may use.
    pub cpus: u32,
    /// Its machine, which other agents may share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// Its version of Kelvin.
    pub kelvin: String,
    /// Its process ID, which changes when the agent is restarted.
    pub process: u64,
    /// The run that it takes part in.
    pub run: Option<Name>,
    /// Its current state.
    pub state: AgentState,
    /// Its connections by the servers' session numbers, for servers that do not show the name of a session.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub connections: BTreeSet<u32>,
}

/// A beat of the controller.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ControllerBeat {
    pub(crate) run: Name,
}

/// The answer to a clock request, which has no content.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClockAnswer {
    /// When the request arrived and when the answer was sent, by the agent's clock.
    pub(crate) t1: u64,
    pub(crate) t2: u64,
}

/// A stored message of an agent: what happened since the previous one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Output {
    /// Consecutive number from 0, over the whole run.
    pub(crate) sequence: u64,
    pub(crate) items: Vec<OutputItem>,
}

/// An item of a stored message.
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
        /// Its report.
        report: Box<GeneratorReport>,
    },
    /// A point's generator has failed.
    Failed {
        /// The point.
        point: u32,
        /// The reason.
        why: String,
    },
}

/// Splits a message into pieces of at most `most` bytes, each with a first line that contains its number.
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

/// Joins pieces that arrive in order.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    message: Vec<u8>,
    next: usize,
    /// The number of parts of the current message.
    parts: usize,
    /// The number of parts of the last complete message.
    complete: usize,
}

impl Assembler {
    /// Adds a piece. Returns the message after its last piece. An unexpected piece restarts the message, or
    /// is an error.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<Option<Vec<u8>>, FleetError> {
        let broken = |why: &str| FleetError::Message(format!("a stored message {why}"));
        let end = piece.iter().take(32).position(|byte| *byte == b'\n');
        let end = end.ok_or_else(|| broken("has no number of its part"))?;
        let head = std::str::from_utf8(&piece[..end]).ok().and_then(|head| head.split_once('/'));
        let number = |text: &str| text.parse::<usize>().ok();
        let numbers = head.and_then(|(part, parts)| number(part).zip(number(parts)));
        let (part, parts) = numbers.ok_or_else(|| broken("has no number of its part"))?;
        if part == 0 {
            // Part 0 restarts the message: it was sent again because its confirmation was lost.
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

        /// A message consists of all parts in order, or there is no message.
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

        /// Anything other than a message is refused: random bytes, other JSON, and truncated or changed
        /// messages.
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

        /// Deeply nested, long or large input does not crash the decoder.
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

    /// Whether the bytes are a message of any type.
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

    /// One example of each form.
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

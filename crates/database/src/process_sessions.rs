//! What tells this process's sessions from those of others on the same server.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{LazyLock, Mutex, PoisonError};

/// What sessions are called where the configuration does not say, with eight digits of the process's own behind it, by which
/// they are told from those of another Kelvin. The process's number would not do: those of two containers are often the same.
pub(crate) const PROGRAM: &str = "kelvin";
pub(crate) static SESSION_NAME: LazyLock<String> =
    LazyLock::new(|| format!("{PROGRAM} {:08x}", RandomState::new().build_hasher().finish() as u32));

/// Sessions that have ended and are remembered: the server may still be at work for one whose client has gone.
const ENDED: usize = 4096;

/// The numbers that servers gave to this process's connections, for engines whose list of sessions shows no name of theirs.
#[derive(Debug, Default)]
struct Connections {
    open: BTreeSet<u32>,
    ended: VecDeque<u32>,
}

static CONNECTIONS: Mutex<Connections> =
    Mutex::new(Connections { open: BTreeSet::new(), ended: VecDeque::new() });

impl Connections {
    fn end(&mut self, number: u32) {
        if self.open.remove(&number) {
            if self.ended.len() == ENDED {
                self.ended.pop_front();
            }
            self.ended.push_back(number);
        }
    }

    fn holds(&self, number: u32) -> bool {
        self.open.contains(&number) || self.ended.contains(&number)
    }
}

/// Enters a connection, or says that it has ended.
pub(crate) fn set_connection(number: u32, open: bool) {
    let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if open {
        connections.open.insert(number);
    } else {
        connections.end(number);
    }
}

/// Whether a connection of this number is, or lately was, one of this process's. Handshakes have 32 bits of the number.
pub(crate) fn has_connection(number: i64) -> bool {
    CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner).holds(number as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_known_for_a_while_after_their_end() {
        let mut connections = Connections::default();
        for number in 0..=ENDED as u32 {
            connections.open.insert(number);
        }
        assert!(connections.holds(0) && !connections.holds(ENDED as u32 + 1));
        connections.end(u32::MAX);
        for number in 0..=ENDED as u32 {
            connections.end(number);
        }
        assert!(!connections.holds(0), "the oldest is forgotten");
        assert!(connections.holds(1) && connections.holds(ENDED as u32) && connections.open.is_empty());
    }
}

//! Names and connection numbers that distinguish this process's sessions from others on the same server.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The default session name. Eight random digits per process follow it and distinguish its sessions from
/// those of another Kelvin. The process id would not do: two containers often have the same ones.
pub(crate) const PROGRAM: &str = "kelvin";
pub(crate) static SESSION_NAME: LazyLock<String> =
    LazyLock::new(|| format!("{PROGRAM} {:08x}", RandomState::new().build_hasher().finish() as u32));

/// Ended sessions that are remembered: the server may still be working for a client that has disconnected.
const ENDED: usize = 4096;

/// The connection numbers that servers assigned to this process, for engines whose session list shows no names.
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

/// Records that a connection was opened or has ended.
pub(crate) fn set_connection(number: u32, open: bool) {
    let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if open {
        connections.open.insert(number);
    } else {
        connections.end(number);
    }
}

/// Whether a connection with this number belongs, or recently belonged, to this process. Handshakes have 32 bits of the number.
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

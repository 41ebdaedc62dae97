//! Names and connection numbers that distinguish this run's sessions from others on the same server. A run may have several
//! processes (tenants with limits): they share the name, and the first of them knows the connections of all.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The default session name. Eight random digits per run follow it and distinguish its sessions from
/// those of another Kelvin. The process id would not do: two containers often have the same ones.
pub(crate) const PROGRAM: &str = "kelvin";

static SESSION_NAME: OnceLock<String> = OnceLock::new();

/// The name of this run's sessions.
pub fn session_name() -> &'static str {
    SESSION_NAME
        .get_or_init(|| format!("{PROGRAM} {:08x}", RandomState::new().build_hasher().finish() as u32))
}

/// Takes the session name of the run that this process belongs to. False if a session has another name already.
pub fn join_run(name: &str) -> bool {
    SESSION_NAME.get_or_init(|| name.to_owned()) == name
}

/// Ended sessions that are remembered: the server may still be working for a client that has disconnected.
const ENDED: usize = 4096;

/// The connection numbers that servers assigned to this run, for engines whose session list shows no names.
#[derive(Debug, Default)]
struct Connections {
    open: BTreeSet<u32>,
    ended: VecDeque<u32>,
    /// How often something changed.
    changes: u64,
}

static CONNECTIONS: Mutex<Connections> =
    Mutex::new(Connections { open: BTreeSet::new(), ended: VecDeque::new(), changes: 0 });

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

/// Records that a connection of this run was opened or has ended.
pub fn set_connection(number: u32, open: bool) {
    let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    connections.changes += 1;
    if open {
        connections.open.insert(number);
    } else {
        connections.end(number);
    }
}

/// The open connections by their numbers, if they are others than at the last call with this `seen`, which begins with 0.
pub fn changed_connections(seen: &mut u64) -> Option<BTreeSet<u32>> {
    let connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let changed = std::mem::replace(seen, connections.changes) != connections.changes;
    changed.then(|| connections.open.clone())
}

/// Whether a connection with this number belongs, or recently belonged, to this run. Handshakes have 32 bits of the number.
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

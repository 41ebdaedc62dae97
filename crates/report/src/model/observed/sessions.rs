//! The activity of the database's sessions.

use kelvin_diagnose::{Evidence, is_client};
use serde::Serialize;

/// Number of listed waits; the others are omitted.
const LISTED: usize = 25;

/// Samples of the sessions in a point's window. Shares refer to the active sessions of clients.
#[derive(Debug, Clone, Serialize)]
pub struct SessionsReport {
    /// Samples taken.
    pub looks: u32,
    /// Average active sessions of clients.
    pub active: f64,
    /// By class, in descending order.
    pub classes: Vec<ClassRow>,
    /// By kind of process, class and event: those of clients first, then by frequency. Only the first 25 are
    /// listed.
    pub waits: Vec<WaitRow>,
    /// Sessions that waited for a row lock, by relation, in descending order.
    pub rows: Vec<RowWaits>,
}

/// Sessions of one class.
#[derive(Debug, Clone, Serialize)]
pub struct ClassRow {
    /// As the database names it, or "CPU".
    pub class: String,
    /// Average client sessions in it.
    pub sessions: f64,
    /// Share of all active client sessions, in per cent.
    pub share_percent: f64,
}

/// Sessions in one wait.
#[derive(Debug, Clone, Serialize)]
pub struct WaitRow {
    /// The kind of process.
    pub backend: String,
    /// The class.
    pub class: String,
    /// The event; empty if there is none.
    pub event: String,
    /// Average sessions in it.
    pub sessions: f64,
    /// Share of the active client sessions, in per cent; none for other processes.
    pub share_percent: Option<f64>,
}

/// Sessions that waited for row locks in a relation.
#[derive(Debug, Clone, Serialize)]
pub struct RowWaits {
    /// The relation.
    pub relation: String,
    /// Average sessions that waited.
    pub sessions: f64,
}

impl SessionsReport {
    /// For a point; none if the sessions were not sampled.
    pub(super) fn of(evidence: &Evidence, point: u32) -> Option<Self> {
        let clients = evidence.active(point, is_client);
        if clients.looks == 0 {
            return None;
        }
        let active = clients.sessions();
        let share = |sessions: f64| if active > 0.0 { 100.0 * sessions / active } else { 0.0 };
        let all = evidence.active(point, |_| true);
        let mut waits = all.by(|g| (g.backend.clone(), g.class.clone(), g.event.clone(), is_client(g)));
        // The server's own processes wait most of the time without slowing down any session.
        waits.sort_by_key(|((.., client), _)| !client);
        let wait = |((backend, class, event, client), sessions): ((String, String, String, bool), f64)| {
            WaitRow { backend, class, event, sessions, share_percent: client.then(|| share(sessions)) }
        };
        let class =
            |(class, sessions): (String, f64)| ClassRow { class, sessions, share_percent: share(sessions) };
        Some(Self {
            looks: clients.looks,
            active,
            classes: clients.by(|g| g.class.clone()).into_iter().map(class).collect(),
            waits: waits.into_iter().take(LISTED).map(wait).collect(),
            rows: evidence
                .row_waits(point)
                .into_iter()
                .map(|(relation, sessions)| RowWaits { relation, sessions })
                .collect(),
        })
    }
}

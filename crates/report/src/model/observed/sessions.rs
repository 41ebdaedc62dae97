//! The activity of the database's sessions.

use kelvin_diagnose::{Evidence, is_client};
use serde::Serialize;

/// Waits that are listed; the rest is added up.
const LISTED: usize = 25;

/// Samples of the sessions of a point's window. Shares are of the active sessions of clients.
#[derive(Debug, Clone, Serialize)]
pub struct SessionsReport {
    /// Looks taken.
    pub looks: u32,
    /// Average active sessions of clients.
    pub active: f64,
    /// By class, the most first.
    pub classes: Vec<ClassRow>,
    /// By kind of process, class and event, those of clients before the others, the most frequent first; only the first
    /// 25 are listed.
    pub waits: Vec<WaitRow>,
    /// Sessions that waited for a row, by relation, the most first.
    pub rows: Vec<RowWaits>,
}

/// Sessions of one class.
#[derive(Debug, Clone, Serialize)]
pub struct ClassRow {
    /// As the database names it, or "CPU".
    pub class: String,
    /// Average active sessions of clients in it.
    pub sessions: f64,
    /// Share of all, in per cent.
    pub share_percent: f64,
}

/// Sessions in one wait.
#[derive(Debug, Clone, Serialize)]
pub struct WaitRow {
    /// The kind of process.
    pub backend: String,
    /// The class.
    pub class: String,
    /// The event; empty where there is none.
    pub event: String,
    /// Average sessions in it.
    pub sessions: f64,
    /// Share of the active sessions of clients in per cent; none for other processes.
    pub share_percent: Option<f64>,
}

/// Sessions that waited for rows of a relation.
#[derive(Debug, Clone, Serialize)]
pub struct RowWaits {
    /// The relation.
    pub relation: String,
    /// Average sessions that waited.
    pub sessions: f64,
}

impl SessionsReport {
    /// Of a point; none if the sessions were not sampled.
    pub(super) fn of(evidence: &Evidence, point: u32) -> Option<Self> {
        let clients = evidence.active(point, is_client);
        if clients.looks == 0 {
            return None;
        }
        let active = clients.sessions();
        let share = |sessions: f64| if active > 0.0 { 100.0 * sessions / active } else { 0.0 };
        let all = evidence.active(point, |_| true);
        let mut waits = all.by(|g| (g.backend.clone(), g.class.clone(), g.event.clone(), is_client(g)));
        // The server's own processes wait most of the time without limiting any session.
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

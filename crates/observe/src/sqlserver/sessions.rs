//! What each session's tasks do or wait for.

use std::collections::{BTreeMap, HashSet};

use kelvin_database::{Error, Rows};
use kelvin_measure::Nanos;
use kelvin_measure::observation::{Blocker, UnavailableMetrics, WaitGroup, WaitKind};

use super::link::{Link, Server};
use super::pages::{Pages, Tables, page};
use super::shown_text::{clear, shown};
use super::sql;
use super::wait_types::wait_type;
use crate::server::horizon::Horizon;
use crate::server::link::{Observers, SESSIONS};
use crate::server::sessions::{SentTexts, SessionSource, Tally, first_of_queue};
use crate::server::shortened;
use crate::watch::Feed;
use crate::watch_plan::WatchPlan;

/// A statement's text is cut after so many characters.
const LONGEST_TEXT: usize = 120;

/// Looks at the sessions.
pub(super) struct SqlServerSessions {
    observers: Observers,
    rows: Rows,
    apart: bool,
    pages: Pages,
    tables: Tables,
    horizon: Horizon,
    /// Whether the transactions that hold row versions can be read.
    shows_holders: bool,
    /// The statements whose texts were sent; none where they are not asked for.
    sent: Option<SentTexts>,
}

impl SqlServerSessions {
    pub(super) fn new(plan: &WatchPlan, observers: Observers) -> Self {
        Self {
            observers,
            rows: Rows::new(),
            apart: plan.apart,
            pages: Pages::default(),
            tables: Tables::default(),
            horizon: Horizon::default(),
            shows_holders: false,
            sent: plan.texts.then(SentTexts::default),
        }
    }

    fn read_holders(&self, link: &mut Link) -> Result<Rows, String> {
        link.with(|session, _| session.query(&sql::versions(&self.observers.list())))
    }
}

/// What a task was seen doing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State<'a> {
    class: &'a str,
    event: &'a str,
    kind: WaitKind,
}

/// The state of a task of this state and wait; none for one that rests.
fn state<'a>(task: Option<&str>, wait: Option<&'a str>, resource: &str) -> Option<State<'a>> {
    let of = |class, event, kind| Some(State { class, event, kind });
    match (task, wait) {
        (None, _) => of("Idle in transaction", "", WaitKind::IdleInTransaction),
        (Some("PENDING"), _) => of("Worker Thread", "THREADPOOL", WaitKind::Other),
        (Some("SPINLOOP"), _) => of("Latch", "spinlock", WaitKind::Latch),
        (Some("RUNNABLE"), _) => of("CPU", "runnable", WaitKind::Cpu),
        // Between the two lists a wait has ended.
        (Some("RUNNING"), _) | (Some("SUSPENDED"), None) => of("CPU", "", WaitKind::Cpu),
        (Some("SUSPENDED"), Some(wait)) => {
            let known = wait_type(wait);
            let kind = match known.kind {
                // What it is of is known here, and not by the mode alone.
                WaitKind::RowLock | WaitKind::Lock if known.category == "Lock" => lock(resource),
                kind => kind,
            };
            (!known.rests).then_some(State { class: known.category, event: wait, kind })
        }
        _ => None,
    }
}

fn lock(resource: &str) -> WaitKind {
    let row = ["keylock", "ridlock", "xactlock"].iter().any(|of| resource.starts_with(of));
    if row { WaitKind::RowLock } else { WaitKind::Lock }
}

impl SessionSource for SqlServerSessions {
    type Server = Server;
    const NAME: &'static str = "sqlserver";
    const WAITING: &'static str = "active sessions that were not on a CPU, nor waiting for one";

    fn is_same_life(before: &Server, now: &Server) -> bool {
        now.is_same_life(before)
    }

    fn begin(&mut self, link: &mut Link) -> Vec<UnavailableMetrics> {
        let mut all = absent(&link.about);
        let holders = if link.about.has(sql::VERSION_HOLDERS) {
            self.read_holders(link).map(drop)
        } else {
            Err(link.about.why_not(sql::VERSION_HOLDERS))
        };
        self.shows_holders = holders.is_ok();
        let what = "transactions that hold row versions".into();
        all.extend(holders.err().map(|why| UnavailableMetrics { what, why }));
        all
    }

    fn ask(&mut self, link: &mut Link) -> Result<(), String> {
        let (observers, texts) = (&self.observers, self.sent.is_some());
        self.rows = link.with(|session, server| {
            observers.set(SESSIONS, server.connection);
            session.query(&sql::sessions(&observers.list(), texts))
        })?;
        // Pages that were not seen before are asked for now: what they are of is known to the first look at them.
        for row in 0..self.rows.len() {
            let field = |column| self.rows.optional(row, column, Rows::text).ok().flatten();
            let waits = field(6).is_some_and(|wait| wait_type(wait).kind == WaitKind::Page);
            if let Some(page) = field(7).filter(|_| waits).and_then(page) {
                self.pages.object(page);
            }
        }
        self.pages.resolve(link)
    }

    fn count(
        &mut self,
        server: &Server,
        tally: &mut Tally,
        _now: Nanos,
        feed: &mut Feed,
    ) -> Result<(), Error> {
        let mut seen = HashSet::new();
        for row in 0..self.rows.len() {
            let rows = &self.rows;
            let field = |column| rows.optional(row, column, Rows::text);
            let session = rows.int(row, 0)?;
            let thread = rows.optional(row, 4, Rows::int)?.unwrap_or(0);
            // A task that waits for several others has several rows.
            if !seen.insert((session, thread)) {
                continue;
            }
            let (wait, resource) = (field(6)?, field(7)?.unwrap_or_default());
            let Some(state) = state(field(5)?, wait, resource) else { continue };
            let program = field(1)?.unwrap_or_default();
            let is_user = rows.int(row, 3)? == 1;
            let backend = if is_user {
                let worker = if thread > 0 { "parallel worker" } else { "client backend" };
                if self.apart && program != server.program {
                    format!(
                        "client backend ({})",
                        shortened(if program.is_empty() { "unnamed" } else { program })
                    )
                } else {
                    worker.to_owned()
                }
            } else {
                field(10)?.unwrap_or("system task").to_lowercase()
            };
            if is_user && thread == 0 {
                match state.kind {
                    WaitKind::IdleInTransaction => tally.idle_in_transaction(),
                    kind => tally.active(kind != WaitKind::Cpu),
                }
            }
            if matches!(state.kind, WaitKind::RowLock | WaitKind::Lock) {
                tally.waits_for_lock();
            }
            let object = match state.kind {
                WaitKind::Page => page(resource).and_then(|page| self.pages.object(page)),
                // "ACCESS_METHODS_DATASET_PARENT (0000000123456789)".
                WaitKind::Latch if state.event.starts_with("LATCH_") => {
                    resource.split_ascii_whitespace().next().map(str::to_owned)
                }
                _ => None,
            };
            let mut query = rows.optional(row, 11, Rows::int)?;
            if let Some(sent) = &mut self.sent {
                query =
                    sent.sampled(query, clear(rows.optional(row, 12, Rows::text)?.unwrap_or_default()), feed);
            }
            tally.session(WaitGroup {
                backend,
                kind: state.kind,
                class: state.class.into(),
                event: state.event.into(),
                query,
                object,
            });
        }
        Ok(())
    }

    /// By the last look, which shows what each waits for.
    fn row_waiters(&mut self, link: &mut Link) -> Result<Vec<(String, u32)>, String> {
        let resources = waiting(&self.rows, |resource| lock(resource) == WaitKind::RowLock)?;
        let resources: Vec<&str> = resources.iter().map(|(_, _, resource)| resource.as_str()).collect();
        let mut sums: BTreeMap<String, u32> = BTreeMap::new();
        for table in self.tables.names_of(link, &resources)? {
            *sums.entry(table).or_default() += 1;
        }
        Ok(sums.into_iter().collect())
    }

    fn blockers(&mut self, link: &mut Link) -> Result<Vec<Blocker>, String> {
        let mut queues: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
        for (session, blocker, _) in waiting(&self.rows, |_| true)? {
            if let Some(blocker) = blocker.filter(|blocker| *blocker != session && *blocker > 0) {
                queues.entry(blocker).or_default().push(session);
            }
        }
        let queue = |(pid, waiting)| Blocker { pid, waiting, ..Blocker::default() };
        let mut all: Vec<Blocker> = queues.into_iter().map(queue).collect();
        all.sort_by_key(|one| (std::cmp::Reverse(one.waiting.len()), one.pid));
        let mut first = first_of_queue(all);
        if !first.is_empty() {
            let list: Vec<String> = first.iter().map(|one| one.pid.to_string()).collect();
            let rows = link.with(|session, _| session.query(&sql::holders(&list.join(", "))))?;
            describe(&mut first, &rows).map_err(|error| error.to_string())?;
        }
        Ok(first)
    }

    fn second(&mut self, link: &mut Link, feed: &mut Feed) -> Result<(), String> {
        if !self.shows_holders {
            return Ok(());
        }
        let rows = self.read_holders(link)?;
        self.horizon.compare(&rows, feed)
    }

    fn lost(&mut self, at: Nanos, feed: &mut Feed) {
        self.horizon.ended(at, feed);
    }

    fn end(&mut self, _link: &mut Link, feed: &mut Feed) -> Result<(), String> {
        self.horizon.ended(feed.now(), feed);
        Ok(())
    }
}

/// Sessions that wait for a lock: session, whom it waits for, what.
fn waiting(rows: &Rows, of: impl Fn(&str) -> bool) -> Result<Vec<(i64, Option<i64>, String)>, String> {
    let one = |row| {
        let field = |column| rows.optional(row, column, Rows::text);
        if !field(6)?.is_some_and(|wait| wait.starts_with("LCK_M_")) {
            return Ok(None);
        }
        let resource = field(7)?.unwrap_or_default();
        Ok(of(resource).then_some((
            rows.int(row, 0)?,
            rows.optional(row, 8, Rows::int)?,
            resource.to_owned(),
        )))
    };
    let all: Result<Vec<_>, Error> = (0..rows.len()).map(one).collect();
    Ok(all.map_err(|error| error.to_string())?.into_iter().flatten().collect())
}

/// Adds what the holders do.
fn describe(blockers: &mut [Blocker], rows: &Rows) -> Result<(), Error> {
    for row in 0..rows.len() {
        let session = rows.int(row, 0)?;
        let Some(one) = blockers.iter_mut().find(|one| one.pid == session) else { continue };
        let field = |column| rows.optional(row, column, Rows::text);
        one.application = shortened(field(1)?.unwrap_or_default());
        one.transaction_ms = rows.optional(row, 2, Rows::float)?;
        let doing = match field(3)?.unwrap_or_default() {
            "idle in transaction" => "Idle in transaction",
            "running" | "runnable" => "CPU",
            wait => wait,
        };
        one.doing = match field(4)? {
            Some(text) => format!("{doing}: {}", shown(text, LONGEST_TEXT)),
            None => doing.to_owned(),
        };
    }
    Ok(())
}

/// What of the sessions cannot be seen.
fn absent(server: &Server) -> Vec<UnavailableMetrics> {
    if server.has(sql::PAGE_INFO) {
        return Vec::new();
    }
    vec![UnavailableMetrics {
        what: "tables and indexes of pages".into(),
        why: server.why_not(sql::PAGE_INFO),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(task: Option<&str>, wait: Option<&str>, resource: &str) -> Option<WaitKind> {
        state(task, wait, resource).map(|state| state.kind)
    }

    #[test]
    fn a_task_does_one_thing() {
        for (task, wait, resource, expected) in [
            (None, None, "", Some(WaitKind::IdleInTransaction)),
            (Some("RUNNING"), None, "", Some(WaitKind::Cpu)),
            (Some("RUNNABLE"), Some("PAGELATCH_EX"), "5:1:104", Some(WaitKind::Cpu)),
            (Some("SUSPENDED"), None, "", Some(WaitKind::Cpu)),
            (Some("SUSPENDED"), Some("PAGELATCH_EX"), "5:1:104", Some(WaitKind::Page)),
            (Some("SUSPENDED"), Some("LCK_M_X"), "keylock hobtid=7 dbid=5", Some(WaitKind::RowLock)),
            (Some("SUSPENDED"), Some("LCK_M_S"), "objectlock lockPartition=0 objid=7", Some(WaitKind::Lock)),
            (Some("SUSPENDED"), Some("TRANSACTION_MUTEX"), "", Some(WaitKind::Lock)),
            (Some("SUSPENDED"), Some("LAZYWRITER_SLEEP"), "", None),
            (Some("SPINLOOP"), None, "", Some(WaitKind::Latch)),
            (Some("PENDING"), None, "", Some(WaitKind::Other)),
            (Some("DONE"), None, "", None),
        ] {
            assert_eq!(kind(task, wait, resource), expected, "{task:?} {wait:?} {resource}");
        }
        assert_eq!(state(Some("RUNNABLE"), None, "").unwrap().event, "runnable");
        assert_eq!(state(Some("SUSPENDED"), Some("WRITELOG"), "").unwrap().class, "Tran Log IO");
    }
}

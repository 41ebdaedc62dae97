//! The waits of a query on PostgreSQL, sampled from another connection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kelvin_database::{Result, Session};
use kelvin_measure::query_analysis::QueryWait;

/// Pause between samples.
const PAUSE: Duration = Duration::from_millis(5);

/// Executes `work` and samples the waits of the session's server process and its parallel workers. Without a
/// usable watcher, or if sampling fails (workers are unknown before version 13), the waits are empty.
pub(super) fn sampled<T>(
    session: &mut dyn Session,
    watcher: Option<&mut (dyn Session + 'static)>,
    work: impl FnOnce(&mut dyn Session) -> Result<T>,
) -> Result<(T, Vec<QueryWait>)> {
    let Some(watcher) = watcher.filter(|watcher| !watcher.is_broken()) else {
        return Ok((work(session)?, Vec::new()));
    };
    let process = session.query("select cast(pg_backend_pid() as bigint)")?.int(0, 0)?;
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let samples = scope.spawn(|| sample(watcher, process, &ended));
        let end = EndOfWork(&ended);
        let done = work(session);
        drop(end);
        let samples = samples.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((done?, samples.unwrap_or_default()))
    })
}

/// Ends the sampling, even if the work panics.
struct EndOfWork<'a>(&'a AtomicBool);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn sample(watcher: &mut dyn Session, process: i64, ended: &AtomicBool) -> Result<Vec<QueryWait>> {
    let sql = format!(
        "select coalesce(wait_event_type || ':' || wait_event, 'CPU'), count(*) from pg_catalog.pg_stat_activity \
         where (pid = {process} or leader_pid = {process}) and state = 'active' group by 1"
    );
    let (mut times, mut last) = (BTreeMap::<String, f64>::new(), Instant::now());
    while !ended.load(Ordering::Acquire) {
        let rows = watcher.query(&sql)?;
        // A sample represents the time since the preceding one.
        let now = Instant::now();
        let ms = now.duration_since(last).as_secs_f64() * 1e3;
        last = now;
        for row in 0..rows.len() {
            *times.entry(rows.text(row, 0)?.to_owned()).or_default() += ms * rows.int(row, 1)? as f64;
        }
        std::thread::sleep(PAUSE);
    }
    let mut waits: Vec<_> = times.into_iter().map(|(event, ms)| QueryWait { event, ms }).collect();
    waits.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    Ok(waits)
}

//! The queries of TPROC-H as a table.

use kelvin_measure::query_analysis::{Misestimate, QueryAnalysis};
use kelvin_measure::text::{NONE, memory, percent, rounded, significant, whole};

use super::{Page, RED};
use crate::RunReport;
use crate::model::QueryRow;

impl Page {
    /// Warnings that void the results come first, then the results, then one line per query.
    pub(super) fn queries(&mut self, report: &RunReport) {
        let Some(found) = &report.details.queries else { return };
        self.line("");
        for why in &found.figures.void {
            self.wrapped_in(RED, "  void: ", why);
        }
        for point in &found.figures.point_means {
            let total = point.users.len();
            for (user, mean) in &point.users {
                self.line(&format!("  user {user} of {total}: geometric mean {} s", significant(*mean)));
            }
        }
        self.line("");
        self.line(&format!(
            "{:<6}{:>9}  {:<27}{:>7}  {:<17}{}",
            "query", "power s", "other tests s", "rows", "digest", "answer"
        ));
        for row in &found.rows {
            self.line(&format!(
                "{:<6}{:>9}  {:<27}{:>7}  {:<17}{}",
                row.query,
                time(row.power_s),
                others(row),
                row.rows.map_or_else(|| NONE.into(), whole),
                row.digest.as_deref().unwrap_or(NONE),
                row.answer()
            ));
        }
        self.plans(&found.analyses);
    }

    /// One line per plan, with the results of its execution after the load.
    fn plans(&mut self, analyses: &[QueryAnalysis]) {
        if analyses.is_empty() {
            return;
        }
        self.line("");
        self.line(&format!(
            "{:<6}{:>9}{:>9}{:>11}{:>9}{:>8}{:>9}  {:<17}{}",
            "plan", "hits", "read", "temporary", "workers", "JIT", "rows off", "hash", "time by state"
        ));
        for one in analyses {
            let [hits, read, temporary, workers, jit, off] = plan_cells(one);
            let query = &one.query;
            self.line(&format!(
                "{query:<6}{hits:>9}{read:>9}{temporary:>11}{workers:>9}{jit:>8}{off:>9}  {:<17}{}",
                one.plan,
                waits(one)
            ));
        }
    }
}

/// Share of pages found in shared buffers, bytes read from and written to temporary files, workers launched
/// of those planned, share of the time spent on JIT compilation, and the ratio of actual to estimated rows.
pub(crate) fn plan_cells(one: &QueryAnalysis) -> [String; 6] {
    let bytes = |bytes: u64| if bytes == 0 { NONE.into() } else { memory(bytes as f64) };
    let workers = match one.workers_planned {
        0 => NONE.into(),
        planned => format!("{}/{planned}", one.workers_launched),
    };
    let share = one.jit_share();
    let off = one.misestimate.as_ref().map(Misestimate::factor).filter(|factor| *factor >= 2.0);
    [
        one.hit_share().map_or_else(|| NONE.into(), percent),
        bytes(one.read_bytes),
        bytes(one.temporary_bytes),
        workers,
        if share > 0.0 { percent(share) } else { NONE.into() },
        off.map_or_else(|| NONE.into(), |factor| format!("{} ×", rounded(factor))),
    ]
}

/// "CPU 80 %, `IO:DataFileRead` 18 %", of the time of all processes of a query.
pub(crate) fn waits(one: &QueryAnalysis) -> String {
    let shares: Vec<_> =
        one.wait_shares().into_iter().map(|(event, share)| format!("{event} {}", percent(share))).collect();
    if shares.is_empty() { NONE.into() } else { shares.join(", ") }
}

fn time(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| NONE.into(), significant)
}

/// "1.2 (1.1 to 1.4)".
pub(crate) fn others(row: &QueryRow) -> String {
    match row.others_s {
        None => NONE.into(),
        Some([least, _, most]) if least == most => significant(least),
        Some([least, mean, most]) => {
            format!("{} ({} to {})", significant(mean), significant(least), significant(most))
        }
    }
}

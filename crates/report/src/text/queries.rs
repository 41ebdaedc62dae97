//! The queries of TPROC-H as a table.

use kelvin_measure::text::{NONE, significant, whole};

use super::{Page, RED};
use crate::RunReport;
use crate::model::QueryRow;

impl Page {
    /// What voids the figures that stand first, and a line for each query.
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
    }
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

//! The storage's requests as a table.

use super::Page;
use crate::RunReport;
use crate::html::trace_rows;

impl Page {
    /// What was recorded with `--trace`.
    pub(super) fn trace(&mut self, report: &RunReport) {
        let Some(found) = &report.details.trace else { return };
        let (sentence, rows) = trace_rows(found);
        self.line("");
        self.wrapped("storage: ", &sentence);
        for note in &found.notes {
            self.wrapped("  ", note);
        }
        if rows.is_empty() {
            return;
        }
        self.line(&format!(
            "  {:<38}{:>10}{:>10}{:>10}{:>9}{:>7}{:>7}{:>7}{:>7}  category",
            "stream", "requests", "read", "written", "req/s", "peak ×", "seq.", "depth", "zeros"
        ));
        for [name, requests, read, written, rate, peak, sequential, depth, _, category, zeros] in &rows {
            let name = kelvin_measure::text::cut(name, 37);
            self.line(&format!(
                "  {name:<38}{requests:>10}{read:>10}{written:>10}{rate:>9}{peak:>7}{sequential:>7}{depth:>7}{zeros:>7}  {category}"
            ));
        }
    }
}

//! The analysis for a terminal, 100 columns wide.

use kelvin_analysis::Analysis;

use super::grid::{self, Grid};
use super::sentences;
use crate::text::{cut, printable};

const WIDTH: usize = 100;

/// Everything that the analysis found.
pub fn render(of: &Analysis) -> String {
    let mut page = Page(String::new());
    page.words("", &format!("study {}: {}", of.name, of.design.words()));
    page.words("verdict: ", &of.verdict.sentence);
    if let Some(claim) = &of.verdict.claim {
        page.words("claim:   ", claim);
    }
    page.words("statistically correct? ", &sentences::correct(of));
    page.words("", &sentences::precision(of));
    for note in &of.notes {
        page.words("note: ", note);
    }
    if let Some(words) = sentences::signature(of) {
        page.heading("predicted signature");
        page.words("  ", &words);
        page.grid(&grid::signature(of));
    }
    page.heading(&format!("{} by cell", of.primary.name));
    if of.table.rows.is_empty() {
        page.words("  ", "no run");
    } else {
        page.grid(&grid::cells(of));
        page.words("  ", &grid::cells_caption(of));
    }
    if let Some(sweep) = &of.sweep {
        page.heading("curve");
        if let Some(table) = grid::sweep(of) {
            page.grid(&table);
        }
        if let (Some(table), Some(law)) = (grid::scaling_model(of), &sweep.law) {
            page.words(
                "  ",
                &format!(
                    "Universal Scalability Law, R² {:.4}; highest at {} users",
                    law.r_squared, law.peak_words
                ),
            );
            page.grid(&table);
        }
        if let Some(why) = &sweep.no_law {
            page.words("  no scalability law: ", why);
        }
    }
    page.heading(&format!("effects on {}", of.primary.name));
    match grid::effects(of, &of.primary) {
        Some(mut table) => {
            // What a column has no room for stands in lines of its own.
            let aliases = grid::aliases(&of.primary);
            if !aliases.is_empty() {
                table.head.pop();
                for row in &mut table.rows {
                    row.pop();
                }
            }
            page.grid(&table);
            page.words("  ", grid::scale_words(&of.primary));
            for line in aliases {
                page.words("  indistinguishable: ", &line);
            }
        }
        None => page.words("  none: ", of.primary.no_effects.as_deref().unwrap_or("no effects")),
    }
    for note in of.primary.allocation.iter().flat_map(|allocation| &allocation.notes) {
        page.words("  note: ", note);
    }
    let pairs = grid::pairs(of);
    if !pairs.rows.is_empty() {
        page.heading("variants, paired by block");
        page.grid(&pairs);
    }
    if let Some(lines) = sentences::one_at_a_time(of) {
        page.heading("one factor at a time");
        page.list(&lines);
    }
    let (table, looked) = grid::secondary(of);
    if looked > 0 {
        page.heading("other figures (exploratory)");
        if table.rows.is_empty() {
            page.words("  ", &format!("none of {looked} effects remains after Holm's correction"));
        } else {
            page.grid(&table);
            page.words(
                "  ",
                &format!(
                    "of {looked} effects, those that remain after Holm's correction; none \
                                       was predicted as decisive"
                ),
            );
        }
    }
    page.heading("quality of the measurement");
    if let Some(words) = sentences::control(of) {
        page.words("  ", &words);
    }
    for line in sentences::sensitivity(of) {
        page.words("  ", &line);
    }
    page.words("  ", &sentences::drift(of));
    page.grid(&grid::blocks(of));
    if let Some(keep) = sentences::keep(of) {
        page.heading("configuration to keep");
        page.words("  ", &keep);
    }
    if !of.next.is_empty() {
        page.heading("next");
        for (at, question) in of.next.iter().enumerate() {
            page.words(&format!("  {}. ", at + 1), &question.question);
            page.words("     ", &question.why);
        }
    }
    page.0
}

struct Page(String);

impl Page {
    fn heading(&mut self, text: &str) {
        self.0.push('\n');
        self.words("", text);
    }

    /// Words broken at the page's width, the following lines indented under the first.
    fn words(&mut self, lead: &str, text: &str) {
        for line in crate::text::broken_at(WIDTH, lead, text) {
            self.0.push_str(line.trim_end());
            self.0.push('\n');
        }
    }

    fn list(&mut self, lines: &[String]) {
        for (at, line) in lines.iter().enumerate() {
            self.words(if at == 0 { "  " } else { "  - " }, line);
        }
    }

    /// A table; where it is wider than the page, its longest words are cut.
    fn grid(&mut self, grid: &Grid) {
        if grid.rows.is_empty() {
            return;
        }
        let rows: Vec<Vec<String>> = std::iter::once(&grid.head)
            .chain(&grid.rows)
            .map(|row| row.iter().map(|cell| printable(cell)).collect())
            .collect();
        let length = |cell: &String| cell.chars().count();
        // Words can be cut, and headings; a number that lost a digit would be another number.
        let words = |column: usize| column < grid.words || (column + 1 == grid.head.len() && is_words(grid));
        let longest = |column: usize, rows: &[Vec<String>]| {
            rows.iter().map(|row| length(&row[column])).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..grid.head.len()).map(|column| longest(column, &rows)).collect();
        let least = |column: usize| if words(column) { 4 } else { longest(column, &rows[1..]).max(3) };
        while widths.iter().map(|width| width + 2).sum::<usize>() > WIDTH {
            let shrinks = (0..widths.len()).filter(|column| widths[*column] > least(*column));
            match shrinks.max_by_key(|column| widths[*column]) {
                Some(widest) => widths[widest] -= 1,
                None => break,
            }
        }
        for row in &rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let cell = cut(cell, *width);
                let pad = " ".repeat(width - cell.chars().count());
                line.push_str("  ");
                if words(column) {
                    line.push_str(&cell);
                    line.push_str(&pad);
                } else {
                    line.push_str(&pad);
                    line.push_str(&cell);
                }
            }
            self.0.push_str(line.trim_end());
            self.0.push('\n');
        }
    }
}

/// Whether the last column holds text.
pub(super) fn is_words(grid: &Grid) -> bool {
    let number =
        |text: &String| text.chars().next().is_some_and(|c| c.is_ascii_digit() || "+-−–<".contains(c));
    !grid.rows.is_empty() && !grid.rows.iter().filter_map(|row| row.last()).any(number)
}

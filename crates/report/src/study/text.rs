//! The analysis for a terminal, 100 columns wide.

use kelvin_analysis::Analysis;
use kelvin_measure::text::{cut, plain, printable, wrap};

use super::grid::{self, Grid};
use super::sentences;

const WIDTH: usize = 100;

/// The complete analysis.
pub fn render(of: &Analysis) -> String {
    let mut page = Page(String::new());
    page.paragraph("", &format!("study {}: {}", of.name, of.design.describe()));
    page.paragraph("verdict: ", &of.verdict.sentence);
    if let Some(claim) = &of.verdict.claim {
        page.paragraph("claim:   ", claim);
    }
    page.paragraph("statistically correct? ", &sentences::correct(of));
    page.paragraph("", &sentences::precision(of));
    for note in &of.notes {
        page.paragraph("note: ", note);
    }
    if let Some(words) = sentences::signature(of) {
        page.heading("predicted signature");
        page.paragraph("  ", &words);
        page.grid(&grid::signature(of));
    }
    page.heading(&format!("{} by cell", of.primary.name));
    if of.table.rows.is_empty() {
        page.paragraph("  ", "no run");
    } else {
        page.grid(&grid::cells(of));
        page.paragraph("  ", &grid::cells_caption(of));
    }
    page.curve(of);
    page.effects(of);
    let pairs = grid::pairs(of);
    if !pairs.rows.is_empty() {
        page.heading("variants, paired by block");
        page.grid(&pairs);
    }
    if let Some(lines) = sentences::one_at_a_time(of) {
        page.heading("one factor at a time");
        page.list(&lines);
    }
    page.other_figures(of);
    page.heading("quality of the measurement");
    if let Some(words) = sentences::control(of) {
        page.paragraph("  ", &words);
    }
    for line in sentences::sensitivity(of) {
        page.paragraph("  ", &line);
    }
    page.paragraph("  ", &sentences::drift(of));
    page.grid(&grid::blocks(of));
    if let Some(keep) = sentences::keep(of) {
        page.heading("configuration to keep");
        page.paragraph("  ", &keep);
    }
    if !of.next.is_empty() {
        page.heading("next");
        for (at, question) in of.next.iter().enumerate() {
            page.paragraph(&format!("  {}. ", at + 1), &question.question);
            page.paragraph("     ", &question.why);
        }
    }
    page.0
}

struct Page(String);

impl Page {
    fn heading(&mut self, text: &str) {
        self.0.push('\n');
        self.paragraph("", text);
    }

    /// Text wrapped at the page's width, with a hanging indent.
    fn paragraph(&mut self, lead: &str, text: &str) {
        for line in wrap(lead, &plain(&printable(text)), WIDTH) {
            self.0.push_str(line.trim_end());
            self.0.push('\n');
        }
    }

    /// The values over the levels of a sweep, and the fitted model.
    fn curve(&mut self, of: &Analysis) {
        let Some(sweep) = &of.sweep else { return };
        self.heading("curve");
        if let Some(table) = grid::sweep(of) {
            self.grid(&table);
        }
        if let (Some(table), Some(law)) = (grid::scaling_model(of), &sweep.law) {
            let (r, peak) = (law.r_squared, &law.peak_words);
            self.paragraph("  ", &format!("Universal Scalability Law, R² {r:.4}; highest at {peak} users"));
            self.grid(&table);
        }
        if let Some(why) = &sweep.no_law {
            self.paragraph("  no scalability law: ", why);
        }
    }

    fn effects(&mut self, of: &Analysis) {
        self.heading(&format!("effects on {}", of.primary.name));
        match grid::effects(of, &of.primary) {
            Some(mut table) => {
                // Values that do not fit into a column are printed on separate lines.
                let aliases = grid::aliases(&of.primary);
                if !aliases.is_empty() {
                    table.head.pop();
                    for row in &mut table.rows {
                        row.pop();
                    }
                }
                self.grid(&table);
                self.paragraph("  ", grid::scale_words(&of.primary));
                for line in aliases {
                    self.paragraph("  indistinguishable: ", &line);
                }
            }
            None => self.paragraph("  none: ", of.primary.no_effects.as_deref().unwrap_or("no effects")),
        }
        for note in of.primary.allocation.iter().flat_map(|allocation| &allocation.notes) {
            self.paragraph("  note: ", note);
        }
    }

    fn other_figures(&mut self, of: &Analysis) {
        let (table, looked) = grid::secondary(of);
        if looked == 0 {
            return;
        }
        self.heading("other figures (exploratory)");
        if table.rows.is_empty() {
            return self
                .paragraph("  ", &format!("none of {looked} effects remains after Holm's correction"));
        }
        self.grid(&table);
        let words = format!(
            "of {looked} effects, those that remain after Holm's correction; none was predicted as decisive"
        );
        self.paragraph("  ", &words);
    }

    fn list(&mut self, lines: &[String]) {
        for (at, line) in lines.iter().enumerate() {
            self.paragraph(if at == 0 { "  " } else { "  - " }, line);
        }
    }

    /// A table; if it is wider than the page, its longest texts are truncated.
    fn grid(&mut self, grid: &Grid) {
        if grid.rows.is_empty() {
            return;
        }
        let rows: Vec<Vec<String>> = std::iter::once(&grid.head)
            .chain(&grid.rows)
            .map(|row| row.iter().map(|cell| printable(cell)).collect())
            .collect();
        let length = |cell: &String| cell.chars().count();
        // Text and headings can be truncated, but not numbers: a number without its last digits would be
        // wrong.
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

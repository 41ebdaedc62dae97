//! The page as Markdown.

use kelvin_analysis::Analysis;

use super::grid::{self, Grid};
use super::text::is_words;
use kelvin_analysis::Dossier;
use kelvin_analysis::notes::PHASES;

use super::sentences;
use crate::figure::{NONE, significant};
use crate::markdown::escaped;

/// The eight phases.
pub fn render(of: &Dossier) -> String {
    let found = &of.analysis;
    let mut page = Page(String::new());
    page.paragraph(&format!("# Study {}", escaped(&found.name)));
    page.paragraph(&format!("**Question:** {}", escaped(&of.question)));
    if let Some(parent) = &of.parent {
        page.paragraph(&format!("Continues {}.", escaped(parent)));
    }
    page.paragraph(&format!("**Verdict:** {}.", escaped(&found.verdict.sentence)));
    page.paragraph(&format!("**Statistically correct?** {}.", escaped(&sentences::correct(found))));
    for (at, phase) in PHASES.iter().enumerate() {
        page.line(&format!("## {} {phase}\n", at + 1));
        for paragraph in &of.notes[at] {
            page.quoted(paragraph);
        }
        match at {
            0 => {
                page.facts("What the answer holds for", &of.universe);
                page.facts("Machine and versions of the last session", &of.facts);
            }
            1 => page.paragraph(&escaped(&goal(found))),
            2 => hypothesis(&mut page, of),
            3 => method(&mut page, of),
            4 => test(&mut page, of),
            5 => page.0.push_str(&analysis(found)),
            6 => conclusion(&mut page, of),
            _ => page.0.push_str(&next(found)),
        }
    }
    page.line(&format!("---\n\nMade by Kelvin {} from the study's files and stored runs alone.", of.kelvin));
    page.0
}

/// What was found: for the page and for the notebook.
pub fn analysis(of: &Analysis) -> String {
    let mut page = Page(String::new());
    page.paragraph(&format!("{}.", sentences::precision(of)));
    for note in &of.notes {
        page.paragraph(&format!("**Note:** {}.", escaped(note)));
    }
    page.line(&format!("### {} by cell\n", escaped(&of.primary.name)));
    page.grid(&grid::cells(of));
    page.paragraph(&format!("{}.", capital(&grid::cells_caption(of))));
    if let Some(table) = grid::sweep(of) {
        page.line("### Curve\n");
        page.grid(&table);
        if let Some(law) = of.sweep.as_ref().and_then(|sweep| sweep.law.as_ref()) {
            page.paragraph(&format!(
                "Universal Scalability Law, R² {:.4}; highest at {} users.",
                law.r_squared, law.peak_words
            ));
        }
        if let Some(table) = grid::scaling_model(of) {
            page.grid(&table);
        }
    }
    page.line(&format!("### Effects on {}\n", escaped(&of.primary.name)));
    match grid::effects(of, &of.primary) {
        Some(table) => {
            page.grid(&table);
            page.paragraph(&format!("{}.", capital(grid::scale_words(&of.primary))));
        }
        None => page.paragraph(&format!(
            "None: {}.",
            escaped(of.primary.no_effects.as_deref().unwrap_or("no effects"))
        )),
    }
    let signature = grid::signature(of);
    if let Some(words) = sentences::signature(of) {
        page.line("### Predicted signature\n");
        page.paragraph(&format!("{}.", escaped(&words)));
        page.grid(&signature);
    }
    let pairs = grid::pairs(of);
    if !pairs.rows.is_empty() {
        page.line("### Variants, paired by block\n");
        page.grid(&pairs);
    }
    if let Some(lines) = sentences::one_at_a_time(of) {
        page.line("### One factor at a time\n");
        page.list(&lines);
    }
    let (table, looked) = grid::secondary(of);
    if looked > 0 {
        page.line("### Other figures (exploratory)\n");
        if table.rows.is_empty() {
            page.paragraph(&format!("None of {looked} effects remains after Holm's correction."));
        } else {
            page.grid(&table);
            page.paragraph(&format!("Of {looked} effects, those that remain after Holm's correction."));
        }
    }
    page.line("### How good the measurement was\n");
    if let Some(words) = sentences::control(of) {
        page.paragraph(&words);
    }
    page.paragraph(&escaped(&sentences::sensitivity(of).join(" ")));
    page.paragraph(&sentences::drift(of));
    let blocks = grid::blocks(of);
    if !blocks.rows.is_empty() {
        page.grid(&blocks);
    }
    page.0
}

/// What is left open: for the page and for the notebook.
pub fn next(of: &Analysis) -> String {
    let mut page = Page(String::new());
    if of.next.is_empty() {
        page.paragraph("Nothing is left open by the analysis.");
    }
    for (at, question) in of.next.iter().enumerate() {
        page.line(&format!("{}. {} ({})", at + 1, escaped(&question.question), escaped(&question.why)));
    }
    page.0.push('\n');
    page.0
}

/// What decides, in a sentence.
pub(super) fn goal(of: &Analysis) -> String {
    let way = match of.goal.better {
        kelvin_diagnose::Better::Higher => "higher",
        kelvin_diagnose::Better::Lower => "lower",
    };
    format!(
        "{} decides; {way} is better; the smallest effect that matters is {}.",
        of.primary.name,
        kelvin_analysis::effect_text::plain_percent(of.goal.smallest)
    )
}

fn hypothesis(page: &mut Page, of: &Dossier) {
    page.paragraph(&format!("**{}**", escaped(&of.statement)));
    page.paragraph(&format!("Because: {}", escaped(&of.mechanism)));
    if let Some(claim) = &of.analysis.verdict.claim {
        page.paragraph(&format!("Claim: {}.", escaped(claim)));
    }
    for rival in &of.rivals {
        page.line(&format!("- Rival: {}", escaped(rival)));
    }
    if !of.rivals.is_empty() {
        page.0.push('\n');
    }
    page.paragraph(&locked(of));
    page.list_plain("Deviations", &of.deviations);
}

/// The lock in a sentence.
pub(super) fn locked(of: &Dossier) -> String {
    match &of.lock {
        None => {
            "Not locked: the hypothesis was not fixed before the runs, so that what is found is exploratory."
                .into()
        }
        Some((at, hash, 0)) => format!("Locked {at}, before the first run; SHA-256 {hash}."),
        Some((at, hash, before)) => {
            format!("Locked {at}, after {before} runs had been begun; SHA-256 {hash}.")
        }
    }
}

fn method(page: &mut Page, of: &Dossier) {
    let mut grid = Grid::new(&["factor", "levels", "applied by"], 3);
    grid.rows = of.method.iter().map(|(a, b, c)| vec![a.clone(), b.clone(), c.clone()]).collect();
    page.grid(&grid);
    page.facts("", &of.design);
    page.line("```toml");
    page.0.push_str(&of.run_toml.replace("```", "'''"));
    page.line("```\n");
}

fn test(page: &mut Page, of: &Dossier) {
    let mut grid = Grid::new(&["place", "block", "run", "treatment", &of.analysis.primary.name, "void"], 0);
    for run in &of.runs {
        let number = match &run.page {
            Some(file) => format!("[{}]({file})", run.run),
            None => run.run.to_string(),
        };
        grid.rows.push(vec![
            run.place.to_string(),
            run.block.to_string(),
            number,
            run.treatment.clone(),
            run.value.map_or_else(|| NONE.into(), significant),
            run.void.clone().unwrap_or_default(),
        ]);
    }
    if grid.rows.is_empty() {
        page.paragraph("No run was measured.");
    } else {
        page.grid_with(&grid, 2);
    }
    if of.missing > 0 {
        page.paragraph(&format!("Planned runs without a result: {}.", of.missing));
    }
    for tried in &of.failed {
        page.line(&format!(
            "- place {}, block {}, {}: could not be run: {}",
            tried.place,
            tried.block,
            escaped(&tried.treatment),
            escaped(&tried.why)
        ));
    }
    if !of.failed.is_empty() {
        page.0.push('\n');
    }
}

fn conclusion(page: &mut Page, of: &Dossier) {
    let found = &of.analysis;
    page.paragraph(&format!("**{}.**", escaped(&capital(&found.verdict.sentence))));
    if let Some(words) = sentences::signature(found) {
        page.paragraph(&format!("{}.", escaped(&capital(&words))));
    }
    page.paragraph(&format!("Statistically correct? {}.", escaped(&sentences::correct(found))));
    if let Some(keep) = sentences::keep(found) {
        page.paragraph(&format!("Configuration to keep: {}.", escaped(&keep)));
    }
}

/// The first letter large.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

struct Page(String);

impl Page {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn paragraph(&mut self, text: &str) {
        self.line(text);
        self.0.push('\n');
    }

    /// A person's words: their Markdown is theirs, within a quotation, and makes no HTML.
    fn quoted(&mut self, paragraph: &str) {
        for line in paragraph.lines() {
            let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            self.line(&format!("> {}", line.replace('<', "&lt;")));
        }
        self.0.push('\n');
    }

    fn facts(&mut self, title: &str, facts: &[(String, String)]) {
        if facts.is_empty() {
            return;
        }
        if !title.is_empty() {
            self.paragraph(&format!("{title}:"));
        }
        for (name, value) in facts {
            self.line(&format!("- {}: {}", escaped(name), escaped(value)));
        }
        self.0.push('\n');
    }

    fn list(&mut self, lines: &[String]) {
        if let Some((first, rest)) = lines.split_first() {
            self.paragraph(&escaped(first));
            for line in rest {
                self.line(&format!("- {}", escaped(line)));
            }
            if !rest.is_empty() {
                self.0.push('\n');
            }
        }
    }

    fn list_plain(&mut self, title: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.paragraph(&format!("{title}:"));
        for line in lines {
            self.line(&format!("- {}", escaped(line)));
        }
        self.0.push('\n');
    }

    fn grid(&mut self, grid: &Grid) {
        self.grid_with(grid, usize::MAX);
    }

    /// A table; the column `raw` holds links of our own.
    fn grid_with(&mut self, grid: &Grid, raw: usize) {
        if grid.rows.is_empty() {
            self.paragraph("None.");
            return;
        }
        let row = |cells: &[String]| {
            let cell = |(at, cell): (usize, &String)| if at == raw { cell.clone() } else { escaped(cell) };
            format!("| {} |", cells.iter().enumerate().map(cell).collect::<Vec<_>>().join(" | "))
        };
        self.line(&row(&grid.head));
        let last = grid.head.len() - 1;
        let rule = (0..grid.head.len()).map(|column| {
            if column < grid.words || (column == last && is_words(grid)) { "---" } else { "---:" }
        });
        self.line(&format!("| {} |", rule.collect::<Vec<_>>().join(" | ")));
        for cells in &grid.rows {
            self.line(&row(cells));
        }
        self.0.push('\n');
    }
}

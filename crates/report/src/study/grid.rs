//! Tables of a study as cells of text, shared by every format.

use kelvin_analysis::{Analysis, Estimate, Metric, Scale};
use kelvin_measure::text::{NONE, plain_percent, probability, signed_percent, significant};

/// A table.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct Grid {
    /// Headings.
    pub(crate) head: Vec<String>,
    /// Rows, each as long as the headings.
    pub(crate) rows: Vec<Vec<String>>,
    /// Number of columns from the left that hold text; the others hold numbers.
    pub(crate) words: usize,
}

impl Grid {
    pub(crate) fn new(head: &[&str], words: usize) -> Self {
        Self { head: head.iter().map(|&h| h.into()).collect(), rows: Vec::new(), words }
    }
}

/// The interval of a fraction in per cent: "+4.80 to +5.62".
fn part_ends(estimate: &Estimate) -> String {
    let bare = |part: f64| signed_percent(part).trim_end_matches(" %").to_owned();
    ends(estimate, &bare)
}

/// Half the width of an interval, times `scale`.
fn half(estimate: &Estimate, scale: f64) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{:.2}", (high - low) / 2.0 * scale),
        _ => NONE.into(),
    }
}

fn ends(estimate: &Estimate, show: &dyn Fn(f64) -> String) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{} to {}", show(low), show(high)),
        _ => NONE.into(),
    }
}

/// The confidence as a column heading: "95 %".
pub(crate) fn confidence(of: &Analysis) -> String {
    plain_percent(of.confidence)
}

/// One row per cell, as in FIELD.md: levels, the goal's value, per cent of the best, and further metrics.
pub(crate) fn cells(of: &Analysis) -> Grid {
    let mut head: Vec<String> = of.factors.iter().map(|factor| factor.name.clone()).collect();
    let words = head.len();
    head.extend([of.primary.name.clone(), "± %".into(), "% best".into(), "±".into()]);
    for id in &of.table.beside {
        let name = if id == "cpu" { "CPU µs" } else { "IPC" };
        head.extend([name.to_owned(), "%".into()]);
    }
    head.extend(["runs".into(), "void".into()]);
    let hundred = |part: f64| format!("{:.2}", part * 100.0);
    let rows = of.table.rows.iter().enumerate().map(|(at, row)| {
        let mut cells = row.levels.clone();
        let is_best = of.table.best == Some(at);
        cells.push(row.value.map_or_else(|| NONE.into(), |value| significant(value.value)));
        cells.push(row.value.map_or_else(|| NONE.into(), |value| half(&value, 100.0 / value.value.abs())));
        let mark = if row.with_best { " ~" } else { "" };
        cells.push(row.of_best.map_or_else(|| NONE.into(), |part| format!("{}{mark}", hundred(part.value))));
        cells.push(match row.of_best {
            _ if is_best => "best".into(),
            Some(part) => half(&part, 100.0),
            None => NONE.into(),
        });
        for id in &of.table.beside {
            let found = row.beside.get(id);
            cells.push(found.map_or_else(|| NONE.into(), |(value, _)| significant(*value)));
            cells.push(found.and_then(|(_, part)| *part).map_or_else(|| NONE.into(), hundred));
        }
        cells.extend([row.runs.to_string(), row.void.to_string()]);
        cells
    });
    Grid { rows: rows.collect(), head, words }
}

/// The caption of the table of cells.
pub(crate) fn cells_caption(of: &Analysis) -> String {
    format!(
        "±: half of the {} interval, from comparisons within blocks; ~ not distinguishable from the best",
        confidence(of)
    )
}

/// Effects on one metric, with their shares, contrasts and tests.
pub(crate) fn effects(of: &Analysis, metric: &Metric) -> Option<Grid> {
    let allocation = metric.allocation.as_ref()?;
    let aliased = allocation.effects.iter().any(|effect| !effect.aliases.is_empty());
    let interval = confidence(of);
    let mut grid = Grid::new(&["effect", "from → to", "variation", "effect", &interval, "p", "Holm p"], 2);
    if aliased {
        grid.head.push("or".into());
    }
    for effect in &allocation.effects {
        for (at, contrast) in effect.contrasts.iter().enumerate() {
            let first = |text: String| if at == 0 { text } else { String::new() };
            let mut row = vec![
                first(effect.name.clone()),
                contrast.name.clone(),
                first(plain_percent(effect.share)),
                signed_percent(contrast.estimate.value),
                part_ends(&contrast.estimate),
                first(probability(effect.p)),
                first(probability(effect.adjusted)),
            ];
            if aliased {
                row.push(first(effect.aliases.join(", ")));
            }
            grid.rows.push(row);
        }
    }
    for (name, share) in [("blocks", allocation.blocks), ("run to run", allocation.error)] {
        if let Some(share) = share {
            let mut row = vec![String::new(); grid.head.len()];
            row[0] = name.into();
            row[2] = plain_percent(share);
            grid.rows.push(row);
        }
    }
    Some(grid)
}

/// The effects confounded with each effect of a fraction, one line per effect.
pub(crate) fn aliases(metric: &Metric) -> Vec<String> {
    let effects = metric.allocation.as_ref().map_or(&[][..], |allocation| &allocation.effects);
    let aliased = effects.iter().filter(|effect| !effect.aliases.is_empty());
    aliased.map(|effect| format!("{} = {}", effect.name, effect.aliases.join(" = "))).collect()
}

/// Only the shares, for bars: name and fraction.
pub(crate) fn shares(metric: &Metric) -> Vec<(String, f64)> {
    let Some(allocation) = &metric.allocation else { return Vec::new() };
    let effects = allocation.effects.iter().map(|effect| (effect.name.clone(), effect.share));
    let rest = [("blocks", allocation.blocks), ("run to run", allocation.error)];
    let rest = rest.into_iter().filter_map(|(name, share)| Some((name.to_owned(), share?)));
    effects.chain(rest).collect()
}

/// Predicted and measured effects.
pub(crate) fn signature(of: &Analysis) -> Grid {
    let mut grid = Grid::new(&["figure", "predicted", "found", &confidence(of), "verdict"], 2);
    for line in &of.signature {
        let found = line.found.map_or_else(|| NONE.into(), |found| signed_percent(found.value));
        let interval = line.found.map_or_else(|| NONE.into(), |found| part_ends(&found));
        grid.rows.push(vec![
            line.name.clone(),
            line.predicted.clone(),
            found,
            interval,
            line.matched.describe().into(),
        ]);
    }
    grid
}

/// Variants compared with the first.
pub(crate) fn pairs(of: &Analysis) -> Grid {
    let interval = confidence(of);
    let head = ["figure", "variant", "change", &interval, "Hodges–Lehmann", "p", "blocks", "verdict"];
    let mut grid = Grid::new(&head, 2);
    for metric in std::iter::once(&of.primary).chain(&of.secondary) {
        for pair in &metric.pairs {
            let factor = &of.factors[0];
            grid.rows.push(vec![
                metric.name.clone(),
                format!("{} → {}", factor.levels[0].name, factor.levels[pair.level].name),
                signed_percent(pair.change.value),
                part_ends(&pair.change),
                signed_percent(pair.hodges_lehmann),
                probability(pair.change.p),
                pair.blocks.to_string(),
                pair.verdict.into(),
            ]);
        }
    }
    grid
}

/// Effects on the other metrics that remain significant after Holm's correction, and the number of effects
/// examined.
pub(crate) fn secondary(of: &Analysis) -> (Grid, usize) {
    let interval = confidence(of);
    let mut grid = Grid::new(&["figure", "effect", "from → to", "effect", &interval, "Holm p"], 3);
    let mut looked = 0;
    for metric in &of.secondary {
        let effects = metric.allocation.as_ref().map_or(&[][..], |allocation| &allocation.effects);
        looked += effects.len();
        for effect in effects.iter().filter(|e| e.adjusted.is_some_and(|p| p < 1.0 - of.confidence)) {
            for (at, contrast) in effect.contrasts.iter().enumerate() {
                let first = |text: String| if at == 0 { text } else { String::new() };
                grid.rows.push(vec![
                    first(metric.name.clone()),
                    first(effect.name.clone()),
                    contrast.name.clone(),
                    signed_percent(contrast.estimate.value),
                    part_ends(&contrast.estimate),
                    first(probability(effect.adjusted)),
                ]);
            }
        }
    }
    (grid, looked)
}

/// Blocks with their level and standard deviation.
pub(crate) fn blocks(of: &Analysis) -> Grid {
    let mut grid = Grid::new(&["block", "runs", "level", "spread"], 0);
    for block in &of.blocks {
        grid.rows.push(vec![
            (block.block + 1).to_string(),
            block.runs.to_string(),
            signed_percent(block.level),
            block.spread.map_or_else(|| NONE.into(), plain_percent),
        ]);
    }
    grid
}

/// The curve of a sweep.
pub(crate) fn sweep(of: &Analysis) -> Option<Grid> {
    let sweep = of.sweep.as_ref()?;
    let name = of.factors.first().map_or("", |factor| factor.name.as_str());
    let mut grid = Grid::new(&[name, &of.primary.name, &confidence(of), ""], 1);
    for (_, level, value) in &sweep.points {
        let mark = match sweep.best.iter().position(|best| of.factors[0].levels[*best].name == *level) {
            Some(0) => "best",
            Some(_) => "not distinguishable from the best",
            None => "",
        };
        grid.rows.push(vec![level.clone(), significant(value.value), ends(value, &significant), mark.into()]);
    }
    Some(grid)
}

/// The parameters of the Universal Scalability Law.
pub(crate) fn scaling_model(of: &Analysis) -> Option<Grid> {
    let law = of.sweep.as_ref()?.law.as_ref()?;
    let mut grid = Grid::new(&["coefficient", "value", &confidence(of), "meaning"], 1);
    let words = [
        ("λ", format!("{} of a single user", of.primary.name)),
        ("σ", "contention: share of serialized work".into()),
        ("κ", "coherency: cost of each pair of users".into()),
    ];
    for ((name, words), estimate) in words.into_iter().zip(&law.parameters) {
        let show = |value: f64| kelvin_measure::text::coefficient(value);
        grid.rows.push(vec![name.into(), show(estimate.value), ends(estimate, &show), words]);
    }
    Some(grid)
}

/// The effect of each factor as measured by changing one factor at a time.
pub(crate) fn steps(of: &Analysis) -> Option<Grid> {
    let alone = of.one_at_a_time.as_ref()?;
    let mut grid = Grid::new(&["factor", "from → to", "alone", &confidence(of)], 2);
    for step in &alone.steps {
        let factor = &of.factors[step.factor];
        grid.rows.push(vec![
            factor.name.clone(),
            format!("{} → {}", factor.levels[0].name, factor.levels[step.level].name),
            signed_percent(step.effect.value),
            part_ends(&step.effect),
        ]);
    }
    Some(grid)
}

/// How a metric was analysed, as text.
pub(crate) fn scale_words(metric: &Metric) -> &'static str {
    match metric.scale {
        Scale::Ratio => {
            "analysed as logarithms: effects are ratios, and an interaction is the deviation of the combined \
             effects from their product"
        }
        Scale::Difference => {
            "analysed untransformed: effects are fractions of the mean, and an interaction is the deviation \
             of the combined effects from their sum"
        }
    }
}

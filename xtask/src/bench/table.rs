//! The table that a benchmark prints: a result, the reference, and whether the target is met.

use super::median;

/// The target of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    fn met(self, figure: f64) -> bool {
        match self {
            Self::AtMost(bound) => figure <= bound,
            Self::AtLeast(bound) => figure >= bound,
        }
    }

    fn describe(self) -> String {
        match self {
            Self::AtMost(bound) => format!("≤ {bound}"),
            Self::AtLeast(bound) => format!("≥ {bound}"),
        }
    }
}

/// A line of the table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line {
    /// The work.
    pub(crate) work: String,
    /// The metric.
    pub(crate) figure: String,
    /// Kelvin's.
    pub(crate) kelvin: String,
    /// The reference.
    pub(crate) beside: String,
    /// The ratio of the two.
    pub(crate) ratio: String,
    /// The target.
    pub(crate) target: String,
    /// Whether the target is met; `None` without a target.
    pub(crate) met: Option<bool>,
}

impl Line {
    /// Two competitors' results of the same rounds: the ratio of the medians is judged, and the range of the rounds'
    /// ratios shows its variation.
    pub(crate) fn compared(
        work: &str,
        figure: &str,
        kelvin: &[f64],
        (name, peer): (&str, &[f64]),
        write: impl Fn(f64) -> String,
        target: Option<Target>,
    ) -> Self {
        let (own, other) = (median(kelvin.to_vec()), median(peer.to_vec()));
        let ratio = own / other;
        let each: Vec<f64> = kelvin.iter().zip(peer).map(|(own, other)| own / other).collect();
        let (low, high) = range(&each);
        Self {
            work: work.into(),
            figure: figure.into(),
            kelvin: write(own),
            beside: if name.is_empty() { write(other) } else { format!("{} ({name})", write(other)) },
            ratio: format!("{ratio:.3} (rounds {low:.2} to {high:.2})"),
            target: target.map_or_else(String::new, Target::describe),
            met: target.map(|target| target.met(ratio)),
        }
    }
}

/// The smallest and the largest.
pub(crate) fn range(figures: &[f64]) -> (f64, f64) {
    let fold = |start, pick: fn(f64, f64) -> f64| figures.iter().copied().fold(start, pick);
    (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max))
}

/// Prints the lines as Markdown.
pub(crate) fn print(lines: &[Line]) {
    println!("| work | metric | Kelvin | other | ratio | target | |\n|---|---|---|---|---|---|---|");
    let mut last = "";
    for line in lines {
        let work = if line.work == last { "" } else { &line.work };
        last = &line.work;
        let verdict = match line.met {
            Some(true) => "met",
            Some(false) => "**missed**",
            None => "",
        };
        let Line { figure, kelvin, beside, ratio, target, .. } = line;
        println!("| {work} | {figure} | {kelvin} | {beside} | {ratio} | {target} | {verdict} |");
    }
}

/// A value in microseconds.
pub(crate) fn us(figure: f64) -> String {
    format!("{figure:.2} µs")
}

/// A whole number with thousands separators.
pub(crate) fn whole(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

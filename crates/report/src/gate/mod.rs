//! A comparison judged for continuous integration: may the candidate pass?
//!
//! Each measure has a limit `m`, the largest allowed regression. If higher is better, it may fall to (1 − m)
//! of the base; if lower is better, it may rise to (1 + m). The interval of the ratio is compared with that
//! bound:
//!
//! | interval | outcome |
//! |---|---|
//! | entirely beyond the bound | regressed: the regression is larger than allowed |
//! | entirely within the bound | passed: a larger regression is ruled out |
//! | contains the bound | undecided: neither is shown; fails only if strict |
//! | contains the bound, and too wide to distinguish an allowed regression from none | blind: not passed; fails if strict |
//! | none: fewer than four runs per side, or the runs lack the measure | not testable |
//! | none: no run of a side counts | void |
//!
//! With one measure the interval has 95 % confidence: a candidate exactly at the bound fails by chance in
//! 2.5 % of the gates, and one as good as the base far less often. With `k` measures each interval has a
//! confidence of 1 − 0.05/k, so that this holds for all of them together (Bonferroni).

mod junit;
mod markdown;
mod table;
mod text;

use kelvin_diagnose::Better;
use kelvin_stats::power::{self, FEWEST, POWER};
use kelvin_stats::student;
use serde::Serialize;

pub use junit::render as junit;
pub use markdown::render as markdown;
pub use table::table;
pub use text::render as text;

use crate::compare::{ADVISED, ComparedFigure, ComparedPoint, Comparison, Dependence, Side, percent, share};
use crate::{Error, Result};
use kelvin_measure::text::ends;

/// Twice the largest probability that a candidate exactly at the bound fails by chance.
const ERROR: f64 = 0.05;

/// The required number of runs per side is not predicted above this: the spread must be reduced first.
const MOST: usize = 200;

/// A measure with its limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// Id of a key metric, such as "nopm", "p99" or "server-cpu". `None` for the metric that a comparison
    /// judges: the headline, or, for a fixed throughput, p99 of the response time.
    pub measure: Option<String>,
    /// The largest allowed regression, as a fraction: 0.03.
    pub most: f64,
}

/// The result of one measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateResult {
    /// A regression larger than allowed is ruled out.
    Passed,
    /// Neither shown nor ruled out.
    Undecided,
    /// Neither shown nor ruled out: with so few runs and so much scatter, even a regression of the allowed
    /// size could not have been distinguished from none.
    Blind,
    /// Too few runs, or the runs lack the measure.
    NotTestable,
    /// No run of a side counts.
    Void,
    /// A regression larger than allowed is shown.
    Regressed,
}

impl GateResult {
    /// Its label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Undecided => "undecided",
            Self::Blind => "blind",
            Self::NotTestable => "not testable",
            Self::Void => "void",
            Self::Regressed => "regressed",
        }
    }
}

/// One measure at one load.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Id of the key metric.
    pub measure: String,
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The load, such as "8 users"; for a scenario, "tenant NAME".
    pub load: String,
    /// The largest allowed regression, as a fraction.
    pub most: f64,
    /// The values of the base's runs.
    pub base: Vec<f64>,
    /// The values of the candidate's runs.
    pub candidate: Vec<f64>,
    /// Candidate over base, with its interval at `confidence`.
    pub ratio: Option<(f64, f64, f64)>,
    /// Confidence of the interval, as a fraction.
    pub confidence: f64,
    /// The smallest regression, as a fraction, that such a gate detects with a probability of 90 %; `None` if
    /// it cannot be tested.
    pub detectable: Option<f64>,
    /// Whether runs depend on the preceding ones (A is the base), and the effective number of runs. `None` if
    /// the sides were measured alternately, or if it cannot be tested.
    pub dependence: Option<Dependence>,
    /// The result.
    pub outcome: GateResult,
    /// The result as text.
    pub words: String,
}

impl Row {
    /// A measure without values.
    fn without_values(limit: &Limit, load: String, outcome: GateResult, words: String) -> Self {
        let measure = limit.measure.clone().unwrap_or_else(|| "headline".into());
        Self {
            name: measure.clone(),
            measure,
            unit: String::new(),
            load,
            most: limit.most,
            base: Vec::new(),
            candidate: Vec::new(),
            ratio: None,
            confidence: 1.0 - ERROR,
            detectable: None,
            dependence: None,
            outcome,
            words,
        }
    }
}

/// The whole gate.
#[derive(Debug, Clone, Serialize)]
pub struct Gate {
    /// The name of the base.
    pub base: String,
    /// The name of the candidate.
    pub candidate: String,
    /// Runs of the base.
    pub base_runs: Vec<i64>,
    /// Runs of the candidate.
    pub candidate_runs: Vec<i64>,
    /// Whether an undecided measure fails.
    pub strict: bool,
    /// One row per measure and load.
    pub rows: Vec<Row>,
    /// Differences of the environment that may be the cause, as text.
    pub differences: Vec<String>,
    /// Runs that were left out or are not reliable.
    pub warnings: Vec<String>,
    /// The overall result: the worst of the rows. If strict, undecided counts as regressed.
    pub outcome: GateResult,
}

/// Judges a comparison: A is the base and B is the candidate.
///
/// # Errors
/// Fails if the runs lack a measure, or if it is unknown whether higher or lower is better.
pub fn judge(comparison: &Comparison, limits: &[Limit], strict: bool) -> Result<Gate> {
    let tests = (limits.len() * comparison.points.len()).max(1);
    let confidence = 1.0 - ERROR / tests as f64;
    let mut rows = Vec::new();
    for limit in limits {
        for point in &comparison.points {
            rows.push(row(point, limit, confidence)?);
        }
        rows.extend(comparison.uncompared.iter().map(|one| {
            let load = format!("tenant {}", one.tenant);
            Row::without_values(limit, load, GateResult::NotTestable, one.why.clone())
        }));
    }
    let worst = rows.iter().map(|row| row.outcome).max_by_key(|outcome| match outcome {
        GateResult::Passed => 0,
        GateResult::Undecided | GateResult::Blind if strict => 4,
        GateResult::Undecided => 1,
        GateResult::Blind => 2,
        GateResult::NotTestable | GateResult::Void => 3,
        GateResult::Regressed => 5,
    });
    let differs = comparison.differences.iter().filter(|d| d.matters);
    let words = |values: &[(String, usize)]| crate::compare::Difference::describe_values(values);
    Ok(Gate {
        base: comparison.name_a.clone(),
        candidate: comparison.name_b.clone(),
        base_runs: comparison.a.clone(),
        candidate_runs: comparison.b.clone(),
        strict,
        rows,
        differences: differs.map(|d| format!("{}: {} → {}", d.name, words(&d.a), words(&d.b))).collect(),
        warnings: comparison.warnings.clone(),
        outcome: worst.unwrap_or(GateResult::NotTestable),
    })
}

/// The gate if a side has no run that counts: nothing can be judged, and the result is void.
pub fn void(base: &Side<'_>, candidate: &Side<'_>, limits: &[Limit], strict: bool) -> Gate {
    let empty =
        [("base", base), ("candidate", candidate)].into_iter().filter(|(_, side)| side.runs.is_empty());
    let why = |(which, side): (&str, &Side<'_>)| {
        format!("no counted run in the {which} {}: {}", side.name, side.notes.join("; "))
    };
    let words = empty.map(why).collect::<Vec<_>>().join("; ");
    let row =
        |limit: &Limit| Row::without_values(limit, "every load".into(), GateResult::Void, words.clone());
    let numbers = |side: &Side<'_>| side.runs.iter().map(|run| run.report.run).collect();
    Gate {
        base: base.name.clone(),
        candidate: candidate.name.clone(),
        base_runs: numbers(base),
        candidate_runs: numbers(candidate),
        strict,
        rows: limits.iter().map(row).collect(),
        differences: Vec::new(),
        warnings: base.notes.iter().chain(&candidate.notes).cloned().collect(),
        outcome: GateResult::Void,
    }
}

impl Gate {
    /// Whether the gate fails.
    pub fn fails(&self) -> bool {
        self.rows.iter().any(|row| self.row_fails(row))
    }

    /// Whether this row makes the gate fail.
    pub fn row_fails(&self, row: &Row) -> bool {
        let open = matches!(row.outcome, GateResult::Undecided | GateResult::Blind);
        row.outcome == GateResult::Regressed || (self.strict && open)
    }

    /// Whether the gate could not have detected the regression.
    pub fn is_blind(&self) -> bool {
        self.rows.iter().any(|row| row.outcome == GateResult::Blind)
    }

    /// Whether a measure could not be judged.
    pub fn lacks_runs(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.outcome, GateResult::NotTestable | GateResult::Void))
    }

    /// The result in one sentence.
    pub fn verdict(&self) -> String {
        let of = |outcome| self.rows.iter().filter(|row| row.outcome == outcome).count();
        let all = self.rows.len();
        let (regressed, blind, untestable) =
            (of(GateResult::Regressed), of(GateResult::Blind), of(GateResult::NotTestable));
        let undecided = of(GateResult::Undecided) + if self.strict { blind } else { 0 };
        let measures = |n: usize| if n == 1 { "1 measure".to_owned() } else { format!("{n} measures") };
        if let Some(void) = self.rows.iter().find(|row| row.outcome == GateResult::Void) {
            format!("void: {}", void.words)
        } else if regressed > 0 {
            format!("failed: {} of {all} regressed by more than allowed", measures(regressed))
        } else if self.strict && undecided > 0 {
            format!(
                "failed: for {} of {all} a larger regression is not ruled out (--strict)",
                measures(undecided)
            )
        } else if untestable > 0 {
            format!("not judged: {} of {all} cannot be tested", measures(untestable))
        } else if blind > 0 {
            format!(
                "not judged: in {} of {all} a regression of the allowed size would not have been detected: \
                 add runs, or run both sides in turn (kelvin ab)",
                measures(blind)
            )
        } else if undecided > 0 {
            format!(
                "passed: no regression larger than allowed is shown, but for {} of {all} it is not ruled \
                 out",
                measures(undecided)
            )
        } else {
            format!("passed: for {} a regression larger than allowed is ruled out", measures(all))
        }
    }
}

fn row(point: &ComparedPoint, limit: &Limit, confidence: f64) -> Result<Row> {
    let found = match &limit.measure {
        Some(id) => point.key.iter().find(|figure| figure.id.eq_ignore_ascii_case(id)),
        None => point.judged_key(),
    };
    let Some(figure) = found else {
        let known: Vec<&str> = point.key.iter().map(|figure| figure.id.as_str()).collect();
        let asked = limit.measure.as_deref().unwrap_or("headline");
        return Err(Error::Compare(format!(
            "the runs have no measure {asked:?}; they have {}",
            known.join(", ")
        )));
    };
    let Some(better) = figure.better else {
        return Err(Error::Compare(format!("{} has no better direction and so cannot regress", figure.id)));
    };
    let Judged { outcome, ratio, detectable, mut words } =
        judged(figure, better, limit.most, confidence, point.runs);
    let dependence = ratio.and_then(|_| figure.dependence(confidence));
    if let Some(found) = dependence {
        let tested = found.test_words().map_or_else(String::new, |tested| format!(" ({tested})"));
        words = format!("{words}; {}{tested}", found.worth_words(point.runs));
    }
    Ok(Row {
        measure: figure.id.clone(),
        name: figure.name.clone(),
        unit: figure.unit.clone(),
        load: point.name(),
        most: limit.most,
        base: figure.a_values.clone(),
        candidate: figure.b_values.clone(),
        ratio,
        confidence,
        detectable,
        dependence,
        outcome,
        words,
    })
}

struct Judged {
    outcome: GateResult,
    ratio: Option<(f64, f64, f64)>,
    detectable: Option<f64>,
    words: String,
}

fn judged(
    figure: &ComparedFigure,
    better: Better,
    most: f64,
    confidence: f64,
    runs: (usize, usize),
) -> Judged {
    let untestable =
        |words| Judged { outcome: GateResult::NotTestable, ratio: None, detectable: None, words };
    let (a, b) = runs;
    if a.min(b) < FEWEST {
        return untestable(format!(
            "{a} runs of the base and {b} of the candidate: at least {FEWEST} each are needed, {ADVISED} are \
             advised"
        ));
    }
    if figure.fewest() < a.min(b) {
        return untestable(format!("{} is not known for every run", figure.name));
    }
    let Some(change) = figure.change(0.0, confidence) else {
        return untestable(format!("{} is not above 0 in every run", figure.name));
    };
    let (ratio, low, high) = (change.ratio.ratio, change.ratio.low, change.ratio.high);
    let (bound, beyond, within) = match better {
        Better::Higher => (1.0 - most, high < 1.0 - most, low >= 1.0 - most),
        Better::Lower => (1.0 + most, low > 1.0 + most, high <= 1.0 + most),
    };
    // An increase by e and a decrease by 1 − 1/(1 + e) have the same absolute logarithm.
    let detectable = figure.detectable(0.0, confidence).map(|effect| match better {
        Better::Higher => 1.0 - 1.0 / (1.0 + effect),
        Better::Lower => effect,
    });
    let range = format!("{} ({})", percent(ratio), ends(low, high, percent));
    let allowed = format!("{} allowed", signed(better, most));
    let (outcome, words) = if beyond {
        (GateResult::Regressed, format!("{range}, {allowed}: a larger regression is shown"))
    } else if within {
        (GateResult::Passed, format!("{range}, {allowed}: a larger regression is ruled out"))
    } else {
        let more = needed(figure, bound, confidence)
            .map_or_else(String::new, |runs| format!("; about {runs} runs per side are needed to decide"));
        let turn = if figure.consecutive {
            "; consecutive runs may be dependent: running both sides in turn (kelvin ab) requires fewer"
        } else {
            ""
        };
        let open = format!("{range}, {allowed}: a larger regression is neither shown nor ruled out");
        if detectable.is_some_and(|least| least <= most) {
            (GateResult::Undecided, format!("{open}{more}{turn}"))
        } else {
            let least = detectable.map_or_else(String::new, |least| {
                format!("; only a change of {} would be detected with a probability of 90 %", share(least))
            });
            (GateResult::Blind, format!("{open}{least}{more}{turn}"))
        }
    };
    Judged { outcome, ratio: Some((ratio, low, high)), detectable, words }
}

/// "-3 %" for higher is better, "+3 %" for lower is better.
pub(crate) fn signed(better: Better, most: f64) -> String {
    match better {
        Better::Higher => format!("-{}", share(most)),
        Better::Lower => format!("+{}", share(most)),
    }
}

/// Runs per side with which the interval excludes the bound with a probability of [`POWER`], if estimate and
/// spread are correct. The smallest sufficient number would do so in only half of the cases. `None` if the
/// estimate is at the bound or too many runs are needed.
fn needed(figure: &ComparedFigure, bound: f64, confidence: f64) -> Option<usize> {
    let ln = |values: &[f64]| values.iter().map(|v| v.ln()).collect::<Vec<f64>>();
    let (a, b) = (ln(&figure.a_values), ln(&figure.b_values));
    let (mean, spread) = if figure.paired {
        let pairs: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        let of = student::describe(&pairs)?;
        (of.mean, of.sd?.powi(2))
    } else {
        let (a, b) = (student::describe(&a)?, student::describe(&b)?);
        (b.mean - a.mean, a.sd?.powi(2) + b.sd?.powi(2))
    };
    // Dependence widens the interval; more runs must compensate for that.
    let wider = if figure.consecutive {
        let found = figure.change(0.0, confidence)?.ratio;
        let independent = student::welch_ratio(&figure.a_values, &figure.b_values, confidence)?;
        ((found.high / found.low).ln() / (independent.high / independent.low).ln()).max(1.0)
    } else {
        1.0
    };
    let spread = spread * wider.powi(2);
    let distance = (mean - bound.ln()).abs().exp_m1();
    let runs = if figure.paired {
        power::pairs(spread.sqrt(), distance, POWER, confidence)?
    } else {
        // The coefficient of variation of each side, if each has half of the total variance of the
        // logarithms.
        power::runs_a_side((spread / 2.0).exp_m1().sqrt(), distance, POWER, confidence)?
    };
    Some((runs as usize).max(figure.fewest() + 1)).filter(|runs| *runs <= MOST)
}

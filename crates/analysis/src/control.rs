//! A/A controls: the same cell twice in a block. Their difference is what this study cannot distinguish from zero.

use serde::Serialize;

use kelvin_stats::student;

use crate::StudyInput;
use crate::fit::Estimate;

/// The result of the controls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Control {
    /// Cells with a control.
    pub cells: Vec<Vec<usize>>,
    /// Blocks in which both runs count.
    pub pairs: usize,
    /// Control run over measured run, as a fraction.
    pub difference: Estimate,
    /// Half the width of the interval: the smallest effect that this study resolves, as a fraction.
    pub floor: Option<f64>,
    /// Whether the interval excludes 0, although both runs are of the same cell.
    pub differs: bool,
}

/// The result of the controls for a metric; none where the study has no controls.
pub(crate) fn control(input: &StudyInput, metric: &str) -> Option<Control> {
    let counting =
        |control: bool| input.runs.iter().filter(move |run| run.control == control && run.void.is_none());
    let mut pairs = Vec::new();
    let mut cells = Vec::new();
    for again in counting(true) {
        let twin = counting(false).find(|run| run.block == again.block && run.cell == again.cell);
        let values = twin.and_then(|run| Some((*run.values.get(metric)?, *again.values.get(metric)?)));
        if let Some((a, b)) = values.filter(|(a, b)| *a > 0.0 && *b > 0.0) {
            pairs.push((b / a).ln());
            cells.push(again.cell.clone());
        }
    }
    let sample = student::describe(&pairs)?;
    cells.sort();
    cells.dedup();
    let half = sample.sd.and_then(|sd| {
        let t = student::quantile(f64::midpoint(1.0, input.confidence), (sample.n - 1) as f64)?;
        Some(t * sd / (sample.n as f64).sqrt())
    });
    let part = |v: f64| v.exp() - 1.0;
    let difference = Estimate {
        value: part(sample.mean),
        low: half.map(|half| part(sample.mean - half)),
        high: half.map(|half| part(sample.mean + half)),
        p: None,
    };
    Some(Control {
        cells,
        pairs: sample.n,
        floor: half.map(part),
        differs: difference.is_not_zero(),
        difference,
    })
}

/// The smallest effect that the controls can resolve, as a fraction; none with fewer than two pairs.
pub(crate) fn floor(input: &StudyInput, metric: &str) -> Option<f64> {
    control(input, metric)?.floor
}

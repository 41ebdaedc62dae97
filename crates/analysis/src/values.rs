//! The values of one metric on the scale of the analysis.

use crate::StudyInput;
use crate::fit::{Estimate, Fit, Observation};
use crate::input::Scale;

/// The runs that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// Those that are not void.
    Valid,
    /// Void ones, too, where they have a value.
    All,
}

/// The values of one metric, without controls, in time order.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub(crate) observations: Vec<Observation>,
    pub(crate) scale: Scale,
    mean: f64,
}

impl Values {
    pub(crate) fn of(input: &StudyInput, metric: &str, counting: Counting) -> Self {
        let counts = |void: bool| !void || counting == Counting::All;
        let mut observations: Vec<Observation> = input
            .runs
            .iter()
            .filter(|run| !run.control && counts(run.void.is_some()))
            .filter_map(|run| {
                let value = run.values.get(metric).copied().filter(|value| value.is_finite())?;
                Some(Observation { cell: run.cell.clone(), block: run.block, place: run.place, value })
            })
            .collect();
        observations.sort_by_key(|o| o.place);
        let mean = observations.iter().map(|o| o.value).sum::<f64>() / observations.len().max(1) as f64;
        // A metric that can be 0, such as a rate of waits, has no logarithm.
        let positive = observations.iter().all(|o| o.value > 0.0);
        let scale = if positive { input.scale } else { Scale::Difference };
        if scale == Scale::Ratio {
            for o in &mut observations {
                o.value = o.value.ln();
            }
        }
        Self { observations, scale, mean }
    }

    pub(crate) fn fit(&self, confidence: f64) -> Option<Fit> {
        Fit::of(&self.observations, confidence)
    }

    /// A difference of means as a fraction: from the ratio, or relative to the mean of all values.
    pub(crate) fn relative(&self, difference: Estimate) -> Estimate {
        match self.scale {
            Scale::Ratio => difference.map(|v| v.exp() - 1.0),
            // All values are 0: certainly no change.
            Scale::Difference if self.mean == 0.0 && difference.value == 0.0 => difference.map(|_| 0.0),
            Scale::Difference => difference.map(|v| v / self.mean.abs()),
        }
    }

    /// A standard deviation as a share of the value.
    pub(crate) fn part(&self, deviation: f64) -> f64 {
        match self.scale {
            Scale::Ratio => deviation,
            Scale::Difference => deviation / self.mean.abs(),
        }
    }

    /// The variation from run to run, standard deviation over mean; `None` without an error. For logarithms it is
    /// √(e^s² − 1), the coefficient of variation of a log-normal distribution.
    pub(crate) fn variation(&self, fit: &Fit) -> Option<f64> {
        let s = self.part(fit.error?.sqrt());
        let part = match self.scale {
            Scale::Ratio => (s * s).exp_m1().sqrt(),
            Scale::Difference => s,
        };
        Some(part).filter(|part| part.is_finite())
    }

    /// A mean in the metric's own unit.
    pub(crate) fn level(&self, mean: Estimate) -> Estimate {
        match self.scale {
            Scale::Ratio => mean.map(f64::exp),
            Scale::Difference => mean,
        }
    }
}

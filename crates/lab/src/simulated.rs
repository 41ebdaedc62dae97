//! A bench without a database: the values come from a function, such as recorded noise with a planted effect. Code that
//! plans several runs is tested on it, and its false alarms and power are counted on it.

mod noise;
pub mod queue;
pub mod studies;

use kelvin_diagnose::{Better, KeyFigure};
use kelvin_store::{Judgement, RunId};

pub use noise::{Noise, NoiseError};

use crate::{Bench, BenchError, Measured, Planned};

/// The result of a simulated run.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// Its key metrics.
    pub figures: Vec<KeyFigure>,
    /// Why it does not count.
    pub void: Vec<String>,
}

impl Simulation {
    /// A run that counts and has one metric, "tps".
    pub fn new(value: f64) -> Self {
        Self { figures: vec![figure("tps", value)], void: Vec::new() }
    }

    /// The same with an additional metric.
    #[must_use]
    pub fn with_figure(mut self, id: &str, value: f64) -> Self {
        self.figures.push(figure(id, value));
        self
    }

    /// The same, and void.
    #[must_use]
    pub fn void(mut self, why: &str) -> Self {
        self.void.push(why.into());
        self
    }
}

/// A key metric with this id and value; higher is better for "tps", lower for all others.
pub fn figure(id: &str, value: f64) -> KeyFigure {
    let (name, unit, better) = match id {
        "tps" => ("tps", "per second", Better::Higher),
        "server-cpu" => ("server CPU/transaction", "µs", Better::Lower),
        "cpu" => ("CPU/transaction", "µs", Better::Lower),
        other => (other, "ms", Better::Lower),
    };
    KeyFigure {
        id: id.into(),
        name: name.into(),
        unit: unit.into(),
        better: Some(better),
        value: Some(value),
        at_least: false,
    }
}

/// Makes runs from the values of a function.
pub struct Simulated<F> {
    of: F,
    runs: i64,
    /// Messages shown to the user.
    pub messages: Vec<String>,
    /// Runs after which a stop is requested; `None` for no request.
    pub stop_after: Option<i64>,
}

impl<F: FnMut(&Planned<'_>) -> Result<Simulation, BenchError>> Simulated<F> {
    /// The n-th run returns `of(n)`.
    pub fn new(of: F) -> Self {
        Self { of, runs: 0, messages: Vec::new(), stop_after: None }
    }
}

impl<F: FnMut(&Planned<'_>) -> Result<Simulation, BenchError>> Bench for Simulated<F> {
    fn measure(&mut self, planned: &Planned<'_>) -> Result<Measured, BenchError> {
        let Simulation { figures, void } = (self.of)(planned)?;
        let judgement = Judgement::from_reasons(void);
        self.runs += 1;
        Ok(Measured { run: RunId(self.runs), figures, judgement, seconds: 10.0 })
    }

    fn report(&mut self, text: &str) {
        self.messages.push(text.into());
    }

    fn stopped(&self) -> bool {
        self.stop_after.is_some_and(|after| self.runs >= after)
    }
}

//! A bench without a database: the values come from a function, such as recorded noise with something planted
//! in it. Those who plan several runs are tested on it, and their false alarms and power are counted on it.

mod noise;
pub mod queue;
pub mod studies;

use kelvin_diagnose::{Better, KeyFigure};
use kelvin_store::{Judgement, RunId};

pub use noise::{Noise, NoiseError};

use crate::{Bench, BenchError, Measured, Planned};

/// What a simulated run comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulation {
    /// Its key figures.
    pub figures: Vec<KeyFigure>,
    /// Why it does not count.
    pub void: Vec<String>,
}

impl Simulation {
    /// A run that counts and has one figure, "tps".
    pub fn of(value: f64) -> Self {
        Self { figures: vec![figure("tps", value)], void: Vec::new() }
    }

    /// The same with another figure beside the ones that it has.
    #[must_use]
    pub fn with(mut self, id: &str, value: f64) -> Self {
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

/// A key figure of this id and value, with more of it better when it is "tps" and less otherwise.
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

/// Makes runs of what a function says.
pub struct Simulated<F> {
    of: F,
    runs: i64,
    /// What was shown to the user.
    pub told: Vec<String>,
    /// Runs after which somebody asks to stop; none when nobody does.
    pub stop_after: Option<i64>,
}

impl<F: FnMut(&Planned<'_>) -> Result<Simulation, BenchError>> Simulated<F> {
    /// Runs come to what `of` says of them.
    pub fn new(of: F) -> Self {
        Self { of, runs: 0, told: Vec::new(), stop_after: None }
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
        self.told.push(text.into());
    }

    fn stopped(&self) -> bool {
        self.stop_after.is_some_and(|after| self.runs >= after)
    }
}

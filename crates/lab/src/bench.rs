//! Runs a specification and returns the measurement: the interface between code that plans several runs (repeats, A/B
//! comparisons, studies) and the code that makes a run. The planning code uses only [`Bench`], so that the same code
//! runs on real databases and, in tests, on simulated noise.

use kelvin_diagnose::{IO_FIGURES, KEY_FIGURES, KeyFigure, QUERY_FIGURES};
use kelvin_store::{GroupId, GroupSlot, Judgement, RunId};

use kelvin_run::Spec;
use kelvin_run::spec::{Work, WorkloadName};

/// A run of a group, as planned.
#[derive(Debug, Clone, Copy)]
pub struct Planned<'a> {
    /// The specification to run; it has one point.
    pub spec: &'a Spec,
    /// The group that it belongs to.
    pub group: GroupId,
    /// Its position in the group.
    pub slot: &'a GroupSlot,
    /// Additional metrics whose means over the window are requested.
    pub metrics: &'a [String],
}

/// The result.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The run, stored and entered into its group.
    pub run: RunId,
    /// Its key metrics, the headline first, as returned by [`kelvin_diagnose::key_figures`].
    pub figures: Vec<KeyFigure>,
    /// Whether it counts, and why not. The store has the same judgement.
    pub judgement: Judgement,
    /// Total duration in seconds, reset included.
    pub seconds: f64,
}

impl Measured {
    /// The value of a metric by its id; `None` where it is unknown.
    pub fn value(&self, id: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.id == id)?.value
    }

    /// Whether it counts.
    pub fn counts(&self) -> bool {
        self.judgement.counts()
    }
}

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A stop was requested. Earlier measurements are kept.
    #[error("interrupted")]
    Interrupted,
    /// The run could not start, or could not be stored.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Makes runs, one after another.
pub trait Bench {
    /// Brings the database into its state before a run, as the specification requires, measures, stores, and enters the
    /// run into its group. A run that ended early is measured and void; one that was interrupted is an error.
    fn measure(&mut self, planned: &Planned<'_>) -> Result<Measured, BenchError>;

    /// A sentence for the person who waits.
    fn report(&mut self, text: &str);

    /// Whether a stop was requested.
    fn stopped(&self) -> bool;
}

/// The specification of a run in a block. Each block has different random values, so that the result holds for more
/// than one random sequence. All runs of a block have the same ones, so that they differ in nothing else.
pub fn in_block(spec: &Spec, block: u32) -> Spec {
    let mut spec = spec.clone();
    spec.load.seed = spec.load.seed.wrapping_add(u64::from(block));
    spec
}

/// The key metrics of a specification's workload in addition to its headline.
pub fn key_figures(spec: &Spec) -> &'static [&'static str] {
    match spec.workload() {
        WorkloadName::Io => &IO_FIGURES,
        WorkloadName::TprocH => &QUERY_FIGURES,
        _ => &KEY_FIGURES,
    }
}

/// Refuses a specification that cannot be part of a group: with several points there is no single value.
pub fn suits(spec: &Spec) -> Result<(), String> {
    if matches!(spec.work, Work::TprocH(_)) && spec.load.points().len() != 1 {
        return Err("repeats and comparisons need a single figure: --streams 0 (streams = 0 under [tproc-h]) runs the power test \
             only, and --profile hammerdb one number of users"
            .into());
    }
    if let Some(hosts) = spec.load.most_hosts() {
        return Err(format!(
            "the load is that of {hosts} hosts of a fleet (hosts under [load]): repeats, comparisons and studies run on this host; \
             kelvin run FILE --fleet NAME makes one such run"
        ));
    }
    if spec.load.find_max || spec.load.points().len() != 1 {
        return Err("repeats and comparisons need a single number of users and a single rate".into());
    }
    let phases = spec.phases();
    if phases > 1 {
        return Err(format!(
            "repeats and comparisons need a single figure, but these jobs run in {phases} phases \
             (stonewall); select the jobs of one phase: --section NAME, or sections = [\"NAME\"] under [io]"
        ));
    }
    Ok(())
}

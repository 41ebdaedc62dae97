//! Statistics for performance measurements. Pure mathematics: no clock, no files.

pub mod autoregression;
pub mod bootstrap;
pub mod change_points;
pub mod compare;
pub mod dependence;
pub mod ess;
pub mod factorial;
pub mod fractional;
pub mod holm;
pub mod kolmogorov;
pub mod level;
pub mod mover;
pub mod mser;
pub mod noncentral;
mod normal;
pub mod percentile;
pub mod permutation;
pub mod power;
pub mod proportion;
pub mod rank;
pub mod scatter;
pub mod sequential;
pub mod slope;
pub mod steady;
pub mod student;
pub mod trend;
pub mod usl;

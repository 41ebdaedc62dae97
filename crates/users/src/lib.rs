//! The virtual users of a point on this host: what each does ([`User`]), in threads or on event loops ([`UserPool`]), the
//! arrivals that they serve in an open loop ([`arrivals`]), the books of these ([`Schedule`]), and their errors ([`Tally`]).
//!
//! This is what `kelvin-run` does for each transaction, so that a release build optimises it and not the rest of a run.

pub mod arrivals;
mod report;
mod schedule;
mod tally;
mod user;
mod user_pool;

pub use report::UserReport;
pub use schedule::Schedule;
pub use tally::Tally;
pub use user::{Ending, Shared, User, UserCounter, connect, headline_of, wait_until};
pub use user_pool::{ResolvedThreading, UserPool};

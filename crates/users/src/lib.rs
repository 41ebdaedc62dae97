//! The virtual users of a point on this host: each user's work ([`User`]), the threads or event loops that
//! run them ([`UserPool`]), the arrivals that they serve in an open loop ([`arrivals`]) with their counts
//! ([`Schedule`]), and their errors ([`Tally`]).
//!
//! This code runs for each transaction. It is a separate crate, so that a release build optimises it and not
//! the rest of a run.

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

//! What the host is and what it does. Every run stores what it is beside its figures, because a figure without its
//! machine cannot be compared with anything; [`sample`] shows what it did while they were made, and [`watch`] lets it, the
//! database and others be watched side by side, on the run's clock; [`baseline`] measures what the host can do before.

pub mod activity;
pub mod baseline;
mod baseline_fact;
pub mod engine;
pub mod host;
pub mod metric;
pub mod mysql;
pub mod postgres;
mod process;
pub mod sample;
pub mod scrape;
mod server;
pub mod sqlite;
mod sqlserver;
mod threads;
pub mod watch;
mod watch_plan;

pub use process::cpu_time;
pub use server::ServerPlacement;
pub use server::statement_text::comparable;
pub use threads::{ThreadTimes, thread_id, thread_times, threads};

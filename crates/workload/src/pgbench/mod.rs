//! pgbench: its built-in workloads and its script language, driven by our client.

pub mod expression;
pub mod script;
mod variables;

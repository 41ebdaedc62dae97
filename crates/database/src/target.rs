//! Targets: what a user writes to name a database.

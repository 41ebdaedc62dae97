//! The `hammerdb` profile: HammerDB's stored routines, as its interface describes them. In a database that
//! HammerDB built they are found in the catalog and driven; in one that we build, routines of the same
//! interface are made, so that HammerDB can drive it. The routines' own texts are ours.
//!
//! Inside these routines the server draws items and lines, so a run of them cannot be repeated from its seed.

mod catalog;
mod driver;

use kelvin_database::{Result, Session};

pub(crate) use catalog::{Routines, find};
pub(crate) use driver::Driver;

const FUNCTIONS: &str = include_str!("functions.sql");

/// Creates functions of HammerDB's interface, on top of ours (which must be there).
pub(crate) fn create(session: &mut dyn Session) -> Result<()> {
    session.run(FUNCTIONS).map_err(|error| error.context("creating functions of HammerDB's interface"))
}

/// Drops the functions that [`create`] made; HammerDB's own stay.
pub(crate) fn drop(session: &mut dyn Session) -> Result<()> {
    let rows = session.query(
        "SELECT p.oid::regprocedure::text FROM pg_proc p \
         WHERE p.proname IN ('neword', 'payment', 'delivery', 'ostat', 'slev', 'dbms_random') \
         AND p.prokind = 'f' AND pg_function_is_visible(p.oid) AND p.prosrc LIKE '%made by kelvin%'",
    )?;
    for row in 0..rows.len() {
        session.run(&format!("DROP FUNCTION {}", rows.text(row, 0)?))?;
    }
    Ok(())
}

//! The `hammerdb` profile: HammerDB's stored routines, as its interface describes them. In a database that
//! HammerDB built they are found in the catalog and driven; in one that we build, functions and procedures of the
//! same interface are made, so that HammerDB can drive it with either. The routines' own texts are ours.
//!
//! Inside these routines the server draws items and lines, so a run of them cannot be repeated from its seed.

mod catalog;
mod driver;

use kelvin_database::{Result, Session};

pub(crate) use catalog::{Routines, find, read_build};
pub(crate) use driver::Driver;

const ROUTINES: [&str; 2] = [include_str!("functions.sql"), include_str!("procedures.sql")];

/// Creates functions and procedures of HammerDB's interface, on top of our functions (which must be there).
pub(crate) fn create(session: &mut dyn Session) -> Result<()> {
    let create = |text| session.run(text);
    let created: Result<()> = ROUTINES.into_iter().try_for_each(create);
    created.map_err(|error| error.context("creating routines with HammerDB's interface"))
}

/// Drops the routines that [`create`] made; HammerDB's own stay.
pub(crate) fn drop(session: &mut dyn Session) -> Result<()> {
    let rows = session.query(
        "SELECT p.oid::regprocedure::text FROM pg_proc p \
         WHERE p.proname IN ('neword', 'payment', 'delivery', 'ostat', 'slev', 'dbms_random') \
         AND p.prokind IN ('f', 'p') AND pg_function_is_visible(p.oid) AND p.prosrc LIKE '%made by kelvin%'",
    )?;
    for row in 0..rows.len() {
        session.run(&format!("DROP ROUTINE {}", rows.text(row, 0)?))?;
    }
    Ok(())
}

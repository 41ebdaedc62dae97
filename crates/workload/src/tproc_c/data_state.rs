//! What determines the data, and whether a run has changed them since the load.

use kelvin_database::{Engine, Result, Session};
use kelvin_measure::text::count;

use super::dialect::Dialect;
use super::schema::TABLES;
use super::schema::metadata::{Build, BuiltBy};
use super::{Options, Profile};
use crate::WorkloadData;

/// The data that the options request; options that are left open are taken from the database.
pub(super) fn data(options: &Options, engine: &dyn Engine, dialect: &dyn Dialect) -> Result<WorkloadData> {
    let build = Build::read(engine.connect()?.as_mut(), dialect)?;
    let shape = build.as_ref().map_or_else(|| options.clone(), |build| build.complete(options));
    let by_hammerdb = build.as_ref().is_some_and(|build| build.metadata.built_by == BuiltBy::Hammerdb);
    let warehouses = shape.warehouses_to_build();
    let mut words = count(warehouses, "warehouse");
    if by_hammerdb {
        words.push_str(", built by HammerDB");
    } else {
        words.push_str(&format!(", seed {}", shape.seed_to_build()));
    }
    if options.profile == Profile::Hammerdb {
        words.push_str(", HammerDB's schema");
    }
    if shape.foreign_keys {
        words.push_str(", foreign keys");
    }
    if let Some(partitions) = shape.partitions {
        words.push_str(&format!(", {partitions} partitions"));
    }
    if shape.fill_page {
        words.push_str(", filled pages");
    }
    let mut tables: Vec<&'static str> = TABLES.iter().map(|table| table.name).collect();
    tables.extend(["kelvin_tproc_c", "kelvin_tproc_c_loaded"]);
    Ok(WorkloadData { words, can_be_built: !by_hammerdb, tables })
}

/// A New-Order increments d_next_o_id, a Payment increases d_ytd, and a Delivery deletes from new_order; the
/// other transactions only read. This reads one row per district and an index.
pub(super) fn is_fresh(session: &mut dyn Session, dialect: &dyn Dialect) -> Result<bool> {
    let takings = dialect.money(3_000_000);
    let touched = format!("select count(*) from district where d_next_o_id <> 3001 or d_ytd <> {takings}");
    if session.query(&touched)?.int(0, 0)? > 0 {
        return Ok(false);
    }
    let undelivered =
        session.query("select (select count(*) from new_order) - 900 * (select count(*) from district)")?;
    Ok(undelivered.int(0, 0)? == 0)
}

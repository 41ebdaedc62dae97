//! The settings that findings ask for: times in milliseconds, sizes in bytes, switches "on" or "off".

use std::collections::BTreeMap;

use kelvin_database::{Result, Rows, Session};

use super::sql;

/// Reads them; with the number of worker threads that the server may have, and of tempdb's data files.
pub(super) fn read(session: &mut dyn Session) -> Result<BTreeMap<String, String>> {
    let mut values = BTreeMap::new();
    let rows = session.query(sql::SETTINGS)?;
    for row in 0..rows.len() {
        let Some(value) = rows.optional(row, 1, Rows::text)? else { continue };
        let name = rows.text(row, 0)?;
        values.insert(name.to_owned(), in_base_unit(name, value));
    }
    // A single database of Azure may not look into tempdb.
    if let Ok(rows) = session.query(sql::LIMITS)
        && !rows.is_empty()
    {
        values.insert("max_workers_count".into(), rows.int(0, 0)?.to_string());
        values.insert("tempdb data files".into(), rows.int(0, 1)?.to_string());
    }
    if let Ok(rows) = session.query(sql::MEMORY)
        && !rows.is_empty()
    {
        if let Some(model) = rows.optional(0, 0, Rows::text)? {
            values.insert("sql_memory_model_desc".into(), model.to_owned());
        }
        if let Some(kilobytes) = rows.optional(0, 1, Rows::float)? {
            values.insert("large_page_allocations".into(), (kilobytes * 1024.0).to_string());
        }
    }
    Ok(values)
}

fn in_base_unit(name: &str, value: &str) -> String {
    let number = || value.parse::<f64>().ok();
    match name {
        "target_recovery_time_in_seconds" => number().map(|seconds| (seconds * 1e3).to_string()),
        "recovery interval (min)" => number().map(|minutes| (minutes * 60e3).to_string()),
        // The default is more than there can be.
        "max server memory (MB)" => number().map(|mib| (mib * f64::from(1 << 20)).to_string()),
        _ if name.starts_with("is_") || name == "LEGACY_CARDINALITY_ESTIMATION" => {
            Some(if value == "0" { "off" } else { "on" }.to_owned())
        }
        _ => None,
    }
    .unwrap_or_else(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_words_and_times_milliseconds() {
        assert_eq!(in_base_unit("is_query_store_on", "1"), "on");
        assert_eq!(in_base_unit("LEGACY_CARDINALITY_ESTIMATION", "0"), "off");
        assert_eq!(in_base_unit("target_recovery_time_in_seconds", "60"), "60000");
        assert_eq!(in_base_unit("delayed_durability_desc", "FORCED"), "FORCED");
        assert_eq!(in_base_unit("compatibility_level", "150"), "150");
    }
}

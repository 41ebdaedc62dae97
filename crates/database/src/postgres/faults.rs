//! Server versions with a known fault that touches what Kelvin's workloads do. A run on such a server has a finding:
//! so when it starts, in its findings, and by `kelvin doctor`; the entries say where each is written down.

use crate::{Result, ServerFault, Session};

/// One line of the table.
struct Entry {
    id: &'static str,
    /// `server_version_num` of the first version that has it, and of the first that has it no more.
    since: i64,
    until: i64,
    versions: &'static str,
    what: &'static str,
    effect: &'static str,
    source: &'static str,
}

/// The fault for which statements of ours have another form; see [`loses_rows_in_joins`].
const LOST_ROWS: &str = "postgres-lost-rows-in-joined-updates";

const TABLE: [Entry; 2] = [
    Entry {
        id: LOST_ROWS,
        since: 180_000,
        until: 180_002,
        versions: "PostgreSQL 18.0 and 18.1",
        what: "an UPDATE, DELETE or MERGE that joins anything but tables (unnest, VALUES, a subquery, a CTE) \
               silently skips rows that another session changes at the same time",
        effect: "TPROC-C's own statements avoid such joins on these versions; HammerDB's routines and your \
                 own scripts may lose updates: the server may be the cause of a consistency condition that \
                 fails",
        source: "release notes of PostgreSQL 18.2, \"Fix incorrect pruning of rowmarks belonging to non-relation \
                 rangetable entries\" (commit f335457e8)",
    },
    Entry {
        id: "postgres-crash-in-partitioned-updates",
        since: 180_000,
        until: 180_001,
        versions: "PostgreSQL 18.0",
        what: "an UPDATE or DELETE on a partitioned table can crash the server when another session changes the same \
               row at the same time",
        effect: "scripts on partitioned tables may lose their connections; TPROC-C's partitions \
                 (--partitions) have no rows that two sessions change",
        source: "release notes of PostgreSQL 18.1, \"Fix crash during EvalPlanQual rechecks on partitioned tables\" \
                 (commit 1296dcf18)",
    },
];

/// The faults that are known of a version, by its `server_version_num` (180001 is 18.1).
pub fn known(version: i64) -> Vec<ServerFault> {
    let entries = TABLE.iter().filter(|entry| (entry.since..entry.until).contains(&version));
    entries
        .map(|entry| ServerFault {
            id: entry.id.into(),
            versions: entry.versions.into(),
            what: entry.what.into(),
            effect: entry.effect.into(),
            source: entry.source.into(),
        })
        .collect()
}

/// Whether this server loses rows in updates that join something other than tables.
///
/// # Errors
/// The session's, when it cannot be asked for its version.
pub fn loses_rows_in_joins(session: &mut dyn Session) -> Result<bool> {
    Ok(session.query(&format!("SELECT ({})::int", loses_rows_in_joins_sql()))?.int(0, 0)? == 1)
}

/// The same as a condition in SQL, for routines that a later version of the server may call, too.
pub fn loses_rows_in_joins_sql() -> String {
    let entries = TABLE.iter().filter(|entry| entry.id == LOST_ROWS);
    let versions = entries.map(|entry| {
        let (since, last) = (entry.since, entry.until - 1);
        format!("current_setting('server_version_num')::int BETWEEN {since} AND {last}")
    });
    versions.collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_b2_versions_have_the_faults_that_their_release_notes_say() {
        let ids = |version| known(version).into_iter().map(|fault| fault.id).collect::<Vec<_>>();
        assert_eq!(ids(180_000), [LOST_ROWS, "postgres-crash-in-partitioned-updates"]);
        assert_eq!(ids(180_001), [LOST_ROWS]);
        for clean in [130_023, 150_018, 170_010, 180_002, 180_004, 190_000] {
            assert_eq!(known(clean), [], "{clean}");
        }
        assert_eq!(
            loses_rows_in_joins_sql(),
            "current_setting('server_version_num')::int BETWEEN 180000 AND 180001"
        );
        for entry in &TABLE {
            assert!(entry.since < entry.until && entry.source.contains("release notes"), "{}", entry.id);
        }
    }
}

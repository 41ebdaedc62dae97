//! Facts that decide how a PostgreSQL database can be restored.

use super::dump::programs;
use crate::managed::Manager;
use crate::postgres::PostgresEngine;
use crate::snapshot::{SnapshotMethod, SnapshotMethods, clones};
use crate::{Engine, Result};

/// Database size in bytes from which cloning the files of a stopped server is faster than copying in the running one.
/// The copy takes a second per half gigabyte; a stop and a start take two or three seconds.
const LARGE: u64 = 8 << 30;

/// Why the files of a server cannot be copied that Kelvin does not manage.
const NOT_MANAGED: &str =
    "files can be copied only for SQLite and for servers that kelvin manages; use template, dump or reload";

/// Facts about the database, before a method is chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// The server's version as a number, such as 150018.
    version: u32,
    /// Bytes of the database.
    bytes: u64,
    /// Whether the role may make databases.
    may_create: bool,
    /// Whether the role may do what the database's owner may.
    owns: bool,
    /// Settings, privileges, subscriptions and replication slots that belong to the database itself, which a copy by
    /// template does not take over.
    own_settings: u64,
    /// Whether the server is managed.
    managed: bool,
    /// Whether files can be cloned where the snapshots of a managed server are.
    clones: bool,
    /// Statements prepared once a connection, which a pooler in transaction mode does not have.
    own_sessions: bool,
}

impl Facts {
    /// Asks the server, in a session with the database itself. `manager` is a managed server's.
    ///
    /// # Errors
    /// When it does not answer.
    pub(crate) fn read(engine: &PostgresEngine, manager: Option<&Manager>) -> Result<Self> {
        let rows = engine.connect()?.query(
            "SELECT current_setting('server_version_num')::bigint, pg_database_size(current_database()), \
             (SELECT (rolsuper OR rolcreatedb)::int::bigint FROM pg_roles WHERE rolname = current_user), \
             pg_has_role(datdba, 'USAGE')::int::bigint, \
             (SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = d.oid) + (datacl IS NOT NULL)::int \
             + (datconnlimit <> -1)::int + datistemplate::int \
             + (SELECT count(*) FROM pg_subscription WHERE subdbid = d.oid) \
             + (SELECT count(*) FROM pg_replication_slots WHERE database = d.datname) \
             FROM pg_database AS d WHERE datname = current_database()",
        )?;
        let yes = |column| rows.int(0, column).map(|number| number > 0);
        Ok(Self {
            version: u32::try_from(rows.int(0, 0)?).unwrap_or(0),
            bytes: u64::try_from(rows.int(0, 1)?).unwrap_or(0),
            may_create: yes(2)?,
            owns: yes(3)?,
            own_settings: u64::try_from(rows.int(0, 4)?).unwrap_or(0),
            managed: manager.is_some(),
            clones: manager.is_some_and(|manager| clones(manager.base_dir())),
            own_sessions: engine.config().prepared_statements,
        })
    }

    /// The methods that the facts allow.
    pub(crate) fn methods(&self) -> SnapshotMethods {
        let no_template = self.no_template();
        let major = self.version / 10_000;
        SnapshotMethods {
            fastest: match no_template {
                _ if self.managed && self.clones && self.version < 180_000 && self.bytes >= LARGE => {
                    let why = "the file system clones files, which costs nothing regardless of their size";
                    Ok((SnapshotMethod::Files, why))
                }
                None => {
                    let why = "the server copies files, bypassing WAL and shared buffers";
                    Ok((SnapshotMethod::Template, why))
                }
                Some(why) => Err(format!("no template: {why}")),
            },
            no_template: no_template.map(str::to_owned),
            no_files: (!self.managed).then(|| NOT_MANAGED.into()),
            no_dump: programs(major).is_none().then(|| {
                format!(
                    "pg_dump and pg_restore of PostgreSQL {major} or newer are not installed here (Debian: \
                     apt-get install postgresql-client-{major})"
                )
            }),
            confirming: &[SnapshotMethod::Template, SnapshotMethod::Dump],
            is_file: false,
        }
    }

    fn no_template(&self) -> Option<&'static str> {
        let refusals = [
            (
                !self.own_sessions,
                "databases cannot be swapped behind a pooler (prepared_statements=false); use the server's own \
                address",
            ),
            (
                !self.may_create,
                "the role cannot create databases; a superuser can grant that: ALTER ROLE … CREATEDB",
            ),
            (
                !self.owns,
                "the role does not own the database; a superuser can change that: ALTER DATABASE … OWNER TO …",
            ),
            (
                self.own_settings > 0,
                "the database has its own settings or privileges (ALTER DATABASE … SET, GRANT … ON DATABASE), a \
                 subscription or a replication slot, which a copy would lack",
            ),
        ];
        refusals.iter().find(|(refused, _)| *refused).map(|(_, why)| *why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Facts {
        Facts {
            version: 150_018,
            bytes: 1 << 30,
            may_create: true,
            owns: true,
            own_sessions: true,
            ..Facts::default()
        }
    }

    fn fastest(facts: &Facts) -> SnapshotMethod {
        facts.methods().fastest.unwrap().0
    }

    #[test]
    fn the_fastest_possible_way_is_taken() {
        assert_eq!(fastest(&server()), SnapshotMethod::Template);
        let large = Facts { bytes: LARGE, clones: true, managed: true, ..server() };
        assert_eq!(fastest(&large), SnapshotMethod::Files);
        let newer = Facts { version: 180_001, ..large.clone() };
        assert_eq!(fastest(&newer), SnapshotMethod::Template, "it clones itself");
        assert_eq!(fastest(&Facts { clones: false, ..large.clone() }), SnapshotMethod::Template);
        let other = Facts { managed: false, ..large };
        assert_eq!(fastest(&other), SnapshotMethod::Template, "not ours to stop");
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        for (facts, word) in [
            (Facts { may_create: false, ..server() }, "CREATEDB"),
            (Facts { owns: false, ..server() }, "does not own"),
            (Facts { own_settings: 1, ..server() }, "settings or privileges"),
            (Facts { own_sessions: false, ..server() }, "databases cannot be swapped behind a pooler"),
        ] {
            let methods = facts.methods();
            let why = methods.refusal(SnapshotMethod::Template).unwrap();
            assert!(why.contains(word), "{why}");
            assert_eq!(methods.fastest, Err(format!("no template: {why}")));
        }
        let methods = server().methods();
        assert_eq!(methods.refusal(SnapshotMethod::Template), None);
        let why = methods.refusal(SnapshotMethod::Files).unwrap();
        assert!(why.contains("servers that kelvin manages"), "{why}");
        let unknown = Facts { version: 990_000, ..server() }.methods();
        assert!(unknown.refusal(SnapshotMethod::Dump).unwrap().contains("pg_dump"));
    }
}

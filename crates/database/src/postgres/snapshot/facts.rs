//! Facts that decide how a PostgreSQL database can be restored.

use std::path::PathBuf;

use crate::postgres::Config;
use crate::{Result, Session};

/// Facts about the database, before a method is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The server's version as a number, such as 150018.
    pub version: u32,
    /// The version as text, such as "15.18".
    pub version_text: String,
    /// Bytes of the database.
    pub bytes: u64,
    /// Whether the role may make databases.
    pub may_create: bool,
    /// Whether the role may do what the database's owner may.
    pub owns: bool,
    /// Settings, privileges, subscriptions and replication slots that belong to the database itself, which a copy by
    /// template does not take over.
    pub own_settings: u64,
    /// Where the data is, when it is on this host and may be known.
    pub data_directory: Option<PathBuf>,
    /// Whether files can be cloned where the snapshots of a managed server are: for its caller to try.
    pub clones: bool,
    /// Whether `pg_prewarm` is installed in it, or can be.
    pub prewarm: bool,
    /// Statements prepared once a connection, which a pooler in transaction mode does not have.
    pub own_sessions: bool,
}

impl Facts {
    /// Asks the server, in a session with the database itself.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn read(session: &mut dyn Session, config: &Config) -> Result<Self> {
        let rows = session.query(
            "SELECT current_setting('server_version_num')::bigint, \
             split_part(current_setting('server_version'), ' ', 1), pg_database_size(current_database()), \
             (SELECT (rolsuper OR rolcreatedb)::int::bigint FROM pg_roles WHERE rolname = current_user), \
             pg_has_role(datdba, 'USAGE')::int::bigint, \
             (SELECT count(*) FROM pg_db_role_setting WHERE setdatabase = d.oid) + (datacl IS NOT NULL)::int \
             + (datconnlimit <> -1)::int + datistemplate::int \
             + (SELECT count(*) FROM pg_subscription WHERE subdbid = d.oid) \
             + (SELECT count(*) FROM pg_replication_slots WHERE database = d.datname), \
             (SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_prewarm'), \
             coalesce((SELECT setting FROM pg_settings WHERE name = 'data_directory'), '') \
             FROM pg_database AS d WHERE datname = current_database()",
        )?;
        let yes = |column| rows.int(0, column).map(|number| number > 0);
        let data_directory = Some(PathBuf::from(rows.text(0, 7)?))
            .filter(|path| config.host.is_local() && path.is_absolute() && path.is_dir());
        Ok(Self {
            version: u32::try_from(rows.int(0, 0)?).unwrap_or(0),
            version_text: rows.text(0, 1)?.to_owned(),
            bytes: u64::try_from(rows.int(0, 2)?).unwrap_or(0),
            may_create: yes(3)?,
            owns: yes(4)?,
            own_settings: u64::try_from(rows.int(0, 5)?).unwrap_or(0),
            clones: false,
            data_directory,
            prewarm: yes(6)?,
            own_sessions: config.prepared_statements,
        })
    }
}

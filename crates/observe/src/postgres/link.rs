//! A PostgreSQL watcher's own connection.

use kelvin_database::postgres::MARK;
use kelvin_database::{Engine, Result, Rows, Session, Statement};

use super::{APPLICATION_NAME, sql};
use crate::server::link::{PATIENCE, bounded};

/// Which life of the server this is. A crash of one backend restarts all others and leaves the postmaster, so the
/// checkpointer counts too where it can be seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Life {
    /// Start of the postmaster, seconds since 1970.
    started: f64,
    checkpointer: Option<i64>,
}

/// What the role that we have may see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rights {
    /// Sessions of other roles and of the server itself (`pg_read_all_stats`).
    pub(super) all_stats: bool,
    /// Settings that only superusers see otherwise (`pg_read_all_settings`).
    pub(super) all_settings: bool,
}

/// The server of a connection.
#[derive(Debug, Clone)]
pub(super) struct Server {
    /// `server_version_num`.
    pub(super) version: i64,
    pub(super) rights: Rights,
    pub(super) life: Life,
}

/// A connection of the observers.
pub(super) type Link = crate::server::link::Link<Server>;

/// Opens a connection and asks the server about itself.
pub(super) fn connect(engine: &dyn Engine) -> Result<(Box<dyn Session>, Server)> {
    let mut session = bounded(engine)?;
    session.run(&format!(
        "SELECT {MARK} set_config('application_name', '{APPLICATION_NAME}', false), \
         set_config('statement_timeout', '{}', false), set_config('lock_timeout', '1000', false), \
         set_config('jit', 'off', false), set_config('max_parallel_workers_per_gather', '0', false), \
         set_config('default_transaction_isolation', 'read committed', false), \
         set_config('default_transaction_read_only', 'on', false)",
        PATIENCE.as_millis()
    ))?;
    // Only superusers may; others' queries are distinguished by their mark. Where it is not loaded the name would be taken
    // for a setting of one's own.
    let _not_allowed = session.query(&format!(
        "SELECT {MARK} set_config('pg_stat_statements.track', 'none', false) \
         WHERE current_setting('pg_stat_statements.max', true) IS NOT NULL"
    ));
    let rows = session.query(sql::WHO)?;
    let version = rows.int(0, 0)?;
    let rights = Rights { all_stats: rows.int(0, 1)? == 1, all_settings: rows.int(0, 2)? == 1 };
    let checkpointer = rows.optional(0, 4, Rows::int)?;
    let life = Life { started: rows.float(0, 3)?, checkpointer };
    Ok((session, Server { version, rights, life }))
}

/// A statement that is prepared once a connection.
#[derive(Debug, Default)]
pub(super) struct Once {
    prepared: Option<(u32, Statement)>,
    rows: Rows,
}

impl Once {
    /// The result of the last run.
    pub(super) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Runs it; `sql` makes its text of the version.
    pub(super) fn run(
        &mut self,
        link: &mut Link,
        sql: impl Fn(i64) -> String,
    ) -> std::result::Result<&Rows, String> {
        link.connect_again()?;
        let generation = link.generation;
        let Self { prepared, rows } = self;
        link.with(|session, server| {
            let statement = match *prepared {
                Some((made, statement)) if made == generation => statement,
                _ => session.prepare(&sql(server.version))?,
            };
            *prepared = Some((generation, statement));
            session.execute(statement, &[], rows)
        })?;
        Ok(rows)
    }
}

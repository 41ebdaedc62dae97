//! A watcher's own connection: bounded in time, made again after a loss.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kelvin_database::{Engine, Result, Rows, Session, Statement};

use super::{APPLICATION_NAME, sql};

/// What a statement of ours may take before the server cancels it. The connection's own limit is longer, so that
/// the server has the first word.
const PATIENCE: Duration = Duration::from_secs(4);

/// From one attempt to connect again to the next.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(500);

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

/// A connection of the observers.
pub(super) struct Link {
    engine: Arc<dyn Engine>,
    session: Option<Box<dyn Session>>,
    /// Grows with each connection: statements prepared before are gone.
    pub(super) generation: u32,
    /// `server_version_num`.
    pub(super) version: i64,
    pub(super) rights: Rights,
    pub(super) life: Life,
    tried: Instant,
}

impl Link {
    /// Connects.
    pub(super) fn open(engine: &Arc<dyn Engine>) -> Result<Self> {
        let (session, version, rights, life) = connect(engine.as_ref())?;
        Ok(Self {
            engine: Arc::clone(engine),
            session: Some(session),
            generation: 1,
            version,
            rights,
            life,
            tried: Instant::now(),
        })
    }

    /// Whether there is a connection.
    pub(super) fn is_up(&self) -> bool {
        self.session.is_some()
    }

    /// Does something with the connection, which is made again where it was lost. A connection that broke is dropped.
    pub(super) fn with<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Session, i64) -> Result<T>,
    ) -> std::result::Result<T, String> {
        self.connect_again()?;
        let Some(session) = self.session.as_deref_mut() else { return Err("it is not connected".into()) };
        let result = work(session, self.version);
        let broken = session.is_broken();
        if session.in_transaction() && !broken {
            // An error within it; the next statement must not meet it. A failure shows at the next use.
            let _later = session.run("ROLLBACK");
        }
        if broken {
            self.session = None;
            self.tried = Instant::now();
        }
        result.map_err(|error| error.to_string())
    }

    fn connect_again(&mut self) -> std::result::Result<(), String> {
        if self.session.is_some() {
            return Ok(());
        }
        if self.tried.elapsed() < BETWEEN_ATTEMPTS {
            return Err("the connection was lost".into());
        }
        self.tried = Instant::now();
        let (session, version, rights, life) =
            connect(self.engine.as_ref()).map_err(|error| format!("connecting again: {error}"))?;
        self.session = Some(session);
        self.generation += 1;
        (self.version, self.rights, self.life) = (version, rights, life);
        Ok(())
    }
}

fn connect(engine: &dyn Engine) -> Result<(Box<dyn Session>, i64, Rights, Life)> {
    let mut session = engine.connect()?;
    session.set_timeout(Some(PATIENCE + Duration::from_secs(1)))?;
    session.run(&format!(
        "SET application_name = '{APPLICATION_NAME}'; SET statement_timeout = {}; SET lock_timeout = 1000; \
         SET jit = off; SET max_parallel_workers_per_gather = 0; SET default_transaction_isolation = 'read committed'",
        PATIENCE.as_millis()
    ))?;
    // Only superusers may; others' looks are told apart by their comment. Where it is not loaded the name would be taken
    // for a setting of one's own.
    let _not_allowed = session.query(
        "/* kelvin observer */ SELECT set_config('pg_stat_statements.track', 'none', false) \
         WHERE current_setting('pg_stat_statements.max', true) IS NOT NULL",
    );
    let rows = session.query(sql::WHO)?;
    let version = rows.int(0, 0)?;
    let rights = Rights { all_stats: rows.int(0, 1)? == 1, all_settings: rows.int(0, 2)? == 1 };
    let checkpointer = if rows.is_null(0, 4)? { None } else { Some(rows.int(0, 4)?) };
    Ok((session, version, rights, Life { started: rows.float(0, 3)?, checkpointer }))
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
        link.with(|session, version| {
            let statement = match *prepared {
                Some((made, statement)) if made == generation => statement,
                _ => session.prepare(&sql(version))?,
            };
            *prepared = Some((generation, statement));
            session.execute(statement, &[], rows)
        })?;
        Ok(rows)
    }
}

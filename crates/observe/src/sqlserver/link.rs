//! A watcher's own connection to SQL Server.

use kelvin_database::{Engine, Error, Result, Rows, Session};

use super::sql;
use crate::server::link::bounded;

/// The version with waits by session.
const FIRST: u32 = 13;
/// The version that says of a page which table it is of.
const PAGES: u32 = 15;
/// `SERVERPROPERTY('EngineEdition')` of Azure SQL Database.
const AZURE_DATABASE: i64 = 5;
/// Those of the services that are always of the newest version, whatever number they give.
const SERVICES: [i64; 4] = [AZURE_DATABASE, 8, 9, 12];

/// What a connection's server is and shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    /// "16.0.4135.4".
    pub(super) version: String,
    /// Whether it is a single database of Azure, whose views are of that database.
    pub(super) azure_database: bool,
    /// When it was started, as the server writes it; empty where that may not be seen.
    pub(super) started: String,
    /// Our own connection's number, and what it calls itself.
    pub(super) connection: i64,
    pub(super) program: String,
    /// The number of the database.
    pub(super) database: i64,
    /// Whether Query Store is on in the database.
    pub(super) query_store: bool,
    /// The views that it has.
    views: Vec<String>,
}

impl Server {
    /// Whether there is a view of this name.
    pub(super) fn has(&self, view: &str) -> bool {
        self.views.iter().any(|known| known == view)
    }

    /// Why a view is not there.
    pub(super) fn why_not(&self, view: &str) -> String {
        let since = match view {
            sql::PAGE_INFO => "; SQL Server 2019 and later have it",
            sql::SPILLS => "; SQL Server 2016 SP2, 2017 CU3 and later have it",
            _ => "",
        };
        format!("{} does not have sys.{view}{since}", self.product())
    }

    /// Whether it is still the life of the server that was seen before.
    pub(super) fn is_same_life(&self, other: &Self) -> bool {
        self.started == other.started
    }

    /// What people call it.
    pub(super) fn product(&self) -> String {
        let name = if self.azure_database { "Azure SQL Database" } else { "SQL Server" };
        format!("{name} {}", self.version)
    }
}

/// A connection of the observers.
pub(super) type Link = crate::server::link::Link<Server>;

/// Opens a connection and asks the server about itself.
pub(super) fn connect(engine: &dyn Engine) -> Result<(Box<dyn Session>, Server)> {
    let mut session = bounded(engine)?;
    let rows = session.query(sql::SERVER)?;
    let version = rows.text(0, 1)?.to_owned();
    let edition = rows.int(0, 2)?;
    if rows.int(0, 3)? == 1 {
        return Err(Error::usage("Babelfish has none of SQL Server's views of waits, files and statements")
            .with_help("observe it through its PostgreSQL port, with --target postgres://…"));
    }
    let major: u32 = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < FIRST && !SERVICES.contains(&edition) {
        return Err(Error::usage(format!("SQL Server {version} does not count waits by session"))
            .with_help("SQL Server 2016 and later can be observed"));
    }
    let azure_database = edition == AZURE_DATABASE;
    if rows.int(0, 6)? != 1 {
        let permission = if azure_database { "VIEW DATABASE STATE" } else { "VIEW SERVER STATE" };
        let newer = "; since SQL Server 2022, VIEW SERVER PERFORMANCE STATE is enough";
        return Err(Error::usage(
            "the login lacks the permission to observe the server: no waits, files, locks, counters or \
                statements",
        )
        .with_help(format!("GRANT {permission} TO the login{}", if azure_database { "" } else { newer })));
    }
    let mut server = Server {
        version,
        azure_database,
        started: String::new(),
        connection: rows.int(0, 0)?,
        program: rows.optional(0, 4, Rows::text)?.unwrap_or_default().to_owned(),
        database: rows.int(0, 5)?,
        query_store: rows.optional(0, 7, Rows::int)? == Some(1),
        views: Vec::new(),
    };
    // Reading the catalogue waits for nobody who changes it, and of two who wait for each other we give way.
    session.run(
        "SET LOCK_TIMEOUT 1000 SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED SET DEADLOCK_PRIORITY LOW",
    )?;
    server.views = session.query(&sql::views())?.texts(0)?;
    if major < PAGES && !SERVICES.contains(&edition) {
        server.views.retain(|view| view != sql::PAGE_INFO);
    }
    if server.has("dm_os_sys_info") {
        session.query(sql::STARTED)?.text(0, 0)?.clone_into(&mut server.started);
    }
    Ok((session, server))
}

#[cfg(test)]
pub(super) fn example() -> Server {
    Server {
        version: "16.0.4135.4".into(),
        azure_database: false,
        started: "2026-11-23T09:00:00".into(),
        connection: 51,
        program: "kelvin 1f9a04c7".into(),
        database: 5,
        query_store: false,
        views: sql::VIEWS.iter().chain(&[sql::SPILLS]).map(|view| (*view).to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_view_is_reported_with_the_version_that_has_it() {
        let old = Server { version: "14.0.1000.169".into(), views: Vec::new(), ..example() };
        assert!(example().has("dm_os_wait_stats") && !old.has("dm_os_wait_stats"));
        assert!(old.why_not(sql::PAGE_INFO).contains("2019") && !old.why_not("dm_os_tasks").contains("2019"));
        assert!(!example().is_same_life(&Server { started: "2026-11-23T10:00:00".into(), ..example() }));
    }
}

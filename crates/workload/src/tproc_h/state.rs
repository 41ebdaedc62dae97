//! The content of a database: the two tables that describe a build, or what is known about tables that others
//! created.

use kelvin_database::{Error, Result, Session};

use super::Scale;
use super::dialect::Dialect;
use super::schema::{Name, TABLES, Table, table};

/// Describes the build: one row.
pub(crate) const BUILD: &str = "kelvin_tproc_h";

/// The parts that are loaded, one row each.
pub(crate) const LOADED: &str = "kelvin_tproc_h_loaded";

/// The statements that start a build, before its tables are created.
pub(crate) fn begin(scale: Scale) -> [String; 3] {
    [
        format!(
            "create table {BUILD} (scale varchar(20) not null, complete integer not null, \
             refreshes integer not null)"
        ),
        format!(
            "create table {LOADED} (name varchar(20) not null, part integer not null, loaded bigint not null, \
             primary key (name, part))"
        ),
        format!("insert into {BUILD} (scale, complete, refreshes) values ('{scale}', 0, 0)"),
    ]
}

/// The statement that marks a build as complete.
pub(crate) fn complete() -> String {
    format!("update {BUILD} set complete = 1")
}

/// The statement that records a loaded part and its number of rows.
pub(crate) fn loaded(table: &Table, part: i32, rows: u64) -> String {
    format!("insert into {LOADED} (name, part, loaded) values ('{}', {part}, {rows})", table.name)
}

/// The statement that records the number of refresh functions that have inserted rows.
pub(crate) fn refreshed(refreshes: u32) -> String {
    format!("update {BUILD} set refreshes = {refreshes}")
}

/// The content of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) scale: Scale,
    pub(crate) complete: bool,
    /// Number of refresh functions that have inserted rows.
    pub(crate) refreshes: u32,
    /// Whether Kelvin built the tables. Other tables are queried, but never refreshed or dropped.
    pub(crate) is_ours: bool,
    /// Tables that do not exist.
    pub(crate) missing: Vec<&'static str>,
    /// Whether the tables' names are in upper case, like HammerDB's, on a server that distinguishes case.
    pub(crate) is_upper_case: bool,
}

impl State {
    /// Reads the state; `None` if the database has none of the tables, an error if it has some of them and no
    /// description.
    pub(crate) fn read(session: &mut dyn Session, dialect: &dyn Dialect) -> Result<Option<Self>> {
        let present = present_tables(session, dialect)?;
        let has = |name: &str| present.iter().any(|present| present == name);
        let missing: Vec<_> = TABLES.iter().map(|table| table.name).filter(|name| !has(name)).collect();
        if has(BUILD) {
            return Self::read_ours(session, missing).map(Some);
        }
        if missing.len() == TABLES.len() && present.is_empty() {
            return Ok(None);
        }
        let is_upper_case = TABLES.iter().all(|table| has(&table.name.to_uppercase()));
        if missing.is_empty() || is_upper_case && missing.len() == TABLES.len() {
            return Self::of_others(session, is_upper_case).map(Some);
        }
        Err(Error::usage(format!(
            "the database already has tables that Kelvin did not create: {}",
            present.join(", ")
        ))
        .with_help("remove them or use another database"))
    }

    fn read_ours(session: &mut dyn Session, missing: Vec<&'static str>) -> Result<Self> {
        let rows = session.query(&format!("select scale, complete, refreshes from {BUILD}"))?;
        let damaged = |why: String| {
            Error::usage(format!("table {BUILD} {why}")).with_help("drop the data and rebuild them")
        };
        if rows.len() != 1 {
            return Err(damaged(format!("has {} rows instead of one", rows.len())));
        }
        Ok(Self {
            scale: rows.text(0, 0)?.parse().map_err(damaged)?,
            complete: rows.int(0, 1)? == 1,
            refreshes: u32::try_from(rows.int(0, 2)?).unwrap_or(u32::MAX),
            is_ours: true,
            missing,
            is_upper_case: false,
        })
    }

    /// The state of complete tables that HammerDB loaded, or that were loaded from dbgen's files. The scale
    /// factor follows from the number of suppliers.
    fn of_others(session: &mut dyn Session, is_upper_case: bool) -> Result<Self> {
        let count = "select count(*) from supplier".to_owned();
        let count = if is_upper_case { in_upper_case(&count) } else { count };
        let suppliers = session.query(&count)?.int(0, 0)?;
        let scale = suppliers as f64 / table(Name::Supplier).rows(1.0) as f64;
        let scale = Scale::try_from(scale).map_err(|why| {
            Error::usage(format!("the tables are not TPROC-H's: {suppliers} suppliers ({why})"))
        })?;
        let missing = Vec::new();
        Ok(Self { scale, complete: true, refreshes: 0, is_ours: false, missing, is_upper_case })
    }

    /// A statement on the tables, with their names in the right case.
    pub(crate) fn statement(&self, sql: &str) -> String {
        if self.is_upper_case { in_upper_case(sql) } else { sql.to_owned() }
    }

    /// Refuses tables with another scale factor.
    pub(crate) fn must_match(&self, scale: Option<Scale>) -> Result<()> {
        let Some(asked) = scale.filter(|asked| *asked != self.scale) else { return Ok(()) };
        Err(Error::usage(format!("the database has scale factor {}, and {asked} was asked for", self.scale))
            .with_help("leave out --scale, or drop the data: kelvin drop tproc-h"))
    }

    /// Refuses complete data if tables are missing.
    pub(crate) fn must_be_whole(&self) -> Result<()> {
        if self.missing.is_empty() || !self.complete {
            return Ok(());
        }
        Err(Error::usage(format!("tables are missing: {}", self.missing.join(", ")))
            .with_help("drop the data and rebuild them"))
    }
}

/// The names of the tables that exist.
pub(crate) fn present_tables(session: &mut dyn Session, dialect: &dyn Dialect) -> Result<Vec<String>> {
    let names = TABLES.iter().map(|table| table.name).chain([BUILD, LOADED]);
    let mut names: Vec<_> = names.map(|name| format!("'{name}'")).collect();
    if dialect.has_case_sensitive_tables() {
        names.extend(TABLES.iter().map(|table| format!("'{}'", table.name.to_uppercase())));
    }
    let names = names.join(", ");
    session.query(&dialect.common()?.present_tables(&names))?.texts(0)
}

/// The loaded parts, by table and number.
pub(crate) fn loaded_parts(session: &mut dyn Session) -> Result<Vec<(String, i64)>> {
    let rows = session.query(&format!("select name, part from {LOADED}"))?;
    (0..rows.len()).map(|row| Ok((rows.text(row, 0)?.to_owned(), rows.int(row, 1)?))).collect()
}

/// Number of rows that the load has put into a table; 0 if no parts are recorded.
pub(crate) fn loaded_rows(session: &mut dyn Session, table: &Table) -> Result<i64> {
    let rows = session.query(&format!("select sum(loaded) from {LOADED} where name = '{}'", table.name))?;
    rows.optional(0, 0, kelvin_database::Rows::int).map(Option::unwrap_or_default)
}

/// Converts a statement, except for its string literals, to upper case.
fn in_upper_case(sql: &str) -> String {
    let part = |(at, part): (usize, &str)| if at % 2 == 0 { part.to_uppercase() } else { part.to_owned() };
    sql.split('\'').enumerate().map(part).collect::<Vec<_>>().join("'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_keep_their_letters() {
        let upper =
            in_upper_case("select n_name from nation where n_name = 'France' or n_name like '%x' and 1 = 1");
        assert_eq!(upper, "SELECT N_NAME FROM NATION WHERE N_NAME = 'France' OR N_NAME LIKE '%x' AND 1 = 1");
        assert_eq!(in_upper_case("'a' = b"), "'a' = B");
    }
}

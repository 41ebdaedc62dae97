//! The four tables on SQL Server: the same columns and rows; keys are created with the tables.

use kelvin_database::{Engine, Error, Result, Session};

use super::history::{Counter, count_all};
use super::initialize::{
    SMALLEST_INT8_SCALE, TABLES, ToMake, check_stop, count, drop_tables, load_by_chunks, to_make,
};
use super::options::Options;
use super::tables::{Shape, TableState, Tables};
use crate::{BuildProgress, Stop};

/// The tables on SQL Server.
pub(super) struct SqlServer;

/// A table that exists while a build is running or if it was left unfinished.
const UNFINISHED: &str = "kelvin_pgbench_unfinished";

impl Tables for SqlServer {
    fn must_know(&self, options: &Options) -> Result<()> {
        for (asked, what) in [
            (options.fillfactor != 100, "fill factor"),
            (options.unlogged_tables, "unlogged tables"),
            (options.partitions > 0, "partitions"),
        ] {
            if asked {
                return Err(Error::usage(format!("pgbench on SQL Server does not support {what}"))
                    .with_help("leave out the option, or use --target postgres"));
            }
        }
        Ok(())
    }

    fn inspect(&self, session: &mut dyn Session) -> Result<TableState> {
        let rows = session.query(&format!(
            "select t.name, case when k.object_id is null then 0 else 1 end from sys.tables t \
             left join sys.indexes k on k.object_id = t.object_id and k.is_primary_key = 1 \
             where schema_name(t.schema_id) = schema_name() and t.name in ('{UNFINISHED}', '{}') order by 1",
            TABLES.join("', '")
        ))?;
        let present = rows.texts(0)?;
        let is_there = |table: &str| present.iter().any(|there| there == table);
        let missing: Vec<&str> = TABLES.into_iter().filter(|table| !is_there(table)).collect();
        if missing.len() == TABLES.len() {
            return Ok(TableState::Nothing);
        }
        if is_there(UNFINISHED) {
            return Ok(TableState::Unfinished);
        }
        if !missing.is_empty() {
            return Ok(TableState::Incomplete(format!("missing tables: {}", missing.join(", "))));
        }
        let mut without_key = Vec::new();
        for (row, table) in present.iter().enumerate() {
            if table != "pgbench_history" && rows.int(row, 1)? == 0 {
                without_key.push(table.as_str());
            }
        }
        if !without_key.is_empty() {
            return Ok(TableState::Incomplete(format!("missing primary keys: {}", without_key.join(", "))));
        }
        count(session)
    }

    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()> {
        self.must_know(options)?;
        let mut session = engine.connect()?;
        let session = session.as_mut();
        match to_make(self, session, options)? {
            ToMake::Nothing => return Ok(()),
            ToMake::Anew => session.run(&drop_tables())?,
            ToMake::All => {}
        }
        session.run(&format!(
            "if object_id('{UNFINISHED}') is null create table {UNFINISHED} (n int primary key)"
        ))?;
        create(options).iter().try_for_each(|table| session.run(table))?;
        load_by_chunks(session, options, progress, stop)?;
        check_stop(stop)?;
        session.run("exec sp_updatestats")?;
        session.run(&format!("drop table {UNFINISHED}"))
    }

    fn shape(&self, session: &mut dyn Session) -> Result<Option<Shape>> {
        let TableState::Complete { scale } = self.inspect(session)? else { return Ok(None) };
        let Ok(scale) = u32::try_from(scale) else { return Ok(None) };
        let rows = session.query(&format!(
            "select count(*) from sys.foreign_keys where object_name(parent_object_id) in ('{}')",
            TABLES.join("', '")
        ))?;
        let foreign_keys = rows.int(0, 0)? > 0;
        Ok(Some(Shape { scale, fillfactor: 100, foreign_keys, ..Shape::default() }))
    }

    /// The server's ghost cleanup task reclaims deleted rows.
    fn vacuum(&self, _session: &mut dyn Session, _all: bool) -> Result<bool> {
        Ok(false)
    }

    fn history(&self, _counter: &Counter, session: &mut dyn Session) -> Result<u64> {
        count_all(session)
    }

    fn cache(&self, session: &mut dyn Session) -> Result<(&'static str, Option<u64>)> {
        // The configured limit; without one the size of the cache is unknown.
        const UNLIMITED: i64 = i32::MAX as i64;
        let rows = session.query(
            "select cast(value_in_use as bigint) from sys.configurations where name = 'max server memory (MB)'",
        )?;
        let limit = if rows.is_empty() { UNLIMITED } else { rows.int(0, 0)? };
        let bytes = u64::try_from(limit).ok().filter(|_| limit < UNLIMITED).map(|limit| limit << 20);
        Ok(("max server memory", bytes))
    }
}

fn create(options: &Options) -> [String; 4] {
    let aid = if options.scale() >= SMALLEST_INT8_SCALE { "bigint" } else { "int" };
    [
        format!("history (tid int, bid int, aid {aid}, delta int, mtime datetime2(6), filler char(22))"),
        "tellers (tid int not null primary key, bid int, tbalance int, filler char(84))".to_owned(),
        format!("accounts (aid {aid} not null primary key, bid int, abalance int, filler char(84))"),
        "branches (bid int not null primary key, bbalance int, filler char(88))".to_owned(),
    ]
    .map(|table| format!("create table pgbench_{table}"))
}

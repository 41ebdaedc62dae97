//! The four tables on MySQL and MariaDB: the same columns and rows; keys are created with the tables.

use kelvin_database::{Engine, Error, Result, Session};

use super::history::{Counter, count_all};
use super::initialize::{
    MARK, SMALLEST_INT8_SCALE, TABLES, ToMake, check_stop, count, drop_tables, load_by_chunks, to_make,
};
use super::options::Options;
use super::tables::{Shape, TableState, Tables};
use crate::{BuildProgress, Stop};

/// The tables on MySQL and MariaDB.
pub(super) struct Mysql;

impl Tables for Mysql {
    fn must_know(&self, options: &Options) -> Result<()> {
        for (asked, what) in [
            (options.fillfactor != 100, "fill factor"),
            (options.unlogged_tables, "unlogged tables"),
            (options.partitions > 0, "partitions"),
        ] {
            if asked {
                return Err(Error::usage(format!("pgbench on MySQL and MariaDB does not support {what}"))
                    .with_help("leave out the option, or use --target postgres"));
            }
        }
        Ok(())
    }

    fn inspect(&self, session: &mut dyn Session) -> Result<TableState> {
        let rows = session.query(&format!(
            "select table_name, case when table_comment = '{MARK}' then 1 else 0 end from information_schema.tables \
             where table_schema = database() and table_name in ('{}') order by 1",
            TABLES.join("', '")
        ))?;
        let present = rows.texts(0)?;
        if present.is_empty() {
            return Ok(TableState::Nothing);
        }
        let marked = (0..rows.len()).map(|row| rows.int(row, 1)).sum::<Result<i64>>()?;
        if usize::try_from(marked).is_ok_and(|marked| marked == present.len()) {
            return Ok(TableState::Unfinished);
        }
        let missing: Vec<&str> =
            TABLES.into_iter().filter(|table| !present.iter().any(|there| there == table)).collect();
        if !missing.is_empty() {
            return Ok(TableState::Incomplete(format!("missing tables: {}", missing.join(", "))));
        }
        let keyed = session.query(
            "select table_name from information_schema.table_constraints where table_schema = database() \
             and constraint_type = 'PRIMARY KEY' order by 1",
        )?;
        let keyed = keyed.texts(0)?;
        let without_key: Vec<&str> = ["pgbench_accounts", "pgbench_branches", "pgbench_tellers"]
            .into_iter()
            .filter(|table| !keyed.iter().any(|there| there == table))
            .collect();
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
        engine.capabilities().need_session_state("building the data")?;
        create(options).iter().try_for_each(|table| session.run(table))?;
        load_by_chunks(session, options, progress, stop)?;
        for (done, table) in TABLES.iter().enumerate() {
            check_stop(stop)?;
            progress.update("tables analyzed", done as u64, TABLES.len() as u64, 0);
            session.query(&format!("analyze table {table}"))?;
        }
        // One table after another. If this is interrupted, all tables exist but not all are marked, so they
        // count as complete.
        TABLES.iter().try_for_each(|table| session.run(&format!("alter table {table} comment = ''")))
    }

    fn shape(&self, session: &mut dyn Session) -> Result<Option<Shape>> {
        let TableState::Complete { scale } = self.inspect(session)? else { return Ok(None) };
        let rows = session.query(&format!(
            "select count(*) from information_schema.table_constraints where table_schema = database() \
             and constraint_type = 'FOREIGN KEY' and table_name in ('{}')",
            TABLES.join("', '")
        ))?;
        let Ok(scale) = u32::try_from(scale) else { return Ok(None) };
        let foreign_keys = rows.int(0, 0)? > 0;
        Ok(Some(Shape { scale, fillfactor: 100, foreign_keys, unlogged_tables: false, ..Shape::default() }))
    }

    /// InnoDB purges automatically.
    fn vacuum(&self, _session: &mut dyn Session, _all: bool) -> Result<bool> {
        Ok(false)
    }

    fn history(&self, _counter: &Counter, session: &mut dyn Session) -> Result<u64> {
        count_all(session)
    }

    fn cache(&self, session: &mut dyn Session) -> Result<(&'static str, Option<u64>)> {
        let rows = session.query("select @@innodb_buffer_pool_size")?;
        Ok(("innodb_buffer_pool_size", u64::try_from(rows.int(0, 0)?).ok()))
    }
}

fn create(options: &Options) -> [String; 4] {
    let aid = if options.scale() >= SMALLEST_INT8_SCALE { "bigint" } else { "int" };
    [
        ("history", format!("tid int, bid int, aid {aid}, delta int, mtime datetime, filler char(22)")),
        ("tellers", "tid int not null primary key, bid int, tbalance int, filler char(84)".to_owned()),
        ("accounts", format!("aid {aid} not null primary key, bid int, abalance int, filler char(84)")),
        ("branches", "bid int not null primary key, bbalance int, filler char(88)".to_owned()),
    ]
    .map(|(table, columns)| {
        format!("create table pgbench_{table} ({columns}) engine = InnoDB comment = '{MARK}'")
    })
}

//! An engine that is unknown to the database crate runs TPROC-C with a separate dialect; no code mistakes
//! it for a known engine. SQLite stores its rows. Its changes return no values, its DDL is not transactional,
//! and it has no batches.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::{
    BulkLoad, BulkTable, Cancel, Capabilities, Engine, EngineKind, Error, Fingerprint, Result, Rows,
    ServerCounters, Session, Statement, TransactionControl, Value,
};
use kelvin_measure::{Clock, Counters};

use super::Dialect;
use crate::progress::Quiet;
use crate::tproc_c::calls::sql::for_update;
use crate::tproc_c::calls::{Driven, Execute, OneByOne};
use crate::tproc_c::load;
use crate::tproc_c::schema::metadata::COMPLETE;
use crate::tproc_c::schema::{ColumnKind, TABLES, Table};
use crate::tproc_c::{Calls, Options, Profile, TprocC};
use crate::{BuildProgress, Stop, UserRange, Workload};

const KIND: EngineKind = EngineKind::Other("Abacus");

struct Abacus {
    rows: SqliteEngine,
    /// Statements that succeed before the "server" fails.
    left: AtomicUsize,
}

struct AbacusSession(Box<dyn Session>);

impl Engine for Abacus {
    fn kind(&self) -> EngineKind {
        KIND
    }

    fn describe(&self) -> String {
        "abacus".into()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { session_state: true, ..Capabilities::default() }
    }

    fn connect(&self) -> Result<Box<dyn Session>> {
        if self.left.load(Ordering::Relaxed) == 0 {
            return Err(Error::connection_lost("no more connections"));
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
        Ok(Box::new(AbacusSession(self.rows.connect()?)))
    }

    fn fingerprint(&self, _session: &mut dyn Session) -> Result<Fingerprint> {
        Ok(Fingerprint::default())
    }

    fn counters(&self, _session: &mut dyn Session) -> Result<Option<ServerCounters>> {
        Ok(None)
    }

    fn size(&self, _session: &mut dyn Session) -> Result<u64> {
        Ok(0)
    }

    fn data_directory(&self, _session: &mut dyn Session) -> Option<std::path::PathBuf> {
        None
    }

    fn checkpoint(&self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }
}

/// Refuses statements in the dialects of known engines, which this server does not understand.
fn must_understand(sql: &str) {
    for word in ["RETURNING", "pragma", "sqlite_", "pg_", "without rowid"] {
        assert!(!sql.contains(word), "{word} in {sql}");
    }
}

impl Session for AbacusSession {
    fn engine(&self) -> EngineKind {
        KIND
    }

    fn control(&mut self, control: TransactionControl) -> Result<()> {
        self.0.control(control)
    }

    fn queue_control(&mut self, _control: TransactionControl) -> Result<()> {
        unreachable!("it has no batches")
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement> {
        must_understand(sql);
        self.0.prepare(sql)
    }

    fn execute(&mut self, statement: Statement, params: &[Value<'_>], rows: &mut Rows) -> Result<()> {
        self.0.execute(statement, params, rows)
    }

    fn queue(&mut self, _statement: Statement, _params: &[Value<'_>]) -> Result<()> {
        unreachable!("it has no batches")
    }

    fn flush(&mut self, _results: &mut Vec<Rows>) -> Result<()> {
        unreachable!("it has no batches")
    }

    fn run(&mut self, sql: &str) -> Result<()> {
        must_understand(sql);
        let makes = sql.starts_with("create table") || sql.starts_with("drop table");
        assert!(!(makes && self.0.in_transaction()), "commits in silence: {sql}");
        self.0.run(sql)
    }

    fn query(&mut self, sql: &str) -> Result<Rows> {
        must_understand(sql);
        self.0.query(&sql.replace("the_tables", "sqlite_master"))
    }

    fn bulk_load<'a>(&'a mut self, table: &'a BulkTable<'a>) -> Result<Box<dyn BulkLoad + 'a>> {
        self.0.bulk_load(table)
    }

    fn in_transaction(&self) -> bool {
        self.0.in_transaction()
    }

    fn is_broken(&self) -> bool {
        self.0.is_broken()
    }

    fn set_timeout(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.0.set_timeout(timeout)
    }

    fn cancel(&self) -> Box<dyn Cancel> {
        self.0.cancel()
    }
}

#[derive(Debug)]
struct AbacusSql;

impl Dialect for AbacusSql {
    fn create_table(&self, table: &Table, _options: &Options) -> Vec<String> {
        let kind = |kind| match kind {
            ColumnKind::VarChar(_) | ColumnKind::Char(_) => "text",
            _ => "integer",
        };
        let columns: Vec<String> =
            table.columns.iter().map(|column| format!("{} {}", column.name, kind(column.kind))).collect();
        vec![format!("create table {} ({})", table.name, columns.join(", "))]
    }

    fn present_tables(&self, names: &str) -> String {
        format!("select name from the_tables where name in ({names}) order by 1")
    }

    fn indexes(&self, table: &Table, _profile: Profile) -> Vec<(String, &'static [&'static str])> {
        let key = (table.key_name(), table.key(false));
        std::iter::once(key).filter(|(_, columns)| !columns.is_empty()).collect()
    }

    fn has_index(&self, session: &mut dyn Session, _table: &str, index: &(String, &[&str])) -> Result<bool> {
        let found = session.query(&format!("select count(*) from the_tables where name = '{}'", index.0))?;
        Ok(found.int(0, 0)? == 1)
    }

    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()> {
        let mut session = engine.connect()?;
        if let Some(missing) = load::prepare(engine, session.as_mut(), self, options)? {
            let parts = (progress, stop);
            missing.load(engine, (1, &|_| Ok(())), options.seed_to_build(), parts)?;
            for table in &TABLES {
                for (name, columns) in self.indexes(table, options.profile) {
                    session.run(&format!(
                        "create index {name} on {} ({})",
                        table.name,
                        columns.join(", ")
                    ))?;
                }
            }
            session.run(COMPLETE)?;
        }
        Ok(())
    }

    fn executor(&self, _driven: Driven, _profile: Profile, _warehouses: u32) -> Box<dyn Execute> {
        Box::new(OneByOne::new(|| for_update("")))
    }

    fn check_settings(&self) -> &'static str {
        "select 1"
    }

    /// SQLite, which executes the query, would otherwise take minutes.
    fn condition_source(&self, number: u32) -> Option<&'static str> {
        super::sqlite::Sqlite.condition_source(number)
    }

    fn money(&self, cents: i64) -> String {
        cents.to_string()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as `of_engine`")]
fn dialect_of(kind: EngineKind) -> Result<&'static dyn Dialect> {
    assert_eq!(kind, KIND);
    Ok(&AbacusSql)
}

#[test]
fn an_engine_that_nobody_knows_runs_tproc_c() {
    let directory = tempfile::tempdir().unwrap();
    let rows = SqliteEngine::open(directory.path().join("abacus.db")).unwrap();
    let engine = Abacus { rows, left: AtomicUsize::new(2) };
    let options = Options { warehouses: Some(1), data_seed: Some(7), ..Options::default() };
    let refused = TprocC::new(options.clone()).unwrap().check_engine(&engine).unwrap_err();
    assert!(refused.message().contains("no dialect for Abacus"), "{refused}");
    let mut workload = TprocC { dialect_of, ..TprocC::new(options).unwrap() };
    workload.check_engine(&engine).unwrap();

    // The build is interrupted once the tables are described; the next build resumes it.
    let (quiet, stop) = (Quiet, Stop::default());
    workload.build(&engine, &quiet, &stop).unwrap_err();
    engine.left.store(usize::MAX, Ordering::Relaxed);
    engine.connect().unwrap().run("drop table history").unwrap();
    assert!(!workload.is_built(&engine).unwrap());
    workload.build(&engine, &quiet, &stop).unwrap();
    assert!(workload.is_built(&engine).unwrap());
    assert!(workload.is_fresh(engine.connect().unwrap().as_mut()).unwrap());

    assert_eq!(workload.inspect(&engine).unwrap(), Vec::<String>::new());
    assert_eq!(workload.driven.unwrap().calls, Calls::Statements);
    let mut session = engine.connect().unwrap();
    let before = workload.headline_count(session.as_mut()).unwrap();
    let counters = Counters::new(workload.counters().len());
    let mut orders = 0;
    let mut user = workload.users(UserRange::all(1), 3, &Clock::real()).remove(0);
    user.prepare(session.as_mut()).unwrap();
    for _ in 0..400 {
        let kind = user.next().kind;
        let outcome = user.execute(session.as_mut()).unwrap();
        user.count(&counters);
        orders += u64::from(kind == 0 && outcome == kelvin_measure::TransactionOutcome::Committed);
    }
    assert!(orders > 100);
    assert_eq!(workload.headline_count(session.as_mut()).unwrap() - before, orders);
    assert!(!workload.is_fresh(session.as_mut()).unwrap());
    let mut conditions = Vec::new();
    workload.check(&engine, &Quiet, &stop, &mut |line| conditions.push(line)).unwrap();
    assert!(conditions.len() == 12 && conditions.iter().all(|line| line.holds), "{conditions:?}");
    workload.drop_data(&engine).unwrap();
    assert!(!workload.is_built(&engine).unwrap());
}

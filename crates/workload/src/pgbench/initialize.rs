//! Creates and loads the four tables on PostgreSQL like pgbench; the parts shared with other engines.

use kelvin_database::{BulkLoad, BulkTable, ColumnType, Engine, Error, ErrorClass, Result, Session, Value};

use super::history::Counter;
use super::options::{Options, PartitionMethod};
use super::tables::{Shape, TableState, Tables};
use crate::{BuildProgress, Stop};

/// The tables on PostgreSQL.
pub(super) struct Postgres;

impl Tables for Postgres {
    fn must_know(&self, _options: &Options) -> Result<()> {
        Ok(())
    }

    fn inspect(&self, session: &mut dyn Session) -> Result<TableState> {
        inspect(session)
    }

    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()> {
        build(self, engine, options, progress, stop)
    }

    fn shape(&self, session: &mut dyn Session) -> Result<Option<Shape>> {
        shape(session)
    }

    /// As pgbench does before it runs a built-in script. The history is not emptied: the balances are checked
    /// against it.
    fn vacuum(&self, session: &mut dyn Session, all: bool) -> Result<bool> {
        if all {
            session.run("vacuum analyze pgbench_accounts")?;
            session.run("vacuum analyze pgbench_history")?;
        }
        for table in ["pgbench_branches", "pgbench_tellers"] {
            session.run(&format!("vacuum {table}"))?;
        }
        Ok(true)
    }

    fn history(&self, counter: &Counter, session: &mut dyn Session) -> Result<u64> {
        counter.count(session)
    }

    fn cache(&self, session: &mut dyn Session) -> Result<(&'static str, Option<u64>)> {
        let rows = session.query(
            "select setting::bigint * current_setting('block_size')::bigint from pg_settings \
             where name = 'shared_buffers'",
        )?;
        let bytes = if rows.is_empty() { None } else { u64::try_from(rows.int(0, 0)?).ok() };
        Ok(("shared_buffers", bytes))
    }
}

/// In an order in which they can be dropped despite foreign keys.
pub(super) const TABLES: [&str; 4] =
    ["pgbench_history", "pgbench_accounts", "pgbench_tellers", "pgbench_branches"];
pub(super) const ACCOUNTS: i64 = 100_000;
const TELLERS: i64 = 10;
/// Accounts between progress reports and checks for a stop request.
pub(super) const CHUNK: i64 = 50_000;
/// From this scale factor on the accounts' key is a 64-bit integer, as in pgbench.
pub(super) const SMALLEST_INT8_SCALE: u32 = 20_000;

/// The comment on each table from its creation until all tables are complete. Only tables with this mark may
/// be recreated; any others are the user's data. Each table has the mark, because their names may refer to
/// several schemas of the search path.
pub(super) const MARK: &str = "kelvin: being built";

fn inspect(session: &mut dyn Session) -> Result<TableState> {
    let all = TABLES.join("', '");
    let missing = query_names(
        session,
        &format!(
            "select name from unnest(array['{all}']) as t(name) where to_regclass(name) is null order by 1"
        ),
    )?;
    if missing.len() == TABLES.len() {
        return Ok(TableState::Nothing);
    }
    let marked = session
        .query(&format!(
            "select count(*) from unnest(array['{all}']) as t(name) join pg_description on objoid = to_regclass(name) \
             where classoid = 'pg_class'::regclass and objsubid = 0 and description = '{MARK}'"
        ))?
        .int(0, 0)?;
    if usize::try_from(marked).is_ok_and(|marked| marked == TABLES.len() - missing.len()) {
        return Ok(TableState::Unfinished);
    }
    if !missing.is_empty() {
        return Ok(TableState::Incomplete(format!("missing tables: {}", missing.join(", "))));
    }
    // Before the rows are examined, which could take hours without keys.
    let without_key = query_names(
        session,
        "select name from unnest(array['pgbench_accounts', 'pgbench_branches', 'pgbench_tellers']) as t(name) \
         where not exists (select from pg_index where indisprimary and indrelid = to_regclass(name)) order by 1",
    )?;
    if !without_key.is_empty() {
        return Ok(TableState::Incomplete(format!("missing primary keys: {}", without_key.join(", "))));
    }
    count(session)
}

/// Whether the tables, which all exist with their keys, have the required numbers of rows.
pub(super) fn count(session: &mut dyn Session) -> Result<TableState> {
    let rows = session.query(
        "select (select count(*) from pgbench_branches), (select count(*) from pgbench_tellers), \
         (select coalesce(max(aid), 0) from pgbench_accounts)",
    )?;
    let (branches, tellers, accounts) = (rows.int(0, 0)?, rows.int(0, 1)?, rows.int(0, 2)?);
    Ok(match describe_lack(branches, tellers, accounts) {
        Some(lack) => TableState::Incomplete(lack),
        None => TableState::Complete { scale: branches },
    })
}

/// What is wrong with these numbers of rows and this highest account number; `None` if nothing.
fn describe_lack(branches: i64, tellers: i64, accounts: i64) -> Option<String> {
    if branches == 0 {
        return Some("pgbench_branches is empty".to_owned());
    }
    let wanted = branches * TELLERS;
    if tellers != wanted {
        return Some(format!(
            "pgbench_tellers has {tellers} rows; {branches} rows in pgbench_branches require {wanted}"
        ));
    }
    let wanted = branches * ACCOUNTS;
    (accounts != wanted).then(|| {
        format!(
            "the highest aid in pgbench_accounts is {accounts}; {branches} rows in pgbench_branches require \
            {wanted}"
        )
    })
}

fn query_names(session: &mut dyn Session, query: &str) -> Result<Vec<String>> {
    let rows = session.query(query)?;
    rows.texts(0)
}

/// The error for existing tables that are incomplete and have no mark.
pub(crate) fn incomplete(lack: &str) -> Error {
    Error::usage(format!("pgbench's tables in the database are incomplete: {lack}")).with_help(
        "kelvin does not change tables that it did not create: complete them (`pgbench -i -I p` adds the \
         primary keys), recreate them with `pgbench -i`, or remove them with `kelvin drop pgbench --yes`",
    )
}

/// Drops the tables.
pub(crate) fn drop_data(session: &mut dyn Session) -> Result<()> {
    session.run(&drop_tables())
}

pub(super) fn drop_tables() -> String {
    format!("drop table if exists {}", TABLES.join(", "))
}

/// Statements that set or remove the mark of an unfinished build.
fn mark_sql(unfinished: bool) -> String {
    let comment = if unfinished { format!("'{MARK}'") } else { "null".to_owned() };
    TABLES.map(|table| format!("comment on table {table} is {comment}")).join("; ")
}

fn build(
    tables: &dyn Tables,
    engine: &dyn Engine,
    options: &Options,
    progress: &dyn BuildProgress,
    stop: &Stop,
) -> Result<()> {
    let mut session = engine.connect()?;
    let drop = match to_make(tables, session.as_mut(), options)? {
        ToMake::Nothing => return Ok(()),
        ToMake::Anew => drop_tables() + "; ",
        ToMake::All => String::new(),
    };
    engine.capabilities().need_session_state("building the data")?;
    let session = session.as_mut();
    set_up(session)?;
    // One message is one transaction, so the tables never exist without the mark.
    session.run(&format!("{drop}{}; {}", create(options), mark_sql(true)))?;
    load_small(session, options)?;
    load_accounts(session, options, progress, stop)?;
    if options.vacuum {
        for (done, table) in TABLES.iter().enumerate() {
            check_stop(stop)?;
            progress.update("tables vacuumed", done as u64, TABLES.len() as u64, 0);
            session.run(&format!("vacuum analyze {table}"))?;
        }
    }
    let keys = keys(options);
    for (done, key) in keys.iter().enumerate() {
        check_stop(stop)?;
        progress.update("keys created", done as u64, keys.len() as u64, 0);
        if done + 1 == keys.len() {
            session.run(&format!("{key}; {}", mark_sql(false)))?;
        } else {
            session.run(key)?;
        }
    }
    progress.update("keys created", keys.len() as u64, keys.len() as u64, 0);
    Ok(())
}

/// What a build must create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToMake {
    /// All is there.
    Nothing,
    /// All tables. If another session creates one meanwhile, the build fails; it must not drop it.
    All,
    /// All tables, after dropping those of an interrupted build.
    Anew,
}

/// What must be created for these options, or why it cannot be.
pub(super) fn to_make(tables: &dyn Tables, session: &mut dyn Session, options: &Options) -> Result<ToMake> {
    match tables.inspect(session)? {
        TableState::Complete { scale } if scale == i64::from(options.scale()) => {
            must_match(tables, session, options).map(|()| ToMake::Nothing)
        }
        TableState::Complete { scale } => Err(other_scale(scale, options.scale())),
        TableState::Incomplete(lack) => Err(incomplete(&lack)),
        TableState::Unfinished => Ok(ToMake::Anew),
        TableState::Nothing => Ok(ToMake::All),
    }
}

fn shape(session: &mut dyn Session) -> Result<Option<Shape>> {
    let TableState::Complete { scale } = inspect(session)? else { return Ok(None) };
    let rows = session.query(&format!(
        "select coalesce((select option_value::bigint from pg_class c, pg_options_to_table(c.reloptions) \
             where c.oid = any (array(select to_regclass('pgbench_accounts')::oid union all select inhrelid from \
             pg_inherits where inhparent = to_regclass('pgbench_accounts'))) and option_name = 'fillfactor' limit 1), \
             100), \
         (select count(*) from pg_constraint where contype = 'f' and conrelid in \
             (select to_regclass(name)::oid from unnest(array['{}']) as t(name))), \
         (select count(*) from pg_class where relpersistence = 'u' and (oid = to_regclass('pgbench_accounts') or oid \
             in (select inhrelid from pg_inherits where inhparent = to_regclass('pgbench_accounts')))), \
         (select count(*) from pg_inherits where inhparent = to_regclass('pgbench_accounts')), \
         (select count(*) from pg_partitioned_table where partrelid = to_regclass('pgbench_accounts') and \
             partstrat = 'h')",
        TABLES.join("', '")
    ))?;
    let (Ok(scale), Ok(fillfactor)) = (u32::try_from(scale), u8::try_from(rows.int(0, 0)?)) else {
        return Ok(None);
    };
    Ok(Some(Shape {
        scale,
        fillfactor,
        foreign_keys: rows.int(0, 1)? > 0,
        unlogged_tables: rows.int(0, 2)? > 0,
        partitions: u32::try_from(rows.int(0, 3)?).unwrap_or(u32::MAX),
        partition_method: if rows.int(0, 4)? > 0 { PartitionMethod::Hash } else { PartitionMethod::Range },
    }))
}

/// Refuses tables whose properties do not match the options: the result would describe something that was not
/// measured.
pub(super) fn must_match(tables: &dyn Tables, session: &mut dyn Session, options: &Options) -> Result<()> {
    let Some(shape) = tables.shape(session)? else { return Ok(()) };
    let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let differences: Vec<String> = [
        ("fillfactor", shape.fillfactor.to_string(), options.fillfactor.to_string()),
        ("foreign keys", yes(shape.foreign_keys), yes(options.foreign_keys)),
        ("unlogged tables", yes(shape.unlogged_tables), yes(options.unlogged_tables)),
        ("partitions", shape.partitions.to_string(), options.partitions.to_string()),
        (
            "partition method",
            shape.partition_method.sql_keyword().to_owned(),
            options.partition_method.sql_keyword().to_owned(),
        ),
    ]
    .into_iter()
    .filter(|(_, here, asked)| here != asked)
    .map(|(what, here, asked)| format!("{what}: {here}, not {asked}"))
    .collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "pgbench's tables in the database do not match the options: {}",
        differences.join("; ")
    ))
    .with_help(
        "leave out the options to use the existing tables, or drop the tables first: kelvin drop pgbench",
    ))
}

/// The error for using or building over data with another scale factor.
pub(crate) fn other_scale(found: i64, asked: u32) -> Error {
    Error::usage(format!(
        "pgbench's tables in the database have scale {found}, but scale {asked} was requested"
    ))
    .with_help("request the existing scale, or drop the tables first")
}

pub(super) fn check_stop(stop: &Stop) -> Result<()> {
    if stop.requested() { Err(Error::new(ErrorClass::Timeout, "stopped on request")) } else { Ok(()) }
}

fn set_up(session: &mut dyn Session) -> Result<()> {
    session.run(
        "set maintenance_work_mem = '256MB'; set synchronous_commit = off; set statement_timeout = 0; \
         set client_min_messages = warning",
    )
}

fn create(options: &Options) -> String {
    let unlogged = if options.unlogged_tables { "unlogged " } else { "" };
    let fill = options.fillfactor;
    let aid = if options.scale() >= SMALLEST_INT8_SCALE { "bigint" } else { "int" };
    let accounts = create_accounts(options, unlogged, aid);
    format!(
        "create {unlogged}table pgbench_history(tid int, bid int, aid {aid}, delta int, mtime timestamp, filler char(22)); \
         create {unlogged}table pgbench_tellers(tid int not null, bid int, tbalance int, filler char(84)) \
         with (fillfactor={fill}); \
         {accounts}; \
         create {unlogged}table pgbench_branches(bid int not null, bbalance int, filler char(88)) \
         with (fillfactor={fill})"
    )
}

/// Creates the accounts, with their partitions if requested.
fn create_accounts(options: &Options, unlogged: &str, aid: &str) -> String {
    let fill = options.fillfactor;
    let columns = format!("pgbench_accounts(aid {aid} not null, bid int, abalance int, filler char(84))");
    let parts = i64::from(options.partitions);
    if parts == 0 {
        return format!("create {unlogged}table {columns} with (fillfactor={fill})");
    }
    let method = options.partition_method;
    let size = (i64::from(options.scale()) * ACCOUNTS + parts - 1) / parts;
    let bounds = |part: i64| match method {
        PartitionMethod::Hash => format!("with (modulus {parts}, remainder {})", part - 1),
        PartitionMethod::Range => {
            let from = if part == 1 { "minvalue".to_owned() } else { ((part - 1) * size + 1).to_string() };
            let to = if part == parts { "maxvalue".to_owned() } else { (part * size + 1).to_string() };
            format!("from ({from}) to ({to})")
        }
    };
    let partitions = (1..=parts).map(|part| {
        format!(
            "; create {unlogged}table pgbench_accounts_{part} partition of pgbench_accounts for values {} \
             with (fillfactor={fill})",
            bounds(part)
        )
    });
    let root = format!("create table {columns} partition by {} (aid)", method.sql_keyword());
    std::iter::once(root).chain(partitions).collect()
}

fn keys(options: &Options) -> Vec<String> {
    let mut keys: Vec<String> = [("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")]
        .iter()
        .map(|(table, column)| format!("alter table pgbench_{table} add primary key ({column})"))
        .collect();
    if options.foreign_keys {
        keys.extend(foreign_keys());
    }
    keys
}

/// The statements that create the foreign keys.
pub(super) fn foreign_keys() -> impl Iterator<Item = String> {
    [
        ("tellers", "bid", "branches", "bid"),
        ("accounts", "bid", "branches", "bid"),
        ("history", "bid", "branches", "bid"),
        ("history", "tid", "tellers", "tid"),
        ("history", "aid", "accounts", "aid"),
    ]
    .into_iter()
    .map(|(table, column, to, key)| {
        format!(
            "alter table pgbench_{table} add constraint pgbench_{table}_{column}_fkey \
             foreign key ({column}) references pgbench_{to} ({key})"
        )
    })
}

pub(super) fn load_small(session: &mut dyn Session, options: &Options) -> Result<()> {
    let scale = i64::from(options.scale());
    let table = BulkTable {
        name: "pgbench_branches",
        columns: &[("bid", ColumnType::Int4), ("bbalance", ColumnType::Int4)],
    };
    let mut load = session.bulk_load(&table)?;
    for bid in 1..=scale {
        load.row(&[Value::Int(bid), Value::Int(0)])?;
    }
    load.finish()?;
    let table = BulkTable {
        name: "pgbench_tellers",
        columns: &[("tid", ColumnType::Int4), ("bid", ColumnType::Int4), ("tbalance", ColumnType::Int4)],
    };
    let mut load = session.bulk_load(&table)?;
    for tid in 1..=scale * TELLERS {
        load.row(&[Value::Int(tid), Value::Int((tid - 1) / TELLERS + 1), Value::Int(0)])?;
    }
    load.finish()?;
    Ok(())
}

/// Loads the accounts over one connection, with frozen rows: VACUUM need not visit the pages again, which
/// would cost more than a second connection saves.
fn load_accounts(
    session: &mut dyn Session,
    options: &Options,
    progress: &dyn BuildProgress,
    stop: &Stop,
) -> Result<()> {
    let total = i64::from(options.scale()) * ACCOUNTS;
    let columns = account_columns(options);
    let table = BulkTable { name: "pgbench_accounts", columns: &columns };
    session.run("begin; truncate pgbench_accounts")?;
    // PostgreSQL cannot copy frozen rows into a partitioned table.
    let mut load = if options.partitions == 0 {
        session.bulk_load_frozen(&table)?
    } else {
        session.bulk_load(&table)?
    };
    let mut first = 0;
    while first < total {
        check_stop(stop)?;
        load_chunk(load.as_mut(), first)?;
        first += CHUNK;
        progress.update("accounts loaded", first as u64, total as u64, first as u64);
    }
    load.finish()?;
    session.run("commit")
}

/// Loads the tables, then adds the foreign keys, if they are wanted.
pub(super) fn load_by_chunks(
    session: &mut dyn Session,
    options: &Options,
    progress: &dyn BuildProgress,
    stop: &Stop,
) -> Result<()> {
    load_small(session, options)?;
    load_accounts_by_chunks(session, options, progress, stop)?;
    for key in foreign_keys().filter(|_| options.foreign_keys) {
        check_stop(stop)?;
        session.run(&key)?;
    }
    Ok(())
}

/// Loads the accounts, each chunk in a separate transaction: a small one is quick to roll back.
pub(super) fn load_accounts_by_chunks(
    session: &mut dyn Session,
    options: &Options,
    progress: &dyn BuildProgress,
    stop: &Stop,
) -> Result<()> {
    let total = i64::from(options.scale()) * ACCOUNTS;
    let columns = account_columns(options);
    let table = BulkTable { name: "pgbench_accounts", columns: &columns };
    let mut first = 0;
    while first < total {
        check_stop(stop)?;
        let mut load = session.bulk_load(&table)?;
        load_chunk(load.as_mut(), first)?;
        load.finish()?;
        first += CHUNK;
        progress.update("accounts loaded", first as u64, total as u64, first as u64);
    }
    Ok(())
}

/// The columns of an account that a load writes.
pub(super) fn account_columns(options: &Options) -> [(&'static str, ColumnType); 4] {
    let key = if options.scale() >= SMALLEST_INT8_SCALE { ColumnType::Int8 } else { ColumnType::Int4 };
    [("aid", key), ("bid", ColumnType::Int4), ("abalance", ColumnType::Int4), ("filler", ColumnType::Text)]
}

/// Loads one chunk of accounts, after the first `first`.
pub(super) fn load_chunk(load: &mut (dyn BulkLoad + '_), first: i64) -> Result<()> {
    for aid in first..first + CHUNK {
        load.row(&[Value::Int(aid + 1), Value::Int(aid / ACCOUNTS + 1), Value::Int(0), Value::Text("")])?;
    }
    Ok(())
}

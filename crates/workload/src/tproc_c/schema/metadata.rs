//! The metadata that the database holds about its data: two small tables in addition to the nine.
//!
//! `kelvin_tproc_c` describes the build. `kelvin_tproc_c_loaded` has a row for each complete part (0 for the
//! items, w for warehouse w), committed together with the part's rows, so that an interrupted build resumes
//! exactly where it stopped.

use std::collections::HashMap;

use kelvin_database::{Error, Result, Session, Timestamp};

use super::{Name, TABLES};
use crate::tproc_c::dialect::Dialect;
use crate::tproc_c::non_uniform::NonUniform;
use crate::tproc_c::{Options, Profile};

/// Changes when data of older builds can no longer be used or resumed.
const FORMAT: &str = "2";

/// The constant C for last names with which HammerDB loads and runs.
const HAMMERDB_C_LAST: i64 = 123;

/// Who built the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuiltBy {
    /// This program.
    Kelvin,
    /// HammerDB, recognised from the catalog.
    Hammerdb,
}

/// Properties of complete data that a run needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// The rules that it was built by.
    pub(crate) profile: Profile,
    /// Number of warehouses.
    pub(crate) warehouses: u32,
    /// Seed of the initial data; 0 if HammerDB built them.
    pub(crate) data_seed: u64,
    /// The constant C with which the load drew last names.
    pub(crate) c_last_of_load: i64,
    /// Who built it.
    pub(crate) built_by: BuiltBy,
}

/// A build, complete or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Build {
    pub(crate) metadata: Metadata,
    pub(crate) complete: bool,
    /// Tables that the build describes but that do not exist.
    missing: Vec<&'static str>,
    foreign_keys: bool,
    partitions: Option<u32>,
    fill_page: bool,
    /// Tables that were loaded as a whole, each with its last loaded warehouse.
    tables: Vec<(Name, u32)>,
    time: Option<Timestamp>,
}

impl Build {
    /// The build that the database holds, if any.
    pub(crate) fn read(session: &mut dyn Session, dialect: &dyn Dialect) -> Result<Option<Self>> {
        let present = present_tables(session, dialect)?;
        if present.iter().any(|name| name == "kelvin_tproc_c") {
            let mut build = read_own(session)?;
            build.missing = missing(&present);
            return Ok(Some(build));
        }
        if missing(&present).is_empty() { dialect.hammerdbs_build(session) } else { Ok(None) }
    }

    /// Complete data that HammerDB built, with `count` warehouses of which `max` is the highest number.
    /// `None` if these numbers are inconsistent.
    pub(crate) fn by_hammerdb(max: i64, count: i64) -> Option<Self> {
        let warehouses = u32::try_from(max).ok().filter(|_| count > 0 && count == max)?;
        Some(Self {
            metadata: Metadata {
                profile: Profile::Hammerdb,
                warehouses,
                data_seed: 0,
                c_last_of_load: HAMMERDB_C_LAST,
                built_by: BuiltBy::Hammerdb,
            },
            complete: true,
            missing: Vec::new(),
            foreign_keys: false,
            partitions: None,
            fill_page: false,
            tables: Vec::new(),
            time: None,
        })
    }

    /// The last loaded warehouse of a table that was loaded as a whole (see [`mark_table`]); 0 for other
    /// tables.
    pub(crate) fn loaded_of(&self, table: Name) -> u32 {
        self.tables.iter().find(|(name, _)| *name == table).map_or(0, |(_, last)| *last)
    }

    /// Whether any table was loaded as a whole.
    pub(crate) fn has_loaded_tables(&self) -> bool {
        !self.tables.is_empty()
    }

    /// When the build began: the time in its rows.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        self.time
    }

    /// Tables that an interrupted build has not created, or that were dropped since.
    pub(crate) fn missing_tables(&self) -> &[&'static str] {
        &self.missing
    }

    /// The options, with those that are left open taken from these data.
    pub(crate) fn complete(&self, options: &Options) -> Options {
        let mut options = options.clone();
        options.warehouses = options.warehouses.or(Some(self.metadata.warehouses));
        options.data_seed = options.data_seed.or(Some(self.metadata.data_seed));
        options.partitions = options.partitions.or(self.partitions);
        options.foreign_keys |= self.foreign_keys;
        options.fill_page |= self.fill_page;
        options
    }

    /// Refuses complete data if a table has been dropped.
    pub(crate) fn must_be_whole(&self) -> Result<()> {
        if self.complete && !self.missing.is_empty() { Err(self.damaged()) } else { Ok(()) }
    }

    /// The error for a missing table whose rows had been loaded.
    pub(crate) fn damaged(&self) -> Error {
        let what = if let [one] = self.missing[..] {
            format!("table {one} is missing")
        } else {
            format!("tables {} are missing", self.missing.join(", "))
        };
        Error::usage(format!("the TPROC-C data are damaged: {what}"))
            .with_help("drop the remaining tables and rebuild: kelvin drop tproc-c, kelvin build tproc-c")
    }

    /// Rejects, with a message, options that do not match these data.
    pub(crate) fn must_match(&self, options: &Options) -> Result<()> {
        let mut differences = Vec::new();
        let mut differ = |what: &str, here: String, asked: String| {
            if here != asked {
                differences.push(format!("{what} {here}, not {asked}"));
            }
        };
        if let Some(asked) = options.warehouses {
            differ("warehouses", self.metadata.warehouses.to_string(), asked.to_string());
        }
        differ("profile", word(self.metadata.profile).into(), word(options.profile).into());
        // HammerDB records neither a seed nor options.
        if self.metadata.built_by == BuiltBy::Kelvin {
            if let Some(asked) = options.data_seed {
                differ("data seed", self.metadata.data_seed.to_string(), asked.to_string());
            }
            if options.foreign_keys {
                differ("foreign keys", yes(self.foreign_keys).into(), yes(true).into());
            }
            if options.fill_page {
                differ("filled pages", yes(self.fill_page).into(), yes(true).into());
            }
            if let Some(asked) = options.partitions {
                let here = self.partitions.map_or("none".into(), |n| n.to_string());
                differ("partitions", here, asked.to_string());
            }
        }
        if differences.is_empty() {
            return Ok(());
        }
        let state = if self.complete { "" } else { "incomplete " };
        Err(Error::usage(format!(
            "the {state}TPROC-C data in the database do not match the options: {}",
            differences.join("; ")
        ))
        .with_help("change the options, drop the data first, or use another database"))
    }
}

/// The tables of the nine that do not exist.
fn missing(present: &[String]) -> Vec<&'static str> {
    let names = TABLES.iter().map(|table| table.name);
    names.filter(|name| !present.iter().any(|there| there == name)).collect()
}

/// Indexes that the nine tables should have but do not, as text.
pub(crate) fn missing_indexes(
    session: &mut dyn Session,
    dialect: &dyn Dialect,
    profile: Profile,
) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for table in &TABLES {
        for index in dialect.indexes(table, profile) {
            if !dialect.has_index(session, table.name, &index)? {
                let (name, columns) = index;
                missing.push(format!(
                    "index {name} of table {} ({}) is missing",
                    table.name,
                    columns.join(", ")
                ));
            }
        }
    }
    Ok(missing)
}

/// Names of Kelvin's tables, the nine and the two, that exist where an unqualified name is looked up.
pub(crate) fn present_tables(session: &mut dyn Session, dialect: &dyn Dialect) -> Result<Vec<String>> {
    let mut names: Vec<String> = TABLES.iter().map(|table| format!("'{}'", table.name)).collect();
    names.push("'kelvin_tproc_c'".into());
    names.push("'kelvin_tproc_c_loaded'".into());
    let names = names.join(", ");
    let rows = session.query(&dialect.present_tables(&names))?;
    rows.texts(0)
}

fn read_own(session: &mut dyn Session) -> Result<Build> {
    let rows = session.query("select * from kelvin_tproc_c")?;
    let mut values = HashMap::new();
    for row in 0..rows.len() {
        values.insert(rows.text(row, 0)?.to_string(), rows.text(row, 1)?.to_string());
    }
    let value = |key: &str| {
        values.get(key).map(String::as_str).ok_or_else(|| {
            Error::usage(format!("table kelvin_tproc_c has no row {key:?}"))
                .with_help("drop the data and rebuild them")
        })
    };
    let format = value("format")?;
    if format != FORMAT {
        return Err(Error::usage(format!(
            "the TPROC-C data were built in format {format}, but this version uses format {FORMAT}"
        ))
        .with_help("use the version that built them, or drop and rebuild them"));
    }
    Ok(Build {
        metadata: Metadata {
            profile: match value("profile")? {
                "spec" => Profile::Spec,
                "hammerdb" => Profile::Hammerdb,
                other => return Err(unreadable("profile", other)),
            },
            warehouses: number("warehouses", value("warehouses")?)?,
            data_seed: number("data-seed", value("data-seed")?)?,
            c_last_of_load: match number("c-last", value("c-last")?)? {
                c @ 0..=255 => c,
                other => return Err(unreadable("c-last", &other.to_string())),
            },
            built_by: BuiltBy::Kelvin,
        },
        complete: value("state")? == "complete",
        missing: Vec::new(),
        foreign_keys: value("foreign-keys")? == "yes",
        partitions: match value("partitions")? {
            "none" => None,
            count => Some(number("partitions", count)?),
        },
        // Older builds have no entry.
        fill_page: values.get("fill-page").is_some_and(|value| value == "yes"),
        tables: TABLES
            .iter()
            .filter_map(|table| {
                let last = values.get(&table_mark(table.name))?;
                Some(number("the warehouses of a table", last).map(|last| (table.id, last)))
            })
            .collect::<Result<_>>()?,
        time: values.get("time").map(|time| number("time", time).map(Timestamp)).transpose()?,
    })
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| unreadable(key, value))
}

fn unreadable(key: &str, value: &str) -> Error {
    Error::usage(format!("table kelvin_tproc_c contains an invalid value, {key} = {value:?}"))
        .with_help("drop the data and rebuild them")
}

/// Statements that create the two tables and describe a new build.
pub(crate) fn begin_build(options: &Options, constants: &NonUniform, dialect: &dyn Dialect) -> Vec<String> {
    let rows: [(&str, String); 12] = [
        ("format", FORMAT.into()),
        ("profile", word(options.profile).into()),
        ("warehouses", options.warehouses_to_build().to_string()),
        ("data-seed", options.seed_to_build().to_string()),
        ("c-last", constants.c_last.to_string()),
        ("c-customer", constants.c_customer.to_string()),
        ("c-item", constants.c_item.to_string()),
        ("foreign-keys", yes(options.foreign_keys).into()),
        ("partitions", options.partitions.map_or("none".into(), |n| n.to_string())),
        ("fill-page", yes(options.fill_page).into()),
        ("time", Timestamp::now().0.to_string()),
        ("state", "loading".into()),
    ];
    let rows: Vec<String> = rows.iter().map(|(name, value)| format!("('{name}', '{value}')")).collect();
    vec![
        format!("create table kelvin_tproc_c (name {} primary key, value {0} not null)", dialect.key_type()),
        "create table kelvin_tproc_c_loaded (w_id integer primary key)".into(),
        format!("insert into kelvin_tproc_c (name, value) values {}", rows.join(", ")),
    ]
}

/// The statement, for the transaction that loads a table, that records the table's last loaded warehouse.
pub(crate) fn mark_table(table: Name, last: u32) -> String {
    let mark = table_mark(super::table(table).name);
    format!("insert into kelvin_tproc_c (name, value) values ('{mark}', '{last}')")
}

fn table_mark(name: &str) -> String {
    format!("table {name}")
}

/// Marks the build complete and removes the tables' marks, which are no longer needed.
pub(crate) const COMPLETE: &str = "delete from kelvin_tproc_c where name like 'table %'; \
    update kelvin_tproc_c set value = 'complete' where name = 'state'";

/// Numbers of the loaded parts, ascending: 0 for the items, then warehouses.
pub(crate) fn loaded_parts(session: &mut dyn Session) -> Result<Vec<u32>> {
    let rows = session.query("select w_id from kelvin_tproc_c_loaded order by w_id")?;
    (0..rows.len())
        .map(|row| {
            let part = rows.int(row, 0)?;
            u32::try_from(part).map_err(|_| unreadable("a loaded part", &part.to_string()))
        })
        .collect()
}

fn word(profile: Profile) -> &'static str {
    match profile {
        Profile::Spec => "spec",
        Profile::Hammerdb => "hammerdb",
    }
}

fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

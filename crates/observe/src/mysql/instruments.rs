//! The instruments and consumers of `performance_schema` that show what sessions wait for. They cost CPU, and are off by default:
//! they are switched on when that is asked for, and put back.

use kelvin_database::{Error, Result, Session};
use serde::{Deserialize, Serialize};

/// A switch of the server's, as it was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instrument {
    /// "wait/synch/mutex/innodb/trx_sys_mutex", or the name of a consumer.
    pub name: String,
    /// Whether it hands on what instruments see, and is none itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub consumer: bool,
    /// Whether it was on.
    pub enabled: bool,
    /// Whether its times were taken; without meaning for a consumer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed: bool,
}

/// Latches of InnoDB and of the server, the group commit of the binary log, locks of definitions.
const INSTRUMENTS: &str = "NAME LIKE 'wait/synch/mutex/%' OR NAME LIKE 'wait/synch/rwlock/%' OR NAME LIKE 'wait/synch/prlock/%' \
     OR NAME LIKE 'wait/synch/sxlock/%' OR NAME LIKE 'wait/synch/cond/sql/MYSQL\\_BIN\\_LOG::%' OR NAME LIKE 'wait/lock/metadata/%'";

/// What each session waits for and runs now, and (where the digests keep no sample) a few statements with their values.
const CONSUMERS: &str = "'events_waits_current', 'events_statements_current', 'events_statements_history'";

/// Those that are needed and off. An error where `performance_schema` is off, which only a restart changes.
pub(crate) fn that_are_off(session: &mut dyn Session) -> Result<Vec<Instrument>> {
    if session.query("SELECT CAST(@@performance_schema AS SIGNED)")?.int(0, 0)? == 0 {
        return Err(Error::usage("performance_schema is off, so there are no instruments to enable")
            .with_help("start the server with performance_schema=ON, or omit --observe deep"));
    }
    let mut found = Vec::new();
    let rows = session.query(&format!(
        "SELECT NAME, CAST(ENABLED = 'YES' AS SIGNED), CAST(COALESCE(TIMED = 'YES', 0) AS SIGNED) \
         FROM performance_schema.setup_instruments WHERE (ENABLED = 'NO' OR TIMED = 'NO') AND ({INSTRUMENTS}) ORDER BY NAME"
    ))?;
    for row in 0..rows.len() {
        found.push(Instrument {
            name: rows.text(row, 0)?.to_owned(),
            consumer: false,
            enabled: rows.int(row, 1)? == 1,
            timed: rows.int(row, 2)? == 1,
        });
    }
    let rows = session.query(&format!(
        "SELECT NAME FROM performance_schema.setup_consumers WHERE ENABLED = 'NO' AND NAME IN ({CONSUMERS}) ORDER BY NAME"
    ))?;
    for row in 0..rows.len() {
        let name = rows.text(row, 0)?.to_owned();
        found.push(Instrument { name, consumer: true, enabled: false, timed: false });
    }
    Ok(found)
}

/// Switches these on.
pub(crate) fn switch_on(session: &mut dyn Session, all: &[Instrument]) -> Result<()> {
    let on: Vec<Instrument> =
        all.iter().map(|one| Instrument { enabled: true, timed: !one.consumer, ..one.clone() }).collect();
    set(session, &on)
}

/// Gives each the state that it has here.
pub(crate) fn set(session: &mut dyn Session, all: &[Instrument]) -> Result<()> {
    let word = |on: bool| if on { "YES" } else { "NO" };
    let mut rest: Vec<&Instrument> = all.iter().collect();
    while let Some(&first) = rest.first() {
        let alike = |one: &&Instrument| {
            (one.consumer, one.enabled, one.timed) == (first.consumer, first.enabled, first.timed)
        };
        let (same, others): (Vec<&Instrument>, Vec<&Instrument>) = rest.iter().partition(|one| alike(one));
        rest = others;
        let names: Vec<String> = same.iter().map(|one| quoted(&one.name)).collect::<Result<_>>()?;
        let (names, enabled) = (names.join(", "), word(first.enabled));
        session
            .run(&if first.consumer {
                format!("UPDATE performance_schema.setup_consumers SET ENABLED = '{enabled}' WHERE NAME IN ({names})")
            } else {
                format!(
                    "UPDATE performance_schema.setup_instruments SET ENABLED = '{enabled}', TIMED = '{}' WHERE NAME IN ({names})",
                    word(first.timed)
                )
            })
            .map_err(|error| error.context("cannot switch the instruments of performance_schema"))?;
    }
    Ok(())
}

/// A name as the servers have them.
fn quoted(name: &str) -> Result<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-/:.#&() ".contains(c);
    if name.chars().all(plain) {
        Ok(format!("'{name}'"))
    } else {
        Err(Error::usage(format!("{name:?} is not the name of an instrument")))
    }
}

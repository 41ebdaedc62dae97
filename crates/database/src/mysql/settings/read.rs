//! What the server has set.

use super::name::variable;
use crate::mysql::{Product, product};
use crate::settings::{ChangeTime, CurrentSetting};
use crate::{Error, Result, Session};

/// A variable that no statement changes, in both products: an attempt to set it ends a statement before it has done anything.
const READ_ONLY: &str = "version_compile_os";

/// The settings of these names that the server knows, in their order, with the global values.
pub(super) fn read_known(session: &mut dyn Session, names: &[&str]) -> Result<Vec<CurrentSetting>> {
    let product = product(session)?;
    let mut found: Vec<CurrentSetting> = Vec::with_capacity(names.len());
    for name in names {
        super::name::check_name(name)?;
        let (variable, _) = variable(name, "");
        let rows = session.query(&match product {
            Product::Mariadb => format!(
                "SELECT CAST(global_value AS CHAR), lower(global_value_origin), read_only \
                 FROM information_schema.system_variables WHERE variable_name = '{variable}' AND global_value IS NOT NULL"
            ),
            Product::Mysql => format!(
                "SELECT v.variable_value, lower(i.variable_source), '' FROM performance_schema.global_variables v \
                 JOIN performance_schema.variables_info i USING (variable_name) WHERE variable_name = '{variable}'"
            ),
        })?;
        if rows.is_empty() {
            continue;
        }
        let (value, source) = (rows.text(0, 0)?.to_owned(), rows.text(0, 1)?.to_owned());
        let when = match product {
            Product::Mariadb if rows.text(0, 2)? == "YES" => ChangeTime::InItsFiles,
            Product::Mysql if is_read_only(session, &variable)? => ChangeTime::AfterRestart,
            _ => ChangeTime::Now,
        };
        // A line of an option file is compared with what it makes of the variable.
        let value = if normal(name) == variable { value } else { inverse(&value).to_owned() };
        found.push(CurrentSetting {
            name: (*name).to_owned(),
            kind: kind(&variable, &value).into(),
            value: in_megabytes(value),
            unit: None,
            when,
            source: describe_source(&source).into(),
            pending_restart: false,
        });
    }
    Ok(found)
}

fn normal(name: &str) -> String {
    super::name::normalized(name)
}

/// `skip_log_bin` is on where `log_bin` is off.
fn inverse(value: &str) -> &'static str {
    if value == "OFF" { "ON" } else { "OFF" }
}

/// As a person writes sizes: 134217728 is 128M.
fn in_megabytes(value: String) -> String {
    match value.parse::<u64>() {
        Ok(bytes) if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        _ => value,
    }
}

/// What a source is called elsewhere in Kelvin.
fn describe_source(source: &str) -> &str {
    match source {
        "compiled" | "compile-time" | "auto" => "default",
        "config" | "global" | "server" | "explicit" | "extra" | "user" => "configuration file",
        "command_line" => "command line",
        "persisted" => "SET PERSIST",
        "sql" | "dynamic" => "SET GLOBAL",
        other => other,
    }
}

/// The type, by the value: the server of neither product says it of all.
fn kind(name: &str, value: &str) -> &'static str {
    match value {
        // A name switches the binary log on.
        _ if name == "log_bin" => "switch",
        "ON" | "OFF" => "enum",
        _ if crate::settings::whole_number(value).is_some() => "bytes",
        _ if value.parse::<f64>().is_ok() => "real",
        _ if value.contains(',') => "string",
        _ => "enum",
    }
}

/// MySQL says of no variable that it cannot be set. A statement resolves all its variables before it sets the first: one that
/// also names a variable that surely cannot be set changes nothing, and its error names the first that cannot.
fn is_read_only(session: &mut dyn Session, name: &str) -> Result<bool> {
    let probe = format!("SET GLOBAL {name} = @@GLOBAL.{name}, GLOBAL {READ_ONLY} = 'x'");
    match session.run(&probe) {
        Ok(()) => Err(Error::protocol(format!("the server has set {READ_ONLY}"))),
        Err(error) if error.message().contains(READ_ONLY) => Ok(false),
        Err(error) if error.class() == crate::ErrorClass::ConnectionLost => Err(error),
        Err(_read_only) => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_the_values() {
        for (name, value, expected) in [
            ("innodb_buffer_pool_size", "134217728", "bytes"),
            ("innodb_max_dirty_pages_pct", "90.000000", "real"),
            ("innodb_doublewrite", "ON", "enum"),
            ("sql_mode", "A,B", "string"),
            ("log_bin", "ON", "switch"),
            ("innodb_flush_method", "O_DIRECT", "enum"),
        ] {
            assert_eq!(kind(name, value), expected, "{name}");
        }
    }
}

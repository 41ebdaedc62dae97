//! Settings that may be changed, by name.

use crate::{Error, Result};

/// Settings of the server's address and files: a server with a changed one can no longer be reached.
const PLACES: &[&str] = &[
    "listen_addresses",
    "unix_socket_directories",
    "unix_socket_group",
    "unix_socket_permissions",
    "port",
    "data_directory",
    "config_file",
    "hba_file",
    "ident_file",
    "external_pid_file",
];

/// Refuses invalid names of settings, settings by which the server could become unreachable, and those whose value is a
/// command or a secret: commands have their own consent, and journals must not contain secrets.
pub fn check_name(name: &str) -> Result<()> {
    let plain = |part: &str| {
        part.len() <= 63
            && part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if !name.split('.').all(plain) || name.split('.').count() > 2 {
        return Err(Error::usage(format!("{name:?} is not the name of a PostgreSQL setting")));
    }
    let lower = name.to_ascii_lowercase();
    if PLACES.contains(&lower.as_str()) {
        return Err(Error::usage(format!(
            "{lower} defines where the server is or how it was built; kelvin does not change it"
        )));
    }
    let secret = ["password", "passphrase", "conninfo", "secret"];
    // The exception only has a similar name: it selects how passwords are stored.
    if lower.ends_with("_command")
        || (secret.iter().any(|word| lower.contains(word)) && lower != "password_encryption")
    {
        return Err(Error::usage(format!(
            "{lower} contains a command or a secret; kelvin neither changes nor stores it"
        )));
    }
    Ok(())
}

/// Settings that are lists of identifiers, each of which `ALTER SYSTEM` takes as a separate literal: given as one literal,
/// the list would become one name with commas in it. The server marks them (`GUC_LIST_QUOTE`) but does not show it.
pub(super) fn is_quoted_list(name: &str) -> bool {
    [
        "local_preload_libraries",
        "search_path",
        "session_preload_libraries",
        "shared_preload_libraries",
        "temp_tablespaces",
    ]
    .iter()
    .any(|list| name.eq_ignore_ascii_case(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_do_harm_are_refused() {
        for good in ["work_mem", "pg_stat_statements.max", "DateStyle", "password_encryption", "_x"] {
            check_name(good).unwrap();
        }
        for bad in ["", "a b", "1a", "a;b", "a.b.c", "a.", "fsync\nport", "a'", "é"] {
            assert!(check_name(bad).unwrap_err().message().contains("not the name"), "{bad:?}");
        }
        for kept in
            ["port", "Data_Directory", "archive_command", "primary_conninfo", "ssl_passphrase_command"]
        {
            assert!(check_name(kept).is_err(), "{kept}");
        }
    }
}

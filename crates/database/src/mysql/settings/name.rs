//! Names of settings: those that may be changed, and those that are aliases of another.

use crate::{Error, Result};

/// Settings of the server's address and files: a server with a changed one can no longer be reached.
const PLACES: &[&str] = &[
    "basedir",
    "bind_address",
    "datadir",
    "innodb_data_file_path",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_page_size",
    "innodb_undo_directory",
    "log_error",
    "lower_case_table_names",
    "mysqlx_port",
    "mysqlx_socket",
    "pid_file",
    "plugin_dir",
    "plugin_load",
    "plugin_load_add",
    "port",
    "skip_grant_tables",
    "skip_networking",
    "socket",
    "tmpdir",
    "user",
];

/// Refuses invalid names of settings, settings by which the server could become unreachable, and those whose value is a
/// command, a code file or a secret: a journal must not contain secrets.
pub(super) fn check_name(name: &str) -> Result<()> {
    let plain = name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if !plain {
        return Err(Error::usage(format!("{name:?} is not the name of a MySQL setting")));
    }
    let plain = normalized(name);
    if PLACES.contains(&plain.as_str()) {
        return Err(Error::usage(format!(
            "{plain} defines where the server is or how it was built; kelvin does not change it"
        )));
    }
    let secret = ["password", "secret", "init_connect", "init_file", "wsrep_sst", "wsrep_notify_cmd"];
    let about_passwords = ["default_password_lifetime", "old_passwords", "validate_password", "password_"];
    if secret.iter().any(|word| plain.contains(word))
        && !about_passwords.iter().any(|known| plain.starts_with(known))
    {
        return Err(Error::usage(format!(
            "{plain} contains a command or a secret; kelvin neither changes nor stores it"
        )));
    }
    Ok(())
}

/// As the server shows it: option files may have dashes.
pub(super) fn normalized(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// The variable and its value that a line of an option file leads to. The binary log is switched on by giving it a name, and off
/// by an option that is no variable.
pub(super) fn variable<'a>(name: &str, value: &'a str) -> (String, &'a str) {
    let name = normalized(name);
    let is = |words: &[&str]| words.iter().any(|word| value.eq_ignore_ascii_case(word));
    match name.as_str() {
        "skip_log_bin" => ("log_bin".into(), if is(&["off", "0"]) { "ON" } else { "OFF" }),
        "log_bin" => (name, if is(&["off", "0"]) { "OFF" } else { "ON" }),
        _ => (name, value),
    }
}

/// The line of an option file that gives a variable its value.
pub(super) fn option(name: &str, value: &str) -> (String, String) {
    match variable(name, value) {
        (name, "OFF") if name == "log_bin" => ("skip_log_bin".into(), "ON".into()),
        (name, "ON") if name == "log_bin" => (name, "binlog".into()),
        (name, value) => (name, value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_do_harm_are_refused() {
        for good in ["sync_binlog", "innodb-io-capacity", "validate_password.policy", "log_bin"] {
            assert_eq!(check_name(good).is_ok(), !good.contains('.'), "{good}");
        }
        for bad in ["", "a b", "1a", "a;b", "a'", "é", "sync_binlog\nport"] {
            assert!(check_name(bad).unwrap_err().message().contains("not the name"), "{bad:?}");
        }
        for kept in ["port", "Pid-File", "init_connect", "caching_sha2_password_private_key_path"] {
            assert!(check_name(kept).is_err(), "{kept}");
        }
    }

    #[test]
    fn the_binary_log_is_one_variable() {
        assert_eq!(variable("skip-log-bin", "ON"), ("log_bin".into(), "OFF"));
        assert_eq!(variable("log_bin", "binlog"), ("log_bin".into(), "ON"));
        assert_eq!(option("log_bin", "OFF"), ("skip_log_bin".into(), "ON".into()));
        assert_eq!(option("skip_log_bin", "OFF"), ("log_bin".into(), "binlog".into()));
        assert_eq!(option("Sync-Binlog", "1"), ("sync_binlog".into(), "1".into()));
    }
}

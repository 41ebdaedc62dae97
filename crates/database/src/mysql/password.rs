//! Where passwords are found.

use std::path::PathBuf;

pub use crate::password::{Password, is_missing};
use crate::password::{missing_for, must_be_private};
use crate::{Error, Result};

/// The server refused the login without a password.
pub(crate) fn missing(user: &str) -> Error {
    missing_for(user, "set MYSQL_PWD, write it into ~/.my.cnf under [client], or answer the prompt")
}

/// Looks for the password where the clients do: MYSQL_PWD, then `password` of the groups `[client]` and, for MariaDB,
/// `[client-mariadb]` of `~/.my.cnf`.
///
/// A file that others can read is refused with an error.
pub fn find(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Password>> {
    if let Some(password) = env("MYSQL_PWD").filter(|p| !p.is_empty()) {
        return Ok(Some(Password::new(password)));
    }
    let Some(path) = env("HOME").map(|home| PathBuf::from(home).join(".my.cnf")) else { return Ok(None) };
    let Ok(metadata) = std::fs::metadata(&path) else { return Ok(None) };
    if !metadata.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::read(&path)
        .map_err(|e| Error::usage(format!("the option file {} cannot be read: {e}", path.display())))?;
    let found = in_file(&String::from_utf8_lossy(&bytes));
    if found.is_some() {
        // One without a password may be for all to read.
        must_be_private(&path, &metadata)?;
    }
    Ok(found)
}

/// The last password of the clients' groups counts.
fn in_file(text: &str) -> Option<Password> {
    let mut of_clients = false;
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            of_clients = matches!(group.trim(), "client" | "client-mariadb" | "client-server");
        } else if let Some((name, value)) = line.split_once('=')
            && of_clients
            && name.trim() == "password"
        {
            found = Some(value_of(value.trim()));
        }
    }
    found.filter(|value| !value.is_empty()).map(Password::new)
}

/// A value without its quotes, its escapes resolved. Without quotes a ` #` begins a comment.
fn value_of(text: &str) -> String {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
    let inner = match quote {
        Some(quote) => text[1..].rsplit_once(quote).map_or(&text[1..], |(inner, _)| inner),
        None => text.split(" #").next().unwrap_or(text).trim_end(),
    };
    let mut value = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some('b') => value.push('\u{8}'),
            Some('s') => value.push(' '),
            Some('\\') | None => value.push('\\'),
            Some(other @ ('"' | '\'')) => value.push(other),
            // As the clients: what is no escape stays as it is.
            Some(other) => value.extend(['\\', other]),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn option_files_are_read_as_the_clients_do() {
        for (text, expected) in [
            ("[client]\npassword=abc\n", Some("abc")),
            ("[client]\n password = \"a#b c\"\n", Some("a#b c")),
            ("[client]\npassword=a\\\\b\\sc # it\n", Some("a\\b c")),
            ("[client]\npassword='it''s'\n", Some("it''s")),
            ("[mysqld]\npassword=abc\n", None),
            ("password=abc\n", None),
            ("[client]\n#password=abc\nuser=x\n", None),
            ("[client]\npassword=a\n[client-mariadb]\npassword=b\n", Some("b")),
            ("[client]\npassword=\n", None),
        ] {
            let found = in_file(text).map(|p| String::from_utf8(p.expose().to_vec()).unwrap());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_file_must_be_private_when_it_holds_a_password() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".my.cnf");
        let place = home.path().to_string_lossy().into_owned();
        let env = |name: &str| (name == "HOME").then(|| place.clone());
        assert_eq!(find(&env).unwrap(), None);
        std::fs::write(&path, "[client]\nuser=x\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(find(&env).unwrap(), None);
        std::fs::write(&path, "[client]\npassword=p\n").unwrap();
        assert!(find(&env).unwrap_err().to_string().contains("chmod 0600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(find(&env).unwrap(), Some(Password::new("p")));
        let both = |name: &str| match name {
            "MYSQL_PWD" => Some("e".to_owned()),
            _ => env(name),
        };
        assert_eq!(find(&both).unwrap(), Some(Password::new("e")));
    }
}

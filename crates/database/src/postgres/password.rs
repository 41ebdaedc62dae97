//! Passwords: where they are found; they are never shown.

use std::path::PathBuf;

use super::{Config, Host};
pub use crate::password::{Password, is_missing};
use crate::password::{missing_for, must_be_private};
use crate::{Error, Result};

pub(crate) fn missing(user: &str) -> Error {
    missing_for(user, "set PGPASSWORD, write a line into ~/.pgpass, or answer the prompt")
}

/// Looks for the password as libpq does: PGPASSWORD, then the file PGPASSFILE or `~/.pgpass`.
///
/// A file that others can read is refused with an error, since libpq would leave it out in silence and the
/// user would wonder.
pub fn find(config: &Config, env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Password>> {
    if let Some(password) = env("PGPASSWORD").filter(|p| !p.is_empty()) {
        return Ok(Some(Password::new(password)));
    }
    let named = env("PGPASSFILE").filter(|p| !p.is_empty()).map(PathBuf::from);
    let Some(path) = named.or_else(|| env("HOME").map(|home| PathBuf::from(home).join(".pgpass"))) else {
        return Ok(None);
    };
    let Ok(metadata) = std::fs::metadata(&path) else { return Ok(None) };
    if !metadata.is_file() {
        return Ok(None);
    }
    must_be_private(&path, &metadata)?;
    // Lines that are not UTF-8 cannot match a configuration, which is; the others still count.
    let bytes = std::fs::read(&path)
        .map_err(|e| Error::usage(format!("the password file {} cannot be read: {e}", path.display())))?;
    Ok(bytes
        .split(|&b| b == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok())
        // The first line that matches decides, even one without a password.
        .find_map(|line| in_line(line, config))
        .filter(|password| !password.expose().is_empty()))
}

/// The password of one line `host:port:database:user:password` when its first four fields match; it may be empty.
fn in_line(line: &str, config: &Config) -> Option<Password> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.starts_with('#') {
        return None;
    }
    let mut rest = line;
    let (host, alias) = match &config.host {
        Host::Tcp(name) => (name.clone(), None),
        // As libpq: a socket in the default directory is written "localhost".
        Host::Unix(directory) => {
            let default = ["/run/postgresql", "/var/run/postgresql", "/tmp"]
                .iter()
                .any(|d| directory.as_os_str() == *d);
            (directory.to_string_lossy().into_owned(), default.then_some("localhost"))
        }
    };
    let wanted = [host.as_str(), &config.port.to_string(), &config.database, &config.user];
    for (position, wanted) in wanted.iter().enumerate() {
        let (field, after) = field(rest)?;
        let matches = field == "*" && !rest.starts_with('\\')
            || field == **wanted
            || position == 0 && alias.is_some_and(|alias| field == alias);
        if !matches {
            return None;
        }
        rest = after;
    }
    Some(Password::new(unescape(rest)))
}

/// The next field, unescaped, and what follows its colon.
fn field(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => value.push(chars.next()?.1),
            ':' => return Some((value, &text[at + 1..])),
            _ => value.push(c),
        }
    }
    None
}

/// The last field goes to the end of the line; a colon in it may be escaped or not.
fn unescape(text: &str) -> String {
    let mut value = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\\' {
            value.extend(chars.next());
        } else {
            value.push(c);
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn config() -> Config {
        Config::new(Host::Tcp("h".into()), 5432, "u:x", "d")
    }

    #[test]
    fn debug_shows_nothing() {
        let mut config = config();
        config.password = Some(Password::new("hunter2"));
        assert!(!format!("{config:?} {config}").contains("hunter2"));
    }

    #[test]
    fn lines_match_as_in_libpq() {
        let of =
            |line: &str| in_line(line, &config()).map(|p| String::from_utf8(p.expose().to_vec()).unwrap());
        assert_eq!(of(r"h:5432:d:u\:x:pa\:ss\\w"), Some(r"pa:ss\w".into()));
        assert_eq!(of("*:*:*:*:p:q"), Some("p:q".into()));
        assert_eq!(of(r"\*:*:*:*:p"), None);
        assert_eq!(of("# h:5432:d:u:p"), None);
        assert_eq!(of(r"h:5433:d:u\:x:p"), None);
        assert_eq!(of("h:5432:d"), None);
        assert_eq!(of("*:*:*:*:"), Some(String::new()));
        let socket = Config::unix("/tmp".as_ref(), 1, "u", "d");
        assert!(in_line("localhost:1:d:u:p", &socket).is_some());
        assert!(in_line("/tmp:1:d:u:p", &socket).is_some());
    }

    #[test]
    fn the_file_must_be_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pass");
        std::fs::write(&path, "*:*:*:*:p\n").unwrap();
        let name = path.to_string_lossy().into_owned();
        let env = |key: &str| (key == "PGPASSFILE").then(|| name.clone());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = find(&config(), &env).unwrap_err();
        assert!(error.to_string().contains("chmod 0600"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(find(&config(), &env).unwrap(), Some(Password::new("p")));
        std::fs::write(&path, "h:*:*:*:\n*:*:*:*:p\n").unwrap();
        assert_eq!(find(&config(), &env).unwrap(), None, "the first line that matches decides");
        std::fs::write(&path, "*:*:*:*:p\n").unwrap();
        assert_eq!(
            find(&config(), &|k| (k == "PGPASSWORD").then(|| "e".into())).unwrap(),
            Some(Password::new("e"))
        );
        assert_eq!(find(&config(), &|_| None).unwrap(), None);
    }
}

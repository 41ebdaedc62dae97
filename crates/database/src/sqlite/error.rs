//! SQLite's errors in the terms of this crate.

use rusqlite::ffi;

use crate::{Error, ErrorClass};

/// Translates an error of SQLite or of its binding.
pub(crate) fn translate(error: rusqlite::Error) -> Error {
    use rusqlite::Error as E;
    match error {
        E::SqliteFailure(failure, message) => {
            let message = message.unwrap_or_else(|| ffi::code_to_str(failure.extended_code).to_lowercase());
            Error::new(class(failure.extended_code), message).with_code(name(failure.extended_code))
        }
        E::SqlInputError { error, msg, sql, offset } => {
            let translated = Error::new(class(error.extended_code), msg).with_code(name(error.extended_code));
            match usize::try_from(offset).ok().and_then(|offset| sql.get(offset..)) {
                Some(rest) if !rest.is_empty() => {
                    translated.with_help(format!("at: {}", rest.chars().take(80).collect::<String>()))
                }
                _ => translated,
            }
        }
        E::MultipleStatement => {
            Error::new(ErrorClass::Statement, "the text contains more than one statement")
        }
        E::InvalidPath(path) => Error::usage(format!("{} is not a path that SQLite can use", path.display())),
        E::NulError(_) => Error::new(ErrorClass::Statement, "the text contains a zero byte"),
        other => Error::new(ErrorClass::Server, other.to_string()),
    }
}

fn class(extended: i32) -> ErrorClass {
    match extended & 0xff {
        // The log's index could not be made as large as it has to be: the way a full disk shows there.
        _ if extended == ffi::SQLITE_IOERR_SHMSIZE => ErrorClass::DiskFull,
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => ErrorClass::LockNotAvailable,
        ffi::SQLITE_INTERRUPT => ErrorClass::Timeout,
        ffi::SQLITE_FULL => ErrorClass::DiskFull,
        ffi::SQLITE_CONSTRAINT => ErrorClass::Constraint,
        ffi::SQLITE_ERROR
        | ffi::SQLITE_MISMATCH
        | ffi::SQLITE_RANGE
        | ffi::SQLITE_TOOBIG
        | ffi::SQLITE_SCHEMA => ErrorClass::Statement,
        ffi::SQLITE_NOTADB | ffi::SQLITE_CANTOPEN | ffi::SQLITE_READONLY | ffi::SQLITE_PERM => {
            ErrorClass::Usage
        }
        _ => ErrorClass::Server,
    }
}

/// SQLite's name for a code; the primary code's name when the extended one says nothing more.
fn name(extended: i32) -> &'static str {
    match extended {
        ffi::SQLITE_BUSY_SNAPSHOT => "SQLITE_BUSY_SNAPSHOT",
        ffi::SQLITE_BUSY_RECOVERY => "SQLITE_BUSY_RECOVERY",
        ffi::SQLITE_CONSTRAINT_CHECK => "SQLITE_CONSTRAINT_CHECK",
        ffi::SQLITE_CONSTRAINT_FOREIGNKEY => "SQLITE_CONSTRAINT_FOREIGNKEY",
        ffi::SQLITE_CONSTRAINT_NOTNULL => "SQLITE_CONSTRAINT_NOTNULL",
        ffi::SQLITE_CONSTRAINT_PRIMARYKEY => "SQLITE_CONSTRAINT_PRIMARYKEY",
        ffi::SQLITE_CONSTRAINT_ROWID => "SQLITE_CONSTRAINT_ROWID",
        ffi::SQLITE_CONSTRAINT_UNIQUE => "SQLITE_CONSTRAINT_UNIQUE",
        ffi::SQLITE_CORRUPT_INDEX => "SQLITE_CORRUPT_INDEX",
        ffi::SQLITE_IOERR_READ => "SQLITE_IOERR_READ",
        ffi::SQLITE_IOERR_SHORT_READ => "SQLITE_IOERR_SHORT_READ",
        ffi::SQLITE_IOERR_WRITE => "SQLITE_IOERR_WRITE",
        ffi::SQLITE_IOERR_FSYNC => "SQLITE_IOERR_FSYNC",
        ffi::SQLITE_IOERR_TRUNCATE => "SQLITE_IOERR_TRUNCATE",
        ffi::SQLITE_IOERR_SHMSIZE => "SQLITE_IOERR_SHMSIZE",
        ffi::SQLITE_READONLY_DBMOVED => "SQLITE_READONLY_DBMOVED",
        ffi::SQLITE_READONLY_DIRECTORY => "SQLITE_READONLY_DIRECTORY",
        ffi::SQLITE_CANTOPEN_ISDIR => "SQLITE_CANTOPEN_ISDIR",
        _ => match extended & 0xff {
            ffi::SQLITE_ERROR => "SQLITE_ERROR",
            ffi::SQLITE_INTERNAL => "SQLITE_INTERNAL",
            ffi::SQLITE_PERM => "SQLITE_PERM",
            ffi::SQLITE_ABORT => "SQLITE_ABORT",
            ffi::SQLITE_BUSY => "SQLITE_BUSY",
            ffi::SQLITE_LOCKED => "SQLITE_LOCKED",
            ffi::SQLITE_NOMEM => "SQLITE_NOMEM",
            ffi::SQLITE_READONLY => "SQLITE_READONLY",
            ffi::SQLITE_INTERRUPT => "SQLITE_INTERRUPT",
            ffi::SQLITE_IOERR => "SQLITE_IOERR",
            ffi::SQLITE_CORRUPT => "SQLITE_CORRUPT",
            ffi::SQLITE_NOTFOUND => "SQLITE_NOTFOUND",
            ffi::SQLITE_FULL => "SQLITE_FULL",
            ffi::SQLITE_CANTOPEN => "SQLITE_CANTOPEN",
            ffi::SQLITE_PROTOCOL => "SQLITE_PROTOCOL",
            ffi::SQLITE_SCHEMA => "SQLITE_SCHEMA",
            ffi::SQLITE_TOOBIG => "SQLITE_TOOBIG",
            ffi::SQLITE_CONSTRAINT => "SQLITE_CONSTRAINT",
            ffi::SQLITE_MISMATCH => "SQLITE_MISMATCH",
            ffi::SQLITE_MISUSE => "SQLITE_MISUSE",
            ffi::SQLITE_NOLFS => "SQLITE_NOLFS",
            ffi::SQLITE_AUTH => "SQLITE_AUTH",
            ffi::SQLITE_RANGE => "SQLITE_RANGE",
            ffi::SQLITE_NOTADB => "SQLITE_NOTADB",
            _ => "SQLITE_UNKNOWN",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_known_in_each_of_its_forms() {
        for code in [ffi::SQLITE_FULL, ffi::SQLITE_IOERR_SHMSIZE] {
            let error = translate(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None));
            assert_eq!(error.class(), ErrorClass::DiskFull, "{error}");
        }
        let error = translate(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_READ), None));
        assert_eq!(error.class(), ErrorClass::Server);
    }
}

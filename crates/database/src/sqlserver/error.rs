//! The server's errors as the workspace's error.

use super::wire::Fields;
use crate::{Error, ErrorClass, Result};

/// Why a request that we cancelled has ended.
pub(crate) fn cancelled() -> Error {
    Error::new(ErrorClass::Timeout, "the statement was cancelled")
}

/// Babelfish's number of errors of PostgreSQL's that SQL Server has none for.
const WITHOUT_A_NUMBER: i32 = 33_557_097;

/// The class of an error, by its number and its severity.
fn class(number: i32, severity: u8) -> ErrorClass {
    match number {
        1205 => ErrorClass::Deadlock,
        1222 => ErrorClass::LockNotAvailable,
        // Snapshot isolation, and conflicts and dependencies of memory-optimised tables.
        3960 | 41301 | 41302 | 41305 | 41325 | 41839 => ErrorClass::SerializationFailure,
        // Full: filegroup, log, tempdb's version store, quota of the service.
        1101 | 1105 | 3257 | 3958 | 3959 | 3966 | 3967 | 5149 | 9002 | 40544 => ErrorClass::DiskFull,
        2601 | 2627 | 547 | 515 | 1505 => ErrorClass::Constraint,
        18450..=18452 | 18456..=18463 | 18470 | 18486..=18488 | 916 | 33147 => ErrorClass::Authentication,
        // The database that the login names.
        911 | 4060 => ErrorClass::Usage,
        // Shut down, killed, restarted, recovering, failed over.
        596
        | 904
        | 921
        | 922
        | 6005
        | 6006
        | 17142..=17148
        | 18401
        | 40197
        | 40613
        | 40143
        | 42108
        | 42109 => ErrorClass::ConnectionLost,
        // Reads that failed or gave something else than was written: no statement's fault, and no repetition helps.
        // Damaged pages, and what a routine of the user's raises.
        823..=825 | 605 => ErrorClass::Server,
        50_000.. if number != WITHOUT_A_NUMBER => ErrorClass::Server,
        _ => match severity {
            0..=16 => ErrorClass::Statement,
            20.. => ErrorClass::ConnectionLost,
            _ => ErrorClass::Server,
        },
    }
}

fn help(number: i32) -> Option<&'static str> {
    Some(match number {
        18456 => {
            "check user and password: MSSQL_PASSWORD, SQLCMDPASSWORD, or the password typed at the prompt"
        }
        18452 => "Windows accounts cannot log in with a password; use a SQL login or an access token",
        18486..=18488 => "the login has to be unlocked, or its password changed, on the server",
        4060 | 911 => "create it first (CREATE DATABASE), or name another one in the URL",
        9002 => "free the log (log backup, or recovery model simple) or let it grow",
        1222 => "SET LOCK_TIMEOUT sets how long the server waits",
        3952 => "ALTER DATABASE … SET ALLOW_SNAPSHOT_ISOLATION ON",
        10928 | 10929 => "use fewer users",
        823..=825 => {
            "check the disk and the database (DBCC CHECKDB): this error indicates corruption or a \
        failing disk"
        }
        _ => return None,
    })
}

/// An error that a routine of the server hands out as data.
pub fn error(number: i32, severity: u8, state: u8, message: &str) -> Error {
    coded(number, severity, state, message.to_owned())
}

fn coded(number: i32, severity: u8, state: u8, message: String) -> Error {
    Error::new(class(number, severity), message).with_code(format!("{number}/{severity}/{state}"))
}

/// The content of an ERROR or INFO token: its error and severity. Its code is number, severity and state, `1205/13/51`.
pub(crate) fn from_token(body: &[u8]) -> Result<(Error, u8)> {
    let mut fields = Fields(body);
    let number = i32::from_le_bytes(fields.array()?);
    let [state, severity] = fields.array()?;
    let mut message = fields.long_text()?;
    let _server = fields.short_text()?;
    let routine = fields.short_text()?;
    let line = fields.u32()?;
    if message.is_empty() {
        "the server reported an error without a message".clone_into(&mut message);
    }
    let place = match (routine.is_empty(), line) {
        (true, 0 | 1) => None,
        (true, line) => Some(format!("at line {line}")),
        (false, line) => Some(format!("at line {line} of {routine}")),
    };
    let mut error = coded(number, severity, state, message);
    let said: Vec<&str> = place.as_deref().into_iter().chain(help(number)).collect();
    if !said.is_empty() {
        error = error.with_help(said.join("\n"));
    }
    Ok((error, severity))
}

/// The server's number of an error of its own.
pub(crate) fn number(error: &Error) -> Option<i32> {
    error.code().0.split('/').next()?.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::wire::put_utf16;
    use super::*;

    /// The content of an ERROR token.
    pub(crate) fn token(
        number: i32,
        severity: u8,
        state: u8,
        message: &str,
        routine: &str,
        line: u32,
    ) -> Vec<u8> {
        let mut out = number.to_le_bytes().to_vec();
        out.extend([state, severity]);
        out.extend((message.encode_utf16().count() as u16).to_le_bytes());
        put_utf16(&mut out, message);
        out.push(3);
        put_utf16(&mut out, "srv");
        out.push(routine.len() as u8);
        put_utf16(&mut out, routine);
        out.extend(line.to_le_bytes());
        out
    }

    #[test]
    fn numbers_have_classes_and_only_what_can_succeed_again_is_repeated() {
        for (number, severity, expected) in [
            (1205, 13, ErrorClass::Deadlock),
            (1222, 16, ErrorClass::LockNotAvailable),
            (3960, 16, ErrorClass::SerializationFailure),
            (823, 24, ErrorClass::Server),
            (824, 24, ErrorClass::Server),
            (9002, 17, ErrorClass::DiskFull),
            (1105, 17, ErrorClass::DiskFull),
            (2627, 14, ErrorClass::Constraint),
            (547, 16, ErrorClass::Constraint),
            (18456, 14, ErrorClass::Authentication),
            (4060, 11, ErrorClass::Usage),
            (102, 15, ErrorClass::Statement),
            (208, 16, ErrorClass::Statement),
            (596, 21, ErrorClass::ConnectionLost),
            (922, 14, ErrorClass::ConnectionLost),
            (18_401, 14, ErrorClass::ConnectionLost),
            (50_000, 16, ErrorClass::Server),
            (33_557_097, 16, ErrorClass::Statement),
            (701, 17, ErrorClass::Server),
            (4014, 20, ErrorClass::ConnectionLost),
        ] {
            assert_eq!(class(number, severity), expected, "{number}");
            assert_eq!(expected.is_retryable(), matches!(number, 1205 | 1222 | 3960), "{number}");
        }
    }

    #[test]
    fn a_token_is_shown_with_number_severity_state_and_line() {
        let body = token(1205, 13, 51, "Transaction was \u{1b}[31mdeadlocked", "neword", 42);
        let (error, severity) = from_token(&body).unwrap();
        assert_eq!(error.to_string(), "Transaction was  [31mdeadlocked (1205/13/51)\n  at line 42 of neword");
        assert_eq!((severity, number(&error)), (13, Some(1205)));
        for length in 0..body.len() {
            assert_eq!(from_token(&body[..length]).unwrap_err().class(), ErrorClass::Protocol);
        }
    }
}

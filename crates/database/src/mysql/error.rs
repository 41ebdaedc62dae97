//! The server's errors as the workspace's error.

use super::wire::Fields;
use crate::stream::printable;
use crate::{Error, ErrorClass};

/// The class of an error, by its number, its SQLSTATE and, where both say nothing, its words.
fn class(number: u16, state: &str, message: &str) -> ErrorClass {
    match number {
        1213 => ErrorClass::Deadlock,
        1205 | 3572 => ErrorClass::LockNotAvailable,
        // The record has changed since it was read (MariaDB, innodb_snapshot_isolation).
        1020 => ErrorClass::SerializationFailure,
        // Interrupted by KILL QUERY, max_statement_time and max_execution_time.
        1317 | 1969 | 3024 => ErrorClass::Timeout,
        // Shut down, connection killed, idle for too long, and what breaks off a packet.
        1053 | 1077 | 1079 | 1080 | 1152 | 1158..=1161 | 1184 | 1927 | 4031 => ErrorClass::ConnectionLost,
        1021 | 1114 | 3675 => ErrorClass::DiskFull,
        1044 | 1045 | 1129 | 1130 | 1251 | 1275 | 1698 | 1820 | 1862 | 3118 | 4151 => {
            ErrorClass::Authentication
        }
        1049 => ErrorClass::Usage,
        3819 | 4025 => ErrorClass::Constraint,
        // Too many connections, of all and of one user.
        1040 | 1203 | 1226 => ErrorClass::Server,
        1210 | 1243 | 1265 | 1292 | 1295 | 1364 | 1366 => ErrorClass::Statement,
        _ if message.contains("No space left on device") || message.contains("Got error 28 ") => {
            ErrorClass::DiskFull
        }
        _ => match state.get(..2) {
            Some("40") => ErrorClass::SerializationFailure,
            Some("08") => ErrorClass::ConnectionLost,
            Some("28") => ErrorClass::Authentication,
            Some("23") => ErrorClass::Constraint,
            Some("42" | "22" | "21") => ErrorClass::Statement,
            _ => ErrorClass::Server,
        },
    }
}

/// An ERR packet, its first byte included: the error and its number. Its code is number and SQLSTATE, `1213/40001`.
pub(crate) fn from_packet(body: &[u8]) -> (Error, u16) {
    let mut fields = Fields(body.get(1..).unwrap_or_default());
    let number = fields.u16().unwrap_or(0);
    let mut state = String::new();
    if let [b'#', rest @ ..] = fields.0
        && let Some((found, text)) = rest.split_at_checked(5)
    {
        state = printable(found);
        fields.0 = text;
    }
    let mut message = printable(fields.0);
    if message.is_empty() {
        "the server reported an error without a message".clone_into(&mut message);
    }
    let help = match number {
        1045 => Some(
            "check user and password: MYSQL_PWD, [client] in ~/.my.cnf, or the password typed at the prompt",
        ),
        1698 => Some("this user authenticates as an operating-system user, through the unix socket only"),
        1049 => Some("create it first (CREATE DATABASE), or name another one in the URL"),
        1046 => Some("name one in the URL: mysql://user@host/database"),
        1040 | 1203 | 1226 => Some(
            "use fewer users, raise max_connections, or leave two connections free for monitoring \
            (--no-observe needs none)",
        ),
        1129 => Some("to unblock this host, run mysqladmin flush-hosts on the server"),
        1153 => Some("raise max_allowed_packet, or send smaller statements"),
        1205 => Some("innodb_lock_wait_timeout sets how long the server waits"),
        _ => None,
    };
    let code = if state.is_empty() { number.to_string() } else { format!("{number}/{state}") };
    let mut error = Error::new(class(number, &state, &message), message).with_code(code);
    if let Some(help) = help {
        error = error.with_help(help);
    }
    (error, number)
}

/// Whether the server closes the connection after this error.
pub(crate) fn ends_the_session(error: &Error, number: u16) -> bool {
    // A packet that is larger than allowed, or that the server could not read.
    error.class() == ErrorClass::ConnectionLost || matches!(number, 1153 | 1156 | 1157 | 1835)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_states_have_classes() {
        for (number, state, message, expected) in [
            (1213, "40001", "Deadlock found", ErrorClass::Deadlock),
            (1205, "HY000", "Lock wait timeout exceeded", ErrorClass::LockNotAvailable),
            (1317, "70100", "Query execution was interrupted", ErrorClass::Timeout),
            (1969, "70100", "max_statement_time exceeded", ErrorClass::Timeout),
            (1053, "08S01", "Server shutdown in progress", ErrorClass::ConnectionLost),
            (1927, "70100", "Connection was killed", ErrorClass::ConnectionLost),
            (1040, "08004", "Too many connections", ErrorClass::Server),
            (1114, "HY000", "The table 't' is full", ErrorClass::DiskFull),
            (
                1026,
                "HY000",
                "Error writing file (Errcode: 28 \"No space left on device\")",
                ErrorClass::DiskFull,
            ),
            (1030, "HY000", "Got error 28 \"…\" from storage engine", ErrorClass::DiskFull),
            (1045, "28000", "Access denied", ErrorClass::Authentication),
            (1062, "23000", "Duplicate entry", ErrorClass::Constraint),
            (3819, "HY000", "Check constraint is violated", ErrorClass::Constraint),
            (1064, "42000", "You have an error in your SQL syntax", ErrorClass::Statement),
            (1264, "22003", "Out of range", ErrorClass::Statement),
            (1105, "HY000", "Unknown error", ErrorClass::Server),
            (0, "", "", ErrorClass::Server),
            (7, "é", "", ErrorClass::Server),
        ] {
            assert_eq!(class(number, state, message), expected, "{number} {state}");
        }
    }

    #[test]
    fn a_packet_is_shown_in_full_and_without_control_characters() {
        let (error, number) = from_packet(b"\xff\x26\x04#23000Duplicate \x1b[31mentry");
        assert_eq!((error.to_string().as_str(), number), ("Duplicate  [31mentry (1062/23000)", 1062));
        let (error, _) = from_packet(b"\xff\x10\x04Too many connections");
        assert_eq!((error.code().0.as_str(), error.class()), ("1040", ErrorClass::Server));
        for cut in [&b""[..], b"\xff", b"\xff\x01", b"\xff\x01\x00#123"] {
            assert_eq!(from_packet(cut).0.class(), ErrorClass::Server);
        }
    }
}

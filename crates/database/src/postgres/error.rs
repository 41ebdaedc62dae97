//! The server's errors as the workspace's error.

use super::backend::Fields;
use crate::stream::printable;
use crate::{Error, ErrorClass};

/// The class that an SQLSTATE belongs to.
pub(crate) fn class(code: &str) -> ErrorClass {
    match code {
        "40001" => ErrorClass::SerializationFailure,
        "40P01" => ErrorClass::Deadlock,
        "55P03" => ErrorClass::LockNotAvailable,
        "57014" => ErrorClass::Timeout,
        // Shut down, crashed, starting, database dropped, session or transaction ended for being too long.
        "57P01" | "57P02" | "57P03" | "57P04" | "57P05" | "25P03" | "25P04" => ErrorClass::ConnectionLost,
        "53100" => ErrorClass::DiskFull,
        "3D000" => ErrorClass::Usage,
        "08P01" => ErrorClass::Protocol,
        _ => match code.get(..2) {
            Some("08") => ErrorClass::ConnectionLost,
            Some("28") => ErrorClass::Authentication,
            Some("23") => ErrorClass::Constraint,
            Some("42" | "22") => ErrorClass::Statement,
            _ => ErrorClass::Server,
        },
    }
}

/// An ErrorResponse, and whether it ends the session.
pub(crate) fn from_response(body: &[u8]) -> (Error, bool) {
    let mut fields = Fields(body);
    let (mut code, mut message, mut fatal) = (String::new(), String::new(), false);
    let mut help: Vec<String> = Vec::new();
    // A message that breaks off still has its first fields.
    while let (Ok(kind @ 1..), Ok(text)) = (fields.byte(), fields.string()) {
        let text = printable(text);
        match kind {
            b'S' | b'V' => fatal |= text == "FATAL" || text == "PANIC",
            b'C' => code = text,
            b'M' => message = text,
            b'D' | b'H' => help.push(text),
            b'P' => help.push(format!("at character {text} of the statement")),
            b'W' => help.push(format!("context: {text}")),
            _ => {}
        }
    }
    if message.is_empty() {
        "the server reported an error without a message".clone_into(&mut message);
    }
    match code.as_str() {
        "28P01" => help.push("check PGPASSWORD, ~/.pgpass, or the password typed at the prompt".to_owned()),
        "3D000" => help.push("create it first (createdb), or name another one in the URL".to_owned()),
        "26000" | "42P05" => help.push(
            "a pooler in transaction mode does not support prepared statements: add \
             prepared_statements=false to the URL"
                .to_owned(),
        ),
        "08P01" if message.starts_with("unsupported startup parameter") => help.push(
            "a pooler does not pass on options= or PGOPTIONS: set the options on the server, for the role or \
             the database"
                .to_owned(),
        ),
        "53300" => help.push("use fewer users, raise max_connections, or leave two connections free for \
            monitoring (--no-observe needs none)".to_owned()),
        _ => {}
    }
    let mut error = Error::new(class(&code), message).with_code(code);
    if !help.is_empty() {
        error = error.with_help(help.join("\n"));
    }
    (error, fatal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_classes() {
        for (code, expected) in [
            ("40001", ErrorClass::SerializationFailure),
            ("40P01", ErrorClass::Deadlock),
            ("57P01", ErrorClass::ConnectionLost),
            ("08006", ErrorClass::ConnectionLost),
            ("28P01", ErrorClass::Authentication),
            ("23505", ErrorClass::Constraint),
            ("42P01", ErrorClass::Statement),
            ("22003", ErrorClass::Statement),
            ("53100", ErrorClass::DiskFull),
            ("53300", ErrorClass::Server),
            ("é", ErrorClass::Server),
            ("", ErrorClass::Server),
        ] {
            assert_eq!(class(code), expected, "{code}");
        }
    }

    #[test]
    fn a_response_is_reported_in_full_and_without_control_characters() {
        let (error, fatal) =
            from_response(b"SFEHLER\0VERROR\0C23505\0Mduplicate \x1b[31mkey\0DKey (a)=(1).\0Htry\0P7\0\0");
        assert!(!fatal);
        assert_eq!(error.class(), ErrorClass::Constraint);
        assert_eq!(
            error.to_string(),
            "duplicate  [31mkey (23505)\n  Key (a)=(1).\n  try\n  at character 7 of the statement"
        );
        assert!(from_response(b"VFATAL\0C57P01\0Mx\0\0").1);
        assert_eq!(from_response(b"").0.class(), ErrorClass::Server);
    }
}

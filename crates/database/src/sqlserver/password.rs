//! Sources of passwords and access tokens.

use std::path::Path;

pub use crate::password::{Password, is_missing};
use crate::password::{missing_for, must_be_private};
use crate::{Error, Result};

/// The server accepts no login without a password.
pub(crate) fn missing(user: &str) -> Error {
    missing_for(user, "set MSSQL_PASSWORD or SQLCMDPASSWORD, or answer the prompt")
}

/// Looks for the password where the clients do: MSSQL_PASSWORD, then SQLCMDPASSWORD.
pub fn find(env: &dyn Fn(&str) -> Option<String>) -> Option<Password> {
    ["MSSQL_PASSWORD", "SQLCMDPASSWORD"]
        .into_iter()
        .find_map(|name| env(name).filter(|password| !password.is_empty()))
        .map(Password::new)
}

/// Reads an access token (Entra) out of its file, which others must not be able to read.
pub(crate) fn read_token(path: &Path) -> Result<Password> {
    let unusable =
        |e: std::io::Error| Error::usage(format!("the access token {} cannot be read: {e}", path.display()));
    must_be_private(path, &std::fs::metadata(path).map_err(unusable)?)?;
    let text = std::fs::read_to_string(path).map_err(unusable)?;
    let token = text.trim();
    if token.is_empty() || token.contains(char::is_whitespace) {
        return Err(Error::usage(format!("{} does not contain an access token", path.display()))
            .with_help("az account get-access-token --resource https://database.windows.net/ prints one"));
    }
    Ok(Password::new(token))
}

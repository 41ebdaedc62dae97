//! The keys by which the NATS server authenticates its clients: a file with the seed, readable only by its
//! owner, and the public key.

use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use nkeys::KeyPair;

use crate::error::FleetError;

/// The largest file that is read; a seed has 58 characters.
const LONGEST: u64 = 1024;

/// Creates a key and its file. Returns the public key.
pub(crate) fn make(path: &Path) -> Result<String, FleetError> {
    let pair = KeyPair::new_user();
    let seed = pair.seed().map_err(|error| FleetError::Refused(error.to_string()))?;
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = opened.and_then(|mut file| file.write_all(format!("{seed}\n").as_bytes()));
    written.map_err(FleetError::file(path))?;
    Ok(pair.public_key())
}

/// Reads the seed from a file.
pub(crate) fn read_seed(path: &Path) -> Result<String, FleetError> {
    let facts = std::fs::metadata(path).map_err(FleetError::file(path))?;
    if facts.permissions().mode() & 0o077 != 0 {
        return Err(FleetError::Refused(format!(
            "{}: other users can read this key; run chmod 600",
            path.display()
        )));
    }
    let is_key = facts.len() <= LONGEST;
    let text =
        if is_key { std::fs::read_to_string(path).map_err(FleetError::file(path))? } else { String::new() };
    let seed = text.trim();
    KeyPair::from_seed(seed).map_err(|error| {
        FleetError::Refused(format!("{}: not the seed of an nkey ({error})", path.display()))
    })?;
    Ok(seed.to_owned())
}

/// The public key of the seed in a file.
pub(crate) fn public(path: &Path) -> Result<String, FleetError> {
    let seed = read_seed(path)?;
    KeyPair::from_seed(&seed)
        .map(|pair| pair.public_key())
        .map_err(|error| FleetError::Refused(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_owners() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent.nk");
        let public_key = make(&path).unwrap();
        assert!(public_key.starts_with('U') && public(&path).unwrap() == public_key);
        assert!(make(&path).is_err(), "a key is not written over");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read_seed(&path).unwrap_err().to_string().contains("chmod 600"));
        std::fs::write(&path, "nonsense").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(read_seed(&path).unwrap_err().to_string().contains("not the seed"));
    }
}

//! Directories of the user's data, from environment variables.

use std::path::PathBuf;

use kelvin_database::ServerDirectories;
use kelvin_database::managed::Manager;
use kelvin_database::target::Target;

use crate::error::Doing;
use crate::error::StoreBenchError;

/// The user's data directory for Kelvin: `$XDG_DATA_HOME/kelvin`, or `~/.local/share/kelvin`. An error where neither variable
/// has an absolute path.
pub fn data() -> Result<PathBuf, StoreBenchError> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
    let refused = || {
        StoreBenchError::Refused(
            "neither XDG_DATA_HOME nor HOME is set; give the store with --store FILE".into(),
        )
    };
    Ok(base.ok_or_else(refused)?.join("kelvin"))
}

/// The directory of managed servers. The unprivileged user of the server must be able to reach it, which is
/// impossible below root's home.
pub fn servers() -> Result<PathBuf, StoreBenchError> {
    if let Some(path) = std::env::var_os("KELVIN_SERVERS") {
        return Ok(path.into());
    }
    if rustix::process::geteuid().is_root() { Ok("/var/lib/kelvin".into()) } else { data() }
}

/// The directory for journals of changed servers; none if it does not exist.
pub fn existing_journals() -> Option<PathBuf> {
    let directory = data().ok()?.join("settings");
    directory.is_dir().then_some(directory)
}

/// The directory for journals of changed servers; created if it does not exist.
pub fn settings_journals() -> Result<PathBuf, StoreBenchError> {
    let directory = data()?.join("settings");
    std::fs::create_dir_all(&directory).doing(format!("cannot create {}", directory.display()))?;
    Ok(directory)
}

/// The path of a server's journal; the same for every user and database of that server. Its name begins with
/// `of`.
pub fn settings_journal(target: &Target, of: &str) -> Result<PathBuf, StoreBenchError> {
    let refused = || StoreBenchError::Refused(format!("{target} has no server with settings"));
    let server = target.settings_key().ok_or_else(refused)?;
    Ok(settings_journals()?.join(format!("{of}{server}.journal")))
}

/// The prefix of journals of server instruments.
pub const INSTRUMENTS: &str = "instruments_";

/// The prefix of journals of advice that is being proved.
pub const ADVICE: &str = "advice_";

/// The prefix of journals of limits; each process has a separate journal.
pub const LIMITS: &str = "limits_";

/// The directory for dumps of databases that have no room for snapshots next to them.
fn dumps() -> Result<PathBuf, StoreBenchError> {
    Ok(data()?.join("snapshots"))
}

/// The directories of servers, for the engines.
pub(crate) fn of_servers() -> kelvin_database::Result<ServerDirectories> {
    let unusable = |error: StoreBenchError| kelvin_database::Error::usage(error.to_string());
    let manager = Manager::new(servers().map_err(unusable)?);
    Ok(ServerDirectories { manager, dumps: dumps().map_err(unusable)? })
}

/// A temporary directory for a database that exists for one run. `/var/tmp` is preferred to `/tmp`, which is
/// in memory on many systems: a benchmark there would not measure a disk.
pub fn scratch() -> Result<tempfile::TempDir, StoreBenchError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("kelvin-");
    let asked = std::env::var_os("TMPDIR").map(PathBuf::from);
    let made = match asked {
        Some(directory) => builder.tempdir_in(directory),
        None => builder.tempdir_in("/var/tmp").or_else(|_| builder.tempdir()),
    };
    made.doing("cannot create a directory for a temporary database")
}

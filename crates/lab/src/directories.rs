//! Directories of the user's data, from environment variables.

use std::path::PathBuf;

use kelvin_database::Host;
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
    let server = match target {
        Target::Postgres(config) => (&config.host, config.port),
        Target::Mysql(config) => (&config.host, config.port),
        Target::ManagedPostgres { .. } | Target::ManagedMysql { .. } => {
            return Ok(settings_journals()?.join(format!("{of}{target}.journal").replace(':', "_")));
        }
        Target::Sqlite { .. } | Target::SqlServer(_) => {
            return Err(StoreBenchError::Refused(format!("{target} has no server with settings")));
        }
    };
    let host = match server.0 {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.to_string_lossy().into_owned(),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' };
    let name: String = host.chars().map(plain).collect();
    Ok(settings_journals()?.join(format!("{of}{name}_{}.journal", server.1)))
}

/// The prefix of journals of server instruments.
pub const INSTRUMENTS: &str = "instruments_";

/// The prefix of journals of advice that is being proved.
pub const ADVICE: &str = "advice_";

/// The prefix of journals of limits; each process has a separate journal.
pub const LIMITS: &str = "limits_";

/// The directory for dumps of databases that have no room for snapshots next to them.
pub fn dumps() -> Result<PathBuf, StoreBenchError> {
    Ok(data()?.join("snapshots"))
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

//! The PostgreSQL server binaries installed on this host.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::managed::HostResources;
use crate::{Error, Result};

/// One installed server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// Directory with `postgres`, `initdb` and `pg_ctl`.
    pub directory: PathBuf,
    /// Major version, such as 15.
    pub major: u32,
    /// The output of `postgres --version`, such as "postgres (PostgreSQL) 15.18 (Debian …)".
    pub version: String,
}

/// All servers installed here, newest first, one per major version.
pub fn installed() -> Vec<Installation> {
    let mut found: Vec<Installation> =
        directories().iter().filter_map(|directory| examine(directory)).collect();
    // A stable sort: of two servers with the same major version the first one found is kept.
    found.sort_by_key(|installation| std::cmp::Reverse(installation.major));
    found.dedup_by_key(|installation| installation.major);
    found
}

/// The server of the requested major version, or the newest.
pub(crate) fn choose(version: Option<u32>) -> Result<Installation> {
    let mut found = installed();
    let majors: Vec<String> = found.iter().map(|installation| installation.major.to_string()).collect();
    let index = match version {
        None => (!found.is_empty()).then_some(0),
        Some(asked) => found.iter().position(|installation| installation.major == asked),
    };
    index.map(|index| found.swap_remove(index)).ok_or_else(|| {
        let package = version.map_or_else(|| "postgresql".to_owned(), |asked| format!("postgresql-{asked}"));
        let what = version.map_or_else(String::new, |asked| format!(" {asked}"));
        let there = if majors.is_empty() { "none".to_owned() } else { majors.join(", ") };
        Error::usage(format!("no PostgreSQL{what} server is installed here (found: {there})")).with_help(format!(
            "install one (Debian, Ubuntu: apt-get install {package}; Fedora: dnf install postgresql-server), \
             add its bin directory to PATH, or name a running server: --target postgres://user@host/database"
        ))
    })
}

/// Where servers are installed by distributions, by PostgreSQL's own packages and by hand.
fn directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    directories.extend(below("/usr/lib/postgresql", "", "bin"));
    directories.extend(below("/usr", "pgsql-", "bin"));
    directories.extend(below("/opt", "p", "bin"));
    directories.extend(below("/opt/homebrew/opt", "postgresql", "bin"));
    directories.push("/usr/local/pgsql/bin".into());
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output() {
        directories.push(String::from_utf8_lossy(&output.stdout).trim().into());
    }
    directories
}

/// `root/*/last` for every entry of `root` whose name begins with `prefix`, in descending order of name.
fn below(root: &str, prefix: &str, last: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path().join(last))
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

fn examine(directory: &Path) -> Option<Installation> {
    if !["postgres", "initdb", "pg_ctl"].iter().all(|name| directory.join(name).is_file()) {
        return None;
    }
    let output = Command::new(directory.join("postgres")).arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    let major = major(&version)?;
    // Binaries behind a link (PATH) find their libraries and share files by their real place.
    let directory = directory.canonicalize().ok()?;
    Some(Installation { directory, major, version })
}

/// The major version in "postgres (PostgreSQL) 15.18 (Debian …)", also of "17beta1".
fn major(version: &str) -> Option<u32> {
    let number = version.split("(PostgreSQL) ").nth(1)?;
    let digits = number.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

impl HostResources {
    /// With the defaults that depend on these binaries.
    pub(crate) fn with_binaries(self, binaries: &Path) -> Self {
        Self { statements: has_statements(binaries), ..self }
    }
}

/// Whether the binaries in this directory have the module, which is part of PostgreSQL's contrib package. The path of
/// modules is compiled into the server; these are the paths of Debian's and PostgreSQL's packages, of a local build,
/// and of the distributions that install the binaries in /usr/bin.
fn has_statements(binaries: &Path) -> bool {
    // Whole directories and single programs are linked to; the server finds its files from its real place.
    let Ok(server) = binaries.join("postgres").canonicalize() else { return false };
    ["../lib", "../lib/postgresql", "../lib64/pgsql", "../lib/pgsql"].iter().any(|place| {
        server.parent().is_some_and(|real| real.join(place).join("pg_stat_statements.so").is_file())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_every_form() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 17beta1"), Some(17));
        assert_eq!(major("postgres (PostgreSQL) 9.6.24"), Some(9));
        assert_eq!(major("cockroach 22"), None);
    }

    #[test]
    fn a_missing_version_is_refused_with_the_installed_ones() {
        let error = choose(Some(7)).unwrap_err();
        assert!(error.message().contains("no PostgreSQL 7 server is installed here (found: "), "{error}");
        assert!(error.help().unwrap().contains("apt-get install postgresql-7"));
    }
}

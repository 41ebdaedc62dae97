//! The MySQL and MariaDB server binaries installed on this host.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mysql::Product;
use crate::{Error, Result};

/// One installed server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The server's program.
    pub(super) program: PathBuf,
    /// The product.
    pub product: Product,
    /// The series, such as (10, 11): an older server cannot read the data files of a newer series.
    pub series: (u32, u32),
    /// The version that it reports: "10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)".
    pub version: String,
}

impl Installation {
    /// Directory of an unpacked archive; `None` for the server that the system installed, which knows its directories.
    pub(super) fn base(&self) -> Option<&Path> {
        let base = self.program.parent()?.parent()?;
        (!["/usr", "/", "/usr/local"].iter().any(|system| base == Path::new(system))).then_some(base)
    }

    /// MariaDB's script that makes the data.
    pub(super) fn install_script(&self) -> Option<PathBuf> {
        let base = self.program.parent()?.parent()?;
        ["bin", "scripts"]
            .iter()
            .flat_map(|part| {
                ["mariadb-install-db", "mysql_install_db"].map(|name| base.join(part).join(name))
            })
            .find(|path| path.is_file())
    }

    /// Its profiles.
    pub(super) fn profiles(&self) -> crate::mysql::MysqlProfiles {
        crate::mysql::MysqlProfiles { product: self.product, series: self.series }
    }

    /// The name of its instance's directory.
    pub(super) fn name(&self) -> String {
        format!("{}-{}.{}", self.product.word(), self.series.0, self.series.1)
    }
}

/// The newest installed server of the product.
pub(super) fn choose(product: Product) -> Result<Installation> {
    let all = installed();
    let found = all.iter().filter(|one| one.product == product).max_by_key(|one| one.series);
    found.cloned().ok_or_else(|| {
        let package = match product {
            Product::Mariadb => "mariadb-server",
            Product::Mysql => "mysql-server",
        };
        let other = all.first().map_or_else(String::new, |one| {
            format!("; {} {} is installed: --target {}", one.product, one.version, one.product.word())
        });
        Error::usage(format!("no {product} server is installed here{other}")).with_help(format!(
            "install one (Debian, Ubuntu: apt-get install {package}), add its directory to PATH, or name a \
             running server: --target {}://user@host/database",
            product.word()
        ))
    })
}

/// All servers installed here.
fn installed() -> Vec<Installation> {
    let mut directories: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    for known in
        ["/usr/sbin", "/usr/libexec", "/usr/local/sbin", "/usr/local/mysql/bin", "/usr/local/libexec"]
    {
        directories.push(known.into());
    }
    let mut seen: Vec<PathBuf> = directories
        .iter()
        .flat_map(|directory| ["mariadbd", "mysqld"].map(|name| directory.join(name)))
        // Debian's mysqld is a link to mariadbd.
        .filter_map(|path| path.canonicalize().ok())
        .collect();
    let mut unique = Vec::new();
    seen.retain(|path| {
        !unique.contains(path) && {
            unique.push(path.clone());
            true
        }
    });
    seen.iter().filter_map(|program| examine(program)).collect()
}

fn examine(program: &Path) -> Option<Installation> {
    let output = Command::new(program).args(["--no-defaults", "--version"]).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    let (product, series, version) = read(&said)?;
    Some(Installation { program: program.to_owned(), product, series, version })
}

/// From "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)".
fn read(said: &str) -> Option<(Product, (u32, u32), String)> {
    let version = said.split_once("Ver ")?.1.trim();
    let product = if version.contains("MariaDB") { Product::Mariadb } else { Product::Mysql };
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    let series = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((product, series, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_servers_say() {
        let (product, series, version) =
            read("mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n")
                .unwrap();
        assert_eq!((product, series), (Product::Mariadb, (10, 11)));
        assert!(version.starts_with("10.11.19-MariaDB") && version.ends_with("(Debian 12)"));
        let said = "/x/mysqld  Ver 8.0.31 for Linux on x86_64 (MySQL Community Server - GPL)";
        assert_eq!(read(said).map(|found| (found.0, found.1)), Some((Product::Mysql, (8, 0))));
        assert!(read("mysqld: unknown option").is_none());
    }
}

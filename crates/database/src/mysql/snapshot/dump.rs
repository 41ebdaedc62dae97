//! Dumps by MySQL's and MariaDB's own programs: `mariadb-dump` or `mysqldump`, restored by `mariadb` or `mysql`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::sessions;
use crate::client::Host;
use crate::mysql::engine::version;
use crate::mysql::{Config, MysqlEngine, Product, SslMode};
use crate::snapshot::SnapshotStore;
use crate::snapshot::dump::{DumpPrograms, Dumps};
use crate::{Engine, Error, ErrorClass, Result, Session};

/// The dump program and the client of one product.
#[derive(Debug, Clone)]
struct MysqlDumps {
    config: Config,
    /// Directory of the programs of an unpacked server.
    base: Option<PathBuf>,
}

/// Keeps dumps of the database that `config` names below `directory`, which is made when needed. `base` is where an unpacked
/// server's programs are looked for first.
pub(crate) fn dumps(config: Config, base: Option<PathBuf>, directory: &Path) -> Box<dyn SnapshotStore> {
    Box::new(Dumps::new(MysqlDumps { config, base }, directory))
}

/// The programs that dump and restore a server of this product; `None` where they are not installed. The programs of
/// one product are not used for a server of the other.
pub fn programs(product: Product, base: Option<&Path>) -> Option<(PathBuf, PathBuf)> {
    let mut directories: Vec<PathBuf> = base.into_iter().map(|base| base.join("bin")).collect();
    directories.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    directories.extend(["/usr/bin", "/usr/local/bin", "/usr/local/mysql/bin"].map(PathBuf::from));
    let is_of = |program: &Path| {
        let said = Command::new(program).arg("--version").stdin(Stdio::null()).output();
        let mariadb = said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("MariaDB"));
        mariadb == (product == Product::Mariadb)
    };
    let find = |names: &[&str]| {
        let places =
            directories.iter().flat_map(|directory| names.iter().map(move |name| directory.join(name)));
        places.into_iter().find(|path| path.is_file() && is_of(path))
    };
    match product {
        Product::Mariadb => Some((find(&["mariadb-dump", "mysqldump"])?, find(&["mariadb", "mysql"])?)),
        Product::Mysql => Some((find(&["mysqldump"])?, find(&["mysql"])?)),
    }
}

impl MysqlDumps {
    fn product(&self) -> Result<Product> {
        Ok(version(self.engine().connect()?.as_mut())?.1)
    }

    fn programs(&self, product: Product) -> Result<(PathBuf, PathBuf)> {
        programs(product, self.base.as_deref()).ok_or_else(|| {
            Error::usage(format!("a dump needs the client programs of {product} on this host")).with_help(
                match product {
                    Product::Mariadb => {
                        "install them (Debian: apt-get install mariadb-client), or use --reset reload"
                    }
                    Product::Mysql => "install mysqldump and mysql of MySQL, or use --reset reload",
                },
            )
        })
    }

    /// The program with the connection's options. The password is passed in the environment, where no other user can
    /// read it.
    fn command(&self, program: &Path, product: Product) -> Command {
        let config = &self.config;
        let mut command = Command::new(program);
        command.arg("--no-defaults").arg(format!("--user={}", config.user));
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("MYSQL_") || name.starts_with("MARIADB_")) {
                command.env_remove(name);
            }
        }
        match &config.host {
            Host::Unix(socket) => {
                command.arg("--protocol=socket").arg(format!("--socket={}", socket.display()));
            }
            Host::Tcp(host) => {
                command.arg("--protocol=tcp").arg(format!("--host={host}"));
                command.arg(format!("--port={}", config.port)).args(tls(config, product));
            }
        }
        if let Some(password) = &config.password {
            use std::os::unix::ffi::OsStrExt;
            command.env("MYSQL_PWD", std::ffi::OsStr::from_bytes(password.expose()));
        }
        command.env("LC_ALL", "C").stdin(Stdio::null());
        command
    }
}

/// The TLS options of each product's programs. MariaDB's verify either the certificate and the host name, or nothing.
fn tls(config: &Config, product: Product) -> Vec<String> {
    let mut flags: Vec<String> = match (product, config.ssl_mode) {
        (Product::Mysql, SslMode::Disable) => vec!["--ssl-mode=DISABLED".into()],
        (Product::Mysql, SslMode::Prefer) => vec!["--ssl-mode=PREFERRED".into()],
        (Product::Mysql, SslMode::Require) => vec!["--ssl-mode=REQUIRED".into()],
        (Product::Mysql, SslMode::VerifyCa) => vec!["--ssl-mode=VERIFY_CA".into()],
        (Product::Mysql, SslMode::VerifyFull) => vec!["--ssl-mode=VERIFY_IDENTITY".into()],
        (Product::Mariadb, SslMode::Disable) => vec!["--skip-ssl".into()],
        (Product::Mariadb, SslMode::Prefer) => Vec::new(),
        (Product::Mariadb, SslMode::Require) => vec!["--ssl".into()],
        (Product::Mariadb, SslMode::VerifyCa | SslMode::VerifyFull) => {
            vec!["--ssl".into(), "--ssl-verify-server-cert".into()]
        }
    };
    if let Some(path) = &config.ssl_root_certificate {
        flags.push(format!("--ssl-ca={}", path.display()));
    }
    flags
}

impl DumpPrograms for MysqlDumps {
    fn engine(&self) -> Box<dyn Engine> {
        Box::new(MysqlEngine::new(self.config.clone()))
    }

    fn target(&self) -> String {
        self.config.to_string()
    }

    fn dump(&self, to: &Path) -> Result<(&'static str, Command)> {
        let product = self.product()?;
        let mut command = self.command(&self.programs(product)?.0, product);
        // A consistent snapshot of all tables; values are dumped unchanged, whatever their characters; each table's
        // rows are in one transaction.
        command.args(["--single-transaction", "--quick", "--hex-blob", "--routines", "--triggers"]);
        command.args(["--no-autocommit", "--no-tablespaces", "--skip-comments"]);
        command.args(["--default-character-set=utf8mb4", "--net-buffer-length=1M"]);
        if product == Product::Mysql {
            command.args(["--set-gtid-purged=OFF", "--column-statistics=0"]);
        }
        command.arg(format!("--result-file={}", to.display())).arg("--").arg(&self.config.database);
        Ok(("the dump", command))
    }

    fn restore(&self, from: &Path) -> Result<(&'static str, Command, String)> {
        let product = self.product()?;
        let mut command = self.command(&self.programs(product)?.1, product);
        command.args(["--batch", "--default-character-set=utf8mb4"]);
        command.arg(format!("--database={}", self.config.database));
        let file = std::fs::File::open(from)
            .map_err(|error| Error::new(ErrorClass::Usage, format!("{}: {error}", from.display())))?;
        command.stdin(file);
        Ok(("the restore", command, format!("{product}'s client")))
    }

    fn must_be_alone(&self, session: &mut dyn Session) -> Result<()> {
        sessions::must_be_alone(session, &self.config.database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_in_no_argument() {
        let mut config = Config::new(Host::Tcp("db".into()), 3306, "me", "shop");
        config.password = Some(crate::mysql::Password::new("hunter2"));
        let dumps = MysqlDumps { config, base: None };
        for product in [Product::Mariadb, Product::Mysql] {
            let command = dumps.command(Path::new("/x/dump"), product);
            assert!(!command.get_args().any(|word| word.to_string_lossy().contains("hunter2")));
            assert!(command.get_envs().any(|(name, value)| name == "MYSQL_PWD" && value.is_some()));
        }
        assert!(!format!("{dumps:?}").contains("hunter2"));
    }
}

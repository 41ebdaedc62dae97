//! The user a server runs as: PostgreSQL, MySQL and MariaDB refuse to run as root.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Gid, Uid};

use crate::{Error, Result};

/// A user of this host, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// This process is root and has to become that user.
    switch: bool,
}

impl Account {
    /// [`Account::for_server`] of PostgreSQL.
    pub(crate) fn for_data(data: &Path) -> Result<Self> {
        Self::for_server("PostgreSQL", "postgres", data)
    }

    /// The account that runs a server whose data is, or will be, in `data`: the owner of the data, or this user, or,
    /// for root, the server's own user or `nobody`.
    pub(crate) fn for_server(server: &str, user: &str, data: &Path) -> Result<Self> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let switch = uid == 0;
        if let Ok(metadata) = std::fs::metadata(data) {
            if metadata.uid() == 0 {
                return Err(Error::usage(format!(
                    "{} belongs to root, and {server} refuses to run as root",
                    data.display()
                ))
                .with_help("change its owner to an unprivileged user (chown -R), or remove it"));
            }
            if !switch && metadata.uid() != uid {
                return Err(Error::usage(format!("{} belongs to another user", data.display()))
                    .with_help("run kelvin as that user or as root, or choose another directory"));
            }
            return Ok(Self { uid: metadata.uid(), gid: metadata.gid(), switch });
        }
        if !switch {
            return Ok(Self { uid, gid, switch });
        }
        let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        [user, "nobody"].iter().find_map(|name| look_up(&passwd, name)).map_or_else(
            || {
                Err(Error::usage(format!(
                    "{server} refuses to run as root, and there is no user {user} or nobody"
                ))
                .with_help(format!("create one: useradd --system {user}")))
            },
            |(uid, gid)| Ok(Self { uid, gid, switch }),
        )
    }

    /// A command that runs as this user, in a directory it can enter and with an environment free of PG*.
    pub(crate) fn command(&self, program: &Path, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin");
        // Ctrl-C is handled by kelvin: a pg_ctl that received it while the server starts would stop the server.
        command.stdin(Stdio::null()).process_group(0);
        for name in ["LD_LIBRARY_PATH", "TZ"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if self.switch {
            // The standard library drops the supplementary groups of root when the user changes.
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Creates a directory that only this user can enter, or checks that an existing one is private.
    pub(crate) fn make_private_directory(&self, path: &Path) -> Result<()> {
        let failed =
            |error: std::io::Error| Error::usage(format!("{} cannot be created: {error}", path.display()));
        match std::fs::create_dir(path) {
            Ok(()) => {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).map_err(failed)?;
                if self.switch {
                    rustix::fs::chown(path, Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
                        .map_err(|error| failed(error.into()))?;
                }
                Ok(())
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                // Not followed: in /tmp another user could have created a link there.
                let metadata = std::fs::symlink_metadata(path).map_err(failed)?;
                if metadata.is_dir() && metadata.uid() == self.uid && metadata.mode().trailing_zeros() >= 6 {
                    return Ok(());
                }
                Err(Error::usage(format!(
                    "{} exists and is not a private directory of this user",
                    path.display()
                ))
                .with_help("remove it, or choose another directory"))
            }
            Err(error) => Err(failed(error)),
        }
    }
}

/// User and group numbers of `name` in the text of a password file.
fn look_up(passwd: &str, name: &str) -> Option<(u32, u32)> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        (uid != 0).then_some((uid, gid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_their_whole_name_and_root_never() {
        let passwd = "root:x:0:0::/root:/bin/sh\npostgresql:x:5:5::/:/bin/sh\npostgres:x:101:104:PostgreSQL,,,:/:/bin/sh\n\
                      broken\nevil:x:0:0::/:/bin/sh\n";
        assert_eq!(look_up(passwd, "postgres"), Some((101, 104)));
        assert_eq!(look_up(passwd, "nobody"), None);
        assert_eq!(look_up(passwd, "evil"), None);
        assert_eq!(look_up(passwd, "broken"), None);
    }
}

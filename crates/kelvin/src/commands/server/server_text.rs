//! Text about servers and their settings.

use kelvin_database::mysql::managed::Status as MysqlStatus;
use kelvin_database::postgres::managed::Status;
use kelvin_database::settings::{ChangeTime, Difference};

use crate::out;

const WIDTH: usize = 100;

/// The status of a managed PostgreSQL.
pub(super) fn status(status: &Status) -> String {
    let state = match (status.pid, status.answers) {
        (Some(pid), true) => format!("running, process {pid}"),
        (Some(pid), false) => format!("process {pid} does not respond"),
        (None, _) => "stopped".into(),
    };
    let uptime = status.uptime.map_or(String::new(), |time| format!(", up {} s", time.as_secs()));
    format!(
        "PostgreSQL {}: {state}{uptime}\n  version  {}\n  profile  {}\n  socket   {}\n  data     {} ({:.1} MB)\n",
        status.major,
        status.version,
        status.profile.as_deref().unwrap_or("default"),
        status.socket_directory.display(),
        status.data_directory.display(),
        status.size as f64 / 1e6,
    )
}

/// The status of a managed MySQL or MariaDB.
pub(super) fn mysql_status(status: &MysqlStatus) -> String {
    let state = status.pid.map_or_else(|| "stopped".to_owned(), |pid| format!("running, process {pid}"));
    let uptime = status.uptime.map_or(String::new(), |time| format!(", up {} s", time.as_secs()));
    format!(
        "{}: {state}{uptime}\n  profile  {}\n  socket   {}\n  data     {} ({:.1} MB)\n",
        status.name,
        status.profile,
        status.socket.display(),
        status.data_directory.display(),
        status.size as f64 / 1e6,
    )
}

/// Differences from a profile: a line for each setting, with the profile's reason below.
pub(super) fn differences(server: &str, profile: &str, found: &[Difference]) -> String {
    if found.is_empty() {
        return format!("{server} has every setting of the profile {profile}\n");
    }
    let settings = if found.len() == 1 { "1 setting" } else { &format!("{} settings", found.len()) };
    let mut text = format!("{server} differs from the profile {profile} in {settings}:\n");
    // A value set by a statement overrides the profile's file, and no configuration file of the user shows it.
    let has = |one: &Difference| match &one.server {
        Some(value) if ["ALTER SYSTEM", "SET PERSIST", "SET GLOBAL"].contains(&one.source.as_str()) => {
            format!("{value} ({})", one.source)
        }
        Some(value) => value.clone(),
        None => "unknown".into(),
    };
    let wide = |heading: &str, values: &dyn Fn(&Difference) -> String| {
        let widest = found.iter().map(|one| values(one).chars().count()).max().unwrap_or(0);
        widest.max(heading.chars().count())
    };
    let (name, present, wanted) = (
        wide("setting", &|one| one.name.clone()),
        wide("server", &has),
        wide("profile", &|one| one.wanted.clone()),
    );
    let mut row = |cells: [&str; 4]| {
        let line = format!("  {:name$}  {:present$}  {:wanted$}  {}", cells[0], cells[1], cells[2], cells[3]);
        text.push_str(line.trim_end());
        text.push('\n');
    };
    row(["setting", "server", "profile", "changes"]);
    let mut rows = Vec::new();
    for one in found {
        let at = match (&one.server, one.when) {
            (None, _) => "never: the server lacks it",
            (_, ChangeTime::AfterRestart) => "after a restart",
            (_, ChangeTime::InItsFiles) => "in the server's option file, after a restart",
            (_, ChangeTime::Now) => "immediately",
        };
        rows.push((one, at));
    }
    for (one, at) in rows {
        row([&one.name, &has(one), &one.wanted, at]);
    }
    let mut reasons = String::new();
    for one in found.iter().filter(|one| !one.reason.is_empty()) {
        out::wrapped(&mut reasons, &format!("{}: {}", one.name, one.reason), 2, 4, WIDTH);
    }
    if !reasons.is_empty() {
        text.push_str(&format!("reasons for the profile's values:\n{reasons}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_read_at_a_glance() {
        let one = |name: &str, server: Option<&str>, wanted: &str, restart| Difference {
            name: name.into(),
            server: server.map(str::to_owned),
            source: "configuration file".into(),
            wanted: wanted.into(),
            reason: if restart {
                "the tables fit here, and once more in the page cache, so that no read of the load goes to the disk".into()
            } else {
                String::new()
            },
            when: if restart { ChangeTime::AfterRestart } else { ChangeTime::Now },
        };
        let found = [
            one("shared_buffers", Some("128MB"), "9641MB", true),
            one("fsync", Some("on"), "off", false),
            one("huge_page_size", None, "2MB", false),
        ];
        insta::assert_snapshot!(differences("PostgreSQL 15", "steady", &found), @r"
        PostgreSQL 15 differs from the profile steady in 3 settings:
          setting         server   profile  changes
          shared_buffers  128MB    9641MB   after a restart
          fsync           on       off      immediately
          huge_page_size  unknown  2MB      never: the server lacks it
        reasons for the profile's values:
          shared_buffers: the tables fit here, and once more in the page cache, so that no read of the load
            goes to the disk
        ");
        assert_eq!(differences("x", "y", &[]), "x has every setting of the profile y\n");
    }
}

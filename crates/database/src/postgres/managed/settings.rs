//! The section of a managed server's `postgresql.conf` that is Kelvin's: where the server is, and its profile.

use std::fmt::Write;
use std::path::Path;

use crate::managed::{HostResources, Line, Profile};
use crate::postgres::settings::quoted;
use crate::{Error, Result};

const BEGIN: &str = "# --- kelvin: begin ---";
const END: &str = "# --- kelvin: end ---";

/// Begins the settings of a server while data are loaded; they end with the section.
const LOADING: &str = "# While data are loaded:\n";

const PROFILE: &str = "# Profile: ";
const PROFILE_END: &str = "# End of the profile.";

const MIB: u64 = 1 << 20;

/// What every managed server has, whatever its profile.
fn common(host: HostResources, socket_directory: &Path, port: u16) -> Vec<Line> {
    let mut lines = vec![
        Line::new("listen_addresses", "", "unix socket only; only its user and root can open it"),
        Line::new("unix_socket_directories", socket_directory.to_string_lossy(), "a private directory"),
        Line::new("port", port.to_string(), "part of the socket's name only"),
        Line::new("max_connections", "2200", "one connection per virtual user, plus a reserve"),
    ];
    if host.shared < 256 * MIB {
        lines.push(Line::new(
            "dynamic_shared_memory_type",
            "mmap",
            "/dev/shm is too small for parallel queries (container)",
        ));
    }
    if host.statements {
        lines.push(Line::new(
            "shared_preload_libraries",
            "pg_stat_statements",
            "statistics per statement; costs a fraction of a microsecond each",
        ));
    }
    lines
}

/// The section for `postgresql.conf`: what every server has, then the profile, then `extra`; the last one counts.
pub(crate) fn section(
    major: u32,
    host: HostResources,
    socket_directory: &Path,
    port: u16,
    profile: &Profile,
    extra: &[(&str, &str)],
) -> Result<String> {
    let mut text = format!(
        "{BEGIN}\n# Kelvin writes this section whenever it starts this PostgreSQL {major}; changes here are \
         lost.\n# Add your own settings below it: the last value of a setting applies.\n"
    );
    for line in common(host, socket_directory, port) {
        let _ = writeln!(text, "# {}\n{} = {}", line.reason, line.name, quoted(&line.value)?);
    }
    let _ = writeln!(text, "{PROFILE}{}", profile.name);
    text.push_str(&profile.text()?);
    text.push_str(PROFILE_END);
    text.push('\n');
    for (name, value) in extra {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(Error::usage(format!("{name:?} is not the name of a PostgreSQL setting")));
        }
        let _ = writeln!(text, "# set by option\n{name} = {}", quoted(value)?);
    }
    text.push_str(END);
    text.push('\n');
    Ok(text)
}

/// The profile that is in the section; none in one that a version of Kelvin without profiles wrote.
pub(crate) fn profile(configuration: &str) -> Option<Profile> {
    let section = configuration.get(configuration.find(BEGIN)?..configuration.find(END)?)?;
    let named = &section[section.find(PROFILE)? + PROFILE.len()..];
    let (name, rest) = named.split_once('\n')?;
    Profile::parse(name, &rest[..rest.find(PROFILE_END)?]).ok()
}

/// `configuration` with settings for a load at the end of its section; as it is without a section.
pub(crate) fn with_loading(configuration: &str, lines: &[Line]) -> Result<String> {
    let plain = without_loading(configuration);
    let Some(end) = plain.find(END) else { return Ok(plain) };
    let mut text = format!("{}{LOADING}", &plain[..end]);
    for line in lines {
        let _ = writeln!(text, "# {}\n{} = {}", line.reason, line.name, quoted(&line.value)?);
    }
    text.push_str(&plain[end..]);
    Ok(text)
}

/// `configuration` without the settings for a load.
pub(crate) fn without_loading(configuration: &str) -> String {
    match (configuration.find(LOADING), configuration.find(END)) {
        (Some(begin), Some(end)) if begin < end => {
            format!("{}{}", &configuration[..begin], &configuration[end..])
        }
        _ => configuration.to_owned(),
    }
}

/// Whether the server has, or is to have, the settings for a load.
pub(crate) fn is_loading(configuration: &str) -> bool {
    without_loading(configuration) != configuration
}

/// `configuration` with its section replaced, or appended when there is none.
pub(crate) fn with_section(configuration: &str, section: &str) -> String {
    if let (Some(begin), Some(end)) = (configuration.find(BEGIN), configuration.find(END))
        && begin < end
    {
        let after = configuration[end + END.len()..].trim_start_matches('\n');
        return format!("{}{section}{after}", &configuration[..begin]);
    }
    format!("{}\n\n{section}", configuration.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: HostResources = HostResources::EXAMPLE;

    fn of(host: HostResources, place: &str, extra: &[(&str, &str)]) -> Result<String> {
        section(15, host, Path::new(place), 5432, &Profile::standard(host), extra)
    }

    #[test]
    fn what_the_host_lacks_is_left_out() {
        let large = of(HOST, "/run/x", &[]).unwrap();
        assert!(large.contains("\nport = '5432'\n") && !large.contains("dynamic_shared"), "{large}");
        let small = of(HostResources { shared: 64 << 20, statements: false, ..HOST }, "/run/x", &[]).unwrap();
        assert!(small.contains("\ndynamic_shared_memory_type = 'mmap'\n"));
        // A server that is to load what is not there does not start.
        assert!(large.contains("\nshared_preload_libraries = 'pg_stat_statements'\n"));
        assert!(!small.contains("shared_preload_libraries"));
        assert!(large.contains("\n# Profile: default\n") && large.contains("\nfsync = on\n"));
    }

    #[test]
    fn the_profile_is_read_from_the_section() {
        let text = with_section("a = 1\n", &of(HOST, "/run/x", &[("fsync", "off")]).unwrap());
        assert_eq!(profile(&text).unwrap(), Profile::standard(HOST));
        assert_eq!(profile("# --- kelvin: begin ---\nfsync = on\n# --- kelvin: end ---\n"), None);
        assert_eq!(profile("# --- kelvin: end ---\n# --- kelvin: begin ---\n"), None);
        // Comments of a user's file cannot end the section, or begin another profile.
        let tricky =
            "# --- kelvin: end ---\n# Profile: x\n# End of the profile.\nfsync = off\nwork_mem = 1MB\n";
        let mine = Profile::parse("mine.conf", tricky).unwrap();
        let text = section(15, HOST, Path::new("/run/x"), 5432, &mine, &[]).unwrap();
        let read = profile(&with_section("", &text)).unwrap();
        assert_eq!((read.name.as_str(), read.lines.len()), ("mine.conf", 2), "{text}");
    }

    #[test]
    fn the_section_is_replaced_and_the_users_own_lines_stay() {
        let first = of(HOST, "/run/x", &[("fsync", "off")]).unwrap();
        assert!(first.contains("\nfsync = 'off'\n"));
        let second = of(HOST, "/run/y", &[]).unwrap();
        let mut text = with_section("a = 1\n", &first);
        text.push_str("work_mem = 64MB\n");
        let text = with_section(&text, &second);
        assert!(text.starts_with("a = 1\n") && text.ends_with("\nwork_mem = 64MB\n"), "{text}");
        assert!(!text.contains("/run/x") && text.contains("/run/y"));
        assert_eq!(text.matches(BEGIN).count(), 1);
        assert_eq!(with_section(&text, &second), text);
    }

    #[test]
    fn settings_for_a_load_come_last_and_go_without_a_trace() {
        let text = with_section("a = 1\n", &of(HOST, "/run/x", &[("wal_level", "replica")]).unwrap());
        let lines = [Line::new("wal_level", "minimal", "no WAL")];
        let loading = with_loading(&text, &lines).unwrap();
        assert!(loading.rfind("wal_level = 'minimal'") > loading.rfind("wal_level = 'replica'"), "{loading}");
        assert!(is_loading(&loading) && !is_loading(&text));
        assert_eq!(with_loading(&loading, &lines).unwrap(), loading);
        assert_eq!(without_loading(&loading), text);
        assert_eq!(profile(&loading), profile(&text));
        let again = of(HOST, "/run/x", &[("wal_level", "replica")]).unwrap();
        assert_eq!(with_section(&loading, &again), text);
    }

    #[test]
    fn a_setting_cannot_bring_another_line() {
        for bad in [("fsync\nport", "1"), ("", "1"), ("fsync", "off'\nport = '1")] {
            assert!(of(HOST, "/run/x", &[bad]).is_err(), "{bad:?}");
        }
        let text = of(HOST, "/run/x'y", &[]).unwrap();
        assert!(text.contains("unix_socket_directories = '/run/x''y'"));
    }
}

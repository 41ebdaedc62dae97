//! Settings and huge pages of a server at the levels of a cell.

use super::access::{Access, Server};
use super::level::HugePages;
use super::{Factor, FactorKind, Level, kernel};

/// A server setting that a cell requires, with its factor and level.
pub(super) struct RequestedSetting<'a> {
    pub(super) factor: &'a Factor,
    pub(super) level: &'a Level,
    pub(super) name: String,
    pub(super) value: String,
}

/// The settings that the levels of a cell require.
pub(super) fn requested_settings<'a>(
    levels: &[(&'a Factor, &'a Level)],
) -> Result<Vec<RequestedSetting<'a>>, String> {
    let mut all = Vec::new();
    for &(factor, level) in levels {
        let mut add = |name: &str, value: String| {
            all.push(RequestedSetting { factor, level, name: name.into(), value });
        };
        match &factor.how {
            FactorKind::Setting(name) => add(name, level.value.text()),
            FactorKind::HugePages => match HugePages::read(&level.value)? {
                HugePages::Off => add("huge_pages", "off".into()),
                HugePages::Of { kilobytes } => {
                    add("huge_pages", "on".into());
                    // Since version 14; earlier servers use the kernel's default size.
                    add("huge_page_size", format!("{kilobytes}kB"));
                }
            },
            _ => {}
        }
    }
    Ok(all)
}

/// The settings whose present value differs: name and required value, and what the server has. The session is a new
/// one, because sessions that were open before reread changed files at another time than the server.
pub(super) fn differing<'a, 'b>(
    server: &Server,
    asked: &'b [RequestedSetting<'a>],
) -> Result<Vec<(&'b RequestedSetting<'a>, String)>, String> {
    let names: Vec<&str> = asked.iter().map(|one| one.name.as_str()).collect();
    let present = server
        .settings(|settings, session| settings.read(session, &names))
        .map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for one in asked {
        let Some(now) = present.iter().find(|now| now.name.eq_ignore_ascii_case(&one.name)) else { continue };
        if !now.has_value(&one.value) || now.pending_restart {
            let why = match now.source.as_str() {
                "configuration file" | "ALTER SYSTEM" | "SET PERSIST" | "SET GLOBAL" | "default"
                | "command line" => {
                    format!("the server has {}", now.value)
                }
                source => format!("the server has {} ({source})", now.value),
            };
            found.push((one, why));
        }
    }
    Ok(found)
}

/// The number of huge pages of `kilobytes` kB that the server will need: the required `shared_buffers`, the rest of
/// its shared memory now, and a sixteenth of the buffers for what grows with them (PostgreSQL 15 with 16 MB to 8 GB:
/// 2.4 to 3.9 % of the increase). A server that lacks three pages does not start.
pub(super) fn pages(server: &Server, asked: &[RequestedSetting<'_>], kilobytes: u64) -> Result<u64, String> {
    let as_text = |error: kelvin_database::Error| error.to_string();
    let mut session = server.session().map_err(as_text)?;
    let mut bytes = |sql: &str| -> Result<u64, String> {
        let rows = session.query(sql).map_err(as_text)?;
        rows.int(0, 0).map_err(as_text).map(i64::unsigned_abs)
    };
    let buffers = bytes("SELECT setting::bigint * 8192 FROM pg_settings WHERE name = 'shared_buffers'")?;
    // Servers before version 15 do not report it. The rest of their shared memory grows with the connections.
    let all = bytes(
        "SELECT coalesce((SELECT setting::bigint * 1048576 FROM pg_settings WHERE name = 'shared_memory_size'), \
         (SELECT setting::bigint * 65536 + 268435456 FROM pg_settings WHERE name = 'max_connections'))",
    )?;
    let rest = if all > buffers { all - buffers } else { all };
    let wanted = match asked.iter().find(|one| one.name.eq_ignore_ascii_case("shared_buffers")) {
        None => buffers,
        Some(one) => {
            let literal = one.value.replace(['\'', '\\'], "");
            let number = literal.trim().parse::<u64>().ok().map(|pages| pages * 8192);
            match number {
                Some(bytes) => bytes,
                None => bytes(&format!("SELECT pg_size_bytes('{literal}')"))?,
            }
        }
    };
    let total = rest + wanted + wanted / 16;
    Ok(total.div_ceil(kilobytes * 1024) + 4)
}

/// Whether the server's shared memory is in huge pages of this size.
pub(super) fn has_pages(server: &Server, kilobytes: u64) -> Result<bool, String> {
    kernel::maps_pages(server.process().map_err(|error| error.to_string())?, kilobytes)
}

/// Connects to the server of a target.
pub(super) fn reach(
    access: &Access,
    target: &kelvin_run::spec::TargetName,
    report: &mut dyn FnMut(&str),
) -> Result<Server, String> {
    let as_text = |error: kelvin_database::Error| error.to_string();
    let server = access.server(&target.target().map_err(as_text)?, report).map_err(as_text)?;
    server.engine.connect().map_err(|error| error.context(&server.target)).map_err(as_text)?;
    Ok(server)
}

//! The fastest possible reset method, and why.

use kelvin_database::postgres::snapshot::Facts;
use kelvin_database::snapshot::SnapshotMethod;
use kelvin_measure::text::few;

use kelvin_run::spec::ResetMethod;

/// The kind of database server.
#[derive(Debug, Clone)]
pub enum DataServer {
    /// A server that copies databases itself (PostgreSQL), and its facts.
    WithTemplates(Facts),
    /// A server whose data can be copied only while it is stopped (MySQL, MariaDB).
    OfFiles,
}

/// The facts on which the choice depends.
#[derive(Debug, Clone, Default)]
pub struct ResetOptions {
    /// The server; none on SQLite.
    pub server: Option<DataServer>,
    /// Whether the server is managed.
    pub managed: bool,
    /// Whether the workload can build its data.
    pub can_be_built: bool,
    /// Why the server cannot be dumped from this host: its client programs are not installed.
    pub no_dump: Option<String>,
    /// Tables in the database that do not belong to the workload.
    pub foreign: Vec<String>,
}

/// The method that restores the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenReset {
    /// A snapshot of this kind.
    Snapshot(SnapshotMethod),
    /// Building the data again.
    Reload,
}

impl ChosenReset {
    /// Its keyword.
    pub fn word(self) -> &'static str {
        match self {
            Self::Snapshot(way) => way.as_str(),
            Self::Reload => "reload",
        }
    }
}

/// Database size in bytes from which cloning the files of a stopped server is faster than copying in the running one.
/// The copy takes a second per half gigabyte; a stop and a start take two or three seconds.
const LARGE: u64 = 8 << 30;

/// The method, and the reason for it. A method requested by name is used wherever it is possible.
///
/// # Errors
/// When no suitable method is possible: the reason as text, with a remedy.
pub fn choose_method(asked: ResetMethod, ground: &ResetOptions) -> Result<(ChosenReset, String), String> {
    match asked {
        ResetMethod::None => Err("no reset was requested".into()),
        ResetMethod::Auto => fastest(ground),
        ResetMethod::Template => {
            template(ground).map(|()| asked_for(ChosenReset::Snapshot(SnapshotMethod::Template)))
        }
        ResetMethod::Files => files(ground).map(|()| asked_for(ChosenReset::Snapshot(SnapshotMethod::Files))),
        ResetMethod::Dump => dump(ground).map(|()| asked_for(ChosenReset::Snapshot(SnapshotMethod::Dump))),
        ResetMethod::Reload => reload(ground).map(|()| asked_for(ChosenReset::Reload)),
    }
}

fn asked_for(chosen: ChosenReset) -> (ChosenReset, String) {
    (chosen, "as requested".into())
}

fn fastest(ground: &ResetOptions) -> Result<(ChosenReset, String), String> {
    let Some(server) = &ground.server else {
        if !ground.foreign.is_empty() {
            return Err(format!(
                "the file also contains tables that do not belong to the workload ({}), and a reset would \
                 restore them as well: use a separate file for the load, or confirm the reset with --reset \
                 files",
                few(&ground.foreign, 4)
            ));
        }
        return Ok((ChosenReset::Snapshot(SnapshotMethod::Files), "SQLite uses a single file".into()));
    };
    if !ground.managed && !ground.foreign.is_empty() {
        return Err(format!(
            "the database also contains tables that do not belong to the workload ({}), and a reset would \
             restore them as well: use a separate database for the load, or confirm by naming the method \
             ({}), or rebuild only the workload's tables (--reset reload)",
            few(&ground.foreign, 4),
            match server {
                DataServer::WithTemplates(_) => "--reset template, --reset dump",
                DataServer::OfFiles => "--reset dump",
            }
        ));
    }
    let DataServer::WithTemplates(server) = server else {
        return if ground.managed {
            let why = "the files of the stopped server are copied";
            Ok((ChosenReset::Snapshot(SnapshotMethod::Files), why.into()))
        } else {
            dumped_or_reloaded(ground, "not kelvin's server, so no copy of its files")
        };
    };
    if ground.managed && server.clones && server.version < 180_000 && server.bytes >= LARGE {
        return Ok((
            ChosenReset::Snapshot(SnapshotMethod::Files),
            "the file system clones files, which costs nothing regardless of their size".into(),
        ));
    }
    let no_template = match template(ground) {
        Ok(()) => {
            let why = "the server copies files, bypassing WAL and shared buffers";
            return Ok((ChosenReset::Snapshot(SnapshotMethod::Template), why.into()));
        }
        Err(why) => why,
    };
    dumped_or_reloaded(ground, &format!("no template: {no_template}"))
}

/// The fallback where the faster methods are not possible, for the reason `why`.
fn dumped_or_reloaded(ground: &ResetOptions, why: &str) -> Result<(ChosenReset, String), String> {
    match dump(ground) {
        Ok(()) => Ok((ChosenReset::Snapshot(SnapshotMethod::Dump), why.to_owned())),
        Err(no_dump) => match reload(ground) {
            Ok(()) => Ok((ChosenReset::Reload, format!("{why}; no dump: {no_dump}"))),
            Err(no_reload) => Err(format!("{why}; no dump: {no_dump}; no reload: {no_reload}")),
        },
    }
}

fn template(ground: &ResetOptions) -> Result<(), String> {
    let server = match &ground.server {
        None => return Err("templates need a server; SQLite data are reset by files".into()),
        Some(DataServer::OfFiles) => {
            return Err(
                "MySQL and MariaDB cannot copy a database by themselves; use files, dump or reload".into()
            );
        }
        Some(DataServer::WithTemplates(facts)) => facts,
    };
    let refusals = [
        (
            !server.own_sessions,
            "databases cannot be swapped behind a pooler (prepared_statements=false); use the server's own \
            address",
        ),
        (
            !server.may_create,
            "the role cannot create databases; a superuser can grant that: ALTER ROLE … CREATEDB",
        ),
        (
            !server.owns,
            "the role does not own the database; a superuser can change that: ALTER DATABASE … OWNER TO …",
        ),
        (
            server.own_settings > 0,
            "the database has its own settings or privileges (ALTER DATABASE … SET, GRANT … ON DATABASE), a \
             subscription or a replication slot, which a copy would lack",
        ),
    ];
    match refusals.iter().find(|(refused, _)| *refused) {
        Some((_, why)) => Err((*why).into()),
        None => Ok(()),
    }
}

fn files(ground: &ResetOptions) -> Result<(), String> {
    if ground.server.is_some() && !ground.managed {
        return Err(
            "files can be copied only for SQLite and for servers that kelvin manages; use template, dump or \
             reload"
                .into(),
        );
    }
    Ok(())
}

fn dump(ground: &ResetOptions) -> Result<(), String> {
    if ground.server.is_none() {
        return Err("an SQLite file needs no dump; it is reset by copying the file (files)".into());
    }
    ground.no_dump.clone().map_or(Ok(()), Err)
}

fn reload(ground: &ResetOptions) -> Result<(), String> {
    if ground.can_be_built {
        return Ok(());
    }
    Err("kelvin did not build these data and cannot rebuild them".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Facts {
        Facts {
            version: 150_018,
            bytes: 1 << 30,
            may_create: true,
            owns: true,
            own_sessions: true,
            ..Facts::default()
        }
    }

    fn ground(server: Facts) -> ResetOptions {
        let server = Some(DataServer::WithTemplates(server));
        ResetOptions { server, can_be_built: true, ..ResetOptions::default() }
    }

    #[allow(clippy::unnecessary_wraps, reason = "the field's type")]
    fn no_dump() -> Option<String> {
        Some("pg_dump is not installed here".into())
    }

    fn auto(ground: &ResetOptions) -> Result<ChosenReset, String> {
        choose_method(ResetMethod::Auto, ground).map(|(chosen, _)| chosen)
    }

    #[test]
    fn the_fastest_possible_way_is_taken() {
        let snapshot = |way| Ok(ChosenReset::Snapshot(way));
        assert_eq!(auto(&ResetOptions::default()), snapshot(SnapshotMethod::Files), "SQLite");
        assert_eq!(auto(&ground(server())), snapshot(SnapshotMethod::Template));
        let large = Facts { bytes: LARGE, clones: true, ..server() };
        assert_eq!(
            auto(&ResetOptions { managed: true, ..ground(large.clone()) }),
            snapshot(SnapshotMethod::Files)
        );
        let newer = Facts { version: 180_001, ..large.clone() };
        assert_eq!(
            auto(&ResetOptions { managed: true, ..ground(newer) }),
            snapshot(SnapshotMethod::Template),
            "it clones itself"
        );
        assert_eq!(auto(&ground(large)), snapshot(SnapshotMethod::Template), "not ours to stop");
        let bound = Facts { may_create: false, ..server() };
        assert_eq!(auto(&ground(bound.clone())), snapshot(SnapshotMethod::Dump));
        assert_eq!(
            auto(&ResetOptions { no_dump: no_dump(), ..ground(bound.clone()) }),
            Ok(ChosenReset::Reload)
        );
        let nothing = ResetOptions { no_dump: no_dump(), can_be_built: false, ..ground(bound) };
        let error = auto(&nothing).unwrap_err();
        assert!(
            error.contains("CREATEDB") && error.contains("pg_dump") && error.contains("did not build"),
            "{error}"
        );
    }

    #[test]
    fn a_server_without_templates_is_reset_by_its_files_or_dumped_or_reloaded() {
        let other =
            ResetOptions { server: Some(DataServer::OfFiles), can_be_built: true, ..ResetOptions::default() };
        assert_eq!(auto(&other), Ok(ChosenReset::Snapshot(SnapshotMethod::Dump)));
        assert_eq!(auto(&ResetOptions { no_dump: no_dump(), ..other.clone() }), Ok(ChosenReset::Reload));
        let managed = ResetOptions { managed: true, ..other.clone() };
        assert_eq!(auto(&managed), Ok(ChosenReset::Snapshot(SnapshotMethod::Files)));
        assert!(
            choose_method(ResetMethod::Template, &managed).unwrap_err().contains("files, dump or reload")
        );
        let shared = ResetOptions { foreign: vec!["invoices".into()], ..other };
        assert!(auto(&shared).unwrap_err().contains("(--reset dump)"));
    }

    #[test]
    fn a_choice_has_its_reason() {
        let pooler = Facts { own_sessions: false, ..server() };
        let (_, why) = choose_method(ResetMethod::Auto, &ground(pooler)).unwrap();
        assert!(why.starts_with("no template: databases cannot be swapped behind a pooler"), "{why}");
        let (chosen, why) = choose_method(ResetMethod::Reload, &ground(server())).unwrap();
        assert_eq!((chosen, why.as_str()), (ChosenReset::Reload, "as requested"));
    }

    #[test]
    fn other_peoples_tables_are_put_back_only_when_somebody_says_so() {
        let shared = ResetOptions { foreign: vec!["invoices".into()], ..ground(server()) };
        assert!(auto(&shared).unwrap_err().contains("(invoices)"));
        assert!(choose_method(ResetMethod::Template, &shared).is_ok());
        assert_eq!(
            auto(&ResetOptions { managed: true, ..shared }),
            Ok(ChosenReset::Snapshot(SnapshotMethod::Template))
        );
        let names: Vec<String> = (0..6).map(|n| format!("t{n}")).collect();
        let file = ResetOptions { foreign: vec!["invoices".into()], ..ResetOptions::default() };
        assert!(auto(&file).unwrap_err().contains("(invoices)"));
        assert!(choose_method(ResetMethod::Files, &file).is_ok());
        assert_eq!(few(&names, 4), "t0, t1, t2, t3 and 2 more");
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        for (asked, ground, word) in [
            (ResetMethod::Template, ResetOptions::default(), "templates need a server"),
            (ResetMethod::Dump, ResetOptions::default(), "an SQLite file needs no dump"),
            (ResetMethod::Files, ground(server()), "servers that kelvin manages"),
            (ResetMethod::Template, ground(Facts { own_settings: 1, ..server() }), "settings or privileges"),
            (ResetMethod::Reload, ResetOptions { can_be_built: false, ..ground(server()) }, "did not build"),
        ] {
            let error = choose_method(asked, &ground).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}

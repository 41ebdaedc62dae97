//! The fastest possible reset method, and why.

use kelvin_database::snapshot::{SnapshotMethod, SnapshotMethods};
use kelvin_database::{DataLocation, Engine, Error};
use kelvin_measure::text::few;
use kelvin_run::spec::ResetMethod;
use kelvin_workload::WorkloadData;

use super::home;

/// Why there is only a reload.
const NO_SNAPSHOTS: &str = "kelvin keeps no snapshots of this database";

/// The facts on which the choice depends.
#[derive(Debug, Clone)]
pub struct ResetOptions {
    /// The methods of the database's snapshots; none where Kelvin keeps no snapshots of it.
    pub methods: Option<SnapshotMethods>,
    /// Whether the server is managed.
    pub managed: bool,
    /// Whether the workload can build its data; `None` where that would be no answer, as for a snapshot to be kept.
    pub can_be_built: Option<bool>,
    /// Tables in the database that do not belong to the workload.
    pub foreign: Vec<String>,
}

impl ResetOptions {
    /// Reads the facts. `data` is the workload's; without it every table counts as the workload's.
    ///
    /// # Errors
    /// When the database does not answer.
    pub fn read(
        place: &dyn DataLocation,
        engine: &dyn Engine,
        data: Option<&WorkloadData>,
    ) -> Result<Self, Error> {
        let ours = |table: &String| data.is_none_or(|data| data.tables.contains(&table.as_str()));
        Ok(Self {
            foreign: home(engine)?.tables()?.into_iter().filter(|table| !ours(table)).collect(),
            can_be_built: Some(data.is_some_and(|data| data.can_be_built)),
            methods: place.snapshot_methods()?,
            managed: place.is_managed(),
        })
    }
}

/// The method that restores the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenReset {
    /// A snapshot of this kind.
    Snapshot(SnapshotMethod),
    /// Building the data again.
    Reload,
}

/// The method, and the reason for it. A method requested by name is used wherever it is possible.
///
/// # Errors
/// When no suitable method is possible: the reason as text, with a remedy.
pub fn choose_method(asked: ResetMethod, options: &ResetOptions) -> Result<(ChosenReset, String), String> {
    match asked {
        ResetMethod::None => Err("no reset was requested".into()),
        ResetMethod::Auto => fastest(options),
        ResetMethod::Template => snapshot(options, SnapshotMethod::Template),
        ResetMethod::Files => snapshot(options, SnapshotMethod::Files),
        ResetMethod::Dump => snapshot(options, SnapshotMethod::Dump),
        ResetMethod::Reload => reload(options).map(|()| asked_for(ChosenReset::Reload)),
    }
}

fn asked_for(chosen: ChosenReset) -> (ChosenReset, String) {
    (chosen, "as requested".into())
}

fn snapshot(options: &ResetOptions, way: SnapshotMethod) -> Result<(ChosenReset, String), String> {
    let methods = options.methods.as_ref().ok_or(NO_SNAPSHOTS)?;
    match methods.refusal(way) {
        None => Ok(asked_for(ChosenReset::Snapshot(way))),
        Some(why) => Err(why.clone()),
    }
}

fn fastest(options: &ResetOptions) -> Result<(ChosenReset, String), String> {
    let Some(methods) = &options.methods else { return reloaded(options, NO_SNAPSHOTS.into()) };
    if !options.managed && !options.foreign.is_empty() {
        let naming = methods.naming().collect::<Vec<_>>().join(", ");
        let (container, remedy) = if methods.is_file {
            ("file", format!("confirm the reset with {naming}"))
        } else {
            let naming = format!("confirm by naming the method ({naming})");
            ("database", format!("{naming}, or rebuild only the workload's tables (--reset reload)"))
        };
        return Err(format!(
            "the {container} also contains tables that do not belong to the workload ({}), and a reset would \
             restore them as well: use a separate {container} for the load, or {remedy}",
            few(&options.foreign, 4)
        ));
    }
    match (&methods.fastest, &methods.no_dump) {
        (Ok((way, why)), _) => Ok((ChosenReset::Snapshot(*way), (*why).into())),
        (Err(why), None) => Ok((ChosenReset::Snapshot(SnapshotMethod::Dump), why.clone())),
        (Err(why), Some(no_dump)) => reloaded(options, format!("{why}; no dump: {no_dump}")),
    }
}

/// The fallback where no snapshot is possible, for the reason `why`.
fn reloaded(options: &ResetOptions, why: String) -> Result<(ChosenReset, String), String> {
    match (options.can_be_built, reload(options)) {
        (None, _) => Err(why),
        (Some(_), Ok(())) => Ok((ChosenReset::Reload, why)),
        (Some(_), Err(no_reload)) => Err(format!("{why}; no reload: {no_reload}")),
    }
}

fn reload(options: &ResetOptions) -> Result<(), String> {
    if options.can_be_built == Some(true) {
        return Ok(());
    }
    Err("kelvin did not build these data and cannot rebuild them".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that copies databases itself, unmanaged.
    fn server() -> SnapshotMethods {
        SnapshotMethods {
            no_template: None,
            no_files: Some("not kelvin's server".into()),
            no_dump: None,
            fastest: Ok((SnapshotMethod::Template, "the server copies it")),
            confirming: &[SnapshotMethod::Template, SnapshotMethod::Dump],
            is_file: false,
        }
    }

    fn without_template() -> SnapshotMethods {
        let why = "the role cannot create databases: CREATEDB";
        SnapshotMethods {
            no_template: Some(why.into()),
            fastest: Err(format!("no template: {why}")),
            ..server()
        }
    }

    fn file() -> SnapshotMethods {
        SnapshotMethods {
            no_template: Some("templates need a server".into()),
            no_files: None,
            no_dump: Some("a file needs no dump".into()),
            fastest: Ok((SnapshotMethod::Files, "a single file")),
            confirming: &[SnapshotMethod::Files],
            is_file: true,
        }
    }

    fn options(methods: SnapshotMethods) -> ResetOptions {
        ResetOptions { methods: Some(methods), managed: false, can_be_built: Some(true), foreign: Vec::new() }
    }

    fn without_dump() -> ResetOptions {
        let no_dump = Some("pg_dump is not installed here".into());
        options(SnapshotMethods { no_dump, ..without_template() })
    }

    fn auto(options: &ResetOptions) -> Result<ChosenReset, String> {
        choose_method(ResetMethod::Auto, options).map(|(chosen, _)| chosen)
    }

    #[test]
    fn the_fastest_possible_way_is_taken() {
        let snapshot = |way| Ok(ChosenReset::Snapshot(way));
        assert_eq!(auto(&options(file())), snapshot(SnapshotMethod::Files));
        assert_eq!(auto(&options(server())), snapshot(SnapshotMethod::Template));
        assert_eq!(auto(&options(without_template())), snapshot(SnapshotMethod::Dump));
        assert_eq!(auto(&without_dump()), Ok(ChosenReset::Reload));
        let error = auto(&ResetOptions { can_be_built: Some(false), ..without_dump() }).unwrap_err();
        assert!(
            error.contains("CREATEDB") && error.contains("pg_dump") && error.contains("did not build"),
            "{error}"
        );
    }

    #[test]
    fn data_without_snapshots_are_only_rebuilt() {
        let none = ResetOptions { methods: None, foreign: vec!["invoices".into()], ..options(server()) };
        assert_eq!(auto(&none), Ok(ChosenReset::Reload));
        assert!(choose_method(ResetMethod::Files, &none).unwrap_err().contains("no snapshots"));
        let error = auto(&ResetOptions { can_be_built: Some(false), ..none.clone() }).unwrap_err();
        assert!(error.contains("no snapshots") && error.contains("did not build"), "{error}");
        assert_eq!(auto(&ResetOptions { can_be_built: None, ..none }).unwrap_err(), NO_SNAPSHOTS);
    }

    #[test]
    fn a_choice_has_its_reason() {
        let (_, why) = choose_method(ResetMethod::Auto, &options(without_template())).unwrap();
        assert!(why.starts_with("no template: the role cannot create databases"), "{why}");
        let (_, why) = choose_method(ResetMethod::Auto, &without_dump()).unwrap();
        assert!(why.ends_with("CREATEDB; no dump: pg_dump is not installed here"), "{why}");
        let (chosen, why) = choose_method(ResetMethod::Reload, &options(server())).unwrap();
        assert_eq!((chosen, why.as_str()), (ChosenReset::Reload, "as requested"));
    }

    #[test]
    fn other_peoples_tables_are_put_back_only_when_somebody_says_so() {
        let shared = ResetOptions { foreign: vec!["invoices".into()], ..options(server()) };
        assert_eq!(
            auto(&shared).unwrap_err(),
            "the database also contains tables that do not belong to the workload (invoices), and a reset \
             would restore them as well: use a separate database for the load, or confirm by naming the method \
             (--reset template, --reset dump), or rebuild only the workload's tables (--reset reload)"
        );
        assert!(choose_method(ResetMethod::Template, &shared).is_ok());
        assert_eq!(
            auto(&ResetOptions { managed: true, ..shared }),
            Ok(ChosenReset::Snapshot(SnapshotMethod::Template))
        );
        let names: Vec<String> = (0..6).map(|n| format!("t{n}")).collect();
        let file = ResetOptions { foreign: vec!["invoices".into()], ..options(file()) };
        assert_eq!(
            auto(&file).unwrap_err(),
            "the file also contains tables that do not belong to the workload (invoices), and a reset would \
             restore them as well: use a separate file for the load, or confirm the reset with --reset files"
        );
        assert!(choose_method(ResetMethod::Files, &file).is_ok());
        assert_eq!(few(&names, 4), "t0, t1, t2, t3 and 2 more");
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        for (asked, options, word) in [
            (ResetMethod::Template, options(file()), "templates need a server"),
            (ResetMethod::Dump, options(file()), "a file needs no dump"),
            (ResetMethod::Files, options(server()), "not kelvin's server"),
            (ResetMethod::Template, options(without_template()), "CREATEDB"),
            (
                ResetMethod::Reload,
                ResetOptions { can_be_built: Some(false), ..options(server()) },
                "did not build",
            ),
        ] {
            let error = choose_method(asked, &options).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}

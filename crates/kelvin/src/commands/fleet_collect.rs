//! `kelvin fleet collect` fetches the parts of a run that its agents have and its controller lacks; `kelvin fleet resume`
//! continues a run whose controller died.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kelvin_fleet::controller::{FLEET_NOTE, FleetFiles, NatsFleet, run_in_note};
use kelvin_fleet::{Bus, Name};
use kelvin_lab::store_bench::{BegunRun, StoreBenchError};
use kelvin_measure::text::{count, printable};
use kelvin_measure::{Event, SourceId};
use kelvin_store::{ImportSource, Liveness, RunId, Store, StoredRun};

use super::fleet_agents::server;
use crate::args::{FleetCollectArgs, FleetResumeArgs, Global, NatsArgs};
use crate::exit::Code;
use crate::measure::bench;
use crate::{out, paths, signal};

/// The fleet's name for a stored run; an error if the run was not made in this lab.
fn run_of_fleet(stored: &StoredRun, lab: &Name) -> Result<Name> {
    let id = stored.id;
    let Some((of, run)) = stored.info.notes.iter().find_map(|note| run_in_note(note)) else {
        bail!("run {id} is not a run on a fleet");
    };
    if of != *lab {
        bail!("run {id} was made on the fleet {of}, not on {lab}");
    }
    Ok(run)
}

/// Connects to a fleet's server as its controller.
fn connect(nats: &NatsArgs, name: &str) -> Result<(Bus, Name)> {
    let (connection, lab) = server(nats, "controller")?;
    Ok((Bus::connect(&connection, name, None)?, lab))
}

/// Takes over a run whose controller died.
pub(super) fn resume(args: &FleetResumeArgs, global: &Global) -> Result<Code> {
    let stop = signal::listen()?;
    let path = paths::store(global.store.as_deref())?;
    let store = Store::open(&path)?;
    let begun = BegunRun::read(&store, store.find(&args.run)?)?;
    let (bus, lab) = connect(&args.nats, "kelvin controller")?;
    let run = run_of_fleet(&begun.stored, &lab)?;
    let names: std::result::Result<Vec<Name>, String> = begun.hosts.iter().map(|host| host.parse()).collect();
    let fleet = NatsFleet::rejoin(bus, &lab, run, names.map_err(anyhow::Error::msg)?)?;
    let mut live = kelvin_live::for_run(global.quiet, args.output.events());
    let mut bench = bench(&store, &mut *live, &stop);
    let done = bench.resume(begun, |(point, hosts), clock| fleet.rejoin_point(point, hosts, clock));
    drop(bench);
    if done.is_err() {
        // Another process may take over the run, or it can be resumed again.
        fleet.leave();
    } else if let Err(error) = fleet.finish(true) {
        out::note(&format!("kelvin: the agents could not be notified of the end of the run: {error}"));
    }
    let done = done?;
    let code = Code::from_run_state(done.judged.run.state, done.stored.failed());
    super::run::show(&store, &path, done, &args.output).map_err(StoreBenchError::kept)?;
    Ok(code)
}

/// Fetches what agents have of a run, or removes what ended runs left on the server.
pub(super) fn collect(args: &FleetCollectArgs, global: &Global) -> Result<Code> {
    let path = paths::store(global.store.as_deref())?;
    let mut store = Store::open(&path)?;
    let (bus, lab) = connect(&args.nats, "kelvin fleet collect")?;
    let files = FleetFiles::new(bus, &lab);
    let Some(wanted) = &args.run else {
        return clear(&store, &files, &lab);
    };
    let stored = store.load(store.find(wanted)?)?;
    let id = stored.id;
    match stored.liveness {
        Liveness::Ended => {}
        Liveness::Running => bail!("run {id} is still running"),
        Liveness::Killed => {
            bail!("the controller of run {id} was killed: run kelvin fleet resume {id} first")
        }
    }
    let run = run_of_fleet(&stored, &lab)?;
    let hosts = wanted_hosts(&stored, args.all)?;
    if hosts.is_empty() {
        out::line(&format!(
            "no results of the hosts of run {id} are missing; --all fetches their files \
            anyway"
        ))?;
        return remove(&files, &run).map(|()| Code::Success);
    }
    let mut missing = 0;
    for (source, host) in hosts {
        let part = path.with_file_name(format!(".{run}.{host}.part"));
        if !global.quiet {
            out::note(&format!("kelvin: fetching the file of {host}"));
        }
        let fetched = fetch(&files, (&host, &run), &part)
            .and_then(|()| keep(&mut store, (&stored, source), (&host, &run), &part));
        // The part is no longer needed, whether the attempt succeeded or failed.
        let _removed = std::fs::remove_file(&part);
        match fetched {
            Ok(text) => out::line(&text)?,
            Err(error) => {
                missing += 1;
                out::note(&format!("kelvin: {}", printable(&crate::exit::describe(&error))));
            }
        }
    }
    if missing > 0 {
        return Ok(Code::NotValid);
    }
    remove(&files, &run).map(|()| Code::Success)
}

/// The hosts that a run lost, or all its hosts.
fn wanted_hosts(stored: &StoredRun, all: bool) -> Result<Vec<(SourceId, Name)>> {
    let points = stored.points().into_iter().map(|point| point.point);
    let lost: BTreeSet<String> = points
        .flat_map(|point| stored.host_loads(point))
        .filter(|(_, load)| load.lost.is_some())
        .map(|(host, _)| host)
        .collect();
    // A tenant's agent stores each turn of the tenant as a separate run.
    let hosts = stored.sources().filter(|(_, source)| source.tenant.is_none());
    let hosts = hosts.filter_map(|(id, source)| Some((id, source.host.as_deref()?)));
    let wanted = hosts.filter(|(_, host)| all || lost.contains(*host));
    wanted.map(|(id, host)| Ok((id, host.parse().map_err(anyhow::Error::msg)?))).collect()
}

/// Writes an agent's file beside the store; never overwrites a file.
fn fetch(files: &FleetFiles, (host, run): (&Name, &Name), part: &Path) -> Result<()> {
    // A file that a killed command left.
    let _none = std::fs::remove_file(part);
    let made = File::options().write(true).create_new(true).mode(0o600).open(part);
    let mut file = made.with_context(|| format!("cannot make {}", part.display()))?;
    files.fetch(host, run, &mut file)?;
    Ok(())
}

/// Adds the run of an agent's file to the store, with a note in the fleet's run.
fn keep(
    store: &mut Store,
    (whole, source): (&StoredRun, SourceId),
    (host, run): (&Name, &Name),
    part: &Path,
) -> Result<String> {
    let (share, id) = {
        let file = Store::open_read_only(part)?;
        let runs = file.runs()?;
        let [only] = &runs[..] else {
            bail!("agent {host}: its file has {}, not one", count(runs.len(), "run"));
        };
        (file.load(only.id)?, only.id)
    };
    let same = |of: &StoredRun| (of.info.workload.clone(), of.info.seed, of.info.kinds.clone());
    if share.info.label.as_deref() != Some(run.as_str()) || same(&share) != same(whole) {
        bail!("agent {host}: its file belongs to another run");
    }
    let imported = store.import(&ImportSource::open(part)?)?;
    let Some(kept) = imported.runs.iter().find(|one| one.number == id) else {
        bail!("agent {host}: its file was not imported");
    };
    let (own, here) = (Seconds::count(&share, None)?, Seconds::count(whole, Some(source))?);
    let text = format!(
        "{host}: its own file has {own}, run {} has {here} of these; stored as run {}",
        whole.id, kept.run
    );
    if !kept.was_there {
        let note = Event::Note { point: 0, second: 0, text: format!("collected from {text}") };
        store.add_notes(whole.id, &[note])?;
    }
    Ok(text)
}

/// How many seconds of a host's load a run has.
#[derive(Default)]
struct Seconds {
    seconds: usize,
    transactions: u64,
}

impl Seconds {
    /// Counts the seconds of one source, or of all.
    fn count(run: &StoredRun, source: Option<SourceId>) -> Result<Self> {
        let mut found = BTreeSet::new();
        let mut transactions = 0;
        for event in run.sourced_events() {
            let event = event?;
            let Event::Second(second) = &event.event else { continue };
            if source.is_some_and(|source| source != event.source_id) {
                continue;
            }
            found.insert((second.point, second.second));
            let kinds =
                run.info.kinds.iter().zip(&second.kinds).filter(|(series, _)| series.is_transaction());
            transactions += kinds.map(|(_, kind)| kind.good()).sum::<u64>();
        }
        Ok(Self { seconds: found.len(), transactions })
    }
}

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {}", count(self.seconds, "second"), count(self.transactions, "transaction"))
    }
}

/// Removes a run's files from the server; they may be gone already.
fn remove(files: &FleetFiles, run: &Name) -> Result<()> {
    if files.stored_runs()?.iter().any(|(stored, _)| stored == run) {
        files.remove_run(run)?;
        out::line(&format!("removed the data of agents' run {run} from the NATS server"))?;
    }
    Ok(())
}

/// Removes from the server the files of runs that ended and are in this store.
fn clear(store: &Store, files: &FleetFiles, lab: &Name) -> Result<Code> {
    let stored = files.stored_runs()?;
    if stored.is_empty() {
        out::line("no data is left on the NATS server")?;
    }
    for (run, bytes) in stored {
        match find_fleet_run(store, lab, &run)? {
            Some((_, Liveness::Ended)) => remove(files, &run)?,
            found => out::line(&describe(&run, bytes, found))?,
        }
    }
    Ok(Code::Success)
}

/// The run in this store that corresponds to a run of the agents, and whether its files on the server are still needed.
fn find_fleet_run(store: &Store, lab: &Name, run: &Name) -> Result<Option<(RunId, Liveness)>> {
    let wanted = (lab.clone(), run.clone());
    let notes = store.notes_that_begin(FLEET_NOTE)?;
    let found = notes.into_iter().find(|(_, note)| run_in_note(note).as_ref() == Some(&wanted));
    found.map(|(id, _)| Ok((id, store.load(id)?.liveness))).transpose()
}

/// One line about the files that the server has of a run.
fn describe(run: &Name, bytes: u64, found: Option<(RunId, Liveness)>) -> String {
    let what = match found {
        Some((id, Liveness::Running)) => format!("run {id} is running"),
        Some((id, Liveness::Killed)) => format!(
            "the controller of run {id} was killed: kelvin fleet resume \
            {id}"
        ),
        Some((id, Liveness::Ended)) => format!("run {id} has ended: kelvin fleet collect"),
        None => "a run that this store does not have".into(),
    };
    format!("agents' run {run}  {} KiB on the server  {what}", bytes.div_ceil(1024))
}

/// Prints the runs that the server has files of, for `kelvin fleet status`.
pub(super) fn show_stored(bus: Bus, lab: &Name, store: PathBuf) -> Result<()> {
    let stored = FleetFiles::new(bus, lab).stored_runs()?;
    let store = store.exists().then(|| Store::open_read_only(store)).transpose()?;
    for (run, bytes) in stored {
        let found = store.as_ref().map(|store| find_fleet_run(store, lab, &run)).transpose()?.flatten();
        out::line(&describe(&run, bytes, found))?;
    }
    Ok(())
}

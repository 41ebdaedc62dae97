//! Steps before a run: creating missing data, resetting existing data, and notes for the reader of the result.

use std::sync::{Arc, mpsc};
use std::time::Instant;

use kelvin_database::{Engine, Home};
use kelvin_measure::event::Phase;
use kelvin_measure::{Clock, Event};
use kelvin_run::spec::{Build, Span, Work};
use kelvin_run::{Environment, Spec};
use kelvin_workload::{BuildProgress, Stop, Workload};

use super::{Result, StoreBenchError};
use crate::error::Doing;
use crate::live::{Live, show_progress};
use crate::open::Opened;
use crate::reset::{self, OtherError, ResetContext, ResetError, Task};
use crate::selected_workload::{SelectedWorkload, must_be_built, while_doing};
use crate::squeeze::{self, Squeeze};

/// Size of the data in bytes from which a managed server is restarted with settings for the load.
const WORTH_A_RESTART: u64 = 2_000_000_000;

/// Creates the data if it is missing and inspects it. Notes for the reader of the result are added to `notes`.
pub(super) fn prepare(
    spec: &mut Spec,
    opened: &Opened,
    live: &mut dyn Live,
    stop: &Stop,
    notes: &mut Vec<String>,
) -> Result<Arc<dyn Workload>> {
    let engine = &*opened.engine;
    let mut chosen = SelectedWorkload::for_engine(engine, spec)?;
    if !spec.reset.is_nothing() {
        notes.extend(restore(spec, opened, &chosen, live, stop)?);
    } else if !chosen.get().is_built(engine).map_err(while_doing("looking for the workload's data"))? {
        if spec.build == Build::Never {
            must_be_built(chosen.get(), engine)?;
        }
        build_data(opened, &chosen, live, stop)?;
        check_data(engine, chosen.get(), live, stop)?;
    }
    if let SelectedWorkload::Pgbench(pgbench) = &chosen {
        pgbench.vacuum(engine).doing("cannot vacuum before the run; --no-vacuum skips it")?;
        if spec.check && !pgbench.is_checked() {
            notes.push(
                "--check: there are no consistency conditions for these scripts; none was checked".into(),
            );
        }
    }
    notes.extend(chosen.inspect(engine)?);
    match (&chosen, &mut spec.work) {
        (SelectedWorkload::TprocC(tproc_c), Work::TprocC(options)) => {
            options.warehouses = tproc_c.options().warehouses;
        }
        (SelectedWorkload::TprocH(tproc_h), Work::TprocH(options)) => options.scale = tproc_h.options().scale,
        (SelectedWorkload::Scan(scan), Work::Scan(options)) => options.warehouses = scan.options().warehouses,
        _ => {}
    }
    notes.extend(chosen.working_set(engine)?);
    notes.extend(cautions(spec, engine));
    Ok(chosen.shared())
}

/// Reports the known bugs of the server's version before anything is executed there. A TPROC-C run on such a server
/// is checked: a broken consistency condition must not be overlooked.
pub(super) fn warn_of_faults(
    spec: &mut Spec,
    environment: &Environment,
    live: &mut dyn Live,
    notes: &mut Vec<String>,
) {
    let faults = environment.database.iter().flat_map(|database| &database.faults);
    let mut warnings: Vec<String> = faults
        .map(|fault| format!("{}: {}. {} ({})", fault.versions, fault.what, fault.effect, fault.source))
        .collect();
    if !warnings.is_empty() && matches!(spec.work, Work::TprocC(_)) && !spec.check {
        spec.check = true;
        warnings.push(
            "the consistency conditions are checked after the run because the server has a known fault"
                .into(),
        );
    }
    for text in warnings {
        live.message(&format!("warning: {text}"));
        notes.push(text);
    }
}

/// Notes about the circumstances of a measurement that its reader has to know.
fn cautions(spec: &Spec, engine: &dyn Engine) -> Vec<String> {
    let mut cautions = Vec::new();
    cautions.extend(engine.home().and_then(Home::caution).map(str::to_owned));
    let long_enough = |span: Span| span >= Span::seconds(60);
    if let Work::TprocC(options) = &spec.work
        && options.keying_and_thinking
        && !(long_enough(spec.load.ramp_up) && long_enough(spec.load.duration))
    {
        cautions.push(
            "with keying and thinking, a New-Order takes 30 s on average before anything is sent: a ramp-up \
             or a window under a minute sees only the short transactions"
                .into(),
        );
    }
    cautions
}

/// Brings the database into the state that every run starts from. The returned notes belong to the result.
fn restore(
    spec: &Spec,
    opened: &Opened,
    chosen: &SelectedWorkload,
    live: &mut dyn Live,
    stop: &Stop,
) -> Result<Vec<String>> {
    let task = Task {
        engine: &*opened.engine,
        place: opened.place.as_ref(),
        workload: chosen.get(),
        reset: &spec.reset,
        build: spec.build,
        stop,
    };
    let mut around = BuildEnvironment { opened, chosen, live, stop };
    reset::reset(&task, &mut around).map_err(|error| match error {
        ResetError::Interrupted(state) => {
            StoreBenchError::Stopped(format!("interrupted during the reset: {state}"))
        }
        // The error may be an interrupt, which the exit code must show.
        ResetError::Build(inner) => match inner.downcast::<StoreBenchError>() {
            Ok(error) => *error,
            Err(other) => StoreBenchError::Failed(other),
        },
        other => other.into(),
    })
}

/// How a reset builds data, and its progress view.
struct BuildEnvironment<'a> {
    opened: &'a Opened,
    chosen: &'a SelectedWorkload,
    live: &'a mut dyn Live,
    stop: &'a Stop,
}

impl ResetContext for BuildEnvironment<'_> {
    fn report(&mut self, text: &str) {
        self.live.message(text);
    }

    fn progress(&mut self, what: &str, done: u64, total: u64) {
        show_progress(self.live, what, done, total);
    }

    fn end(&mut self) {
        self.live.end();
    }

    fn build(&mut self) -> std::result::Result<(), OtherError> {
        let engine = &*self.opened.engine;
        build_data(self.opened, self.chosen, self.live, self.stop)
            .and_then(|()| check_data(engine, self.chosen.get(), self.live, self.stop))
            .map_err(OtherError::from)
    }
}

/// Builds the data of a workload; progress goes to `live`. A managed server gets settings for a bulk load meanwhile,
/// if that justifies two restarts.
pub fn build_data(
    opened: &Opened,
    chosen: &SelectedWorkload,
    live: &mut dyn Live,
    stop: &Stop,
) -> Result<()> {
    let engine = &*opened.engine;
    let workload = chosen.get();
    if let Some(size) = chosen.working_set(engine)? {
        live.message(&size);
    }
    let since = Instant::now();
    let loading = if chosen.bytes_to_build() >= WORTH_A_RESTART {
        opened.place.begin_load(&mut |text| live.message(text))?
    } else {
        None
    };
    let (sender, receiver) = mpsc::channel();
    let progress = Sender(sender);
    let (shown, built) = std::thread::scope(|scope| {
        // The progress sender moves into the thread, so that the channel closes when the work ends.
        let work = scope.spawn(move || workload.build(engine, &progress, stop));
        let shown = receiver.iter().try_for_each(|event| live.event(&event));
        (shown, work.join())
    });
    live.end();
    let put_back = loading.map_or(Ok(()), |loading| loading.end(&mut |text| live.message(text)));
    shown.map_err(StoreBenchError::Failed)?;
    match built {
        Ok(Ok(())) => put_back?,
        Ok(Err(_)) if stop.requested() => {
            return Err(StoreBenchError::Stopped(format!("interrupted; {}", chosen.unfinished())));
        }
        Ok(Err(error)) => return Err(error).doing(format!("cannot build {}", workload.name())),
        Err(_) => return Err(StoreBenchError::Refused("the loader panicked".into())),
    }
    live.message(&format!("built in {:.1} s", since.elapsed().as_secs_f64()));
    Ok(())
}

struct Sender(mpsc::Sender<Event>);

impl BuildProgress for Sender {
    fn update(&self, what: &str, done: u64, total: u64, rows: u64) {
        // The receiver is gone only when the command is ending.
        let _ = self.0.send(Event::Progress { what: what.into(), done, total, rows });
    }
}

/// Checks freshly loaded data. A consistency condition that does not hold right after the load is an error.
pub fn check_data(
    engine: &dyn Engine,
    workload: &dyn Workload,
    live: &mut dyn Live,
    stop: &Stop,
) -> Result<()> {
    let lines =
        kelvin_run::run::check_consistency(engine, workload, &Clock::real(), stop, Phase::CheckBefore, live)
            .map_err(StoreBenchError::Check)?;
    live.end();
    if stop.requested() {
        let text = "interrupted in the check after the build; the data is complete";
        return Err(StoreBenchError::Stopped(text.into()));
    }
    if let Some(line) = lines.iter().find(|line| line.fails()) {
        return Err(StoreBenchError::Refused(format!(
            "consistency condition {} ({}) does not hold after the load: {}",
            line.number, line.name, line.detail
        )));
    }
    if !lines.is_empty() {
        live.message(&format!("all {} consistency conditions hold after the load", lines.len()));
    }
    Ok(())
}

/// Prepares the squeeze of the server and sets the window to the length that the slices need.
pub(super) fn squeeze(
    options: squeeze::Options,
    spec: &mut Spec,
    engine: &dyn Engine,
    notes: &mut Vec<String>,
) -> Result<Squeeze> {
    squeeze::suits(spec).map_err(StoreBenchError::Refused)?;
    let users = spec.load.points().first().map_or(1, |(users, _)| *users);
    let squeeze =
        Squeeze::prepare(options, engine, users, spec.load.seed).map_err(StoreBenchError::Refused)?;
    spec.load.duration = Span::seconds(squeeze.seconds());
    notes.push(
        "resources were reduced during this run: its results are those of a throttled \
    database"
            .into(),
    );
    Ok(squeeze)
}

//! What this command adds to a run: its command line, the password prompt, and the Prometheus endpoint.

use std::io::IsTerminal;
use std::net::SocketAddr;

use anyhow::Result;
use kelvin_database::Password;
use kelvin_lab::live::{Live, RunSummary};
use kelvin_lab::open::{self, Opened, Purpose};
use kelvin_lab::store_bench::{RunOrigin, StoreBench};
use kelvin_measure::{Event, Sink, SinkError, SourceId};
use kelvin_run::Spec;
use kelvin_run::spec::TargetName;
use kelvin_serve::{MetricsEndpoint, MetricsSink, RunInfo};
use kelvin_store::{NewRun, RunId, Store};
use kelvin_workload::Stop;

/// Returns what makes runs and stores them with this command line as their origin.
pub(crate) fn bench<'a>(store: &'a Store, live: &'a mut dyn Live, stop: &'a Stop) -> StoreBench<'a> {
    StoreBench::new(store, live, stop, RunOrigin { command: command_line(), prompt })
}

/// Opens a target; see [`open::open`].
pub(crate) fn open(target: &TargetName, purpose: Purpose, report: &mut dyn FnMut(&str)) -> Result<Opened> {
    Ok(open::open(target, purpose, prompt, report)?)
}

/// Asks for the password on the terminal; `None` if standard input is no terminal.
pub(crate) fn prompt(server: &dyn std::fmt::Display) -> std::io::Result<Option<Password>> {
    if !std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let text = rpassword::prompt_password(format!("Password for {server}: "))?;
    Ok(Some(Password::new(text)))
}

/// The command line that repeats the run.
fn command_line() -> String {
    as_typed(std::env::args().skip(1))
}

/// These arguments as a command line, quoted for a shell where necessary.
pub(crate) fn as_typed(arguments: impl IntoIterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = |word: String| {
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words = arguments.into_iter().map(quoted);
    std::iter::once("kelvin".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A live view with a Prometheus endpoint that lives as long as this value.
pub(crate) struct WithMetrics {
    live: Box<dyn Live>,
    endpoint: MetricsEndpoint,
    sink: MetricsSink,
}

impl WithMetrics {
    /// Adds an endpoint that listens on `address`; without an address the view is returned unchanged.
    pub(crate) fn around(live: Box<dyn Live>, address: Option<SocketAddr>) -> Result<Box<dyn Live>> {
        let Some(address) = address else { return Ok(live) };
        let (endpoint, sink) = MetricsEndpoint::start(address)?;
        Ok(Box::new(Self { live, endpoint, sink }))
    }
}

impl Sink for WithMetrics {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        (&mut *self.live, &mut self.sink).event_from(source, event)
    }
}

impl Live for WithMetrics {
    fn begin(&mut self, id: RunId, info: &NewRun, spec: &Spec) {
        self.live.begin(id, info, spec);
        self.live.message(&format!("metrics: http://{}/metrics", self.endpoint.address()));
        self.sink.begin(RunInfo {
            run: id.to_string(),
            workload: info.workload.clone(),
            headline: info.headline.clone(),
            per: info.headline_per,
            series: info.kinds.clone(),
        });
    }

    fn message(&mut self, text: &str) {
        self.live.message(text);
    }

    fn judged(&mut self, summary: &RunSummary<'_>) {
        self.live.judged(summary);
    }

    fn end(&mut self) {
        self.live.end();
    }
}

//! `--tui`: the run on a full-screen terminal display.
//!
//! Three threads, none of which waits for the next: the run passes its events ([`Tui`]); the view updates a
//! model, reads keys and draws frames ([`view`]); the screen writes the newest frame ([`screen`]). A stalled
//! terminal costs frames, not load.

mod draw;
mod model;
mod screen;
mod state;
#[cfg(test)]
mod tests;
mod view;

use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::JoinHandle;

use kelvin_lab::live::Live;
use kelvin_measure::{Event, Sink, SinkError, SourceId};
use kelvin_run::Spec;
use kelvin_store::{NewRun, RunId};
use kelvin_workload::Stop;

use super::terminal::Terminal;
use model::ViewHeader;
use screen::Screen;
use screen::give_back;
pub use screen::restore_immediately;
pub(super) use state::Message;
use view::View;

/// Largest number of messages that wait for the view, which reads them ten times a second.
const MOST_WAITING: usize = 4096;

/// Largest number of messages that are kept for the end.
const MOST_SAID: usize = 500;

/// Called for a key that stands for a signal.
pub type AskStop = fn(&Stop);

/// Why the full-screen display is not possible.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// `--tui` together with `--quiet`.
    #[error("--tui shows the run and --quiet hides it; omit one of them")]
    Quiet,
    /// The terminal is not suitable; includes the reason.
    #[error(
        "--tui needs a terminal, but {0}; omit it for plain progress lines, or give --json for every event on \
         standard output"
    )]
    NoTerminal(&'static str),
}

/// The full-screen display. The terminal is set up only when there is something to show, so that passwords
/// can be prompted for first.
pub struct Tui {
    about: ViewHeader,
    stop: Stop,
    ask_stop: AskStop,
    up: Option<Up>,
    /// Shows messages before the terminal is set up, or if it cannot be.
    plain: Terminal,
    failed: bool,
    begun: bool,
    said: Vec<String>,
    dropped: u64,
}

/// The thread and the channel of the view, while the terminal is set up.
struct Up {
    messages: SyncSender<Message>,
    thread: JoinHandle<()>,
}

impl Tui {
    /// The display of a run. Keys that end the run call `ask_stop`.
    pub fn new(spec: &Spec, quiet: bool, stop: &Stop, ask_stop: AskStop) -> Result<Self, TuiError> {
        if quiet {
            return Err(TuiError::Quiet);
        }
        screen::why_not()
            .map_or_else(|| Ok(Self::over(spec, stop, ask_stop)), |why| Err(TuiError::NoTerminal(why)))
    }

    fn over(spec: &Spec, stop: &Stop, ask_stop: AskStop) -> Self {
        let target = kelvin_measure::redact(spec.target.as_str());
        let about = ViewHeader { workload: spec.workload().as_str().into(), target, ..ViewHeader::default() };
        Self {
            about,
            stop: stop.clone(),
            ask_stop,
            up: None,
            plain: Terminal::new(true),
            failed: false,
            begun: false,
            said: Vec::new(),
            dropped: 0,
        }
    }

    /// Sets up the terminal, once. Returns whether it is set up.
    fn is_up(&mut self) -> bool {
        if self.up.is_none() && !self.failed {
            match self.take_over() {
                Ok(up) => self.up = Some(up),
                Err(error) => {
                    self.failed = true;
                    self.plain.message(&format!("no full-screen display ({error}); showing plain progress"));
                }
            }
        }
        self.up.is_some()
    }

    fn take_over(&self) -> std::io::Result<Up> {
        let (messages, received) = mpsc::sync_channel(MOST_WAITING);
        let view = View::new(Screen::open()?, self.about.clone(), self.stop.clone(), self.ask_stop);
        super::hear(Some(messages.clone()));
        let thread = std::thread::Builder::new().name("view".into()).spawn(move || view.work(&received))?;
        Ok(Up { messages, thread })
    }

    fn send(&mut self, message: Message) {
        let Some(up) = &self.up else { return };
        if self.dropped > 0 && up.messages.try_send(Message::Dropped(self.dropped)).is_ok() {
            self.dropped = 0;
        }
        // The run never waits for the view.
        if let Err(TrySendError::Full(_)) = up.messages.try_send(message) {
            self.dropped += 1;
        }
    }

    fn remember(&mut self, text: &str) {
        if self.said.len() < MOST_SAID {
            self.said.push(text.to_owned());
        }
    }

    /// Restores the terminal and prints the messages that arrived meanwhile.
    fn close(&mut self) {
        super::hear(None);
        let Some(Up { messages, thread }) = self.up.take() else { return };
        // The view empties a full channel within one turn; a closed channel means that the view has ended.
        let mut end = Message::End;
        while let Err(TrySendError::Full(again)) = messages.try_send(end) {
            end = again;
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        // A view that panicked has reported it and restored the terminal.
        let _ = thread.join();
        give_back();
        for text in std::mem::take(&mut self.said) {
            self.plain.message(&text);
        }
    }
}

impl Sink for Tui {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        if !self.is_up() {
            return self.plain.event_from(source, event);
        }
        if let Event::Note { text, .. } = event {
            self.remember(text);
        }
        self.send(Message::Event(source, Box::new(event.clone())));
        Ok(())
    }
}

impl Live for Tui {
    fn begin(&mut self, id: RunId, info: &NewRun, spec: &Spec) {
        self.begun = true;
        self.plain.begin(id, info, spec);
        if self.is_up() {
            self.send(Message::begin(id, info, spec));
        }
    }

    fn message(&mut self, text: &str) {
        if self.up.is_some() {
            self.remember(text);
            self.send(Message::Say(text.to_owned()));
        } else {
            self.plain.message(text);
        }
    }

    fn end(&mut self) {
        // Generating data is the start of a run: the screen stays.
        if self.begun || self.up.is_none() {
            self.close();
            self.plain.end();
        }
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        self.close();
    }
}

//! Progress of a run, for people and programs. Uses standard error, except `--json`, which uses standard
//! output.

mod fields;
mod json;
mod status;
mod terminal;
mod tui;

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

use kelvin_lab::live::Live;
use kelvin_measure::event::Arrivals;
use kelvin_measure::text::printable_lines;
use kelvin_measure::{Event, Sink, SinkError, SourceId};
use kelvin_run::Spec;
use kelvin_store::{NewRun, RunId};

pub use tui::{AskStop, Tui, TuiError, restore_immediately};

/// The view selected by the flags, in the form that standard error supports.
pub fn for_run(quiet: bool, json: bool) -> Box<dyn Live> {
    if json {
        Box::new(json::Json)
    } else if quiet {
        Box::new(Nothing)
    } else {
        Box::new(terminal::Terminal::new(std::io::stderr().is_terminal()))
    }
}

/// The destination of messages from outside the run while a view occupies the terminal.
static MESSAGE_RECEIVER: Mutex<Option<SyncSender<tui::Message>>> = Mutex::new(None);

/// Sets or removes the destination of messages from outside the run.
fn set_message_receiver(receiver: Option<SyncSender<tui::Message>>) {
    *MESSAGE_RECEIVER.lock().unwrap_or_else(PoisonError::into_inner) = receiver;
}

/// Shows a message from outside the run: in the view that occupies the terminal, otherwise on standard error.
pub fn show_message(text: &str) {
    let receiver = MESSAGE_RECEIVER.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let delivered =
        receiver.is_some_and(|receiver| receiver.try_send(tui::Message::Say(text.into())).is_ok());
    if !delivered {
        note(&format!("\n{text}"));
    }
}

/// Writes a line to standard error, ignoring errors: if it was closed, as after a hang-up, `eprintln!` would panic and
/// end the run.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable_lines(text));
}

/// Writes over the last line of the terminal on standard error, or erases it with no text. Errors are ignored, as by
/// [`note`].
pub fn overwrite(text: &str) {
    // Erased first: after a text as wide as the terminal its last character would be erased.
    let _ = std::io::stderr().write_all(format!("\r\x1b[K{text}").as_bytes());
}

/// Columns and rows of the terminal that a stream is; `None` if it is none, or does not say.
pub fn terminal_size(stream: impl AsFd) -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(stream).ok().filter(|size| size.ws_col > 0)?;
    Some((size.ws_col.into(), size.ws_row.into()))
}

/// The newest arrivals of all sources after `new`; the refused ones are totalled.
fn arrivals_after(last: &Arrivals, new: &Arrivals) -> Arrivals {
    let newest = match (new.waiting, last.waiting) {
        // An event without `waiting` adds to an earlier second.
        (None, _) => *last,
        // Another source reports the same second.
        (Some(more), Some(before)) if (new.point, new.second) == (last.point, last.second) => {
            Arrivals { due: last.due + new.due, waiting: Some(before + more), ..*new }
        }
        (Some(_), _) => *new,
    };
    Arrivals { refused: last.refused + new.refused, ..newest }
}

/// `--quiet`.
struct Nothing;

impl Sink for Nothing {
    fn event_from(&mut self, _source: SourceId, _event: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}

impl Live for Nothing {
    fn begin(&mut self, _id: RunId, _info: &NewRun, _spec: &Spec) {}

    fn message(&mut self, _text: &str) {}

    fn end(&mut self) {}
}

//! What a person, or a program, sees while something runs. Never on standard output, except `--json`.

mod json;
mod status;
mod terminal;

use std::io::IsTerminal;

pub(crate) use status::grouped;

use kelvin_lab::Spec;
use kelvin_measure::Event;
use kelvin_workload::Workload;

/// A view of what is going on.
pub(crate) trait Live {
    /// The load is about to start: the names and the plan.
    fn begin(&mut self, workload: &dyn Workload, spec: &Spec);

    /// Something happened.
    fn event(&mut self, event: &Event);

    /// A sentence for the person at the terminal.
    fn say(&mut self, text: &str);

    /// A piece of work is over: bars and status lines give way to the lines after them.
    fn end(&mut self);
}

/// The view for what the flags ask and standard error can show.
pub(crate) fn for_run(quiet: bool, json: bool) -> Box<dyn Live> {
    if json {
        Box::new(json::Json)
    } else if quiet {
        Box::new(Nothing)
    } else {
        Box::new(terminal::Terminal::new(std::io::stderr().is_terminal()))
    }
}

/// `--quiet`.
struct Nothing;

impl Live for Nothing {
    fn begin(&mut self, _workload: &dyn Workload, _spec: &Spec) {}

    fn event(&mut self, _event: &Event) {}

    fn say(&mut self, _text: &str) {}

    fn end(&mut self) {}
}

//! Tcl's built-in commands by name.

use super::interpreter::{Answer, Argument, Interpreter};
use super::{control, files, strings};

/// Input of a command: the interpreter, its arguments, and its line.
pub(super) struct Call<'c, 'h> {
    pub(super) interpreter: &'c mut Interpreter<'h>,
    pub(super) name: &'c str,
    pub(super) arguments: &'c [Argument],
    pub(super) line: u32,
}

impl<'c> Call<'c, '_> {
    /// The texts of the arguments.
    pub(super) fn texts(&self) -> Vec<&'c str> {
        self.arguments.iter().map(|argument| argument.text.as_str()).collect()
    }

    /// An error of this command.
    pub(super) fn fail(&self, message: &str) -> Answer {
        Err(self.interpreter.fault(self.line, message))
    }

    /// The command was not called as it must be.
    pub(super) fn misuse(&self, usage: &str) -> Answer {
        self.fail(&format!("{} is called as: {usage}", self.name))
    }

    /// The elements of a list among the arguments.
    pub(super) fn elements(&self, text: &str) -> Result<Vec<String>, super::interpreter::Stop> {
        super::list::elements(text).map_err(|message| self.interpreter.fault(self.line, &message))
    }
}

/// Commands that act outside the script and its files.
const REFUSED: [&str; 14] = [
    "exec",
    "socket",
    "load",
    "cd",
    "fconfigure",
    "fcopy",
    "fileevent",
    "glob",
    "interp",
    "package",
    "namespace",
    "thread::send",
    "trace",
    "vwait",
];

/// Whether Tcl has a command of this name here.
pub(super) fn knows(name: &str) -> bool {
    control::COMMANDS.contains(&name) || strings::COMMANDS.contains(&name) || files::COMMANDS.contains(&name)
}

/// Runs the command `name` if it is one of Tcl's.
pub(super) fn call(
    interpreter: &mut Interpreter<'_>,
    name: &str,
    arguments: &[Argument],
    line: u32,
) -> Option<Answer> {
    let mut call = Call { interpreter, name, arguments, line };
    if control::COMMANDS.contains(&name) {
        Some(control::call(&mut call))
    } else if strings::COMMANDS.contains(&name) {
        Some(strings::call(&mut call))
    } else if files::COMMANDS.contains(&name) {
        Some(files::call(&mut call))
    } else if REFUSED.contains(&name) {
        Some(call.fail(&format!(
            "{name} is refused: a script may set values, print, and read and write files below its own directory and \
             $::env(TMP)"
        )))
    } else {
        None
    }
}

//! Tcl's built-in commands by name.

use super::interpreter::{Answer, Argument, Interpreter};
use super::{control, files, strings};

/// A command's input: the interpreter, the arguments, and the line.
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

    /// An error raised by this command.
    pub(super) fn fail(&self, message: &str) -> Answer {
        Err(self.interpreter.fault(self.line, message))
    }

    /// An error for wrong arguments, with the usage.
    pub(super) fn misuse(&self, usage: &str) -> Answer {
        self.fail(&format!("{} is called as: {usage}", self.name))
    }

    /// The elements of an argument that is a list.
    pub(super) fn elements(&self, text: &str) -> Result<Vec<String>, super::interpreter::Stop> {
        super::list::elements(text).map_err(|message| self.interpreter.fault(self.line, &message))
    }
}

/// Commands that act outside the script and its files; they are refused.
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

/// Whether this interpreter has a Tcl command of this name.
pub(super) fn knows(name: &str) -> bool {
    control::COMMANDS.contains(&name) || strings::COMMANDS.contains(&name) || files::COMMANDS.contains(&name)
}

/// Runs `name` if it is a Tcl command.
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

//! Charts as PNG, for programs without SVG support, rendered by librsvg's `rsvg-convert`. Linking an SVG
//! renderer would add a tenth to the build time of the command.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use super::Chart;
use crate::{Error, Result};

const PROGRAM: &str = "rsvg-convert";

/// Pixels per SVG unit, for high-resolution screens and print.
const ZOOM: &str = "2";

/// Renders charts with the installed `rsvg-convert`.
pub struct Painter(());

impl Painter {
    /// Checks that the program is installed.
    ///
    /// # Errors
    /// Fails if it cannot be run; the message names the package.
    pub fn new() -> Result<Self> {
        let version = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output();
        match version {
            Ok(output) if output.status.success() => Ok(Self(())),
            Ok(output) => Err(Error::Plot(format!("{PROGRAM} --version ended with {}", output.status))),
            Err(error) => Err(Error::Plot(not_run(&error))),
        }
    }

    /// The chart as a PNG file.
    ///
    /// # Errors
    /// Fails if `rsvg-convert` fails or prints no PNG.
    pub fn png(&self, chart: &Chart) -> Result<Vec<u8>> {
        let failed = |why: String| Error::Plot(format!("failed to paint {}: {why}", chart.name));
        let mut child = Command::new(PROGRAM)
            .args(["--zoom", ZOOM, "--format", "png"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(not_run(&error)))?;
        // It reads the whole SVG before it writes, so writing first cannot block. If it exits before that,
        // its own message has the reason.
        let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(chart.svg.as_bytes()));
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("{PROGRAM} ended with {}: {}", output.status, message.trim())));
        }
        written.map_err(|error| failed(format!("{PROGRAM} did not read the image: {error}")))?;
        if !output.stdout.starts_with(b"\x89PNG\r\n\x1a\n") {
            return Err(failed(format!("{PROGRAM} printed no PNG")));
        }
        Ok(output.stdout)
    }
}

fn not_run(error: &std::io::Error) -> String {
    if error.kind() == ErrorKind::NotFound {
        return format!(
            "PNG needs {PROGRAM}, which is not installed: apt-get install librsvg2-bin (Debian, Ubuntu), dnf \
             install librsvg2-tools (Fedora), or omit --png"
        );
    }
    format!("failed to run {PROGRAM}: {error}")
}

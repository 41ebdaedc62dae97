//! `cargo xtask terminal FILE COMMAND…`: records a command on a terminal of 80 × 24 and writes its output as an
//! animated SVG, in real time. `script` (util-linux) does the recording; the terminal supports the sequences that
//! kelvin prints: colours, and overwritten lines.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

const COLUMNS: usize = 80;
const ROWS: usize = 24;

/// Changes within this many seconds are shown together.
const STEP: f64 = 0.2;
/// Seconds that the command is shown before its output, and the last picture at the end.
const BEFORE: f64 = 1.2;
const AFTER: f64 = 8.0;

const MOST_BYTES: usize = 100_000;

/// A character with its style.
type Cell = (char, Style);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Style {
    /// The colour number of SGR, such as 31 for red; 0 for none.
    colour: u8,
    bold: bool,
}

/// Records a command and writes the SVG.
pub(crate) fn run(words: &[&str]) -> Result<()> {
    let [file, command @ ..] = words else { bail!("give the file to write and the command to record") };
    if command.is_empty() {
        bail!("give the command to record, such as: kelvin run tproc-c");
    }
    let directory = Path::new(file).with_extension("recording");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let (text, times) = (directory.join("text"), directory.join("times"));
    let line = format!("stty cols {COLUMNS} rows {ROWS}; {}", command.join(" "));
    let status = Command::new("script")
        .args(["--quiet", "--command", &line, "--log-out"])
        .arg(&text)
        .arg("--log-timing")
        .arg(&times)
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null())
        .status()
        .context("cannot run script (util-linux)")?;
    let (text, times) = (std::fs::read(&text)?, std::fs::read_to_string(&times)?);
    std::fs::remove_dir_all(&directory)?;
    let pictures = replay(&command.join(" "), &text, &times)?;
    let svg = svg(&pictures);
    if svg.len() > MOST_BYTES {
        bail!("the animation has {} bytes, more than {MOST_BYTES}: record a shorter run", svg.len());
    }
    std::fs::write(file, &svg).with_context(|| format!("cannot write {file}"))?;
    println!("{file}: {} bytes; {line} ended with {status}", svg.len());
    Ok(())
}

/// The content of the screen, and the second from which it is shown.
struct Picture {
    at: f64,
    rows: Vec<Vec<Cell>>,
}

/// Replays a recording. Each line of `times` has the seconds since the previous line and a number of bytes.
fn replay(command: &str, text: &[u8], times: &str) -> Result<Vec<Picture>> {
    // The first line of the recording is written by `script`.
    let begin = text.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut left = &text[begin..];
    let mut screen = Screen::default();
    screen.write("$ ");
    screen.style.bold = true;
    screen.write(command);
    screen.style.bold = false;
    screen.write("\r\n");
    let mut pictures = vec![Picture { at: 0.0, rows: screen.rows.clone() }];
    let (mut at, mut pending) = (BEFORE, Vec::new());
    for line in times.lines() {
        let mut fields = line.split(' ');
        let delay: f64 =
            fields.next().and_then(|field| field.parse().ok()).context("no time in the recording")?;
        let bytes: usize =
            fields.next().and_then(|field| field.parse().ok()).context("no length in the recording")?;
        at += delay;
        let (now, rest) = left.split_at(bytes.min(left.len()));
        left = rest;
        pending.extend_from_slice(now);
        // A character may be split between two writes.
        let whole = std::str::from_utf8(&pending).map_or_else(|error| error.valid_up_to(), str::len);
        let written: Vec<u8> = pending.drain(..whole).collect();
        screen.write(std::str::from_utf8(&written)?);
        let picture = Picture { at, rows: screen.rows.clone() };
        match pictures.last_mut() {
            Some(last) if at - last.at < STEP && last.at > 0.0 => last.rows = picture.rows,
            _ => pictures.push(picture),
        }
    }
    Ok(pictures)
}

#[derive(Default)]
struct Screen {
    rows: Vec<Vec<Cell>>,
    row: usize,
    column: usize,
    style: Style,
}

impl Screen {
    fn write(&mut self, text: &str) {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\r' => self.column = 0,
                '\n' => self.feed(),
                '\u{1b}' => self.sequence(&mut chars),
                c if c.is_control() => {}
                c => self.put(c),
            }
        }
    }

    fn feed(&mut self) {
        self.row += 1;
        if self.row >= ROWS {
            self.rows.remove(0);
            self.row = ROWS - 1;
        }
    }

    fn put(&mut self, c: char) {
        if self.column >= COLUMNS {
            self.column = 0;
            self.feed();
        }
        self.rows.resize(self.rows.len().max(self.row + 1), Vec::new());
        let row = &mut self.rows[self.row];
        row.resize(row.len().max(self.column + 1), (' ', Style::default()));
        row[self.column] = (c, self.style);
        self.column += 1;
    }

    /// Applies one number of an SGR sequence.
    fn set(&mut self, number: u8) {
        match number {
            0 => self.style = Style::default(),
            1 => self.style.bold = true,
            22 => self.style.bold = false,
            39 => self.style.colour = 0,
            30..=37 | 90..=97 => self.style.colour = number,
            _ => {}
        }
    }

    fn sequence(&mut self, chars: &mut std::str::Chars<'_>) {
        if chars.next() != Some('[') {
            return;
        }
        let mut parameters = String::new();
        let end = chars.find(|c| {
            let is_end = c.is_ascii_alphabetic();
            if !is_end {
                parameters.push(*c);
            }
            is_end
        });
        match end {
            Some('m') => {
                for one in parameters.split(';') {
                    self.set(one.parse().unwrap_or(0));
                }
            }
            Some('K') => {
                let from = if parameters == "2" { 0 } else { self.column };
                if let Some(row) = self.rows.get_mut(self.row) {
                    row.truncate(from);
                }
            }
            _ => {}
        }
    }
}

const GLYPH: f64 = 8.4;
const LINE: f64 = 18.0;
const MARGIN: f64 = 16.0;

/// The times at which a line of text is visible, as start and end in seconds.
type Spans = Vec<(f64, f64)>;

/// Renders the pictures as an SVG. Each distinct text of a row is included once, and is visible at its times.
fn svg(pictures: &[Picture]) -> String {
    let total = pictures.last().map_or(0.0, |last| last.at) + AFTER;
    let (width, height) = (COLUMNS as f64 * GLYPH + 2.0 * MARGIN, ROWS as f64 * LINE + 2.0 * MARGIN);
    let mut lines = BTreeMap::<(usize, &[Cell]), Spans>::new();
    for (index, picture) in pictures.iter().enumerate() {
        let until = pictures.get(index + 1).map_or(total, |next| next.at);
        for (row, cells) in picture.rows.iter().enumerate().filter(|(_, cells)| !is_blank(cells)) {
            let shown = lines.entry((row, cells)).or_default();
            match shown.last_mut() {
                Some(last) if (last.1 - picture.at).abs() < 1e-9 => last.1 = until,
                _ => shown.push((picture.at, until)),
            }
        }
    }
    let mut styles = String::new();
    let mut body = String::new();
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    for ((row, cells), shown) in &lines {
        let frames = frames(shown, total);
        let next = names.len();
        let name = *names.entry(frames.clone()).or_insert(next);
        if name == next {
            let _ = write!(styles, "@keyframes k{name}{{{frames}}}.k{name}{{animation-name:k{name}}}");
        }
        let at_end = shown.last().is_some_and(|(_, until)| *until >= total);
        let class = if at_end { "" } else { " off" };
        let y = MARGIN + (*row as f64 + 0.75) * LINE;
        let _ = write!(body, "<text class=\"k{name}{class}\" y=\"{y}\">{}</text>", spans(cells));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\"><title>A run in a \
         terminal</title><style>text{{font:14px ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;white-space:pre;\
         fill:#e8eaed;animation:{total:.2}s step-end infinite}}.off{{visibility:hidden}}.b{{font-weight:700}}\
         .c31,.c91{{fill:#ff8a80}}.c32,.c92{{fill:#6fce8b}}.c33,.c93{{fill:#e6b450}}.c34,.c94,.c36,.c96{{fill:#6cb4f5}}\
         .c90,.c37{{fill:#a6aeb8}}{styles}\
         @media(prefers-reduced-motion:reduce){{text{{animation:none!important}}}}</style>\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#14171a\"/>{body}</svg>\n"
    )
}

fn is_blank(cells: &[Cell]) -> bool {
    cells.iter().all(|(c, _)| *c == ' ')
}

/// The key frames of an element that is visible at these times.
fn frames(shown: &[(f64, f64)], total: f64) -> String {
    let mut frames = String::new();
    let share = |at: f64| format!("{:.2}%", at / total * 100.0);
    if shown.first().is_some_and(|(from, _)| *from > 0.0) {
        frames.push_str("0%{visibility:hidden}");
    }
    for (from, until) in shown {
        let _ = write!(frames, "{}{{visibility:visible}}", share(*from));
        if *until < total {
            let _ = write!(frames, "{}{{visibility:hidden}}", share(*until));
        }
    }
    let last = shown.last().is_some_and(|(_, until)| *until >= total);
    let _ = write!(frames, "to{{visibility:{}}}", if last { "visible" } else { "hidden" });
    frames
}

/// The text of a row as spans of one style. Each has a position, so that the font does not matter.
fn spans(cells: &[Cell]) -> String {
    let end = cells.iter().rposition(|(c, _)| *c != ' ').map_or(0, |at| at + 1);
    let mut out = String::new();
    let mut from = 0;
    while from < end {
        let style = cells[from].1;
        let until =
            cells[from..end].iter().position(|(_, of)| *of != style).map_or(end, |length| from + length);
        let mut classes = Vec::new();
        if style.bold {
            classes.push("b".to_owned());
        }
        if style.colour != 0 {
            classes.push(format!("c{}", style.colour));
        }
        let class =
            if classes.is_empty() { String::new() } else { format!(" class=\"{}\"", classes.join(" ")) };
        let text: String = cells[from..until].iter().map(|(c, _)| escaped(*c)).collect();
        let (x, length) = (MARGIN + from as f64 * GLYPH, (until - from) as f64 * GLYPH);
        let _ = write!(out, "<tspan{class} x=\"{x:.1}\" textLength=\"{length:.1}\">{text}</tspan>");
        from = until;
    }
    out
}

fn escaped(c: char) -> String {
    match c {
        '<' => "&lt;".into(),
        '&' => "&amp;".into(),
        c => c.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Screen, replay, svg};

    fn text(screen: &Screen) -> Vec<String> {
        screen
            .rows
            .iter()
            .map(|row| row.iter().map(|(c, _)| *c).collect::<String>().trim_end().to_owned())
            .collect()
    }

    #[test]
    fn lines_are_written_over_wrapped_and_scrolled() {
        let mut screen = Screen::default();
        screen.write("loading 1\r\u{1b}[2Kdone\u{1b}[31m red\u{1b}[0m\r\n");
        assert_eq!(text(&screen), ["done red"]);
        assert_eq!((screen.rows[0][5].1.colour, screen.rows[0][2].1.colour), (31, 0));
        screen.write(&"x".repeat(81));
        assert_eq!((text(&screen)[1].len(), text(&screen)[2].as_str()), (80, "x"));
        screen.write(&"\r\ny".repeat(30));
        assert_eq!(text(&screen), ["y"; 24]);
    }

    #[test]
    fn what_stood_there_for_a_while_is_visible_for_that_while() {
        let recorded = "Script started\nfirst\rsecond <1>\r\n";
        let pictures = replay("kelvin", recorded.as_bytes(), "0.8 6\n2.0 14\n").unwrap();
        let drawn = svg(&pictures);
        // 1.2 s before the output, 0.8 s until the first word, 2 s until the second, 8 s at the end: 12 s.
        let frames =
            "0%{visibility:hidden}16.67%{visibility:visible}33.33%{visibility:hidden}to{visibility:hidden}";
        assert!(drawn.contains(frames), "{drawn}");
        assert!(drawn.contains("second &lt;1></tspan>") && drawn.contains("animation:12.00s"), "{drawn}");
    }
}

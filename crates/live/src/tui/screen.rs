//! The terminal: set up, drawn by a separate thread, and always restored.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{Attribute, Color as TerminalColor, Colors, Print, SetAttribute, SetColors};
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen,
};
use crossterm::{execute, queue, terminal};
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Whether the terminal is set up.
static UP: AtomicBool = AtomicBool::new(false);

/// Held while a frame is written. Restoring the terminal waits for it, but only for a limited time.
static WRITING: Mutex<()> = Mutex::new(());

/// How long to wait for a frame in progress before the terminal is restored: the terminal may have stalled.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why the full screen is not possible; none if it is.
pub(super) fn why_not() -> Option<&'static str> {
    if !io::stderr().is_terminal() {
        return Some("standard error is not a terminal");
    }
    if !io::stdin().is_terminal() {
        return Some("standard input is not a terminal, so keys cannot be read");
    }
    match std::env::var_os("TERM") {
        None => Some("TERM is not set"),
        Some(name) if name.is_empty() || name == "dumb" => {
            Some("the terminal cannot position the cursor (TERM)")
        }
        Some(_) => None,
    }
}

/// Whether the user wants colours (<https://no-color.org>).
pub(super) fn colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Restores the terminal if it was set up. Called whenever the view ends, after a panic, and before an
/// immediate exit.
pub(crate) fn give_back() {
    if !UP.swap(false, Ordering::AcqRel) {
        return;
    }
    // An interrupted frame would leave its last colours active.
    let until = Instant::now() + PATIENCE;
    let mut held = WRITING.try_lock();
    while held.is_err() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
        held = WRITING.try_lock();
    }
    // If the terminal has hung up, nothing can be restored.
    let _ = terminal::disable_raw_mode();
    let _ = execute!(io::stderr(), EndSynchronizedUpdate, Show, LeaveAlternateScreen);
}

/// Restores the terminal before an immediate exit, without waiting for a stalled terminal.
pub fn restore_immediately() {
    let (done, ended) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("give back".into()).spawn(move || {
        give_back();
        // After a time-out there is no receiver.
        let _ = done.send(());
    });
    if thread.is_ok() {
        let _ = ended.recv_timeout(2 * PATIENCE);
    }
}

/// The hook remains for the rest of the process; without a screen it does nothing.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
    });
}

/// A frame to be written.
struct Frame {
    cells: Buffer,
    /// Whether to write the whole frame instead of the changes.
    whole: bool,
}

#[derive(Default)]
struct Waiting {
    frame: Option<Frame>,
    ended: bool,
}

/// Slot for one waiting frame: a newer one replaces it.
#[derive(Default)]
struct Slot {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The terminal, set up for the view.
pub(super) struct Screen {
    slot: Arc<Slot>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Sets up the terminal.
    ///
    /// # Errors
    /// Fails if the terminal cannot be set up, or if no thread can be started.
    pub(super) fn open() -> io::Result<Self> {
        give_back_on_panic();
        // A separate descriptor: a blocked frame must hold no lock that a message on standard error needs.
        let out = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        terminal::enable_raw_mode()?;
        UP.store(true, Ordering::Release);
        let opened = Self::start(out);
        if opened.is_err() {
            give_back();
        }
        opened
    }

    fn start(mut out: File) -> io::Result<Self> {
        execute!(out, EnterAlternateScreen, Hide)?;
        let slot = Arc::new(Slot::default());
        let taken = Arc::clone(&slot);
        let thread = std::thread::Builder::new().name("screen".into()).spawn(move || write(&taken, out))?;
        Ok(Self { slot, thread: Some(thread) })
    }

    /// Whether the previous frame has been taken; otherwise another one would only replace it.
    pub(super) fn is_ready(&self) -> bool {
        self.slot.lock().frame.is_none()
    }

    /// Passes a frame to the writer; never waits for the terminal.
    pub(super) fn show(&self, cells: Buffer, whole: bool) {
        let mut waiting = self.slot.lock();
        // If a whole frame was replaced before it was written, the next one has to be whole.
        let whole = whole || waiting.frame.as_ref().is_some_and(|frame| frame.whole);
        waiting.frame = Some(Frame { cells, whole });
        drop(waiting);
        self.slot.changed.notify_one();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.slot.lock().ended = true;
        self.slot.changed.notify_one();
        let until = Instant::now() + PATIENCE;
        if let Some(thread) = self.thread.take() {
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        give_back();
    }
}

/// Whether the terminal is still set up.
pub(super) fn is_up() -> bool {
    UP.load(Ordering::Acquire)
}

/// The writer thread: writes each waiting frame as changes since the previous one.
fn write(slot: &Slot, out: File) {
    let mut out = BufWriter::with_capacity(256 * 1024, out);
    let mut shown = Buffer::default();
    loop {
        let mut waiting = slot.lock();
        while waiting.frame.is_none() && !waiting.ended {
            waiting = slot.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        // The last frame would be cleared immediately.
        if waiting.ended {
            return;
        }
        let Some(frame) = waiting.frame.take() else { continue };
        drop(waiting);
        let held = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_up() {
            return;
        }
        // A terminal that has hung up accepts no more frames; the run does not need it.
        if draw(&mut out, &mut shown, frame).is_err() {
            return;
        }
        drop(held);
    }
}

fn draw(out: &mut impl Write, shown: &mut Buffer, frame: Frame) -> io::Result<()> {
    queue!(out, BeginSynchronizedUpdate)?;
    if frame.whole || shown.area != frame.cells.area {
        queue!(out, Clear(ClearType::All))?;
        *shown = Buffer::empty(frame.cells.area);
    }
    draw_cells(out, &shown.diff(&frame.cells))?;
    queue!(out, EndSynchronizedUpdate)?;
    *shown = frame.cells;
    out.flush()
}

/// Cells with their columns and rows, each preceded by a cursor move unless it follows the previous one.
fn draw_cells(out: &mut impl Write, cells: &[(u16, u16, &Cell)]) -> io::Result<()> {
    let mut next = None;
    let mut style = None;
    for &(column, row, cell) in cells {
        if next != Some((column, row)) {
            queue!(out, MoveTo(column, row))?;
        }
        next = Some((column + 1, row));
        if style != Some((cell.fg, cell.bg, cell.modifier)) {
            style = Some((cell.fg, cell.bg, cell.modifier));
            let colors = Colors::new(terminal_color(cell.fg), terminal_color(cell.bg));
            queue!(out, SetAttribute(Attribute::Reset), SetColors(colors))?;
            if cell.modifier.contains(Modifier::BOLD) {
                queue!(out, SetAttribute(Attribute::Bold))?;
            }
            if cell.modifier.contains(Modifier::DIM) {
                queue!(out, SetAttribute(Attribute::Dim))?;
            }
        }
        queue!(out, Print(cell.symbol()))?;
    }
    queue!(out, SetAttribute(Attribute::Reset))
}

/// The names differ: crossterm has eight dark and eight light colours for the terminal's sixteen.
fn terminal_color(color: Color) -> TerminalColor {
    match color {
        Color::Reset => TerminalColor::Reset,
        Color::Black => TerminalColor::Black,
        Color::Red => TerminalColor::DarkRed,
        Color::Green => TerminalColor::DarkGreen,
        Color::Yellow => TerminalColor::DarkYellow,
        Color::Blue => TerminalColor::DarkBlue,
        Color::Magenta => TerminalColor::DarkMagenta,
        Color::Cyan => TerminalColor::DarkCyan,
        Color::Gray => TerminalColor::Grey,
        Color::DarkGray => TerminalColor::DarkGrey,
        Color::LightRed => TerminalColor::Red,
        Color::LightGreen => TerminalColor::Green,
        Color::LightYellow => TerminalColor::Yellow,
        Color::LightBlue => TerminalColor::Blue,
        Color::LightMagenta => TerminalColor::Magenta,
        Color::LightCyan => TerminalColor::Cyan,
        Color::White => TerminalColor::White,
        Color::Indexed(index) => TerminalColor::AnsiValue(index),
        Color::Rgb(r, g, b) => TerminalColor::Rgb { r, g, b },
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn a_frame_writes_changed_cells_with_their_styles_only() {
        let area = Rect::new(0, 0, 4, 2);
        let mut cells = Buffer::empty(area);
        cells.set_string(1, 0, "ab", Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        cells.set_string(3, 1, "c", Style::new());
        let mut shown = Buffer::empty(area);
        let mut out = Vec::new();
        draw(&mut out, &mut shown, Frame { cells: cells.clone(), whole: false }).unwrap();
        let [begin, end] = ["\u{1b}[?2026h", "\u{1b}[?2026l"];
        let text =
            "\u{1b}[1;2H\u{1b}[0m\u{1b}[38;5;1;49m\u{1b}[1mab\u{1b}[2;4H\u{1b}[0m\u{1b}[39;49mc\u{1b}[0m";
        assert_eq!(String::from_utf8(out).unwrap(), format!("{begin}{text}{end}"));
        let mut again = Vec::new();
        draw(&mut again, &mut shown, Frame { cells, whole: false }).unwrap();
        assert_eq!(String::from_utf8(again).unwrap(), format!("{begin}\u{1b}[0m{end}"));
    }

    #[test]
    #[ignore = "started on a terminal of its own by the test below"]
    fn panics_on_the_screen() {
        let _screen = Screen::open().unwrap();
        std::thread::spawn(|| panic!("what went wrong")).join().unwrap_err();
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        let test = std::env::current_exe().unwrap();
        let inner = format!(
            "{} --ignored --exact tui::screen::tests::panics_on_the_screen --nocapture",
            test.display()
        );
        let output = Command::new("script").args(["-qec", &inner, "/dev/null"]).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        let at = |what: &str| shown.find(what).unwrap_or_else(|| panic!("no {what:?} in {shown:?}"));
        assert!(
            at("\u{1b}[?1049h") < at("\u{1b}[?1049l") && at("\u{1b}[?1049l") < at("what went wrong"),
            "{shown}"
        );
        assert_eq!(shown.matches("\u{1b}[?1049l").count(), 1, "{shown:?}");
    }
}

//! The view's thread: receives keys and events, produces frames. It waits for neither the run nor the
//! terminal.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event as Input, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use kelvin_workload::Stop;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::AskStop;
use super::draw::{self, Palette, ViewOptions};
use super::model::ViewHeader;
use super::screen::{self, Screen};
use super::state::{Message, ViewState};

/// Minimum time between frames.
const FRAME: Duration = Duration::from_millis(250);

/// How long to wait for a key before the next events are processed.
const TURN: Duration = Duration::from_millis(100);

/// Minimum time between evaluations of the findings.
const LOOK: Duration = Duration::from_secs(5);

/// The pause after an evaluation of the findings is at least this many times as long as the evaluation.
const LOOK_COST: u32 = 250;

/// A held key repeats thirty times a second, and a second `q` would have another meaning than the first.
const REPEATED: Duration = Duration::from_secs(1);

/// The thread's state.
pub(super) struct View {
    screen: Screen,
    state: ViewState,
    asked: ViewOptions,
    ink: Palette,
    started: Instant,
    drawn: Option<Instant>,
    looked: Instant,
    look_cost: Duration,
    quit: Option<Instant>,
    stop: Stop,
    ask_stop: AskStop,
    keys: bool,
    /// Whether keys are read from standard input and not directly from the terminal.
    own_input: bool,
}

impl View {
    pub(super) fn new(screen: Screen, about: ViewHeader, stop: Stop, ask_stop: AskStop) -> Self {
        let now = Instant::now();
        Self {
            screen,
            state: ViewState::new(about),
            asked: ViewOptions::default(),
            ink: Palette { colour: screen::colours() },
            started: now,
            drawn: None,
            looked: now,
            look_cost: Duration::ZERO,
            quit: None,
            stop,
            ask_stop,
            keys: true,
            own_input: std::io::stdin().is_terminal(),
        }
    }

    /// Runs until the view ends, or until other code has restored the terminal.
    pub(super) fn work(mut self, messages: &Receiver<Message>) {
        let mut changed = true;
        let mut whole = false;
        while screen::is_up() {
            self.state.model.tick(self.started.elapsed());
            loop {
                match messages.try_recv() {
                    Ok(Message::End) | Err(TryRecvError::Disconnected) => return,
                    Ok(message) => {
                        if matches!(message, Message::Begin(..)) {
                            self.looked = Instant::now();
                        }
                        self.state.take(message);
                        changed = true;
                    }
                    Err(TryRecvError::Empty) => break,
                }
            }
            self.diagnose();
            self.state.model.stopping = self.stop.requested();
            // A countdown changes the display as well.
            let since = self.drawn.map_or(Duration::MAX, |drawn| drawn.elapsed());
            let due = whole || since >= Duration::from_secs(1) || changed && since >= FRAME;
            if due && (whole || !self.asked.paused) && self.screen.is_ready() {
                self.draw(whole);
                (changed, whole) = (false, false);
            }
            if let Some(anew) = self.key() {
                whole |= anew;
                changed = true;
            }
        }
    }

    /// Evaluates the findings if that is due.
    fn diagnose(&mut self) {
        let rest = LOOK.max(self.look_cost * LOOK_COST);
        if self.looked.elapsed() < rest {
            return;
        }
        let before = Instant::now();
        if self.state.diagnose() {
            self.look_cost = before.elapsed();
            self.looked = Instant::now();
        }
    }

    fn draw(&mut self, whole: bool) {
        self.drawn = Some(Instant::now());
        let (width, height) = crossterm::terminal::size().unwrap_or((80, 24));
        // The size reported by a broken terminal must not exhaust memory.
        let area = Rect::new(0, 0, width.clamp(1, 600), height.clamp(1, 300));
        let mut buffer = Buffer::empty(area);
        draw::draw(&mut buffer, area, &self.state.model, self.asked, self.ink);
        self.screen.show(buffer, whole);
    }

    /// Waits for a key, for one turn at most. Returns `None` if nothing has changed, otherwise whether the
    /// whole display has to be redrawn.
    fn key(&mut self) -> Option<bool> {
        if !self.keys {
            std::thread::sleep(TURN);
            return None;
        }
        // A terminal that has hung up is always readable but has no data: reading a key would never return.
        let waited = if self.own_input { hung_up(TURN) } else { Ok(false) };
        let turn = if self.own_input { Duration::ZERO } else { TURN };
        let pressed = match waited {
            Ok(true) => Err(std::io::ErrorKind::BrokenPipe.into()),
            Ok(false) => {
                event::poll(turn).and_then(|ready| if ready { event::read().map(Some) } else { Ok(None) })
            }
            Err(error) => Err(error),
        };
        match pressed {
            Ok(Some(Input::Key(key))) if key.kind != KeyEventKind::Release => self.pressed(key),
            Ok(Some(Input::Resize(..))) => Some(true),
            Ok(_) => None,
            Err(_) => {
                // The terminal has hung up; a Ctrl-C from elsewhere still ends the run.
                self.keys = false;
                None
            }
        }
    }

    fn pressed(&mut self, key: KeyEvent) -> Option<bool> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => (self.ask_stop)(&self.stop),
            KeyCode::Char('l') if control => return Some(true),
            KeyCode::Char('q' | 'Q') if !control => {
                let repeated = self.quit.replace(Instant::now()).is_some_and(|at| at.elapsed() < REPEATED);
                // The third Ctrl-C ends the process and stores no report; a letter must not do that.
                if !repeated && !self.stop.is_immediate() {
                    (self.ask_stop)(&self.stop);
                }
            }
            KeyCode::Char('p' | ' ') if !control => self.asked.paused = !self.asked.paused,
            KeyCode::Char('?' | 'h') if !control => self.asked.help = !self.asked.help,
            KeyCode::Esc => self.asked.help = false,
            _ => return None,
        }
        Some(true)
    }
}

/// Waits for input, up to the limit; returns whether the terminal has hung up.
fn hung_up(limit: Duration) -> std::io::Result<bool> {
    let input = std::io::stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: i64::from(limit.subsec_nanos()) };
    match poll(&mut fds, Some(&limit)) {
        Ok(_) => Ok(fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)),
        // The terminal was resized.
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

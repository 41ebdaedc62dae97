//! Colours, and text attributes that replace them: no information is shown by colour alone.

use ratatui::style::{Color, Modifier, Style};

use super::super::model::{CLASSES, MODES};

/// The palette, with or without colours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    /// Whether colours may be used.
    pub(crate) colour: bool,
}

/// Colours of the wait classes, in order.
const CLASS: [Color; CLASSES] = [
    Color::Green,
    Color::LightRed,
    Color::Blue,
    Color::Cyan,
    Color::Red,
    Color::Magenta,
    Color::Gray,
    Color::Yellow,
    Color::DarkGray,
];

/// Colours of the CPU modes, in order.
const MODE: [Color; MODES] = [Color::Green, Color::Red, Color::Magenta, Color::Blue, Color::Yellow];

impl Palette {
    fn fore(self, colour: Color, without: Modifier) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new().add_modifier(without) }
    }

    /// Headings of panels.
    pub(crate) fn heading(self) -> Style {
        self.fore(Color::Cyan, Modifier::BOLD)
    }

    /// Emphasized text.
    pub(crate) fn strong() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Secondary text.
    pub(crate) fn faint(self) -> Style {
        self.fore(Color::DarkGray, Modifier::DIM)
    }

    pub(crate) fn red(self) -> Style {
        self.fore(Color::Red, Modifier::BOLD)
    }

    pub(crate) fn amber(self) -> Style {
        self.fore(Color::Yellow, Modifier::empty())
    }

    /// Throughput of the measured window.
    pub(crate) fn load(self) -> Style {
        self.fore(Color::Green, Modifier::empty())
    }

    /// A cell of a stacked chart: a letter on its colour.
    fn cell(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(Color::Black).bg(colour) } else { Style::new() }
    }

    /// A wait class.
    pub(crate) fn class(self, class: usize) -> Style {
        self.cell(CLASS[class % CLASSES])
    }

    /// A CPU mode.
    pub(crate) fn mode(self, mode: usize) -> Style {
        self.cell(MODE[mode % MODES])
    }

    /// A line of a percentile: median, 95th, 99th, maximum.
    pub(crate) fn percentile(self, index: usize) -> Style {
        let colours = [Color::Green, Color::Yellow, Color::Red, Color::DarkGray];
        self.fore(colours[index % 4], Modifier::empty())
    }
}

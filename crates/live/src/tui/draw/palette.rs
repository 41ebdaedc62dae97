//! Colours, and attributes that replace them: nothing on the screen is shown by colour alone.

use ratatui::style::{Color, Modifier, Style};

use super::super::model::{CLASSES, MODES};

/// With colours or without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Palette {
    /// Whether colours may be used.
    pub(crate) colour: bool,
}

/// Of the classes of waits, in their order.
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

/// Of the shares of the CPU, in their order.
const MODE: [Color; MODES] = [Color::Green, Color::Red, Color::Magenta, Color::Blue, Color::Yellow];

impl Palette {
    fn fore(self, colour: Color, without: Modifier) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new().add_modifier(without) }
    }

    /// Headings of panels.
    pub(crate) fn heading(self) -> Style {
        self.fore(Color::Cyan, Modifier::BOLD)
    }

    /// What matters most.
    pub(crate) fn strong() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What matters least.
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

    /// A cell of a strip: a letter on its colour.
    fn cell(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(Color::Black).bg(colour) } else { Style::new() }
    }

    /// A class of waits.
    pub(crate) fn class(self, class: usize) -> Style {
        self.cell(CLASS[class % CLASSES])
    }

    /// A share of the CPU.
    pub(crate) fn mode(self, mode: usize) -> Style {
        self.cell(MODE[mode % MODES])
    }

    /// A percentile's line: the median, the 95th, the 99th, the largest.
    pub(crate) fn percentile(self, index: usize) -> Style {
        let colours = [Color::Green, Color::Yellow, Color::Red, Color::DarkGray];
        self.fore(colours[index % 4], Modifier::empty())
    }
}

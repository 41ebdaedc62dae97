//! Series: what is counted by itself in every second.

use serde::{Deserialize, Serialize};

use super::LoadPart;

/// What a series of counts and latencies is of. A run has one series for each transaction type; an open loop adds
/// more for the same transactions, so that adding up series means choosing a role first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SeriesRole {
    /// Transactions, with their service times: from the start on the connection to the end.
    #[default]
    Transaction,
    /// The arrivals that were to start within the window, of the type of series `of`, with their response times:
    /// from the intended start to the end, also when that came after the window had closed. A stall at the
    /// window's end is in them, and nothing that the ramp-up left behind.
    Response {
        /// Index of the transactions' series.
        of: u16,
    },
    /// Executions of one statement within the good transactions of series `of`.
    Statement {
        /// Index of the transactions' series.
        of: u16,
    },
    /// The generator's own lateness: from the intended start to the start, where a user stood ready.
    Lag,
}

impl SeriesRole {
    /// Whether what ended in `part` of the load is in the figures of the measured window.
    pub fn counts_in(self, part: LoadPart) -> bool {
        match self {
            Self::Transaction | Self::Statement { .. } => part == LoadPart::Measured,
            // The collector takes only those that were to start within the window.
            Self::Response { .. } | Self::Lag => part != LoadPart::RampUp,
        }
    }
}

/// One series of a run: its place among the others is the `kind` everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Its name, such as "New-Order".
    pub name: String,
    /// Whether its transactions count for the headline.
    pub headline: bool,
    /// What it is of.
    #[serde(default)]
    pub role: SeriesRole,
}

impl Series {
    /// The transactions of one type.
    pub fn transaction(name: &str, headline: bool) -> Self {
        Self { name: name.into(), headline, role: SeriesRole::Transaction }
    }

    /// Of I/O jobs: the direction of its I/O, "read" of "read sda" where series are by device as well.
    pub fn direction(&self) -> &str {
        direction_of(&self.name)
    }

    /// Whether it counts transactions, and not the same ones a second time or something else.
    pub fn is_transaction(&self) -> bool {
        self.role == SeriesRole::Transaction
    }
}

/// As [`Series::direction`], from the series' name.
pub fn direction_of(name: &str) -> &str {
    name.split([' ', ',']).next().unwrap_or(name)
}

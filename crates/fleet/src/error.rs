//! Errors of a fleet.

/// Why a fleet could not do something.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// NATS cannot be reached, or refuses.
    #[error("NATS: {0}")]
    Nats(String),
    /// A message cannot be understood.
    #[error("{0}")]
    Message(String),
    /// A request is not possible here.
    #[error("{0}")]
    Refused(String),
    /// An agent refuses or does not answer.
    #[error("agent {agent}: {why}")]
    Agent {
        /// The agent.
        agent: String,
        /// The reason.
        why: String,
    },
    /// A file of the fleet.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The reason.
        source: std::io::Error,
    },
}

impl FleetError {
    /// Converts an error of a file.
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        |source| Self::File { path, source }
    }

    /// Converts an error of NATS.
    pub(crate) fn nats(error: impl std::fmt::Display) -> Self {
        Self::Nats(error.to_string())
    }
}

/// The messages of an error and of those causes that it does not mention itself.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

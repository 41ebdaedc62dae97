//! Why a fleet cannot do something.

/// What went wrong, for a person.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// NATS cannot be reached or refuses.
    #[error("NATS: {0}")]
    Nats(String),
    /// A message is not understood.
    #[error("{0}")]
    Message(String),
    /// Something that was asked for is not possible here.
    #[error("{0}")]
    Refused(String),
    /// An agent refuses, or does not answer.
    #[error("agent {agent}: {why}")]
    Agent {
        /// The agent.
        agent: String,
        /// Why.
        why: String,
    },
    /// A file of the fleet.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

impl FleetError {
    /// An error of a file.
    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.display().to_string();
        |source| Self::File { path, source }
    }

    /// An error of NATS.
    pub(crate) fn nats(error: impl std::fmt::Display) -> Self {
        Self::Nats(error.to_string())
    }
}

/// The messages of an error and its causes that its own leaves out.
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

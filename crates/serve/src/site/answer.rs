//! Answers to requests.

use std::io::Cursor;

use tiny_http::{Header, Request, Response};

/// An answer.
pub(super) struct SiteResponse {
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
    saved_as: Option<String>,
}

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("there is no such page")]
    NotFound,
    /// The request cannot be fulfilled; the page shows the reason at its form.
    #[error("{0}")]
    Asked(String),
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Store(#[from] kelvin_store::Error),
    #[error(transparent)]
    Report(#[from] kelvin_report::Error),
    #[error("the page cannot be created: {0}")]
    Template(#[from] minijinja::Error),
}

pub(super) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// The answer that reports the failure.
    pub(super) fn answer(&self) -> SiteResponse {
        let status = match self {
            Self::NotFound | Self::Store(kelvin_store::Error::NoSuchRun { .. }) => 404,
            Self::Asked(_) => 400,
            _ => 500,
        };
        SiteResponse::text(status, &format!("{self}\n"))
    }
}

impl SiteResponse {
    pub(super) fn html(page: String) -> Self {
        Self { status: 200, kind: "text/html; charset=utf-8", body: page.into_bytes(), saved_as: None }
    }

    pub(super) fn text(status: u16, text: &str) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: text.into(), saved_as: None }
    }

    pub(super) fn json(value: &impl serde::Serialize) -> Self {
        let body = serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec());
        Self { status: 200, kind: "application/json", body, saved_as: None }
    }

    pub(super) fn script(text: &str) -> Self {
        Self { status: 200, kind: "text/javascript; charset=utf-8", body: text.into(), saved_as: None }
    }

    /// The answer as a download with this file name.
    pub(super) fn saved_as(mut self, name: &str) -> Self {
        self.saved_as = Some(name.into());
        self
    }

    /// Sends the answer.
    pub(super) fn send(self, request: Request) -> std::io::Result<()> {
        let mut headers = vec![("Content-Type", self.kind.to_owned())];
        headers.extend(HEADERS.map(|(name, value)| (name, value.to_owned())));
        if let Some(name) = self.saved_as {
            headers.push(("Content-Disposition", format!("attachment; filename=\"{name}\"")));
        }
        let length = self.body.len();
        let headers =
            headers.into_iter().filter_map(|(name, value)| Header::from_bytes(name, value).ok()).collect();
        request.respond(Response::new(
            self.status.into(),
            headers,
            Cursor::new(self.body),
            Some(length),
            None,
        ))
    }
}

/// Headers of every answer: pages are not cached, not embedded in others, and not readable by other sites.
pub(super) const HEADERS: [(&str, &str); 6] = [
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Content-Security-Policy", "frame-ancestors 'none'"),
];

//! A study as one page: the eight phases with what was asked, fixed, run, found and concluded, as HTML, Markdown, and, the
//! analysis alone, as text.

mod grid;
mod html;
mod markdown;
mod next;
mod plot;
mod sentences;
mod text;

pub use html::render as html;
pub use markdown::{analysis as analysis_markdown, next as next_markdown, render as markdown};
pub use next::render as next_toml;
pub use text::render as text;

//! A study as one page with its eight phases, from the question to the conclusion, as HTML or Markdown. The
//! analysis is also available as plain text.

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

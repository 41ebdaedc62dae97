//! The findings' pages of the user guide as HTML.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

/// A page as HTML, without its heading, which the surrounding page contains. Links to other findings lead to
/// their pages on this server. Other links become text, since this server does not have their targets, and so
/// do HTML tags.
pub(super) fn to_html(markdown: &str) -> String {
    let (mut dropped, mut in_heading) = (0_usize, false);
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => {
            in_heading = true;
            None
        }
        Event::End(TagEnd::Heading(HeadingLevel::H1)) => {
            in_heading = false;
            None
        }
        _ if in_heading => None,
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => match finding(&dest_url) {
            Some(address) if dropped == 0 => {
                Some(Event::Start(Tag::Link { link_type, dest_url: CowStr::from(address), title, id }))
            }
            _ => {
                dropped += 1;
                None
            }
        },
        Event::End(TagEnd::Link) if dropped > 0 => {
            dropped -= 1;
            None
        }
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        other => Some(other),
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    page
}

/// The address of a finding's page, from a link in the guide; `None` for any other link.
fn finding(link: &str) -> Option<String> {
    let name = link.split('#').next().unwrap_or_default();
    let id = name.strip_prefix("findings/").unwrap_or(name).strip_suffix(".md")?;
    kelvin_diagnose::page(id).map(|_| format!("/findings/{id}"))
}

/// The last part of a term's address: "measured-window".
pub(super) fn term_address(term: &str) -> String {
    term.replace(' ', "-")
}

/// The question that a page answers: its first paragraph, without markup.
pub(super) fn question(markdown: &str) -> String {
    let mut text = String::new();
    let mut within = false;
    for event in Parser::new(markdown) {
        match event {
            Event::Start(Tag::Paragraph) => within = true,
            Event::End(TagEnd::Paragraph) if within => break,
            Event::Text(words) | Event::Code(words) if within => text.push_str(&words),
            Event::SoftBreak if within => text.push(' '),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_on_this_server_and_tags_are_text() {
        let page = to_html("# A\n[x](steal.md#bound) [y](../load.md) [z](https://example.org) <b>c</b>");
        assert!(page.contains("<a href=\"/findings/steal\">x</a> y z &lt;b&gt;c&lt;/b&gt;"), "{page}");
    }

    #[test]
    fn every_finding_has_a_page_and_a_question() {
        for (id, page) in kelvin_diagnose::PAGES {
            let html = to_html(page);
            assert!(html.contains("<h2>") && !html.contains("<h1>") && question(page).len() > 20, "{id}");
        }
    }
}

//! `kelvin explain`: prints the page of a finding, or the meaning of a term, on a terminal.

use anyhow::{Result, bail};
use kelvin_measure::text::wrap;

use crate::args::ExplainArgs;
use crate::exit::Code;
use crate::out;

const WIDTH: usize = 80;

/// Prints the page of a finding, the meaning of a term, or a list of all findings with their questions, and
/// of the terms.
pub(crate) fn explain(args: &ExplainArgs) -> Result<Code> {
    let Some(wanted) = &args.finding else {
        out::write(&index())?;
        return Ok(Code::Success);
    };
    let Some(text) = explained(wanted) else {
        let findings = kelvin_diagnose::PAGES.iter().map(|(id, _)| *id);
        let known = findings.chain(kelvin_diagnose::terms().into_iter().map(|(term, _)| term));
        let meant = kelvin_run::nearest(wanted, known)
            .map_or_else(String::new, |meant| format!(" (did you mean {meant}?)"));
        bail!("there is no finding or term \"{wanted}\"{meant}; kelvin explain lists them");
    };
    out::write(&text)?;
    Ok(Code::Success)
}

/// The page of a finding, or the meaning of a term, in any capitalisation.
fn explained(wanted: &str) -> Option<String> {
    if let Some(page) = kelvin_diagnose::page(wanted) {
        return Some(plain(page));
    }
    let terms = kelvin_diagnose::terms();
    let (term, meaning) = terms.iter().find(|(term, _)| term.eq_ignore_ascii_case(wanted))?;
    Some(plain(&format!("# {term}\n\n{meaning}\n")))
}

/// All findings with their questions.
fn index() -> String {
    let of_databases = kelvin_diagnose::known_findings().iter().map(|about| (about.id, about.question));
    let of_jobs = kelvin_diagnose::io_all().iter().map(|about| (about.id, about.question));
    let mut text = String::new();
    for (id, question) in of_databases.chain(of_jobs) {
        out::wrapped(&mut text, &format!("{id:<26}{question}"), 0, 26, WIDTH);
    }
    let terms: Vec<&str> = kelvin_diagnose::terms().into_iter().map(|(term, _)| term).collect();
    text.push('\n');
    out::wrapped(&mut text, &format!("terms: {}", terms.join(", ")), 0, 7, WIDTH);
    text.push_str("\nkelvin explain FINDING prints its page, kelvin explain TERM its meaning\n");
    text
}

/// Markdown as plain text of 80 columns: headings, paragraphs, lists, tables and indented code.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            text.push('\n');
        } else if let Some(heading) = line.strip_prefix('#') {
            text.push_str(&inline(heading.trim_start_matches('#').trim()).to_uppercase());
            text.push('\n');
        } else if line.starts_with("    ") {
            text.push_str(line);
            text.push('\n');
        } else if line.starts_with('|') {
            let mut rows = vec![line];
            while let Some(row) = lines.next_if(|next| next.starts_with('|')) {
                rows.push(row);
            }
            table(&mut text, &rows);
        } else {
            let mut paragraph = line.to_owned();
            let goes_on =
                |next: &&str| !(next.is_empty() || next.starts_with(['#', '|']) || next.starts_with("- "));
            while let Some(next) = lines.next_if(goes_on) {
                paragraph.push(' ');
                paragraph.push_str(next.trim_start());
            }
            let (lead, words) = paragraph.strip_prefix("- ").map_or(("", &*paragraph), |words| ("- ", words));
            for (index, line) in wrap("", &inline(words), WIDTH - lead.len()).iter().enumerate() {
                let lead = if index == 0 { lead.to_owned() } else { " ".repeat(lead.len()) };
                text.push_str(&format!("{lead}{line}\n"));
            }
        }
    }
    text
}

/// Prints each table row as a list of its fields under the row's name.
fn table(text: &mut String, rows: &[&str]) {
    let fields = |row: &str| -> Vec<String> {
        row.trim_matches('|').split('|').map(|field| inline(field.trim())).collect()
    };
    let head = rows.first().map(|row| fields(row)).unwrap_or_default();
    for row in rows.iter().skip(2) {
        let fields = fields(row);
        let name = fields.first().map_or("", String::as_str);
        out::wrapped(text, &format!("- {name}"), 0, 2, WIDTH);
        for (column, field) in head.iter().zip(&fields).skip(1).filter(|(_, field)| !field.is_empty()) {
            out::wrapped(text, &format!("{column}: {field}"), 2, 4, WIDTH);
        }
    }
}

/// Removes the marks of emphasis and code. Of a link it keeps the text, and the address if it is on the web.
fn inline(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some(at) = rest.find(['`', '[']) {
        text.push_str(&rest[..at].replace("**", ""));
        let tail = &rest[at + 1..];
        if rest[at..].starts_with('`') {
            let (code, after) = tail.split_once('`').unwrap_or((tail, ""));
            text.push_str(code);
            rest = after;
            continue;
        }
        let link = tail.split_once("](").and_then(|(name, after)| {
            let (address, after) = after.split_once(')')?;
            Some((name, address, after))
        });
        let Some((name, address, after)) = link else {
            text.push('[');
            rest = tail;
            continue;
        };
        text.push_str(&inline(name));
        if address.starts_with("http") {
            text.push_str(&format!(" ({address})"));
        }
        rest = after;
    }
    text.push_str(&rest.replace("**", ""));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_explained_however_it_is_written() {
        assert_eq!(explained("nopm").unwrap(), "NOPM\n\nNew-Orders committed per minute (TPROC-C)\n");
        assert!(explained("level").unwrap().contains("what a study varies"), "one of two in a row");
        assert!(
            explained("term").is_none() && explained("---").is_none() && explained("lock-holder").is_some()
        );
    }

    #[test]
    fn pages_are_read_without_marks() {
        let page = "# a-finding\n\n**Is it `on`?** See [b](b.md) and [docs](https://x.org/y).\nOn a second line.\n\n- one\n  \
            more\n- two\n\n| | amber | red |\n|---|---|---|\n| lag | 1 % | |\n\n    code `stays`\n";
        assert_eq!(
            plain(page),
            "A-FINDING\n\nIs it on? See b and docs (https://x.org/y). On a second line.\n\n- one more\n- two\n\n- lag\n  \
             amber: 1 %\n\n    code `stays`\n"
        );
        for (id, page) in kelvin_diagnose::PAGES {
            let shown = plain(page);
            assert!(shown.starts_with(&id.to_uppercase()) && !shown.contains("**"), "{id}\n{shown}");
            let long = shown.lines().find(|line| line.chars().count() > WIDTH);
            assert!(long.is_none(), "{id}: {long:?}");
        }
    }
}

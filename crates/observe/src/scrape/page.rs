//! The samples of one scrape, by name, and the number of those used.

use std::cell::Cell;
use std::collections::HashMap;

use super::text::{Malformed, Sample, parse};

/// The samples of one answer.
pub(super) struct Page<'a> {
    by_name: HashMap<String, Vec<Entry<'a>>>,
    count: usize,
}

struct Entry<'a> {
    sample: Sample<'a>,
    used: Cell<bool>,
}

impl<'a> Page<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, Malformed> {
        let samples = parse(text)?;
        let count = samples.len();
        let mut by_name: HashMap<String, Vec<Entry<'a>>> = HashMap::with_capacity(count);
        for sample in samples {
            let entry = Entry { used: Cell::new(false), sample };
            // Lines with the same name follow each other, so look-ups are far more frequent than new names.
            match by_name.get_mut(&*entry.sample.name) {
                Some(entries) => entries.push(entry),
                None => drop(by_name.insert(entry.sample.name.to_string(), vec![entry])),
            }
        }
        Ok(Self { by_name, count })
    }

    /// The samples of a name, which are then counted as used.
    pub(super) fn all<'b>(&'b self, name: &str) -> impl Iterator<Item = &'b Sample<'a>> + use<'a, 'b> {
        let entries = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        entries.iter().map(|entry| {
            entry.used.set(true);
            &entry.sample
        })
    }

    /// The value of a name that has only one, without labels that distinguish values.
    pub(super) fn one(&self, name: &str) -> Option<f64> {
        let mut all = self.all(name);
        let first = all.next()?.value;
        all.next().is_none().then_some(first)
    }

    /// The names that begin so.
    pub(super) fn names(&self, beginning: &str) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str).filter(move |name| name.starts_with(beginning))
    }

    /// The number of samples, and the number of unused ones.
    pub(super) fn count(&self) -> (usize, usize) {
        let used: usize = self.by_name.values().flatten().filter(|entry| entry.used.get()).count();
        (self.count, self.count - used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_counts_as_used() {
        let page = Page::parse("a 1\nb{x=\"1\"} 2\nb{x=\"2\"} 3\nc 4\n").unwrap();
        assert_eq!(page.count(), (4, 4));
        assert_eq!(page.one("a"), Some(1.0));
        assert_eq!(page.one("b"), None, "two figures are not one");
        assert_eq!(page.one("none"), None);
        assert_eq!(page.all("b").map(|s| s.value).sum::<f64>(), 5.0);
        assert_eq!(page.count(), (4, 1));
        assert_eq!(page.names("c").collect::<Vec<_>>(), ["c"]);
    }
}

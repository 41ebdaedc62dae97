//! Files of "name value" lines, which are most of them.

use super::bytes::{keyed, lines, number, words};
use super::counter::{Counter, figure};
use super::system_files::{Buffer, KernelFile, SystemFiles};
use super::{Collector, Registry};

/// One line of such a file as a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// The line's name. One that ends in a star stands for the sum of all lines that begin so.
    pub(crate) key: &'static str,
    /// The last part of the series' name.
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: Kind,
}

/// What a value means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// The state now, times a factor.
    Level(f64),
    /// A counter, of which the rate is wanted, times a factor.
    Rate(f64),
}

impl Field {
    fn matches(&self, key: &[u8]) -> bool {
        match self.key.as_bytes().split_last() {
            Some((b'*', beginning)) => key.starts_with(beginning),
            _ => key == self.key.as_bytes(),
        }
    }
}

/// A kept file of "name value" lines.
pub(super) struct Fields {
    file: KernelFile,
    /// Words before the name, as in "Node 0 MemFree: 12 kB".
    skip: usize,
    wanted: Vec<Field>,
    now: Vec<Option<u64>>,
    counters: Vec<Counter>,
}

impl Fields {
    /// Registers those of the fields that the file has, as `prefix.name`, and the others as absent.
    pub(super) fn register(
        source: &SystemFiles,
        registry: &mut Registry,
        path: &str,
        skip: usize,
        prefix: &str,
        fields: &[Field],
    ) {
        let file = match source.open(path) {
            Ok(file) => file,
            Err(why) => {
                // Of "cpu.usage", "cpu.user" … the group.
                let group = fields.first().and_then(|field| field.name.split_once('.'));
                let what = group.map_or(prefix.to_owned(), |(group, _)| format!("{prefix}.{group}"));
                return registry.absent(&what, why);
            }
        };
        let mut now = vec![None; fields.len()];
        let mut buffer = Buffer::new();
        parse(file.read(&mut buffer).unwrap_or_default(), skip, fields, &mut now);
        let (mut kept, mut series) = (Vec::new(), Vec::new());
        for (field, now) in fields.iter().zip(&now) {
            let name = format!("{prefix}.{}", field.name);
            if now.is_some() {
                kept.push(*field);
                series.push((name, field.unit, field.help));
            } else {
                registry.absent(&name, format!("{path} has no field {}", field.key));
            }
        }
        let count = kept.len();
        let collector = Self {
            file,
            skip,
            wanted: kept,
            now: vec![None; count],
            counters: vec![Counter::default(); count],
        };
        registry.add(series, collector);
    }
}

impl Collector for Fields {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        self.now.fill(None);
        if let Some(text) = self.file.read(buffer) {
            parse(text, self.skip, &self.wanted, &mut self.now);
        }
        for (i, field) in self.wanted.iter().enumerate() {
            out[i] = match field.kind {
                Kind::Level(factor) => figure(self.now[i]) * factor,
                Kind::Rate(factor) => figure(self.counters[i].strict(self.now[i])) * factor / seconds,
            };
        }
    }
}

/// The fields' values in the order of the fields.
pub(super) fn parse(text: &[u8], skip: usize, fields: &[Field], now: &mut [Option<u64>]) {
    for line in lines(text) {
        let Some(line) = after_words(line, skip) else { continue };
        let Some((key, rest)) = keyed(line) else { continue };
        for (field, now) in fields.iter().zip(now.iter_mut()).filter(|(field, _)| field.matches(key)) {
            if let Some(value) = words(rest).next().and_then(number) {
                *now = Some(now.unwrap_or(0).saturating_add(value));
            }
            if !field.key.ends_with('*') {
                break;
            }
        }
    }
}

/// A line without its first words and the blanks around them.
fn after_words(mut line: &[u8], count: usize) -> Option<&[u8]> {
    for _ in 0..count {
        line = line.trim_ascii_start();
        line = &line[line.iter().position(u8::is_ascii_whitespace)?..];
    }
    Some(line.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIELDS: [Field; 3] = [
        Field { key: "MemFree", name: "free", unit: "B", help: "", kind: Kind::Level(1024.0) },
        Field { key: "allocstall*", name: "stalls", unit: "1/s", help: "", kind: Kind::Rate(1.0) },
        Field { key: "pgfault", name: "faults", unit: "1/s", help: "", kind: Kind::Rate(1.0) },
    ];

    #[test]
    fn names_are_matched_whole_and_stars_are_summed() {
        let mut now = [None; 3];
        let text = b"Node 0 MemFree:   12 kB\nNode 0 MemFreeish: 9\nNode 0 allocstall_dma 3\n\nNode 0 allocstall_normal 4\nNode 0 pgfault x\n";
        parse(text, 2, &FIELDS, &mut now);
        assert_eq!(now, [Some(12), Some(7), None]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "((Node|MemFree|allocstall_x|[0-9]{0,22}|\\PC)[ :\n]?){0,40}", skip in 0_usize..4) {
            parse(text.as_bytes(), skip, &FIELDS, &mut [None; 3]);
        }
    }
}

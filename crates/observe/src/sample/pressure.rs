//! Pressure stall information: the share of the time in which work was held up for want of CPU, memory or I/O.
//!
//! "some": at least one task was held up; "full": all that had work were. From the totals, not the kernel's averages
//! over ten seconds and more: Δtotal / Δt.
//!
//! Source: `Documentation/accounting/psi.rst`.

use super::bytes::{keyed, lines, number, words};
use super::counter::{Counter, figure};
use super::system_files::{Buffer, KernelFile, SystemFiles};
use super::{Collector, Registry};

const RESOURCES: [(&str, &str, &str); 4] = [
    (
        "cpu",
        "share of time in which a task waited for a CPU",
        "share of time in which all tasks of the group waited for a CPU",
    ),
    (
        "memory",
        "share of time in which a task waited for memory",
        "share of time in which all tasks waited for memory",
    ),
    (
        "io",
        "share of time in which a task waited for a device",
        "share of time in which all tasks waited for a device",
    ),
    ("irq", "share of time lost to interrupts", "share of time in which interrupts stalled all tasks"),
];

struct Pressure {
    file: KernelFile,
    some: Counter,
    full: Counter,
    /// The slots of "some" and "full"; interrupts have only the second, old kernels for the CPU only the first.
    slots: [Option<usize>; 2],
}

/// Registers the files `directory` + resource + `suffix` as `prefix.resource.{some,full}`.
pub(super) fn register(
    source: &SystemFiles,
    registry: &mut Registry,
    directory: &str,
    suffix: &str,
    prefix: &str,
) {
    for (resource, some, full) in RESOURCES {
        let name = format!("{prefix}.{resource}");
        let path = format!("{directory}{resource}{suffix}");
        match source.open(&path) {
            Err(why) => registry.absent(&name, why),
            Ok(file) => {
                let found = file.read(&mut Buffer::new()).map(parse).unwrap_or_default();
                let mut series = Vec::new();
                let mut slots = [None; 2];
                for (i, (kind, help)) in [("some", some), ("full", full)].into_iter().enumerate() {
                    if found[i].is_some() {
                        slots[i] = Some(series.len());
                        series.push((format!("{name}.{kind}"), "ratio", help));
                    }
                }
                if series.is_empty() {
                    registry.absent(&name, format!("{path} has no totals"));
                }
                registry.add(
                    series,
                    Pressure { file, some: Counter::default(), full: Counter::default(), slots },
                );
            }
        }
    }
}

impl Collector for Pressure {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let [some, full] = self.file.read(buffer).map(parse).unwrap_or_default();
        for (slot, rise) in self.slots.into_iter().zip([self.some.strict(some), self.full.strict(full)]) {
            if let Some(slot) = slot {
                out[slot] = figure(rise) / 1e6 / seconds;
            }
        }
    }
}

/// The totals of "some" and "full" in microseconds.
fn parse(text: &[u8]) -> [Option<u64>; 2] {
    let mut totals = [None; 2];
    for line in lines(text) {
        let Some((kind, rest)) = keyed(line) else { continue };
        let slot = match kind {
            b"some" => 0,
            b"full" => 1,
            _ => continue,
        };
        totals[slot] = words(rest).find_map(|word| number(word.strip_prefix(b"total=")?));
    }
    totals
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_totals_are_read() {
        let text = b"some avg10=80.29 avg60=84.22 avg300=81.83 total=7263670346\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12\n";
        assert_eq!(parse(text), [Some(7_263_670_346), Some(12)]);
        assert_eq!(parse(b"full avg10=0.00 total=3"), [None, Some(3)]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "((some|full|\\PC) ?(total=)?[0-9]{0,22}[ \n]?){0,10}", raw: Vec<u8>) {
            let _ = (parse(text.as_bytes()), parse(&raw));
        }
    }
}

//! Control groups, version 2: what limits this process, and what the limits cost.
//!
//! Source: `Documentation/admin-guide/cgroup-v2.rst`.

use std::path::{Path, PathBuf};

use super::bytes::{first_number, lines, number, words};
use super::counter::{Counter, figure};
use super::fields::{Field, Fields, Kind};
use super::source::{Buffer, Kept, Source};
use super::{Collector, Registry, pressure};
use crate::host::filesystem::Mount;

const CPU: [Field; 6] = [
    Field { key: "usage_usec", name: "cpu.usage", unit: "s/s", help: "CPUs used", kind: Kind::Rate(1e-6) },
    Field {
        key: "user_usec",
        name: "cpu.user",
        unit: "s/s",
        help: "CPUs used in user code",
        kind: Kind::Rate(1e-6),
    },
    Field {
        key: "system_usec",
        name: "cpu.system",
        unit: "s/s",
        help: "CPUs used in the kernel",
        kind: Kind::Rate(1e-6),
    },
    Field {
        key: "nr_periods",
        name: "cpu.periods",
        unit: "1/s",
        help: "periods of the limit in which the group ran",
        kind: Kind::Rate(1.0),
    },
    Field {
        key: "nr_throttled",
        name: "cpu.throttled_periods",
        unit: "1/s",
        help: "periods in which the limit stopped it",
        kind: Kind::Rate(1.0),
    },
    Field {
        key: "throttled_usec",
        name: "cpu.throttled",
        unit: "s/s",
        help: "time that its CPUs' queues were stopped, added up",
        kind: Kind::Rate(1e-6),
    },
];

const EVENTS: [Field; 3] = [
    Field {
        key: "high",
        name: "memory.high_events",
        unit: "1/s",
        help: "reclaims because of memory.high",
        kind: Kind::Rate(1.0),
    },
    Field {
        key: "max",
        name: "memory.max_events",
        unit: "1/s",
        help: "times that memory.max was reached",
        kind: Kind::Rate(1.0),
    },
    Field {
        key: "oom_kill",
        name: "memory.oom_kills",
        unit: "1/s",
        help: "processes killed for want of memory",
        kind: Kind::Rate(1.0),
    },
];

const IO: [(&str, &str, &str, &[u8]); 6] = [
    ("read_bytes", "B/s", "read from devices", b"rbytes"),
    ("write_bytes", "B/s", "written to devices", b"wbytes"),
    ("reads", "1/s", "reads of devices", b"rios"),
    ("writes", "1/s", "writes of devices", b"wios"),
    ("discard_bytes", "B/s", "discarded", b"dbytes"),
    ("discards", "1/s", "discards", b"dios"),
];

pub(super) fn register(source: &Source, registry: &mut Registry, given: &[(String, PathBuf)]) {
    let mounts = source.text("/proc/self/mountinfo").unwrap_or_default();
    let Some(mount) = mounts.lines().filter_map(Mount::parse).find(|m| m.kind == "cgroup2") else {
        return registry.absent("host.cgroup", "no hierarchy of version 2 is mounted".into());
    };
    let groups = source.text("/proc/self/cgroup").unwrap_or_default();
    // "4:memory:/path": a controller that an old hierarchy holds is not in the new one.
    let old = groups
        .lines()
        .filter_map(|line| line.split(':').nth(1))
        .filter(|c| !c.is_empty() && !c.starts_with("name="));
    let old: Vec<&str> = old.collect();
    if !old.is_empty() {
        let why = format!("mounted as version 1, which is not read: {}", old.join(", "));
        registry.absent("host.cgroup", why);
    }
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    let below = |path: &Path| {
        let path = path.strip_prefix(&mount.root).unwrap_or(path);
        let inside = Path::new(&mount.point).join(path.strip_prefix("/").unwrap_or(path));
        Some(inside).filter(|inside| source.path(inside).join("cgroup.procs").exists())
    };
    // In a container the root of what is mounted is the process's own group.
    let own = below(Path::new(own)).unwrap_or_else(|| PathBuf::from(&mount.point));
    group(source, registry, "host.cgroup.own", &own);
    for (name, path) in given {
        let prefix = format!("host.cgroup.{name}");
        let direct = Some(path.clone()).filter(|p| source.path(p).join("cgroup.procs").exists());
        match direct.or_else(|| below(path)) {
            Some(directory) => group(source, registry, &prefix, &directory),
            None => registry.absent(&prefix, format!("{} is no control group of version 2", path.display())),
        }
    }
}

fn group(source: &Source, registry: &mut Registry, prefix: &str, directory: &Path) {
    let file = |name: &str| directory.join(name).to_string_lossy().into_owned();
    Fields::register(source, registry, &file("cpu.stat"), 0, prefix, &CPU);
    Fields::register(source, registry, &file("memory.events"), 0, prefix, &EVENTS);
    for (name, series, unit, help, what) in [
        ("cpu.max", "cpu.limit", "1", "CPUs allowed; unknown when unlimited", Single::Quota),
        ("memory.current", "memory.current", "B", "memory charged to the group", Single::Number),
        ("memory.max", "memory.limit", "B", "memory allowed; unknown when unlimited", Single::Number),
    ] {
        let series = format!("{prefix}.{series}");
        match source.open(file(name)) {
            Ok(file) => registry.add(vec![(series, unit, help)], Value { file, what }),
            Err(why) => registry.absent(&series, why),
        }
    }
    match source.open(file("io.stat")) {
        Err(why) => registry.absent(&format!("{prefix}.io"), why),
        Ok(file) => {
            let series = IO.iter().map(|(name, unit, help, _)| (format!("{prefix}.io.{name}"), *unit, *help));
            registry.add(series.collect(), Io { file, counters: Default::default() });
        }
    }
    pressure::register(source, registry, &file(""), ".pressure", &format!("{prefix}.pressure"));
}

#[derive(Clone, Copy)]
enum Single {
    Number,
    Quota,
}

/// A file of one value.
struct Value {
    file: Kept,
    what: Single,
}

impl Collector for Value {
    fn sample(&mut self, buffer: &mut Buffer, _: f64, out: &mut [f64]) {
        let text = self.file.read(buffer).unwrap_or_default();
        out[0] = match self.what {
            Single::Number => figure(first_number(text)),
            Single::Quota => quota(text).unwrap_or(f64::NAN),
        };
    }
}

/// "150000 100000" is one CPU and a half; "max 100000" is no limit.
fn quota(text: &[u8]) -> Option<f64> {
    let mut words = words(text);
    let (quota, period) = (number(words.next()?)?, number(words.next()?)?);
    (period > 0).then(|| quota as f64 / period as f64)
}

struct Io {
    file: Kept,
    counters: [Counter; IO.len()],
}

impl Collector for Io {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let now = self.file.read(buffer).map(io);
        for (i, counter) in self.counters.iter_mut().enumerate() {
            out[i] = figure(counter.strict(now.map(|n| n[i]))) / seconds;
        }
    }
}

/// The sums over the devices. A group that has done no I/O has no line, and zeros.
fn io(text: &[u8]) -> [u64; IO.len()] {
    let mut sums = [0_u64; IO.len()];
    for word in lines(text).flat_map(words) {
        let Some(at) = word.iter().position(|&b| b == b'=') else { continue };
        let slot = IO.iter().position(|(.., key)| *key == &word[..at]);
        if let (Some(slot), Some(value)) = (slot, number(&word[at + 1..])) {
            sums[slot] = sums[slot].saturating_add(value);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn limits_and_sums_are_read() {
        assert_eq!(quota(b"150000 100000\n"), Some(1.5));
        assert_eq!(quota(b"max 100000\n"), None);
        let text = b"254:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=3 dios=4\n254:16 rbytes=5 wbytes=x\n";
        assert_eq!(io(text), [15, 20, 1, 2, 3, 4]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "((rbytes=|max|\\PC)[0-9]{0,22}[ \n]?){0,20}", raw: Vec<u8>) {
            for text in [text.as_bytes(), &raw] {
                let _ = (quota(text), io(text));
            }
        }
    }
}

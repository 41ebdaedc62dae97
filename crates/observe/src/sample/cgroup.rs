//! Control groups: the limits of this process, and their effects. Version 2 here; `cgroup_v1` reads an old hierarchy,
//! under the same names.
//!
//! SystemTree: `Documentation/admin-guide/cgroup-v2.rst`.

use crate::metric;
use kelvin_host::cgroup::{group_of, hierarchy};
use std::path::{Path, PathBuf};

use kelvin_host::Mount;

use super::cgroup_v1::{Held, Hierarchies, KILLS, throttling};
use super::counter::{Counter, figure};
use super::fields::{Field, Fields, Kind};
use super::{Collector, Registry, pressure};
use kelvin_host::bytes::{first_number, lines, number, words};
use kelvin_host::{Buffer, KernelFile, SystemTree};

const THROTTLING: [Field; 3] = throttling("throttled_usec", 1e-6);

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
    THROTTLING[0],
    THROTTLING[1],
    THROTTLING[2],
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
        help: "times memory.max was reached",
        kind: Kind::Rate(1.0),
    },
    KILLS,
];

const IO: [(&str, &str, &str, &[u8]); 6] = [
    ("read_bytes", "B/s", "read from devices", b"rbytes"),
    ("write_bytes", "B/s", "written to devices", b"wbytes"),
    ("reads", "1/s", "reads from devices", b"rios"),
    ("writes", "1/s", "writes to devices", b"wios"),
    ("discard_bytes", "B/s", "discarded", b"dbytes"),
    ("discards", "1/s", "discards", b"dios"),
];

pub(super) fn register(source: &SystemTree, registry: &mut Registry, given: &[(String, PathBuf)]) {
    let mounts = source.mounts();
    let groups = source.text("/proc/self/cgroup").unwrap_or_default();
    let old = Hierarchies::find(&mounts, &groups);
    let mount = hierarchy(&mounts, None);
    if mount.is_none() && old.is_empty() {
        return registry.absent(metric::CGROUP, "no cgroup hierarchy is mounted".into());
    }
    let below = |mount: &Mount, path: &Path| {
        let path = path.strip_prefix(&mount.root).unwrap_or(path);
        let inside = mount.point.join(path.strip_prefix("/").unwrap_or(path));
        Some(inside).filter(|inside| source.path(inside).join("cgroup.procs").exists())
    };
    let held = old.register(source, registry, "host.cgroup.own", None);
    if let Some(mount) = mount {
        let own = group_of(&groups, None).unwrap_or("/");
        // In a container the root of the mount is the process's own group.
        let own = below(mount, Path::new(own)).unwrap_or_else(|| mount.point.clone());
        group(source, registry, "host.cgroup.own", &own, held);
    } else {
        registry.absent("host.cgroup.own.pressure", NO_PRESSURE.into());
    }
    for (name, path) in given {
        let prefix = format!("host.cgroup.{name}");
        let held = old.register(source, registry, &prefix, Some(path));
        let directory = mount.and_then(|mount| {
            let direct = path.starts_with(&mount.point) && source.path(path).join("cgroup.procs").exists();
            if direct { Some(path.clone()) } else { below(mount, path) }
        });
        match directory {
            Some(directory) => group(source, registry, &prefix, &directory, held),
            None if held == Held::default() => {
                registry.absent(&prefix, format!("{} is not a cgroup", path.display()));
            }
            None => registry.absent(&format!("{prefix}.pressure"), NO_PRESSURE.into()),
        }
    }
}

/// The control group of a process by its CPU time, where that is another one than this process's; none in the root, which has no
/// limits.
pub fn other_group(pid: u32) -> Option<PathBuf> {
    let of = |process: &str| {
        let groups = std::fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
        group_of(&groups, Some("cpu")).or_else(|| group_of(&groups, None)).map(PathBuf::from)
    };
    let found = of(&pid.to_string())?;
    (found != Path::new("/") && Some(&found) != of("self").as_ref()).then_some(found)
}

const NO_PRESSURE: &str = "cgroup v1 has no pressure files, and the group is not in a v2 hierarchy";

fn group(source: &SystemTree, registry: &mut Registry, prefix: &str, directory: &Path, held: Held) {
    let file = |name: &str| directory.join(name).to_string_lossy().into_owned();
    if !held.cpu {
        Fields::register(source, registry, &file("cpu.stat"), 0, prefix, &CPU);
    }
    if !held.memory {
        Fields::register(source, registry, &file("memory.events"), 0, prefix, &EVENTS);
    }
    for (name, series, unit, help, what, elsewhere) in [
        ("cpu.max", "cpu.limit", "1", "CPUs allowed; unknown when unlimited", Single::Quota, held.cpu),
        ("memory.current", "memory.current", "B", "memory charged to the group", Single::Number, held.memory),
        (
            "memory.max",
            "memory.limit",
            "B",
            "memory allowed; unknown when unlimited",
            Single::Number,
            held.memory,
        ),
    ] {
        let series = format!("{prefix}.{series}");
        match source.open(file(name)) {
            _ if elsewhere => {}
            Ok(file) => registry.add(vec![(series, unit, help)], Value { file, what }),
            Err(why) => registry.absent(&series, why),
        }
    }
    match source.open(file("io.stat")) {
        _ if held.io => {}
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
    file: KernelFile,
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

/// "150000 100000" is 1.5 CPUs; "max 100000" is no limit.
fn quota(text: &[u8]) -> Option<f64> {
    let mut words = words(text);
    let (quota, period) = (number(words.next()?)?, number(words.next()?)?);
    (period > 0).then(|| quota as f64 / period as f64)
}

struct Io {
    file: KernelFile,
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

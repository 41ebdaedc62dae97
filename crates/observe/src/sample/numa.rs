//! Which node's memory was handed out: `/sys/devices/system/node/nodeN/`.
//!
//! Remote ratio: Δother_node / Δ(local_node + other_node), allocations of pages on a node by CPUs of another.
//!
//! SystemTree: `Documentation/admin-guide/numastat.rst`.

use super::counter::{Counter, figure, ratio};
use super::fields::{Field, Fields, Kind};
use super::{Collector, Registry};
use crate::metric;
use kelvin_host::bytes::{keyed, lines, number, words};
use kelvin_host::{Buffer, KernelFile, SystemTree};

const DIRECTORY: &str = "/sys/devices/system/node";
pub(crate) const KEYS: [(&str, &str); 6] = [
    ("numa_hit", "pages allocated on this NUMA node as intended"),
    ("numa_miss", "pages allocated here, but intended for another NUMA node"),
    ("numa_foreign", "pages intended for this NUMA node, but allocated on another"),
    ("interleave_hit", "interleaved pages allocated as intended"),
    ("local_node", "pages allocated here by a CPU of this NUMA node"),
    ("other_node", "pages allocated here by a CPU of another NUMA node"),
];
const LOCAL: usize = 4;
const OTHER: usize = 5;
const REMOTE: &str = "share of pages allocated by a CPU of another NUMA node";

pub(crate) const LEVELS: [Field; 4] = [
    Field {
        key: "MemFree",
        name: "free",
        unit: "B",
        help: "memory unused on this NUMA node",
        kind: Kind::Level(1024.0),
    },
    Field {
        key: "MemUsed",
        name: "used",
        unit: "B",
        help: "memory used on this NUMA node",
        kind: Kind::Level(1024.0),
    },
    Field {
        key: "HugePages_Total",
        name: "huge_pages.total",
        unit: "1",
        help: "huge pages allocated on this NUMA node",
        kind: Kind::Level(1.0),
    },
    Field {
        key: "HugePages_Free",
        name: "huge_pages.free",
        unit: "1",
        help: "huge pages unused on this NUMA node",
        kind: Kind::Level(1.0),
    },
];

struct Numa {
    nodes: Vec<(KernelFile, [Counter; 6])>,
}

pub(super) fn register(source: &SystemTree, registry: &mut Registry) {
    let found = source.numbered(DIRECTORY, "node");
    let nodes =
        found.iter().filter_map(|&n| Some((n, source.open(format!("{DIRECTORY}/node{n}/numastat")).ok()?)));
    let (numbers, nodes): (Vec<u32>, Vec<_>) =
        nodes.map(|(n, file)| (n, (file, <[Counter; 6]>::default()))).unzip();
    if nodes.is_empty() {
        return registry.absent(
            metric::HOST_NUMA,
            format!("no NUMA node has a numastat file in {DIRECTORY}: the kernel has no NUMA support"),
        );
    }
    let mut series = vec![(metric::REMOTE_MEMORY.to_owned(), "ratio", REMOTE)];
    for n in &numbers {
        series.extend(KEYS.iter().map(|(key, help)| (format!("host.numa.{n}.{key}"), "1/s", *help)));
        series.push((format!("host.numa.{n}.remote_ratio"), "ratio", REMOTE));
    }
    registry.add(series, Numa { nodes });
    for n in numbers {
        Fields::register(
            source,
            registry,
            &format!("{DIRECTORY}/node{n}/meminfo"),
            2,
            &format!("host.numa.{n}"),
            &LEVELS,
        );
    }
}

impl Collector for Numa {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let (total, rest) = out.split_at_mut(1);
        let (mut local, mut other) = (0.0, 0.0);
        for ((file, counters), out) in self.nodes.iter_mut().zip(rest.chunks_exact_mut(KEYS.len() + 1)) {
            let now = file.read(buffer).map(parse).unwrap_or_default();
            let mut rises = [f64::NAN; KEYS.len()];
            for i in 0..KEYS.len() {
                rises[i] = figure(counters[i].rise(now[i]));
                out[i] = rises[i] / seconds;
            }
            out[KEYS.len()] = ratio(rises[OTHER], rises[LOCAL] + rises[OTHER]);
            local += rises[LOCAL];
            other += rises[OTHER];
        }
        total[0] = ratio(other, local + other);
    }
}

fn parse(text: &[u8]) -> [Option<u64>; KEYS.len()] {
    let mut values = [None; KEYS.len()];
    for line in lines(text) {
        let Some((key, rest)) = keyed(line) else { continue };
        if let Some(at) = KEYS.iter().position(|(name, _)| name.as_bytes() == key) {
            values[at] = words(rest).next().and_then(number);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_node_is_read() {
        let text =
            b"numa_hit 10\nnuma_miss 2\nnuma_foreign 3\ninterleave_hit 4\nlocal_node 5\nother_node 6\n";
        assert_eq!(parse(text), [10, 2, 3, 4, 5, 6].map(Some));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "((numa_hit|other_node|\\PC) ?[0-9]{0,22}\n?){0,10}", raw: Vec<u8>) {
            let _ = (parse(text.as_bytes()), parse(&raw));
        }
    }
}

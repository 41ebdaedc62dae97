//! On which nodes the memory of given processes lies: `/proc/PID/numa_maps`.
//!
//! The kernel walks the page tables to answer, some 10 nanoseconds a page: a tenth of a second for a process with
//! forty gigabytes of small pages. So this is read every ten seconds at most, within a budget, and of a process with many
//! children a few each time, in turn. That makes the figures shares of the pages looked at, not sums.
//!
//! SystemTree: `Documentation/filesystems/proc.rst`, "numa_maps"; numa(7).

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::counter::ratio;
use super::pace::Pace;
use super::{Collector, Process, Registry};
use kelvin_host::bytes::{lines, number, words};
use kelvin_host::{Buffer, KernelFile, SystemTree};

const LEAST: Duration = Duration::from_secs(10);
/// The time limit of one sample; the remaining children are left to the next.
const LONGEST: Duration = Duration::from_millis(20);
/// Kernels are built for 1024 nodes at most, and hosts have fewer.
const MOST_NODES: usize = 64;
const SHARE: &str = "share of the process's memory on this NUMA node, from the last sample of its pages";

pub(super) fn register(source: &SystemTree, registry: &mut Registry, processes: &[Process]) {
    let nodes = source.numbered("/sys/devices/system/node", "node");
    for process in processes {
        let prefix = format!("host.process.{}.numa", process.name);
        match nodes.len() {
            0 => registry.absent(&prefix, "the kernel has no NUMA support".into()),
            1 => registry.absent(&prefix, "the host has a single NUMA node".into()),
            _ => watch(source, registry, process, &prefix, &nodes),
        }
    }
}

fn watch(source: &SystemTree, registry: &mut Registry, process: &Process, prefix: &str, nodes: &[u32]) {
    let pid = process.pid;
    if let Err(why) = source.open(format!("/proc/{pid}/numa_maps")) {
        return registry.absent(prefix, why);
    }
    let list =
        process.children.then(|| source.open(format!("/proc/{pid}/task/{pid}/children")).ok()).flatten();
    let series = nodes.iter().map(|node| (format!("{prefix}.{node}"), "ratio", SHARE)).collect();
    let placement = Placement {
        pid,
        list,
        root: source.path("/proc").to_string_lossy().into_owned(),
        nodes: nodes.to_vec(),
        pace: Pace::at_most_every(LEAST),
        path: String::with_capacity(256),
        ids: Vec::with_capacity(1024),
        turn: 0,
    };
    registry.add(series, placement);
}

struct Placement {
    pid: u32,
    list: Option<KernelFile>,
    root: String,
    nodes: Vec<u32>,
    pace: Pace,
    path: String,
    ids: Vec<u32>,
    /// The process after the last one that was examined.
    turn: u32,
}

impl Collector for Placement {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        if self.pace.begin(seconds).is_none() {
            return;
        }
        self.ids.clear();
        self.ids.push(self.pid);
        if let Some(text) = self.list.as_ref().and_then(|list| list.read(buffer)) {
            self.ids.extend(words(text).filter_map(|word| u32::try_from(number(word)?).ok()));
        }
        self.ids.sort_unstable();
        let from = self.ids.partition_point(|&id| id < self.turn);
        let mut bytes = [0; MOST_NODES];
        let begun = Instant::now();
        for i in 0..self.ids.len() {
            let id = self.ids[(from + i) % self.ids.len()];
            self.turn = id + 1;
            self.path.clear();
            if write!(self.path, "{}/{id}/numa_maps", self.root).is_ok()
                && let Some(text) = buffer.open_whole(Path::new(&self.path))
            {
                add(text, &mut bytes);
            }
            if begun.elapsed() >= LONGEST {
                break;
            }
        }
        let all: u64 = bytes.iter().fold(0, |sum, node| sum.saturating_add(*node));
        for (out, node) in out.iter_mut().zip(&self.nodes) {
            *out = bytes.get(*node as usize).map_or(f64::NAN, |bytes| ratio(*bytes as f64, all as f64));
        }
        self.pace.end();
    }
}

/// Adds the bytes on each node. The pages of a line, `N0=3`, are of the size that its end names.
fn add(text: &[u8], bytes: &mut [u64; MOST_NODES]) {
    for line in lines(text) {
        let size = words(line).find_map(|word| number(word.strip_prefix(b"kernelpagesize_kB=")?));
        let size = size.unwrap_or(4).saturating_mul(1024);
        // The path of a file stands before its counts and may hold anything but a blank.
        for word in words(line).filter(|word| word.first() == Some(&b'N')) {
            let Some(at) = word.iter().position(|&b| b == b'=') else { continue };
            let Some((node, pages)) = number(&word[1..at]).zip(number(&word[at + 1..])) else { continue };
            if let Some(slot) = usize::try_from(node).ok().and_then(|node| bytes.get_mut(node)) {
                *slot = slot.saturating_add(pages.saturating_mul(size));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pages_are_weighed_with_their_size() {
        let text = b"55d0 default file=/usr/bin/N7=9/postgres mapped=10 N0=6 N1=4 kernelpagesize_kB=4\n\
            7f00 interleave:0-1 file=/dev/zero\\040(deleted) huge dirty=2 N1=2 kernelpagesize_kB=2048\n\
            7f01 default\n";
        let mut bytes = [0; MOST_NODES];
        add(text, &mut bytes);
        assert_eq!(bytes[..3], [6 * 4096, 4 * 4096 + 2 * 2048 * 1024, 0]);
    }

    #[test]
    fn this_processs_own_pages_are_found() {
        let Ok(text) = std::fs::read("/proc/self/numa_maps") else {
            // A kernel without NUMA.
            assert!(!Path::new("/proc/self/numa_maps").exists());
            return;
        };
        let mut bytes = [0; MOST_NODES];
        add(&text, &mut bytes);
        assert!(bytes.iter().sum::<u64>() > 1 << 20, "{bytes:?}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "((N[0-9]{0,22}=|kernelpagesize_kB=|\\PC)[0-9]{0,22}[ \n]?){0,20}", raw: Vec<u8>) {
            for text in [text.as_bytes(), &raw] {
                add(text, &mut [0; MOST_NODES]);
            }
        }
    }
}

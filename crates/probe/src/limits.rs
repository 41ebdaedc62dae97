//! Limits of control groups on this process's I/O, CPU and memory, of both versions.

use super::facts::{Limit, LimitKind};
use kelvin_host::SystemTree;
use kelvin_host::cgroup::own_groups;
use kelvin_host::disk::device_name;

/// The limits of I/O.
pub(crate) fn io(tree: &SystemTree) -> Vec<Limit> {
    let mut found = Vec::new();
    for group in own_groups(tree, None) {
        let file = format!("{group}/io.max");
        for (device, key, value) in keyed(&tree.text(&file).unwrap_or_default()) {
            let kind = match key {
                "rbps" => LimitKind::ReadBytes,
                "wbps" => LimitKind::WriteBytes,
                "riops" => LimitKind::ReadIos,
                "wiops" => LimitKind::WriteIos,
                _ => continue,
            };
            found.extend(limit(tree, device, kind, value, &file));
        }
        let file = format!("{group}/io.latency");
        for (device, key, value) in keyed(&tree.text(&file).unwrap_or_default()) {
            if key == "target" {
                found.extend(limit(tree, device, LimitKind::Latency, value, &file));
            }
        }
        let file = format!("{group}/io.cost.qos");
        for (device, key, value) in keyed(&tree.text(&file).unwrap_or_default()) {
            if key == "enable" && value == "1" {
                found.extend(limit(tree, device, LimitKind::Cost, value, &file));
            }
        }
        let file = format!("{group}/io.weight");
        let weight = tree.line(&file).and_then(|line| line.strip_prefix("default ")?.parse::<u64>().ok());
        if let Some(value) = weight.filter(|weight| *weight != 100) {
            found.push(Limit { device: None, kind: LimitKind::Weight, value, place: file });
        }
    }
    let throttles = [
        ("read_bps", LimitKind::ReadBytes),
        ("write_bps", LimitKind::WriteBytes),
        ("read_iops", LimitKind::ReadIos),
        ("write_iops", LimitKind::WriteIos),
    ];
    for group in own_groups(tree, Some("blkio")) {
        for (name, kind) in throttles {
            let file = format!("{group}/blkio.throttle.{name}_device");
            for line in tree.text(&file).unwrap_or_default().lines() {
                if let Some((device, value)) = line.split_once(' ') {
                    found.extend(limit(tree, device, kind, value.trim(), &file));
                }
            }
        }
    }
    found
}

/// Lines such as "8:0 rbps=1048576 wbps=max": device, key, value.
fn keyed(text: &str) -> Vec<(&str, &str, &str)> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines
        .flat_map(|(device, rest)| {
            rest.split_whitespace().filter_map(move |pair| {
                let (key, value) = pair.split_once('=')?;
                Some((device, key, value))
            })
        })
        .collect()
}

fn limit(tree: &SystemTree, number: &str, kind: LimitKind, value: &str, place: &str) -> Option<Limit> {
    let device = device_name(tree, number).unwrap_or_else(|| number.to_owned());
    // "max" is no limit.
    Some(Limit { device: Some(device), kind, value: value.parse().ok()?, place: place.to_owned() })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kelvin_host::cgroup::memory_limit;

    use super::super::counters::throttled;
    use super::super::device;
    use super::*;

    #[test]
    fn both_versions_are_read_up_the_tree() {
        let (root, tree) = device::tests::tree();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/cgroup", "4:memory:/job\n3:blkio:/job\n2:cpu,cpuacct:/\n0::/slice/unit\n");
        write(
            "proc/self/mountinfo",
            "1 0 0:1 / /cg2 rw - cgroup2 cgroup2 rw\n2 0 0:2 / /blk rw - cgroup cgroup rw,blkio\n\
             3 0 0:3 / /mem rw - cgroup cgroup rw,memory\n4 0 0:4 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
        );
        write("cg2/slice/io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=120\n");
        write("cg2/slice/unit/io.weight", "default 50\n");
        write("cg2/slice/unit/memory.max", "max\n");
        write("cg2/slice/memory.max", "2147483648\n");
        write("cg2/slice/unit/cpu.stat", "usage_usec 5\nthrottled_usec 2500000\n");
        write("blk/job/blkio.throttle.read_iops_device", "252:16 300\n");
        write("mem/job/memory.limit_in_bytes", "9223372036854771712\n");
        write("cpu/cpu.stat", "nr_throttled 0\nthrottled_time 0\n");
        let found: Vec<_> =
            io(&tree).into_iter().map(|limit| (limit.device, limit.kind, limit.value)).collect();
        let device = |name: &str| Some(name.to_owned());
        assert_eq!(
            found,
            [
                (None, LimitKind::Weight, 50),
                (device("sda"), LimitKind::ReadBytes, 1_048_576),
                (device("sda"), LimitKind::WriteIos, 120),
                (device("vdb"), LimitKind::ReadIos, 300),
            ]
        );
        assert_eq!(memory_limit(&tree), Some(2 << 30));
        assert_eq!(throttled(&tree), Some(2.5));
    }

    #[test]
    fn without_control_groups_there_is_no_limit() {
        let (_root, tree) = device::tests::tree();
        assert_eq!((io(&tree), memory_limit(&tree), throttled(&tree)), (vec![], None, None));
    }
}

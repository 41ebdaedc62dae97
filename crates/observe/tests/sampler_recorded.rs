//! The sampler over recorded trees: two snapshots of one machine (a KVM guest of two CPUs), and trees written by hand
//! for features that the machine does not have. Expected values are computed from the counters by the formulas of
//! METHOD.md B1.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelvin_observe::sample::{Config, HostSampler, Process, SystemTree};

#[path = "sampler_recorded/machines.rs"]
mod machines;

struct Tree {
    root: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    /// Writes in place: the sampler holds the files open.
    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn copy(&self, snapshot: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(snapshot);
        let mut directories = vec![from.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else {
                    let name = path.strip_prefix(&from).unwrap().to_str().unwrap();
                    self.write(name, &fs::read_to_string(&path).unwrap());
                }
            }
        }
    }

    fn sampler(&self, config: &Config) -> Sampler {
        let sampler = HostSampler::from_tree(&SystemTree::at(self.root.path()), config);
        let values = vec![0.0; sampler.series().len()];
        Sampler { sampler, values }
    }
}

struct Sampler {
    sampler: HostSampler,
    values: Vec<f64>,
}

impl Sampler {
    fn sample(&mut self, seconds: f64) {
        self.sampler.sample(Duration::from_secs_f64(seconds), &mut self.values);
    }

    fn has(&self, name: &str) -> bool {
        self.sampler.series().iter().any(|series| series.name == name)
    }

    fn value(&self, name: &str) -> f64 {
        let at = self.sampler.series().iter().position(|series| series.name == name);
        self.values[at.unwrap_or_else(|| panic!("no series {name}"))]
    }

    fn check(&self, expected: &[(&str, f64)]) {
        for (name, expected) in expected {
            let value = self.value(name);
            let near = (value - expected).abs() <= 1e-9 * expected.abs().max(1.0);
            assert!(near || value.is_nan() && expected.is_nan(), "{name}: {value} and not {expected}");
        }
    }

    fn absent(&self, what: &str) -> &str {
        let found = self.sampler.absent().iter().find(|absent| absent.what == what);
        &found.unwrap_or_else(|| panic!("{what} is not absent: {:?}", self.sampler.absent())).why
    }
}

#[test]
fn two_snapshots_of_a_machine_give_its_rates() {
    let tree = Tree::new();
    tree.copy("first");
    let config = Config {
        processes: vec![Process { name: "client".into(), pid: 4242, children: false }],
        ..Config::default()
    };
    let mut sampler = tree.sampler(&config);
    sampler.sample(2.0);
    sampler.check(&[
        ("host.disk.vda.r_s", f64::NAN),
        ("host.cpu.total.user", f64::NAN),
        ("host.memory.available", 21_256_736.0 * 1024.0),
    ]);
    tree.copy("second");
    sampler.sample(2.0);
    sampler.check(&[
        // 372 reads, 6840 sectors, 255 ms; 2457 writes, 333 merged, 113760 sectors, 592 ms; 72 ms busy, 930 in queue;
        // 82 discards, 75064 sectors, 17 ms; 1184 flushes, 65 ms.
        ("host.disk.vda.r_s", 186.0),
        ("host.disk.vda.rkb_s", 1710.0),
        ("host.disk.vda.rrqm_s", 0.0),
        ("host.disk.vda.rrqm", 0.0),
        ("host.disk.vda.r_await", 255.0 / 372.0),
        ("host.disk.vda.rareq_sz", 6840.0 / 372.0 / 2.0),
        ("host.disk.vda.w_s", 1228.5),
        ("host.disk.vda.wkb_s", 28440.0),
        ("host.disk.vda.wrqm_s", 166.5),
        ("host.disk.vda.wrqm", 100.0 * 333.0 / 2790.0),
        ("host.disk.vda.w_await", 592.0 / 2457.0),
        ("host.disk.vda.wareq_sz", 113_760.0 / 2457.0 / 2.0),
        ("host.disk.vda.d_s", 41.0),
        ("host.disk.vda.dkb_s", 18766.0),
        ("host.disk.vda.d_await", 17.0 / 82.0),
        ("host.disk.vda.f_s", 592.0),
        ("host.disk.vda.f_await", 65.0 / 1184.0),
        ("host.disk.vda.aqu_sz", 0.465),
        ("host.disk.vda.util", 3.6),
        ("host.disk.vda.await", 864.0 / 2911.0),
        ("host.disk.vda.in_flight", 1.0),
        // Ticks: 438 user, 82 system, 1 iowait, 1 softirq, 2 steal of 524.
        ("host.cpu.total.user", 438.0 / 524.0),
        ("host.cpu.total.system", 82.0 / 524.0),
        ("host.cpu.total.idle", 0.0),
        ("host.cpu.total.iowait", 1.0 / 524.0),
        ("host.cpu.total.softirq", 1.0 / 524.0),
        ("host.cpu.total.steal", 2.0 / 524.0),
        ("host.cpu.total.busy", 1.0 - 1.0 / 524.0),
        ("host.cpu.1.user", 208.0 / 261.0),
        ("host.cpu.total.frequency", 2596.124),
        ("host.context_switches", 5633.0),
        ("host.forks", 118.0),
        ("host.interrupts", 2749.5),
        ("host.soft_interrupts", 1563.5),
        ("host.tasks.running", 5.0),
        ("host.pressure.cpu.some", 2_490_922.0 / 2e6),
        ("host.pressure.io.some", 60852.0 / 2e6),
        ("host.pressure.io.full", 1714.0 / 2e6),
        ("host.memory.available", 21_390_716.0 * 1024.0),
        ("host.memory.dirty", 338_876.0 * 1024.0),
        ("host.pages.faults", 83664.5),
        ("host.pages.allocation_stalls", 0.0),
        ("host.numa.0.numa_hit", 75844.0),
        ("host.numa.total.remote_ratio", 0.0),
        ("host.network.lo.rx_bytes", 0.0),
        ("host.tcp.retransmits", 0.0),
        ("host.cgroup.own.cpu.usage", 5.139_915 / 2.0),
        // Ticks and faults of its children are not included.
        ("host.process.client.cpu.user", 0.0),
        ("host.process.client.cpu.system", 0.01),
        ("host.process.client.faults.minor", 1418.0),
        ("host.process.client.run_delay", (130_761_403.0 - 36_547_985.0) / 2e9),
        ("host.process.client.switches.voluntary", 64.0),
        ("host.process.client.switches.involuntary", 15.5),
        ("host.process.client.read_bytes", 49152.0),
        ("host.process.client.write_bytes", 6_678_528.0),
        ("host.process.client.threads", 1.0),
    ]);
    assert!(!sampler.has("host.disk.loop0.r_s"), "a loop device without a size");
    assert!(sampler.absent("host.run_queue").contains("/proc/schedstat"));
    assert!(!sampler.has("host.cgroup.own.memory.current"), "no group of that hierarchy was recorded");
    assert!(sampler.absent("host.hardware").contains("no hardware counters"));
    // An interval of zero length has no rates, and its counts belong to none.
    sampler.sample(0.0);
    sampler.check(&[("host.disk.vda.r_s", f64::NAN), ("host.context_switches", f64::NAN)]);
}

#[test]
fn devices_come_go_and_wrap() {
    let tree = Tree::new();
    let old = "8 0 sda 10 0 80 5 10 0 80 5 0 10 10\n";
    tree.write("sys/block/nvme0n1/size", "1000\n")
        .write("sys/block/sda/size", "1000\n")
        .write("sys/block/ram0/size", "0\n");
    tree.write(
        "proc/diskstats",
        &format!("259 0 nvme0n1 100 0 800 4294967200 50 0 400 7 0 10 4294967290 0 0 0 0 9 1\n{old}"),
    );
    let mut sampler = tree.sampler(&Config { disks: Vec::new(), ..Config::default() });
    assert!(!sampler.has("host.disk.ram0.r_s"));
    assert!(!sampler.has("host.disk.sda.f_s") && !sampler.has("host.disk.sda.d_s"));
    assert!(sampler.absent("host.disk.sda.f_await").contains("does not count"));
    sampler.sample(1.0);
    // The milliseconds wrap at 2^32: 96 + 104 for 200 reads. The other disk is pulled.
    tree.write("proc/diskstats", "259 0 nvme0n1 300 0 2400 104 50 0 400 7 128 510 494 0 0 0 0 19 41\n");
    sampler.sample(0.5);
    sampler.check(&[
        ("host.disk.nvme0n1.r_s", 400.0),
        ("host.disk.nvme0n1.r_await", 1.0),
        ("host.disk.nvme0n1.aqu_sz", 1.0),
        ("host.disk.nvme0n1.util", 100.0),
        ("host.disk.nvme0n1.f_s", 20.0),
        ("host.disk.nvme0n1.f_await", 4.0),
        ("host.disk.nvme0n1.in_flight", 128.0),
        ("host.disk.nvme0n1.w_await", 0.0),
        ("host.disk.sda.r_s", f64::NAN),
    ]);
    // It reappears with higher counts: the first interval is unknown nevertheless, the second is not.
    tree.write("proc/diskstats", "8 0 sda 20 0 160 15 20 0 160 15 0 20 30\n");
    sampler.sample(1.0);
    sampler.check(&[("host.disk.sda.r_s", f64::NAN), ("host.disk.nvme0n1.r_s", f64::NAN)]);
    tree.write("proc/diskstats", "8 0 sda 25 0 200 25 20 0 160 15 0 30 40\n");
    sampler.sample(1.0);
    sampler.check(&[
        ("host.disk.sda.r_s", 5.0),
        ("host.disk.sda.r_await", 2.0),
        ("host.disk.sda.rkb_s", 20.0),
    ]);
    // Another disk in its place has done less.
    tree.write("proc/diskstats", "8 0 sda 1 0 8 1 0 0 0 0 0 1 1\n");
    sampler.sample(1.0);
    sampler.check(&[("host.disk.sda.r_s", f64::NAN), ("host.disk.sda.util", f64::NAN)]);
    // After a file that is temporarily empty, this interval and the next are unknown.
    tree.write("proc/diskstats", "");
    sampler.sample(1.0);
    tree.write("proc/diskstats", "8 0 sda 3 0 8 1 0 0 0 0 0 1 1\n");
    sampler.sample(1.0);
    sampler.check(&[("host.disk.sda.r_s", f64::NAN)]);
}

#[test]
fn steal_offline_cpus_and_queues() {
    let tree = Tree::new();
    tree.write("proc/stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 50 0 50 400 0 0 0 0 0 0\ncpu1 50 0 50 400 0 0 0 0 0 0\nctxt 5\n");
    let queue = "version 15\ntimestamp 1\ncpu0 0 0 0 0 0 0 {0} {1} 9\ndomain0 3 1 2 3 4 5 6 7 8 9\ncpu1 0 0 0 0 0 0 {2} {3} 9\n";
    let queue = |run0: u64, wait0: u64, run1: u64, wait1: u64| {
        let fill = |text: String, (i, v): (usize, u64)| text.replace(&format!("{{{i}}}"), &v.to_string());
        [run0, wait0, run1, wait1].into_iter().enumerate().fold(queue.to_owned(), fill)
    };
    tree.write("proc/schedstat", &queue(1_000_000_000, 0, 0, 5));
    for cpu in 0..2 {
        tree.write(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"), "3000000\n");
        tree.write(&format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/core_throttle_count"), "7\n");
    }
    let mut sampler = tree.sampler(&Config::default());
    sampler.sample(1.0);
    tree.write("proc/stat", "cpu  140 0 110 820 10 0 0 20 0 0\ncpu0 90 0 60 420 10 0 0 20 0 0\nctxt 105\n");
    tree.write("proc/schedstat", &queue(1_600_000_000, 300_000_000, 300_000_000, 5));
    tree.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "1200000\n");
    tree.write("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "9\n");
    sampler.sample(1.0);
    sampler.check(&[
        ("host.cpu.total.steal", 0.2),
        ("host.cpu.0.steal", 0.2),
        ("host.cpu.total.busy", 0.7),
        ("host.cpu.1.user", f64::NAN),
        ("host.run_queue.total.delay", 0.3),
        ("host.run_queue.total.delay_share", 0.25),
        ("host.run_queue.1.delay", 0.0),
        ("host.cpu.total.frequency", 2100.0),
        ("host.cpu.total.frequency_min", 1200.0),
        ("host.cpu.1.frequency", 1200.0),
        ("host.cpu.total.throttled", 2.0),
    ]);
    // CPU 1 comes back: its first interval is unknown.
    tree.write("proc/stat", "cpu  150 0 110 830 10 0 0 20 0 0\ncpu0 95 0 60 425 10 0 0 20 0 0\ncpu1 60 0 60 500 0 0 0 0 0 0\nctxt 105\n");
    sampler.sample(1.0);
    sampler.check(&[("host.cpu.0.user", 0.5), ("host.cpu.1.user", f64::NAN), ("host.context_switches", 0.0)]);
}

#[test]
fn nodes_far_and_near() {
    let tree = Tree::new();
    let node = |n: u32, local: u64, other: u64| {
        let text = format!(
            "numa_hit {local}\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node {local}\nother_node {other}\n"
        );
        tree.write(&format!("sys/devices/system/node/node{n}/numastat"), &text);
    };
    node(0, 1000, 10);
    node(1, 500, 5);
    tree.write(
        "sys/devices/system/node/node0/meminfo",
        "Node 0 MemFree:  12 kB\nNode 0 HugePages_Total: 100\nNode 0 HugePages_Free: 40\n",
    );
    let mut sampler = tree.sampler(&Config::default());
    sampler.sample(1.0);
    node(0, 1300, 110);
    node(1, 900, 205);
    sampler.sample(2.0);
    sampler.check(&[
        ("host.numa.0.remote_ratio", 0.25),
        ("host.numa.1.remote_ratio", 200.0 / 600.0),
        ("host.numa.total.remote_ratio", 0.3),
        ("host.numa.1.other_node", 100.0),
        ("host.numa.0.free", 12288.0),
        ("host.numa.0.huge_pages.total", 100.0),
        ("host.numa.0.huge_pages.free", 40.0),
    ]);
}

#[test]
fn work_on_one_node_of_two_shows() {
    let tree = Tree::new();
    let stat = |busy: [u64; 4], idle: [u64; 4]| {
        let sum = |values: [u64; 4]| values.iter().sum::<u64>();
        let mut text = format!("cpu  {} 0 0 {} 0 0 0 0 0 0\n", sum(busy), sum(idle));
        for cpu in 0..4 {
            text.push_str(&format!("cpu{cpu} {} 0 0 {} 0 0 0 0 0 0\n", busy[cpu], idle[cpu]));
        }
        tree.write("proc/stat", &text);
    };
    stat([0; 4], [0; 4]);
    // As numbered on many machines: adjacent CPUs are on different nodes.
    tree.write("sys/devices/system/node/node0/cpulist", "0,2\n")
        .write("sys/devices/system/node/node1/cpulist", "1,3\n")
        // Memory without CPUs.
        .write("sys/devices/system/node/node2/cpulist", "\n");
    let mut sampler = tree.sampler(&Config::default());
    sampler.sample(1.0);
    stat([95, 10, 85, 0], [5, 90, 15, 100]);
    sampler.sample(1.0);
    sampler.check(&[("host.numa.0.busy", 0.9), ("host.numa.1.busy", 0.05)]);
    assert!(!sampler.has("host.numa.2.busy"));
    let one = Tree::new();
    one.write("proc/stat", "cpu  1 0 0 1\ncpu0 1 0 0 1\n")
        .write("sys/devices/system/node/node0/cpulist", "0\n");
    assert!(!one.sampler(&Config::default()).has("host.numa.0.busy"), "one node is the host");
}

#[test]
fn bandwidth_and_placement() {
    let tree = Tree::new();
    let monitors = |first: &str, second: &str| {
        tree.write("sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", first);
        tree.write("sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", second);
        // Other kinds, which are not read.
        tree.write("sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy", "4096\n");
        tree.write("sys/fs/resctrl/mon_data/mon_L3_01/mbm_local_bytes", "1\n");
    };
    monitors("1000\n", "5000\n");
    tree.write("sys/devices/system/node/node0/numastat", "local_node 1\n")
        .write("sys/devices/system/node/node1/numastat", "local_node 1\n");
    let process = |pid: u32, near: u32, far: u32| {
        tree.write(&format!("proc/{pid}/stat"), &format!("{pid} (x) S 1{}\n", " 0".repeat(30)));
        let text = format!("7f00 default heap anon=9 dirty=9 N0={near} N1={far} kernelpagesize_kB=4\n");
        tree.write(&format!("proc/{pid}/numa_maps"), &text);
    };
    process(100, 30, 0);
    process(101, 0, 10);
    tree.write("proc/100/task/100/children", "101 ");
    let config = Config {
        processes: vec![Process { name: "server".into(), pid: 100, children: true }],
        ..Config::default()
    };
    let mut sampler = tree.sampler(&config);
    assert!(sampler.absent("host.hardware").contains("no processor PMU"));
    sampler.sample(1.0);
    sampler.check(&[("host.process.server.numa.0", 0.75), ("host.process.server.numa.1", 0.25)]);
    monitors("9000\n", "7000\n");
    process(101, 30, 20);
    sampler.sample(2.0);
    sampler.check(&[
        ("host.memory_bandwidth.0", 4000.0),
        ("host.memory_bandwidth.1", 1000.0),
        ("host.memory_bandwidth.total", 5000.0),
        // Read every ten seconds at most.
        ("host.process.server.numa.0", f64::NAN),
    ]);
    monitors("Unavailable\n", "9000\n");
    sampler.sample(9.0);
    sampler.check(&[
        ("host.memory_bandwidth.0", f64::NAN),
        ("host.memory_bandwidth.1", 2000.0 / 9.0),
        ("host.memory_bandwidth.total", f64::NAN),
        ("host.process.server.numa.0", 0.75),
    ]);
}

#[test]
fn groups_of_the_old_kind_have_the_new_names() {
    let tree = Tree::new();
    tree.write(
        "proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
         35 31 0:32 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
         38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n",
    )
    .write("proc/self/cgroup", "3:blkio:/\n2:memory:/box\n1:cpu,cpuacct:/own\n");
    let write = |seconds: u64| {
        for group in ["cpu,cpuacct/own", "cpu,cpuacct/server"] {
            let file = |name: &str, text: &str| {
                tree.write(&format!("sys/fs/cgroup/{group}/{name}"), text);
            };
            file("cgroup.procs", "1\n");
            file(
                "cpu.stat",
                &format!(
                    "nr_periods {}\nnr_throttled {}\nthrottled_time {}\n",
                    10 * seconds,
                    5 * seconds,
                    300_000_000 * seconds
                ),
            );
            file("cpu.cfs_quota_us", if group.ends_with("own") { "-1\n" } else { "150000\n" });
            file("cpu.cfs_period_us", "100000\n");
            file("cpuacct.usage", &format!("{}\n", 700_000_000 * seconds));
            file("cpuacct.usage_user", &format!("{}\n", 500_000_000 * seconds));
            file("cpuacct.usage_sys", &format!("{}\n", 200_000_000 * seconds));
        }
        for group in ["memory", "memory/server"] {
            let file = |name: &str, text: &str| {
                tree.write(&format!("sys/fs/cgroup/{group}/{name}"), text);
            };
            file("cgroup.procs", "1\n");
            file("memory.usage_in_bytes", "4096\n");
            file("memory.limit_in_bytes", if group == "memory" { "9223372036854771712\n" } else { "8192\n" });
            file("memory.failcnt", &format!("{seconds}\n"));
            file("memory.oom_control", &format!("oom_kill_disable 0\nunder_oom 0\noom_kill {seconds}\n"));
        }
        for (name, by) in [("io_service_bytes", 8192), ("io_serviced", 2)] {
            let text = format!("254:0 Read 0\n254:0 Write {0}\n254:0 Total {0}\nTotal {0}\n", by * seconds);
            tree.write(&format!("sys/fs/cgroup/blkio/server/blkio.throttle.{name}_recursive"), &text);
        }
        tree.write("sys/fs/cgroup/blkio/server/cgroup.procs", "1\n");
    };
    write(100);
    let config = Config {
        cgroups: vec![
            ("server".into(), PathBuf::from("/sys/fs/cgroup/cpu,cpuacct/server")),
            ("gone".into(), PathBuf::from("/gone")),
        ],
        ..Config::default()
    };
    let mut sampler = tree.sampler(&config);
    assert!(sampler.absent("host.cgroup.own.pressure").contains("cgroup v1"));
    assert!(sampler.absent("host.cgroup.gone").contains("not a cgroup"));
    sampler.sample(1.0);
    write(104);
    sampler.sample(2.0);
    sampler.check(&[
        ("host.cgroup.own.cpu.usage", 1.4),
        ("host.cgroup.own.cpu.user", 1.0),
        ("host.cgroup.own.cpu.system", 0.4),
        ("host.cgroup.own.cpu.limit", f64::NAN),
        ("host.cgroup.own.memory.current", 4096.0),
        ("host.cgroup.own.memory.limit", f64::NAN),
        ("host.cgroup.server.cpu.periods", 20.0),
        ("host.cgroup.server.cpu.throttled_periods", 10.0),
        ("host.cgroup.server.cpu.throttled", 0.6),
        ("host.cgroup.server.cpu.limit", 1.5),
        ("host.cgroup.server.memory.limit", 8192.0),
        ("host.cgroup.server.memory.max_events", 2.0),
        ("host.cgroup.server.memory.oom_kills", 2.0),
        ("host.cgroup.server.io.write_bytes", 16384.0),
        ("host.cgroup.server.io.writes", 4.0),
        ("host.cgroup.server.io.read_bytes", 0.0),
        ("host.cgroup.server.io.discards", f64::NAN),
    ]);
}

#[test]
fn a_group_with_limits_and_a_server_with_children() {
    let tree = Tree::new();
    tree.write("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        .write("proc/self/cgroup", "0::/own\n");
    for group in ["own", "server"] {
        tree.write(&format!("sys/fs/cgroup/{group}/cgroup.procs"), "1\n");
    }
    let stat = |throttled: u64| {
        format!(
            "usage_usec {throttled}\nuser_usec 0\nsystem_usec 0\nnr_periods {}\nnr_throttled {}\nthrottled_usec {throttled}\n",
            throttled / 1000,
            throttled / 2000
        )
    };
    tree.write("sys/fs/cgroup/server/cpu.stat", &stat(0))
        .write("sys/fs/cgroup/server/cpu.max", "20000 100000\n");
    tree.write("sys/fs/cgroup/server/memory.current", "4096\n")
        .write("sys/fs/cgroup/server/memory.max", "max\n");
    tree.write("sys/fs/cgroup/server/io.stat", "259:0 rbytes=0 wbytes=10 rios=0 wios=1 dbytes=0 dios=0\n");
    let process = |pid: u32, born: u64, ticks: u64| {
        tree.write(
            &format!("proc/{pid}/stat"),
            &format!("{pid} (postgres) S 1 1 1 0 -1 0 {ticks} 0 0 0 {ticks} 0 0 0 20 0 1 0 {born} 0 5 0\n"),
        );
        tree.write(&format!("proc/{pid}/schedstat"), &format!("0 {} 0\n", ticks * 1_000_000));
        tree.write(
            &format!("proc/{pid}/status"),
            &format!("voluntary_ctxt_switches:\t{ticks}\nnonvoluntary_ctxt_switches:\t0\n"),
        );
        tree.write(&format!("proc/{pid}/io"), &format!("read_bytes: {ticks}\nwrite_bytes: {ticks}\n"));
    };
    process(100, 1, 1000);
    process(101, 2, 5000);
    tree.write("proc/100/task/100/children", "101 ");
    let config = Config {
        cgroups: vec![("server".into(), PathBuf::from("/server")), ("gone".into(), PathBuf::from("/gone"))],
        processes: vec![
            Process { name: "postgres".into(), pid: 100, children: true },
            Process { name: "nobody".into(), pid: 999, children: false },
        ],
        ..Config::default()
    };
    let mut sampler = tree.sampler(&config);
    assert!(sampler.absent("host.cgroup.gone").contains("not a cgroup"));
    assert!(sampler.absent("host.process.nobody").contains("/proc/999/stat"));
    sampler.sample(1.0);
    tree.write("sys/fs/cgroup/server/cpu.stat", &stat(800_000));
    tree.write(
        "sys/fs/cgroup/server/io.stat",
        "259:0 rbytes=0 wbytes=110 rios=0 wios=3 dbytes=0 dios=0\n259:1 wbytes=50 wios=1\n",
    );
    process(100, 1, 1010);
    process(101, 2, 5100);
    // A backend started in this interval: all of its work belongs to it.
    process(102, 3, 40);
    tree.write("proc/100/task/100/children", "101 102 ");
    sampler.sample(2.0);
    sampler.check(&[
        ("host.cgroup.server.cpu.throttled", 0.4),
        ("host.cgroup.server.cpu.throttled_periods", 200.0),
        ("host.cgroup.server.cpu.limit", 0.2),
        ("host.cgroup.server.memory.current", 4096.0),
        ("host.cgroup.server.memory.limit", f64::NAN),
        ("host.cgroup.server.io.write_bytes", 75.0),
        ("host.cgroup.server.io.writes", 1.5),
        ("host.process.postgres.cpu.user", 1.5 / 2.0),
        ("host.process.postgres.faults.minor", 75.0),
        ("host.process.postgres.processes", 3.0),
        ("host.process.postgres.run_delay", 0.075),
        ("host.process.postgres.switches.voluntary", 75.0),
        ("host.process.postgres.write_bytes", 75.0),
    ]);
    // One is missing from the list for an interval, and one ends.
    tree.write("proc/100/task/100/children", "102 ");
    sampler.sample(1.0);
    sampler.check(&[("host.process.postgres.cpu.user", 0.0), ("host.process.postgres.processes", 2.0)]);
    process(101, 2, 5150);
    tree.write("proc/100/task/100/children", "101 ");
    sampler.sample(1.0);
    sampler.check(&[("host.process.postgres.cpu.user", 0.5), ("host.process.postgres.processes", 2.0)]);
}

#[test]
fn garbled_files_are_unknown_and_never_a_panic() {
    let tree = Tree::new();
    tree.copy("first");
    let config = Config {
        processes: vec![Process { name: "client".into(), pid: 4242, children: true }],
        ..Config::default()
    };
    let mut sampler = tree.sampler(&config);
    let mut files = vec![tree.root.path().to_owned()];
    let mut texts: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let text = fs::read(&path).unwrap();
            texts.push((path, text));
        }
    }
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for _ in 0..60 {
        for (path, text) in &texts {
            let mut garbled = text.clone();
            for _ in 0..next(12) {
                if !garbled.is_empty() {
                    let at = next(garbled.len());
                    match next(4) {
                        0 => garbled.truncate(at),
                        1 => garbled[at] = next(256) as u8,
                        2 => garbled[at] = b"0123456789 \n:)="[next(15)],
                        _ => drop(garbled.splice(at..at, *b"18446744073709551615")),
                    }
                }
            }
            fs::write(path, garbled).unwrap();
        }
        // A sampler created on garbled files, and one created before.
        tree.sampler(&config).sample(1.0);
        sampler.sample(1.0);
        assert!(!sampler.values.iter().any(|value| value.is_infinite()));
    }
    for (path, text) in &texts {
        fs::write(path, text).unwrap();
    }
    sampler.sample(1.0);
    sampler.sample(1.0);
    sampler.check(&[("host.disk.vda.r_s", 0.0), ("host.context_switches", 0.0)]);
}

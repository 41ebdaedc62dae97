//! Machines that could not be recorded here, with their trees written by hand from published facts: the content of
//! files is shortened, their format is not. Each test names the source of the machine's peculiarities.

use std::fs;

use kelvin_observe::sample::{Config, Process};

use super::Tree;

/// `/proc/stat` of so many CPUs: each with its user and idle ticks, and steal.
fn stat(tree: &Tree, cpus: usize, of: impl Fn(usize) -> (u64, u64, u64)) {
    let line = |name: &str, (user, idle, steal): (u64, u64, u64)| {
        format!("{name} {user} 0 0 {idle} 0 0 0 {steal} 0 0\n")
    };
    let each: Vec<_> = (0..cpus).map(of).collect();
    let sum = each.iter().fold((0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2));
    let mut text = line("cpu ", sum);
    for (cpu, ticks) in each.into_iter().enumerate() {
        text.push_str(&line(&format!("cpu{cpu}"), ticks));
    }
    tree.write("proc/stat", &(text + "intr 1 0 0\nctxt 5\nbtime 1700000000\nprocesses 9\nprocs_running 2\n"));
}

fn node(tree: &Tree, number: u32, cpus: &str, local: u64, other: u64) {
    let directory = format!("sys/devices/system/node/node{number}");
    tree.write(&format!("{directory}/cpulist"), cpus).write(
        &format!("{directory}/numastat"),
        &format!("numa_hit {local}\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 9\nlocal_node {local}\nother_node {other}\n"),
    );
}

/// A Xeon of two sockets, 40 threads each, with RHEL 8 (kernel 4.18), booted with one hierarchy of control groups.
///
/// - Odd and even CPUs are on different nodes, as Dell's firmware numbers them.
/// - NVMe's own multipath: the paths (`nvme0c0n1`) are hidden, have the number 0:0 and all the counts; the disk that is
///   mounted (`nvme0n1`) counts nothing (atop, pull request 157; netdata, issue 5744; the kernel counts there since 6.4).
///   LVM on it counts.
/// - A line of `/proc/diskstats` has 15 counts: discards since 4.18, flushes since 5.5 (`Documentation/admin-guide/iostats.rst`).
/// - The pressures are there and cannot be read, unless the kernel was booted with `psi=1`: reading gives EOPNOTSUPP
///   (`psi_show` of `kernel/sched/psi.c`, CONFIG_PSI_DEFAULT_DISABLED). A directory stands for that here: it opens, too, and
///   cannot be read.
/// - Allocation stalls are counted by zone since 4.10 (`allocstall_normal`).
#[test]
fn a_xeon_of_two_sockets_with_multipath_and_volumes() {
    const CPUS: usize = 80;
    let tree = Tree::new();
    for device in ["nvme0n1", "nvme0c0n1", "nvme0c1n1", "dm-0", "dm-1"] {
        tree.write(&format!("sys/block/{device}/size"), "6251233968\n");
    }
    for (volume, below) in [("dm-0", "nvme0n1"), ("dm-1", "dm-0")] {
        fs::create_dir_all(tree.root.path().join(format!("sys/class/block/{volume}/slaves/{below}")))
            .unwrap();
    }
    let disks = |reads: u64, ms: u64| {
        tree.write(
            "proc/diskstats",
            &format!(
                "   0       0 nvme0c0n1 {0} 0 {1} {ms} 0 0 0 0 0 100 {ms} 0 0 0 0\n   0       0 nvme0c1n1 {0} 0 {1} {ms} 0 0 0 0 0 100 {ms} 0 0 0 0\n \
                 259       1 nvme0n1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n 253       0 dm-0 {2} 0 {3} {4} 0 0 0 0 0 100 {4} 0 0 0 0\n \
                 253       1 dm-1 {2} 0 {3} {4} 0 0 0 0 0 100 {4} 0 0 0 0\n",
                reads / 2,
                reads * 8,
                reads,
                reads * 16,
                ms * 2,
            ),
        );
    };
    disks(1000, 100);
    let busy_on_first =
        |cpu: usize, ticks: u64| if cpu.is_multiple_of(2) { (ticks, 0, 0) } else { (0, ticks, 0) };
    stat(&tree, CPUS, |_| (0, 0, 0));
    let list = |first: usize| {
        (first..CPUS).step_by(2).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",") + "\n"
    };
    node(&tree, 0, &list(0), 1000, 10);
    node(&tree, 1, &list(1), 1000, 10);
    for cpu in 0..CPUS {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}");
        tree.write(
            &format!("{directory}/cpufreq/scaling_cur_freq"),
            if cpu == 7 { "1000000\n" } else { "2800000\n" },
        );
        tree.write(&format!("{directory}/thermal_throttle/core_throttle_count"), "0\n");
    }
    for resource in ["cpu", "memory", "io"] {
        fs::create_dir_all(tree.root.path().join("proc/pressure").join(resource)).unwrap();
    }
    let vmstat = |stalls: u64| {
        tree.write(
            "proc/vmstat",
            &format!("pgfault 5\nallocstall_dma 0\nallocstall_dma32 0\nallocstall_normal {stalls}\nallocstall_movable {stalls}\n"),
        );
    };
    vmstat(10);
    tree.write(
        "proc/self/mountinfo",
        "26 22 0:22 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,seclabel,nsdelegate\n",
    )
    .write("proc/self/cgroup", "0::/user.slice/user-0.slice/session-3.scope\n");
    let group = "sys/fs/cgroup/user.slice/user-0.slice/session-3.scope";
    tree.write(&format!("{group}/cgroup.procs"), "4242\n");
    // Without the cpu controller a group has the times and no throttling.
    let used = |micros: u64| {
        tree.write(
            &format!("{group}/cpu.stat"),
            &format!("usage_usec {micros}\nuser_usec {micros}\nsystem_usec 0\n"),
        );
    };
    used(0);
    let mut sampler = tree.sampler(&Config::default());
    sampler.sample(1.0);
    disks(3000, 500);
    stat(&tree, CPUS, |cpu| busy_on_first(cpu, 100));
    node(&tree, 0, &list(0), 1900, 110);
    vmstat(13);
    used(2_000_000);
    sampler.sample(1.0);
    sampler.check(&[
        ("host.disk.nvme0n1.r_s", 0.0),
        ("host.disk.nvme0c0n1.r_s", 1000.0),
        ("host.disk.nvme0c1n1.r_await", 0.4),
        ("host.disk.dm-1.r_s", 2000.0),
        ("host.disk.dm-1.r_await", 0.4),
        ("host.disk.dm-1.d_s", 0.0),
        ("host.cpu.total.busy", 0.5),
        ("host.numa.0.busy", 1.0),
        ("host.numa.1.busy", 0.0),
        ("host.numa.0.remote_ratio", 0.1),
        ("host.cpu.total.frequency", (79.0 * 2800.0 + 1000.0) / 80.0),
        ("host.cpu.total.frequency_min", 1000.0),
        ("host.cpu.total.throttled", 0.0),
        ("host.pages.allocation_stalls", 6.0),
        ("host.cgroup.own.cpu.usage", 2.0),
    ]);
    assert!(!sampler.has("host.disk.dm-1.f_s") && sampler.has("host.disk.dm-1.d_s"));
    assert!(sampler.absent("host.pressure.cpu").contains("/proc/pressure/cpu"));
    assert!(!sampler.has("host.pressure.cpu.some"));
    let volume = sampler.sampler.devices().iter().find(|device| device.name == "dm-1").unwrap();
    assert_eq!(volume.disks, ["nvme0n1"], "a volume on a volume");
}

/// A Graviton instance of four CPUs with Amazon Linux 2023 (kernel 6.1) and an EBS volume as NVMe.
///
/// - `/proc/cpuinfo` has neither "cpu MHz" nor "model name" (arm64's `c_show`; amazon-linux-2023, issue 455), and the
///   instance has no cpufreq: how fast the CPUs run is not to be known.
/// - `thermal_throttle` is x86's.
/// - Interrupts have a pressure since 6.1, with a line "full" and none "some"; the CPU has "full" since 5.13, always zero
///   (`Documentation/accounting/psi.rst`).
/// - The performance unit is `armv8_pmuv3_0`.
/// - `/proc/interrupts`, caches and the clock source (`arch_sys_counter`) are not the sampler's.
#[test]
fn a_graviton_instance_with_a_volume() {
    let tree = Tree::new();
    let info = |cpu: u32| {
        format!(
            "processor\t: {cpu}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes atomics cpuid ssbs\nCPU implementer\t: 0x41\n\
             CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n\n"
        )
    };
    tree.write("proc/cpuinfo", &(0..4).map(info).collect::<String>())
        .write("sys/devices/system/cpu/cpu0/online", "1\n")
        .write("sys/bus/event_source/devices/armv8_pmuv3_0/type", "10\n")
        .write("sys/block/nvme0n1/size", "209715200\n");
    let disks = |writes: u64, flushes: u64| {
        tree.write(
            "proc/diskstats",
            &format!(
                " 259       0 nvme0n1 9 0 72 3 {writes} 0 {0} {1} 0 40 {1} 0 0 0 0 {flushes} {flushes}\n 259       1 nvme0n1p1 9 0 72 3 0 0 0 0 0 4 3 0 0 0 0 0 0\n",
                writes * 16,
                writes * 2,
            ),
        );
    };
    disks(100, 10);
    stat(&tree, 4, |_| (0, 0, 0));
    node(&tree, 0, "0-3\n", 500, 0);
    let pressures = |micros: u64| {
        let line =
            |kind: &str, total: u64| format!("{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n");
        tree.write("proc/pressure/cpu", &(line("some", micros) + &line("full", 0)))
            .write("proc/pressure/io", &(line("some", micros) + &line("full", micros / 2)))
            .write("proc/pressure/memory", &(line("some", 0) + &line("full", 0)))
            .write("proc/pressure/irq", &line("full", micros / 10));
    };
    pressures(1000);
    let mut sampler = tree.sampler(&Config::default());
    sampler.sample(1.0);
    disks(300, 60);
    stat(&tree, 4, |cpu| if cpu == 0 { (90, 0, 10) } else { (50, 50, 0) });
    pressures(201_000);
    sampler.sample(1.0);
    sampler.check(&[
        ("host.disk.nvme0n1.w_s", 200.0),
        ("host.disk.nvme0n1.w_await", 2.0),
        ("host.disk.nvme0n1.f_s", 50.0),
        ("host.disk.nvme0n1.f_await", 1.0),
        ("host.cpu.0.steal", 0.1),
        ("host.cpu.total.busy", 0.625),
        ("host.pressure.cpu.some", 0.2),
        ("host.pressure.cpu.full", 0.0),
        ("host.pressure.io.full", 0.1),
        ("host.pressure.irq.full", 0.02),
        ("host.numa.total.remote_ratio", f64::NAN),
    ]);
    assert!(!sampler.has("host.pressure.irq.some") && !sampler.has("host.disk.nvme0n1p1.w_s"));
    assert!(!sampler.has("host.numa.0.busy"), "one node is the host");
    assert!(sampler.absent("host.cpu.total.frequency").contains("no \"cpu MHz\""));
    assert!(sampler.absent("host.cpu.total.throttled").contains("not an Intel CPU"));
    assert!(sampler.absent("host.hardware").contains("another host"), "its unit is known");
    assert!(sampler.absent("host.run_queue").contains("/proc/schedstat"));
}

/// A guest on an EPYC with 768 MiB of L3 (Genoa-X) in a cloud, Ubuntu 20.04 (kernel 5.4), both kinds of control groups.
///
/// - Guests have no cpufreq; `/proc/cpuinfo` has the megahertz that the hypervisor gives, the same for all CPUs.
/// - systemd's hybrid layout: the controllers are in hierarchies of version 1, and `/sys/fs/cgroup/unified` has only the
///   group's name, the processes and, from 4.20 on, pressures (systemd, "Control Group APIs and Delegation").
/// - blkio's files per operation have "Discard" since 4.18, and lines without a device (`Total`).
/// - An unlimited group of memory says 9223372036854771712, the largest number of whole pages.
/// - A line of `/proc/diskstats` has 15 counts; `/proc/schedstat` is of version 15.
/// - The processor's unit (`cpu`) is not offered: such a guest has `msr`, `software` and `tracepoint`.
/// - The size of the L3 and the clock source (`hyperv_clocksource_tsc_page`, `kvm-clock`) are the doctor's: see the tests
///   beside `baseline::memory`.
#[test]
fn an_epyc_guest_with_both_kinds_of_groups() {
    let tree = Tree::new();
    let info = |cpu: u32| {
        format!(
            "processor\t: {cpu}\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9V33X 96-Core Processor\ncpu MHz\t\t: 2545.250\n\
             cache size\t: 1024 KB\n\n"
        )
    };
    tree.write("proc/cpuinfo", &(0..8).map(info).collect::<String>())
        .write("sys/block/sda/size", "67108864\n");
    for unit in ["msr", "software", "tracepoint"] {
        tree.write(&format!("sys/bus/event_source/devices/{unit}/type"), "1\n");
    }
    tree.write(
        "proc/self/mountinfo",
        "31 24 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755\n\
         32 31 0:27 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:10 - cgroup2 cgroup2 rw,nsdelegate\n\
         33 31 0:28 / /sys/fs/cgroup/systemd rw,nosuid,nodev,noexec,relatime shared:11 - cgroup cgroup rw,xattr,name=systemd\n\
         37 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,nodev,noexec,relatime shared:16 - cgroup cgroup rw,cpu,cpuacct\n\
         38 31 0:33 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime shared:17 - cgroup cgroup rw,memory\n\
         39 31 0:34 / /sys/fs/cgroup/blkio rw,nosuid,nodev,noexec,relatime shared:18 - cgroup cgroup rw,blkio\n",
    )
    .write(
        "proc/self/cgroup",
        "12:blkio:/user.slice\n7:memory:/user.slice/user-1000.slice/session-1.scope\n4:cpu,cpuacct:/user.slice\n\
         1:name=systemd:/user.slice/user-1000.slice/session-1.scope\n0::/user.slice/user-1000.slice/session-1.scope\n",
    );
    let unified = "sys/fs/cgroup/unified/user.slice/user-1000.slice/session-1.scope";
    let memory = "sys/fs/cgroup/memory/user.slice/user-1000.slice/session-1.scope";
    let write = |seconds: u64| {
        stat(&tree, 8, |_| (90 * seconds, 0, 10 * seconds));
        let ios = seconds * 100;
        tree.write(
            "proc/diskstats",
            &format!("   8       0 sda {ios} 0 {0} {ios} 0 0 0 0 0 {ios} {ios} 0 0 0 0\n", ios * 8),
        );
        let queue = |cpu: u64| {
            format!("cpu{cpu} 0 0 0 0 0 0 {0} {0} 5\ndomain0 ff 0 0 0 0 0 0 0 0\n", seconds * 500_000_000)
        };
        tree.write(
            "proc/schedstat",
            &format!("version 15\ntimestamp 4295\n{}", (0..8).map(queue).collect::<String>()),
        );
        let pressure = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={}\n", seconds * 300_000);
        tree.write("proc/pressure/cpu", &pressure).write(&format!("{unified}/cpu.pressure"), &pressure);
        tree.write(&format!("{unified}/cgroup.procs"), "77\n");
        let cpu = "sys/fs/cgroup/cpu,cpuacct/user.slice";
        tree.write(&format!("{cpu}/cgroup.procs"), "77\n")
            .write(&format!("{cpu}/cpu.stat"), "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n")
            .write(&format!("{cpu}/cpu.cfs_quota_us"), "-1\n")
            .write(&format!("{cpu}/cpu.cfs_period_us"), "100000\n")
            .write(&format!("{cpu}/cpuacct.usage"), &format!("{}\n", seconds * 7_200_000_000));
        tree.write(&format!("{memory}/cgroup.procs"), "77\n")
            .write(&format!("{memory}/memory.usage_in_bytes"), "1048576\n")
            .write(&format!("{memory}/memory.limit_in_bytes"), "9223372036854771712\n");
        let blkio = "sys/fs/cgroup/blkio/user.slice";
        let by = |each: u64| {
            let sum = each * seconds;
            format!(
                "8:0 Read {sum}\n8:0 Write 0\n8:0 Sync {sum}\n8:0 Async 0\n8:0 Discard 0\n8:0 Total {sum}\nTotal {sum}\n"
            )
        };
        tree.write(&format!("{blkio}/cgroup.procs"), "77\n")
            .write(&format!("{blkio}/blkio.throttle.io_service_bytes_recursive"), &by(409_600))
            .write(&format!("{blkio}/blkio.throttle.io_serviced_recursive"), &by(100));
    };
    write(10);
    let mut sampler = tree.sampler(&Config::default());
    sampler.sample(1.0);
    write(12);
    sampler.sample(2.0);
    sampler.check(&[
        ("host.cpu.total.steal", 0.1),
        ("host.cpu.total.frequency", 2545.25),
        ("host.cpu.total.frequency_min", 2545.25),
        ("host.disk.sda.r_s", 100.0),
        ("host.disk.sda.r_await", 1.0),
        ("host.run_queue.total.delay", 4.0),
        ("host.run_queue.total.delay_share", 0.5),
        ("host.pressure.cpu.some", 0.3),
        ("host.cgroup.own.pressure.cpu.some", 0.3),
        ("host.cgroup.own.cpu.usage", 7.2),
        ("host.cgroup.own.cpu.throttled_periods", 0.0),
        ("host.cgroup.own.cpu.limit", f64::NAN),
        ("host.cgroup.own.memory.current", 1_048_576.0),
        ("host.cgroup.own.memory.limit", f64::NAN),
        ("host.cgroup.own.io.reads", 100.0),
        ("host.cgroup.own.io.read_bytes", 409_600.0),
        ("host.cgroup.own.io.discards", 0.0),
    ]);
    assert!(!sampler.has("host.pressure.cpu.full"), "the CPU has it from 5.13 on");
    assert!(!sampler.has("host.disk.sda.f_s"), "flushes are counted from 5.5 on");
    assert!(sampler.absent("host.hardware").contains("found: msr, software, tracepoint"));
    assert!(sampler.absent("host.cpu.total.throttled").contains("virtual machine"));
}

#[test]
fn the_usage_of_another_group_than_the_limits_is_unknown() {
    let tree = Tree::new();
    tree.write(
        "proc/self/mountinfo",
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
         33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n",
    )
    .write("sys/fs/cgroup/cpu/own/cgroup.procs", "1\n")
    .write("sys/fs/cgroup/cpu/own/cpu.stat", "nr_periods 10\nnr_throttled 10\nthrottled_time 5\n")
    .write("sys/fs/cgroup/cpu/own/cpu.cfs_quota_us", "20000\n")
    .write("sys/fs/cgroup/cpu/own/cpu.cfs_period_us", "100000\n");
    for group in ["cpuacct", "cpuacct/own"] {
        tree.write(&format!("sys/fs/cgroup/{group}/cgroup.procs"), "1\n");
        for file in ["usage", "usage_user", "usage_sys"] {
            tree.write(&format!("sys/fs/cgroup/{group}/cpuacct.{file}"), "700000000\n");
        }
    }
    tree.write("proc/self/cgroup", "2:cpuacct:/\n1:cpu:/own\n");
    let mut sampler = tree.sampler(&Config::default());
    sampler.sample(1.0);
    sampler.check(&[("host.cgroup.own.cpu.limit", 0.2)]);
    assert!(!sampler.has("host.cgroup.own.cpu.usage"), "it is the whole machine's");
    assert!(sampler.absent("host.cgroup.own.cpu.usage").contains("differ"));
    tree.write("proc/self/cgroup", "2:cpuacct:/own\n1:cpu:/own\n");
    assert!(tree.sampler(&Config::default()).has("host.cgroup.own.cpu.usage"));
}

#[test]
fn backends_that_begin_and_end_between_two_samples_are_the_servers() {
    let tree = Tree::new();
    let process = |pid: u32, ticks: u64, ended: u64| {
        tree.write(
            &format!("proc/{pid}/stat"),
            &format!("{pid} (postgres) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 {ended} 0 20 0 1 0 {pid} 0 5 0\n"),
        );
    };
    process(100, 1000, 5000);
    process(101, 300, 0);
    tree.write("proc/100/task/100/children", "101 ");
    let config = Config {
        processes: vec![Process { name: "server".into(), pid: 100, children: true }],
        ..Config::default()
    };
    let mut sampler = tree.sampler(&config);
    sampler.sample(1.0);
    // 101 did ten more and ended, and so did others that worked for 60 ticks.
    process(100, 1020, 5000 + 310 + 60);
    tree.write("proc/100/task/100/children", "");
    sampler.sample(2.0);
    let tick = rustix::param::clock_ticks_per_second() as f64;
    sampler.check(&[("host.process.server.cpu.user", f64::from(20 + 10 + 60) / tick / 2.0)]);
}

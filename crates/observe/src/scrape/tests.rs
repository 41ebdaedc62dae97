//! Exporters' answers, recorded or written from their documentation, and the resulting metrics.

use proptest::prelude::*;

use super::*;

/// The metrics of two scrapes two seconds apart; returns those of the second.
fn second(first: &str, second: &str) -> (HashMap<String, f64>, (usize, usize)) {
    let mut mapping = Mapping::default();
    let (begun, _) = mapping.take(first, f64::NAN).unwrap();
    assert!(begun.iter().all(|figure| figure.unit != "1/s" || figure.value.is_nan()), "a rate of one scrape");
    let (figures, counts) = mapping.take(second, 2.0).unwrap();
    (figures.into_iter().map(|figure| (figure.name, figure.value)).collect(), counts)
}

fn check(found: &HashMap<String, f64>, expected: &[(&str, f64)]) {
    for (name, expected) in expected {
        let value = *found.get(*name).unwrap_or_else(|| panic!("no {name} in {found:?}"));
        let near = (value - expected).abs() <= 1e-9 * expected.abs().max(1.0);
        assert!(near || value.is_nan() && expected.is_nan(), "{name}: {value} and not {expected}");
    }
}

fn node(second: bool) -> String {
    let pick = |first: u64, then: u64| if second { then } else { first };
    let mut text = String::new();
    for (cpu, mode, first, then) in [
        (0, "user", 100, 101),
        (0, "idle", 500, 500),
        (0, "system", 50, 51),
        (1, "user", 10, 10),
        (1, "idle", 700, 701),
        (1, "steal", 3, 4),
    ] {
        text += &format!("node_cpu_seconds_total{{cpu=\"{cpu}\",mode=\"{mode}\"}} {}\n", pick(first, then));
    }
    // The disk of the test in iostat.rs, as node_exporter reports it.
    for (name, first, then) in [
        ("reads_completed_total", "1000", "1400"),
        ("reads_merged_total", "10", "110"),
        ("read_bytes_total", "4.096e+06", "7.3728e+06"),
        ("read_time_seconds_total", "0.5", "0.9"),
        ("writes_completed_total", "2000", "2800"),
        ("writes_merged_total", "20", "220"),
        ("written_bytes_total", "8192000", "24576000"),
        ("write_time_seconds_total", "4", "8.000000000000002"),
        ("io_now", "1", "3"),
        ("io_time_seconds_total", "3", "4.5"),
        ("io_time_weighted_seconds_total", "4.5", "8.9"),
        ("flush_requests_total", "100", "150"),
        ("flush_requests_time_seconds_total", "0.05", "0.15"),
    ] {
        text += &format!("node_disk_{name}{{device=\"nvme0n1\"}} {}\n", if second { then } else { first });
    }
    text += &format!(
        "node_context_switches_total {}\nnode_memory_MemFree_bytes 4096\nnode_memory_HugePages_Total 7\n\
         node_vmstat_pgfault {}\nnode_vmstat_allocstall_dma 1\nnode_vmstat_allocstall_normal {}\n\
         node_pressure_io_waiting_seconds_total {}\nnode_procs_running 2\n\
         node_network_receive_bytes_total{{device=\"eth0\"}} {}\nnode_softnet_dropped_total{{cpu=\"0\"}} {}\n\
         node_softnet_dropped_total{{cpu=\"1\"}} 5\nnode_load1 0.5\nnode_uname_info{{sysname=\"Linux\"}} 1\n",
        pick(1000, 3000),
        pick(10, 20),
        pick(1, 3),
        pick(1, 2),
        pick(5000, 1000),
        pick(7, 9),
    );
    text
}

#[test]
fn node_exporters_figures_have_the_samplers_names_and_formulas() {
    let (found, (all, unused)) = second(&node(false), &node(true));
    check(
        &found,
        &[
            ("host.cpu.total.user", 0.25),
            ("host.cpu.total.steal", 0.25),
            ("host.cpu.total.busy", 0.75),
            ("host.cpu.0.busy", 1.0),
            ("host.cpu.1.idle", 0.5),
            ("host.disk.nvme0n1.r_s", 200.0),
            ("host.disk.nvme0n1.rkb_s", 1600.0),
            ("host.disk.nvme0n1.rareq_sz", 8.0),
            ("host.disk.nvme0n1.w_await", 5.0),
            ("host.disk.nvme0n1.wrqm", 20.0),
            ("host.disk.nvme0n1.f_await", 2.0),
            ("host.disk.nvme0n1.aqu_sz", 2.2),
            ("host.disk.nvme0n1.util", 75.0),
            ("host.disk.nvme0n1.await", 4400.0 / 1200.0),
            ("host.disk.nvme0n1.in_flight", 3.0),
            ("host.context_switches", 1000.0),
            ("host.memory.free", 4096.0),
            ("host.memory.huge_pages.total", 7.0),
            ("host.pages.faults", 5.0),
            ("host.pages.allocation_stalls", 1.0),
            ("host.pressure.io.some", 0.5),
            ("host.tasks.running", 2.0),
            ("host.network.eth0.rx_bytes", f64::NAN),
            ("host.network.soft.drops", 1.0),
        ],
    );
    assert_eq!((all, unused), (text::parse(&node(true)).unwrap().len(), 2), "load and uname are left out");
    // The host begins anew, or another is in its place.
    let (found, _) = second(&node(true), &node(false));
    for name in ["host.cpu.total.user", "host.disk.nvme0n1.w_s", "host.context_switches", "host.pages.faults"]
    {
        check(&found, &[(name, f64::NAN)]);
    }
}

#[test]
fn nodes_queues_and_heat_are_distinguished() {
    let text = |local: u64, other: u64, waited: u64, heat: u64| {
        format!(
            "node_memory_numa_local_node_total{{node=\"0\"}} {local}\nnode_memory_numa_other_node_total{{node=\"0\"}} {other}\n\
             node_memory_numa_local_node_total{{node=\"1\"}} {local}\nnode_memory_numa_other_node_total{{node=\"1\"}} 0\n\
             node_memory_numa_MemFree{{node=\"1\"}} 9\nnode_schedstat_waiting_seconds_total{{cpu=\"0\"}} {waited}\n\
             node_schedstat_running_seconds_total{{cpu=\"0\"}} {waited}\nnode_cpu_scaling_frequency_hertz{{cpu=\"0\"}} 3e9\n\
             node_cpu_scaling_frequency_hertz{{cpu=\"1\"}} 1e9\nnode_cpu_core_throttles_total{{core=\"0\",package=\"0\"}} {heat}\n\
             node_perf_instructions_total{{cpu=\"0\"}} {heat}\nnode_perf_cpucycles_total{{cpu=\"0\"}} {local}\n"
        )
    };
    let (found, (_, unused)) = second(&text(100, 100, 5, 1), &text(130, 120, 6, 41));
    assert_eq!(unused, 0);
    check(
        &found,
        &[
            ("host.numa.0.remote_ratio", 0.4),
            ("host.numa.1.remote_ratio", 0.0),
            ("host.numa.total.remote_ratio", 0.25),
            ("host.numa.0.other_node", 10.0),
            ("host.numa.1.free", 9.0),
            ("host.run_queue.total.delay", 0.5),
            ("host.run_queue.0.delay", 0.5),
            ("host.run_queue.total.delay_share", 0.5),
            ("host.cpu.total.frequency", 2000.0),
            ("host.cpu.total.frequency_min", 1000.0),
            ("host.cpu.total.throttled", 20.0),
            ("host.hardware.instructions", 20.0),
            ("host.hardware.ipc", 40.0 / 30.0),
        ],
    );
}

#[test]
fn postgres_exporters_figures_have_the_watchers_names() {
    let text = |a: u64, b: u64, timing: u8, older: bool| {
        let end = if older { "" } else { "_total" };
        format!(
            "pg_stat_database_xact_commit{{datid=\"1\",datname=\"tpcc\"}} {a}\n\
             pg_stat_database_xact_commit{{datid=\"2\",datname=\"other\"}} {b}\n\
             pg_stat_database_blk_read_time{{datid=\"1\",datname=\"tpcc\"}} {}\n\
             pg_settings_track_io_timing {timing}\npg_stat_bgwriter_checkpoints_req{end} {b}\n\
             pg_stat_bgwriter_checkpoint_write_time{end} {}\npg_stat_wal_wal_bytes {}\n\
             pg_stat_activity_count{{datname=\"tpcc\",state=\"active\"}} 5\n\
             pg_stat_activity_count{{datname=\"other\",state=\"active\"}} 2\n\
             pg_stat_activity_count{{datname=\"tpcc\",state=\"idle\"}} 9\npg_up 1\n",
            u64::from(timing) * a,
            a * 10,
            a * 8192,
        )
    };
    for older in [false, true] {
        let (found, (_, unused)) = second(&text(1000, 3, 1, older), &text(3000, 5, 1, older));
        check(
            &found,
            &[
                ("postgres.transactions.commit", 1001.0),
                ("postgres.blocks.read_ms", 1000.0),
                ("postgres.checkpoints.requested", 1.0),
                ("postgres.checkpoints.write_ms", 10_000.0),
                ("postgres.wal.bytes", 8_192_000.0),
                ("postgres.sessions.active", 7.0),
            ],
        );
        assert_eq!(unused, 1, "pg_up");
    }
    let (found, _) = second(&text(1000, 3, 0, false), &text(3000, 5, 0, false));
    assert!(!found.contains_key("postgres.blocks.read_ms"), "times that are not measured are not zero");
    // One database's statistics are reset: the others' are still known.
    let (found, _) = second(&text(3000, 3, 0, false), &text(10, 7, 0, false));
    check(&found, &[("postgres.transactions.commit", 2.0)]);
}

#[test]
fn the_counters_of_pcm_come_with_their_own_time() {
    let text = |microseconds: u64, n: u64| {
        format!(
            "Measurement_Interval_in_us {microseconds}\nNumber_of_sockets 1\n# Core Counters Socket 0\n\
             Instructions_Retired_Any{{socket=\"0\",core=\"0\",thread=\"0\",source=\"core\"}} {n}\n\
             DRAM_Writes{{socket=\"0\",source=\"uncore\"}} {n}\nDRAM_Reads{{socket=\"0\",source=\"uncore\"}} {}\n\
             Instructions_Retired_Any{{aggregate=\"system\",source=\"core\"}} {}\n\
             Clock_Unhalted_Thread{{aggregate=\"system\",source=\"core\"}} {n}\n\
             L3_Cache_Misses{{aggregate=\"system\",source=\"core\"}} {n}\n\
             DRAM_Writes{{aggregate=\"system\",source=\"uncore\"}} {n}\nDRAM_Reads{{aggregate=\"system\",source=\"uncore\"}} {}\n",
            2 * n,
            3 * n,
            2 * n,
        )
    };
    let (found, _) = second(&text(1_000_000, 100), &text(3_200_000, 540));
    check(
        &found,
        &[
            // 440 of each in 2.2 seconds.
            ("host.memory_bandwidth.total", 600.0),
            ("host.memory_bandwidth.0", 600.0),
            ("host.hardware.instructions", 600.0),
            ("host.hardware.cycles", 200.0),
            ("host.hardware.llc_misses", 200.0),
            ("host.hardware.ipc", 3.0),
        ],
    );
    for microseconds in [1_000_000, 1_000_400] {
        let (found, _) = second(&text(1_000_000, 100), &text(microseconds, 500));
        check(&found, &[("host.memory_bandwidth.total", f64::NAN), ("host.hardware.instructions", f64::NAN)]);
    }
}

#[test]
fn what_comes_later_gets_a_block_of_its_own() {
    let figure = |name: &str, value| Figure { name: name.into(), unit: "1", help: "x", value };
    let mut declared = Declared::default();
    declared.add(10, vec!["a".into(), "b".into()]);
    let found = [figure("b", 2.0), figure("c", 3.0)];
    assert_eq!(declared.new_ones(&found).0.len(), 1);
    declared.add(20, vec!["c".into()]);
    let readings = declared.readings(5, &found);
    assert_eq!((readings[0].first, readings[1].first, readings.len()), (10, 20, 2));
    assert!(readings[0].values[0].is_nan() && readings[0].values[1] == 2.0);
    assert_eq!(readings[1].values, [3.0]);
}

proptest! {
    /// For any answer of an endpoint, values are finite or unknown.
    #[test]
    fn no_answer_makes_it_panic(
        lines in proptest::collection::vec(
            "(node_cpu_seconds_total|node_disk_reads_completed_total|node_disk_io_now|pg_stat_database_xact_commit|\
             Measurement_Interval_in_us|DRAM_Reads|node_context_switches_total)\
             (\\{(cpu|device|mode|source)=\"(0|sda|user|uncore)\"\\})? (-?[0-9]{1,20}|1e300|NaN|\\+Inf)",
            0..30,
        ),
        again in proptest::collection::vec("(node_context_switches_total|DRAM_Reads) [0-9]{1,3}", 0..9),
    ) {
        let mut mapping = Mapping::default();
        for text in [lines.join("\n"), again.join("\n"), lines.join("\n")] {
            prop_assert!(mapping.take(&text, 1.0).is_ok());
        }
    }
}

#[test]
fn a_cpu_that_comes_back_leaves_the_sum_of_the_others() {
    let page = |waited: [Option<u32>; 4]| -> String {
        let of = |(cpu, waited): (usize, Option<u32>)| {
            let waited = waited?;
            Some(format!(
                "node_schedstat_waiting_seconds_total{{cpu=\"{cpu}\"}} {waited}\n\
                 node_schedstat_running_seconds_total{{cpu=\"{cpu}\"}} {}\n",
                waited * 3
            ))
        };
        waited.into_iter().enumerate().filter_map(of).collect()
    };
    let (found, _) =
        second(&page([Some(1), Some(1), None, Some(1)]), &page([Some(3), Some(5), Some(9), Some(7)]));
    let unknown = f64::NAN;
    check(
        &found,
        &[
            ("host.run_queue.0.delay", 1.0),
            ("host.run_queue.2.delay", unknown),
            ("host.run_queue.total.delay", 6.0),
            ("host.run_queue.total.delay_share", 0.25),
        ],
    );
}

#[test]
fn names_that_come_and_go_have_an_end() {
    let figures = |from: usize, count: usize| -> Vec<Figure> {
        let of = |i| Figure { name: format!("f{i}"), unit: "1", help: "", value: 1.0 };
        (from..from + count).map(of).collect()
    };
    let mut declared = Declared::default();
    for block in 0..MOST_BLOCKS {
        let figures = figures(block, 1);
        let (new, refused) = declared.new_ones(&figures);
        assert_eq!((new.len(), refused), (1, false));
        declared.add(block as u32, new.iter().map(|figure| figure.name.clone()).collect());
    }
    let all = figures(0, MOST_BLOCKS + 1);
    assert_eq!((declared.new_ones(&all).0.len(), declared.new_ones(&all).1), (0, true));
    assert!(!declared.new_ones(&all[..MOST_BLOCKS]).1);
    assert_eq!(declared.readings(0, &all).len(), MOST_BLOCKS);
    let many = figures(0, MOST_NAMES + 1);
    let (new, refused) = Declared::default().new_ones(&many);
    assert_eq!((new.len(), refused), (MOST_NAMES, true));
}

//! Converts an observer's dotted name to a Prometheus metric. Parts that identify an object become labels,
//! and units become base units and the end of the name.

use kelvin_diagnose::metric::SOURCES;

/// An observer's metric in Prometheus' form.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PrometheusMetric {
    /// The name without its unit.
    pub(crate) name: String,
    /// The unit, which is also the end of the exported name.
    pub(crate) unit: Option<&'static str>,
    /// The factor that converts values to that unit.
    pub(crate) factor: f64,
    /// The labels; the host comes first.
    pub(crate) labels: Vec<(&'static str, String)>,
}

/// The label of the host on which kelvin runs.
const HERE: &str = "local";

/// The columns of iostat as words; an abbreviated `d` at the end of a name would be read as days.
const DISK: [(&str, &str); 20] = [
    ("r_s", "reads"),
    ("rkb_s", "read"),
    ("rrqm_s", "reads_merged"),
    ("rrqm", "reads_merged"),
    ("r_await", "read_await"),
    ("rareq_sz", "read_size"),
    ("w_s", "writes"),
    ("wkb_s", "written"),
    ("wrqm_s", "writes_merged"),
    ("wrqm", "writes_merged"),
    ("w_await", "write_await"),
    ("wareq_sz", "write_size"),
    ("d_s", "discards"),
    ("dkb_s", "discarded"),
    ("drqm_s", "discards_merged"),
    ("drqm", "discards_merged"),
    ("d_await", "discard_await"),
    ("dareq_sz", "discard_size"),
    ("f_s", "flushes"),
    ("f_await", "flush_await"),
];

/// Name endings that have another meaning in Prometheus than a gauge, and their replacements.
const RESERVED: [(&str, &str); 5] = [
    ("_total", "_all"),
    ("_count", "_number"),
    ("_sum", "_added"),
    ("_bucket", "_share"),
    ("_info", "_known"),
];

/// The metric for an observer's `name` in `unit` (see `kelvin_measure::observation::Metric`).
pub(crate) fn prometheus_metric(name: &str, unit: &str) -> PrometheusMetric {
    let (host, name) = split_host(name);
    let mut labels = vec![("host", host.to_owned())];
    let parts: Vec<&str> = name.split('.').collect();
    let rest = match parts.as_slice() {
        // Totals have separate names, since sum() would otherwise count their parts twice.
        ["host", kind @ ("cpu" | "numa" | "run_queue"), "total", rest @ ..] => {
            joined(&["host", kind, "total"], rest)
        }
        ["host", kind @ ("cpu" | "run_queue"), which, rest @ ..] if !rest.is_empty() => {
            labels.push(("cpu", (*which).to_owned()));
            joined(&["host", kind], rest)
        }
        [of @ ("host" | "sqlserver"), "numa", which, rest @ ..] if !rest.is_empty() => {
            labels.push(("node", (*which).to_owned()));
            joined(&[of, "numa"], rest)
        }
        ["host", "process", which, rest @ ..] if !rest.is_empty() => {
            labels.push(("process", (*which).to_owned()));
            joined(&["host", "process"], rest)
        }
        ["host", "network", "soft", rest @ ..] => joined(&["host", "network_soft"], rest),
        // The name of a network device may contain dots.
        ["host", kind @ ("disk" | "network"), device @ .., last] if !device.is_empty() => {
            labels.push(("device", device.join(".")));
            let word = DISK.iter().find(|(column, _)| *kind == "disk" && column == last);
            joined(&["host", kind], &[word.map_or(*last, |(_, word)| *word)])
        }
        ["host", "trace", stream @ .., last] if !stream.is_empty() => {
            labels.push(("stream", stream.join(".")));
            joined(&["host", "trace"], &[last])
        }
        ["host", "memory_bandwidth", domain] => {
            labels.push(("domain", (*domain).to_owned()));
            joined(&["host", "memory_bandwidth"], &[])
        }
        ["host", "cgroup", rest @ ..] => {
            let known = |part: &&str| ["cpu", "memory", "io", "pressure"].contains(part);
            let at = rest.iter().skip(1).position(known).map_or(rest.len(), |at| at + 1);
            let (group, rest) = rest.split_at(at);
            labels.push(("group", group.join(".")));
            joined(&["host", "cgroup"], rest)
        }
        parts => joined(parts, &[]),
    };
    let (unit, factor, said): (_, _, &[&str]) = match unit {
        "ratio" => (Some("ratio"), 1.0, &["_ratio"]),
        "%" => (Some("ratio"), 0.01, &["_ratio"]),
        "1/s" => (Some("per_second"), 1.0, &[]),
        "B/s" => (Some("bytes_per_second"), 1.0, &["_bytes"]),
        // 1024 bytes, as in iostat.
        "kB/s" => (Some("bytes_per_second"), 1024.0, &["_kb"]),
        "B" => (Some("bytes"), 1.0, &["_bytes"]),
        "kB" => (Some("bytes"), 1024.0, &["_bytes", "_kb"]),
        "s" => (Some("seconds"), 1.0, &["_seconds"]),
        "ms" => (Some("seconds"), 1e-3, &["_ms"]),
        "s/s" => (Some("seconds_per_second"), 1.0, &["_seconds"]),
        "ms/s" => (Some("seconds_per_second"), 1e-3, &["_ms"]),
        "MHz" => (Some("hertz"), 1e6, &["_mhz"]),
        _ => (None, 1.0, &[]),
    };
    // A unit that is already part of the name is not repeated.
    let mut name = said.iter().find_map(|end| rest.strip_suffix(end)).unwrap_or(&rest).to_owned();
    if unit.is_none()
        && let Some((end, instead)) = RESERVED.iter().find(|(end, _)| name.ends_with(end))
    {
        name.truncate(name.len() - end.len());
        name.push_str(instead);
    }
    PrometheusMetric { name, unit, factor, labels }
}

/// The host, and the name without it.
fn split_host(name: &str) -> (&str, &str) {
    if SOURCES.iter().any(|source| name.starts_with(source)) {
        return (HERE, name);
    }
    let at = SOURCES.iter().find_map(|source| name.find(&format!("/{source}"))).or_else(|| name.rfind('/'));
    at.map_or((HERE, name), |at| (&name[..at], &name[at + 1..]))
}

/// Joins parts to a name of letters, digits and single underscores.
fn joined(first: &[&str], rest: &[&str]) -> String {
    let mut name = String::from("kelvin");
    for part in first.iter().chain(rest) {
        name.push('_');
        for c in part.chars() {
            if c.is_ascii_alphanumeric() {
                name.push(c.to_ascii_lowercase());
            } else if !name.ends_with('_') {
                name.push('_');
            }
        }
    }
    while name.ends_with('_') {
        name.pop();
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render(name: &str, unit: &str) -> String {
        let named = prometheus_metric(name, unit);
        let labels: Vec<_> = named.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let unit = named.unit.map_or(String::new(), |unit| format!("_{unit}"));
        format!("{}{unit}{{{}}}", named.name, labels.join(","))
    }

    #[test]
    fn names_are_those_that_the_dashboard_asks_for() {
        for (name, unit, expected) in [
            ("host.cpu.3.user", "ratio", "kelvin_host_cpu_user_ratio{host=local,cpu=3}"),
            ("host.cpu.total.user", "ratio", "kelvin_host_cpu_total_user_ratio{host=local}"),
            ("db1:9100/host.cpu.total.steal", "ratio", "kelvin_host_cpu_total_steal_ratio{host=db1:9100}"),
            ("http://db/metrics/host.forks", "1/s", "kelvin_host_forks_per_second{host=http://db/metrics}"),
            (
                "host.run_queue.0.delay",
                "s/s",
                "kelvin_host_run_queue_delay_seconds_per_second{host=local,cpu=0}",
            ),
            (
                "host.process.server.cpu.user",
                "s/s",
                "kelvin_host_process_cpu_user_seconds_per_second{host=local,process=server}",
            ),
            ("host.disk.nvme0n1.r_s", "1/s", "kelvin_host_disk_reads_per_second{host=local,device=nvme0n1}"),
            (
                "host.disk.dm-0.wkb_s",
                "kB/s",
                "kelvin_host_disk_written_bytes_per_second{host=local,device=dm-0}",
            ),
            (
                "host.trace.postgres-wal.bytes",
                "B/s",
                "kelvin_host_trace_bytes_per_second{host=local,stream=postgres-wal}",
            ),
            ("host.trace.lost", "1", "kelvin_host_trace_lost{host=local}"),
            ("host.disk.vda.w_await", "ms", "kelvin_host_disk_write_await_seconds{host=local,device=vda}"),
            ("host.disk.vda.wareq_sz", "kB", "kelvin_host_disk_write_size_bytes{host=local,device=vda}"),
            ("host.disk.vda.util", "%", "kelvin_host_disk_util_ratio{host=local,device=vda}"),
            ("host.disk.vda.aqu_sz", "1", "kelvin_host_disk_aqu_sz{host=local,device=vda}"),
            (
                "host.network.eth0.100.rx_bytes",
                "B/s",
                "kelvin_host_network_rx_bytes_per_second{host=local,device=eth0.100}",
            ),
            ("host.network.soft.drops", "1/s", "kelvin_host_network_soft_drops_per_second{host=local}"),
            ("host.memory.huge_pages.total", "1", "kelvin_host_memory_huge_pages_all{host=local}"),
            ("host.numa.1.huge_pages.free", "1", "kelvin_host_numa_huge_pages_free{host=local,node=1}"),
            (
                "host.cgroup.server.v1.memory.high_events",
                "1/s",
                "kelvin_host_cgroup_memory_high_events_per_second{host=local,group=server.v1}",
            ),
            ("host.pressure.io.some", "ratio", "kelvin_host_pressure_io_some_ratio{host=local}"),
            ("postgres.blocks.read_ms", "ms/s", "kelvin_postgres_blocks_read_seconds_per_second{host=local}"),
            ("postgres.wal.bytes", "B/s", "kelvin_postgres_wal_bytes_per_second{host=local}"),
            ("sqlserver.numa.1.busy", "ratio", "kelvin_sqlserver_numa_busy_ratio{host=local,node=1}"),
            ("mysql.redo.bytes", "B/s", "kelvin_mysql_redo_bytes_per_second{host=local}"),
            ("mysql.redo.sync_ms", "ms/s", "kelvin_mysql_redo_sync_seconds_per_second{host=local}"),
            ("mysql.redo.checkpoint_age", "B", "kelvin_mysql_redo_checkpoint_age_bytes{host=local}"),
            (
                "mysql.redo.checkpoint_age_share",
                "ratio",
                "kelvin_mysql_redo_checkpoint_age_share_ratio{host=local}",
            ),
            ("db1/mysql.undo.history", "1", "kelvin_mysql_undo_history{host=db1}"),
            ("sqlite.wal.bytes", "B", "kelvin_sqlite_wal_bytes{host=local}"),
            ("sqlite.checkpoints", "1/s", "kelvin_sqlite_checkpoints_per_second{host=local}"),
            ("sqlite.busy", "s/s", "kelvin_sqlite_busy_seconds_per_second{host=local}"),
        ] {
            assert_eq!(render(name, unit), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_becomes_one_that_prometheus_takes(name: String, unit: String) {
            let named = prometheus_metric(&name, &unit);
            prop_assert!(named.name.starts_with("kelvin"));
            prop_assert!(named.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
            prop_assert!(!named.name.ends_with('_'));
        }
    }
}

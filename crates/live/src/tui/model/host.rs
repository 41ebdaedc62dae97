//! The newest value of every metric, and the devices that have metrics.

use kelvin_measure::MOST_DECLARED;
use std::collections::HashMap;

use kelvin_measure::observation::{DatabaseDirectory, Observer, Reading, UnavailableMetrics};
use kelvin_observe::metric::{
    self, STREAM_BYTES, STREAM_DEPTH, STREAM_REQUESTS, STREAM_SEQUENTIAL, STREAMS, TRACE_LOST,
};
use kelvin_trace::attribution::stream_label;

use super::timeline::MODES;

/// The newest reading of every watcher.
#[derive(Debug, Default)]
pub(crate) struct Host {
    /// For each metric, the first metric of its watcher and its index in that watcher's readings.
    places: HashMap<String, (u32, usize)>,
    readings: HashMap<u32, Vec<f32>>,
    /// Devices by the prefix of their metrics.
    devices: Vec<String>,
    /// Streams of block requests, by the prefix of their metrics, with the total bytes of all readings.
    streams: Vec<(String, f64)>,
    files: Vec<DatabaseDirectory>,
    absent: Vec<UnavailableMetrics>,
}

/// A row of the table of streams. Unknown values are NaN.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StorageStream {
    /// The class of files; for requests that belong to no known file, the device.
    pub(crate) name: String,
    /// Requests per second, bytes per second, share of these in sequential runs, requests in flight.
    pub(crate) values: [f64; 4],
}

/// A row of the table of devices. Unknown values are NaN.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Device {
    /// Its name, preceded by the host if that is another one.
    pub(crate) name: String,
    /// The parts of the database on it: "data", "log", "data+log", "temp"; empty if none is known.
    pub(crate) role: String,
    /// Reads and writes per second, await in ms, average queue size, await of a flush in ms.
    pub(crate) values: [f64; 5],
}

impl Host {
    pub(super) fn declare(&mut self, observer: &Observer) {
        let fits = observer.first as usize + observer.metrics.len() <= MOST_DECLARED;
        for (offset, metric) in observer.metrics.iter().enumerate().filter(|_| fits) {
            self.places.insert(metric.name.clone(), (observer.first, offset));
            if let Some(device) =
                metric.name.strip_suffix(".r_s").filter(|name| metric::split_disk(name).is_some())
            {
                self.devices.push(device.to_owned());
            }
            let stream = metric.name.strip_suffix(STREAM_BYTES).and_then(|name| name.strip_suffix('.'));
            if let Some(stream) = stream.filter(|name| name.starts_with(STREAMS)) {
                self.streams.push((stream.to_owned(), 0.0));
            }
        }
        self.files.extend_from_slice(&observer.places);
        self.absent.extend_from_slice(&observer.absent);
    }

    /// Takes a reading; returns the CPU shares if it contains them.
    pub(super) fn take(&mut self, reading: &Reading) -> Option<[f64; MODES]> {
        self.readings.insert(reading.first, reading.values.clone());
        self.add_streams(reading);
        let (first, _) = self.places.get(metric::CPU_USER)?;
        (*first == reading.first).then(|| self.cpu()).flatten()
    }

    /// Marks metrics as no longer available.
    pub(super) fn lost(&mut self, absent: &UnavailableMetrics) {
        self.absent.push(absent.clone());
    }

    /// The newest value of a metric; none if unknown.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        let (first, offset) = self.places.get(name)?;
        let value = f64::from(*self.readings.get(first)?.get(*offset)?);
        (!value.is_nan()).then_some(value)
    }

    /// Shares of this host's CPU time, 0 to 1: user, system, interrupts, iowait, steal.
    pub(crate) fn cpu(&self) -> Option<[f64; MODES]> {
        let share = |mode: &str| self.value(&metric::cpu(mode));
        let or_none = |mode: &str| share(mode).unwrap_or(0.0);
        Some([
            share("user")? + or_none("nice"),
            share("system")?,
            or_none("irq") + or_none("softirq"),
            or_none("iowait"),
            or_none("steal"),
        ])
    }

    /// Why metrics are unavailable: the reason of the first one that starts with the prefix.
    pub(crate) fn why_not(&self, prefix: &str) -> Option<&str> {
        self.absent.iter().find(|absent| absent.what.starts_with(prefix)).map(|absent| absent.why.as_str())
    }

    /// The devices: those that hold part of the database first, then by load.
    pub(crate) fn devices(&self) -> Vec<Device> {
        let mut devices: Vec<Device> = self.devices.iter().map(|prefix| self.device(prefix)).collect();
        let busy = |device: &Device| {
            let [reads, writes, ..] = device.values.map(|value| if value.is_nan() { 0.0 } else { value });
            reads + writes
        };
        devices.sort_by(|a, b| {
            a.role.is_empty().cmp(&b.role.is_empty()).then_with(|| busy(b).total_cmp(&busy(a)))
        });
        devices
    }

    /// Adds a reading's bytes to the totals of the streams.
    fn add_streams(&mut self, reading: &Reading) {
        let value = |name: &str| {
            let (first, offset) = self.places.get(name)?;
            (*first == reading.first)
                .then(|| reading.values.get(*offset))
                .flatten()
                .map(|value| f64::from(*value))
        };
        for (stream, sum) in &mut self.streams {
            if let Some(bytes) = value(&format!("{stream}.{STREAM_BYTES}")) {
                *sum += bytes;
            }
        }
    }

    /// Number of trace events that were lost.
    pub(crate) fn lost_events(&self) -> u64 {
        self.value(TRACE_LOST).unwrap_or(0.0) as u64
    }

    /// Whether block requests are traced.
    pub(crate) fn has_streams(&self) -> bool {
        self.places.contains_key(TRACE_LOST)
    }

    /// Block requests by stream, in descending order of bytes so far.
    pub(crate) fn streams(&self) -> Vec<StorageStream> {
        let mut streams: Vec<&(String, f64)> = self.streams.iter().collect();
        streams.sort_by(|a, b| b.1.total_cmp(&a.1));
        let figures = [STREAM_REQUESTS, STREAM_BYTES, STREAM_SEQUENTIAL, STREAM_DEPTH];
        let row = |(prefix, _): &&(String, f64)| {
            let id = prefix.strip_prefix(STREAMS).unwrap_or(prefix);
            let name = stream_label(id);
            let value = |figure| self.value(&format!("{prefix}.{figure}")).unwrap_or(f64::NAN);
            StorageStream { name, values: figures.map(value) }
        };
        streams.iter().map(row).collect()
    }

    fn device(&self, prefix: &str) -> Device {
        let (host, name) = metric::split_disk(prefix).unwrap_or(("", prefix));
        let mut roles: Vec<&str> = Vec::new();
        // Locations of database files are known only on this host.
        for file in self.files.iter().filter(|file| host.is_empty() && file.device.as_deref() == Some(name)) {
            let role = if file.role == "wal" { "log" } else { file.role.as_str() };
            if !roles.contains(&role) {
                roles.push(role);
            }
        }
        let value = |column: &str| self.value(&format!("{prefix}.{column}")).unwrap_or(f64::NAN);
        Device {
            name: format!("{host}{name}"),
            role: roles.join("+"),
            values: ["r_s", "w_s", "await", "aqu_sz", "f_await"].map(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::Metric;

    use super::*;

    #[test]
    fn the_databases_devices_come_first_and_unknown_is_not_zero() {
        let names = ["host.disk.a.r_s", "host.disk.a.w_s", "host.disk.b.r_s", "db1:9100/host.disk.c.r_s"];
        let metric = |name: &&str| Metric { name: (*name).into(), unit: "1/s".into(), help: String::new() };
        let place = |role: &str| DatabaseDirectory {
            role: role.into(),
            path: "/".into(),
            device: Some("b".into()),
            mount: "/".into(),
            filesystem: "ext4".into(),
            queue: None,
        };
        let mut host = Host::default();
        host.declare(&Observer {
            first: 5,
            metrics: names.iter().map(metric).collect(),
            places: vec![place("data"), place("wal")],
            ..Observer::default()
        });
        host.take(&Reading { at: 1, first: 5, values: vec![1.0, f32::NAN, 2.0, 9.0] });
        let devices = host.devices();
        let shown: Vec<_> = devices.iter().map(|d| (d.name.as_str(), d.role.as_str(), d.values[0])).collect();
        assert_eq!(shown, [("b", "data+log", 2.0), ("db1:9100/c", "", 9.0), ("a", "", 1.0)]);
        assert!(devices[2].values[1].is_nan());
        assert!(host.value("host.disk.a.w_s").is_none());
    }
}

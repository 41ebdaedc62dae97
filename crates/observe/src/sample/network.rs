//! Network devices and TCP: `/proc/net/`.
//!
//! SystemTree: `Documentation/networking/statistics.rst`; the columns of `/proc/net/softnet_stat` (processed, dropped,
//! squeezed) in the kernel's `net/core/net-procfs.c`; TCP's counters in RFC 1213 and the kernel's `snmp_counter.rst`.

use super::counter::{Counter, figure};
use super::{Collector, Registry};
use crate::metric;
use kelvin_host::bytes::{hexadecimal, lines, number, words};
use kelvin_host::{Buffer, KernelFile, SystemTree};

/// Name, unit, help and the column of `/proc/net/dev` behind the colon.
const COLUMNS: [(&str, &str, &str, usize); 8] = [
    ("rx_bytes", "B/s", "received", 0),
    ("rx_packets", "1/s", "packets received", 1),
    ("rx_errors", "1/s", "packets received with errors", 2),
    ("rx_drops", "1/s", "packets received and dropped", 3),
    ("tx_bytes", "B/s", "sent", 8),
    ("tx_packets", "1/s", "packets sent", 9),
    ("tx_errors", "1/s", "packets not sent because of errors", 10),
    ("tx_drops", "1/s", "outgoing packets dropped", 11),
];

/// Group and name of the kernel, name of the series, help.
type Protocol = (&'static [u8], &'static [u8], &'static str, &'static str);

const SNMP: [Protocol; 3] = [
    (b"Tcp:", b"OutSegs", "host.tcp.segments_out", "segments sent"),
    (b"Tcp:", b"RetransSegs", "host.tcp.retransmits", "segments retransmitted"),
    (b"Tcp:", b"InErrs", "host.tcp.errors_in", "segments received with errors"),
];
const NETSTAT: [Protocol; 3] = [
    (b"TcpExt:", b"TCPTimeouts", "host.tcp.timeouts", "retransmission timeouts"),
    (
        b"TcpExt:",
        b"ListenOverflows",
        "host.tcp.listen_overflows",
        "connections that found the accept queue full",
    ),
    (b"TcpExt:", b"ListenDrops", "host.tcp.listen_drops", "connections dropped by a listener"),
];

pub(super) fn register(source: &SystemTree, registry: &mut Registry) {
    devices(source, registry);
    protocol(source, registry, "/proc/net/snmp", &SNMP);
    protocol(source, registry, "/proc/net/netstat", &NETSTAT);
    match source.open("/proc/net/softnet_stat") {
        Err(why) => registry.absent("host.network.soft", why),
        Ok(file) => registry.add(
            vec![
                ("host.network.soft.drops".into(), "1/s", "packets dropped because a CPU's backlog was full"),
                ("host.network.soft.squeezes".into(), "1/s", "times a CPU's packet budget ran out"),
            ],
            Soft { file, counters: Default::default() },
        ),
    }
}

fn devices(source: &SystemTree, registry: &mut Registry) {
    let file = match source.open("/proc/net/dev") {
        Ok(file) => file,
        Err(why) => return registry.absent(metric::NETWORK, why),
    };
    let text = source.text("/proc/net/dev").unwrap_or_default();
    // Software devices that never carried a packet are left out: hosts of containers have dozens.
    let real = |name: &[u8]| {
        let name = String::from_utf8_lossy(name);
        source.path(format!("/sys/class/net/{name}/device")).exists()
    };
    let found = lines(text.as_bytes()).filter_map(device);
    let devices: Vec<_> = found
        .filter(|(name, values)| values[1] > 0 || values[5] > 0 || real(name))
        .map(|(name, _)| (name.to_vec(), [Counter::default(); COLUMNS.len()], false))
        .collect();
    let mut series = Vec::new();
    for (name, ..) in &devices {
        let name = String::from_utf8_lossy(name);
        series.extend(
            COLUMNS.iter().map(|(column, unit, help, _)| (metric::network(&name, column), *unit, *help)),
        );
    }
    registry.add(series, Devices { file, devices });
}

struct Devices {
    file: KernelFile,
    /// Name, counters, and whether this sample saw it.
    devices: Vec<(Vec<u8>, [Counter; COLUMNS.len()], bool)>,
}

impl Collector for Devices {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        self.devices.iter_mut().for_each(|device| device.2 = false);
        for (name, now) in lines(self.file.read(buffer).unwrap_or_default()).filter_map(device) {
            let Some(at) = self.devices.iter().position(|(known, ..)| known == name) else { continue };
            let (_, counters, seen) = &mut self.devices[at];
            *seen = true;
            for (i, (counter, now)) in counters.iter_mut().zip(now).enumerate() {
                out[at * COLUMNS.len() + i] = figure(counter.strict(Some(now))) / seconds;
            }
        }
        for (_, counters, _) in self.devices.iter_mut().filter(|(.., seen)| !seen) {
            *counters = Default::default();
        }
    }
}

/// The name and the chosen columns; none for the heading.
fn device(line: &[u8]) -> Option<(&[u8], [u64; COLUMNS.len()])> {
    // An alias has a colon in its name: the counters begin after the last one.
    let colon = line.iter().rposition(|&b| b == b':')?;
    let mut all = [0; 12];
    let mut words = words(&line[colon + 1..]);
    for slot in &mut all {
        *slot = number(words.next()?)?;
    }
    Some((line[..colon].trim_ascii(), COLUMNS.map(|(.., column)| all[column])))
}

fn protocol(
    source: &SystemTree,
    registry: &mut Registry,
    path: &'static str,
    wanted: &'static [Protocol; 3],
) {
    let file = match source.open(path) {
        Ok(file) => file,
        Err(why) => return registry.absent(metric::TCP, why),
    };
    let text = source.text(path).unwrap_or_default();
    let found = pairs(text.as_bytes(), wanted);
    let mut series = Vec::new();
    let mut slots = [None; 3];
    for (i, (_, key, name, help)) in wanted.iter().enumerate() {
        if found[i].is_some() {
            slots[i] = Some(series.len());
            series.push(((*name).to_owned(), "1/s", *help));
        } else {
            registry.absent(name, format!("{path} has no {}", String::from_utf8_lossy(key)));
        }
    }
    registry.add(series, Tcp { file, wanted, slots, counters: Default::default() });
}

struct Tcp {
    file: KernelFile,
    wanted: &'static [Protocol; 3],
    slots: [Option<usize>; 3],
    counters: [Counter; 3],
}

impl Collector for Tcp {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let now = pairs(self.file.read(buffer).unwrap_or_default(), self.wanted);
        for ((counter, slot), now) in self.counters.iter_mut().zip(self.slots).zip(now) {
            if let Some(slot) = slot {
                out[slot] = figure(counter.strict(now)) / seconds;
            }
        }
    }
}

/// Values out of pairs of lines, names above and numbers below.
fn pairs(text: &[u8], wanted: &[Protocol; 3]) -> [Option<u64>; 3] {
    let mut found = [None; 3];
    let mut lines = lines(text);
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (mut names, mut values) = (words(names), words(values));
        let (Some(group), true) = (names.next(), values.next().is_some()) else { continue };
        for (name, value) in names.zip(values) {
            if let Some(at) = wanted.iter().position(|(of, key, ..)| *of == group && *key == name) {
                found[at] = number(value);
            }
        }
    }
    found
}

struct Soft {
    file: KernelFile,
    counters: [Counter; 2],
}

impl Collector for Soft {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let now = self.file.read(buffer).and_then(soft);
        for (i, counter) in self.counters.iter_mut().enumerate() {
            out[i] = figure(counter.rise(now.map(|n| n[i]))) / seconds;
        }
    }
}

/// Drops and squeezes of all CPUs.
fn soft(text: &[u8]) -> Option<[u64; 2]> {
    let mut sums = [0_u64; 2];
    for line in lines(text) {
        let mut words = words(line).skip(1);
        for sum in &mut sums {
            *sum = sum.saturating_add(hexadecimal(words.next()?)?);
        }
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn devices_and_protocols_are_read() {
        let line = b"  eth0:416632988   19694    1    2    0     0          0         0  1243624   12706    3    4    0     0       0          0";
        assert_eq!(device(line), Some((&b"eth0"[..], [416_632_988, 19694, 1, 2, 1_243_624, 12706, 3, 4])));
        assert_eq!(device(b" face |bytes    packets errs"), None);
        let text = b"Ip: A B\nIp: 1 2\nTcp: MaxConn OutSegs RetransSegs InErrs\nTcp: -1 10 20 30\n";
        assert_eq!(pairs(text, &SNMP), [Some(10), Some(20), Some(30)]);
        assert_eq!(soft(b"0064baf9 00000001 0000000c 0\n00611ae3 00000002 00000008 0\n"), Some([3, 20]));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "((Tcp:|OutSegs|eth0:|\\PC) ?[0-9a-f]{0,22}[ \n]{0,2}){0,30}", raw: Vec<u8>) {
            for text in [text.as_bytes(), &raw] {
                let _ = (device(text), pairs(text, &SNMP), soft(text));
            }
        }
    }
}

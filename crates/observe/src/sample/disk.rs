//! Block devices: `/proc/diskstats`.
//!
//! A burst of writes shows in these as it is long: the counters know no peak within an interval, and reading them more
//! often would cost more than it is worth. To judge bursts, compare the intervals with each other.

use super::backing_device::BackingDevice;
use super::iostat::{COLUMNS, columns};
use super::{Collector, Registry};
use crate::metric;
use kelvin_host::bytes::lines;
use kelvin_host::disk::DiskCounters;
use kelvin_host::{Buffer, KernelFile, SystemTree};

struct Disks {
    file: KernelFile,
    disks: Vec<Disk>,
}

struct Disk {
    name: Vec<u8>,
    before: Option<DiskCounters>,
    /// Its columns and how many of them the kernel has: no discards before Linux 4.18, no flushes before 5.5.
    slots: Vec<(usize, usize)>,
    seen: bool,
}

/// Columns that a line with so many counters does not fill.
pub(crate) fn missing(column: usize, counters: usize) -> bool {
    matches!(column, 12..18) && counters < 15 || matches!(column, 18 | 19) && counters < 17
}

/// Registers the devices and returns their names.
pub(super) fn register(
    source: &SystemTree,
    registry: &mut Registry,
    wanted: &[String],
    places: &[(String, BackingDevice)],
) -> Vec<String> {
    let file = match source.open("/proc/diskstats") {
        Ok(file) => file,
        Err(why) => {
            registry.absent(metric::DISK, why);
            return Vec::new();
        }
    };
    let mut names: Vec<String> = Vec::new();
    for name in wanted.iter().map(|name| name.strip_prefix("/dev/").unwrap_or(name)) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        // Loop devices without a file, among others, have no size.
        let sized =
            |name: &String| source.text(format!("/sys/block/{name}/size")).is_some_and(|s| s.trim() != "0");
        names = source.names("/sys/block").into_iter().filter(sized).collect();
    }
    for (role, place) in places {
        for name in place.device.iter().chain(&place.disks) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        if let Some(why) = &place.unknown {
            registry.absent(&format!("host.disk of {role}"), why.clone());
        }
    }
    let text = source.text("/proc/diskstats").unwrap_or_default();
    let (mut series, mut disks, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for name in names {
        let line = lines(text.as_bytes())
            .filter_map(DiskCounters::parse)
            .find(|(found, ..)| *found == name.as_bytes());
        let Some((.., counters)) = line else {
            registry.absent(&format!("host.disk.{name}"), "/proc/diskstats has no such device".into());
            continue;
        };
        let mut slots = Vec::new();
        for (i, (column, unit, help)) in COLUMNS.into_iter().enumerate() {
            let full = metric::disk(&name, column);
            if missing(i, counters) {
                registry.absent(&full, "this kernel does not count it".into());
            } else {
                slots.push((i, series.len()));
                series.push((full, unit, help));
            }
        }
        kept.push(name.clone());
        disks.push(Disk { name: name.into_bytes(), before: None, slots, seen: false });
    }
    if disks.is_empty() {
        registry.absent(metric::DISK, "/sys/block lists no block device that has a size".into());
    }
    registry.add(series, Disks { file, disks });
    kept
}

impl Collector for Disks {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        for disk in &mut self.disks {
            disk.seen = false;
        }
        for (name, now, _) in
            lines(self.file.read(buffer).unwrap_or_default()).filter_map(DiskCounters::parse)
        {
            let Some(disk) = self.disks.iter_mut().find(|disk| disk.name == name) else { continue };
            disk.seen = true;
            let before = disk.before.replace(now);
            if let Some(before) =
                before.filter(|before| !before.is_replaced_by(&now)).filter(|_| seconds > 0.0)
            {
                let columns = columns(&before, &now, seconds);
                for (column, slot) in &disk.slots {
                    out[*slot] = columns[*column];
                }
            }
        }
        for disk in self.disks.iter_mut().filter(|disk| !disk.seen) {
            disk.before = None;
        }
    }
}

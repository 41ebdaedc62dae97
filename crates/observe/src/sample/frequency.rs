//! How fast the CPUs run, and how often they were too hot for it.
//!
//! SystemTree: `Documentation/admin-guide/pm/cpufreq.rst`, "scaling_cur_freq" (kHz); `/proc/cpuinfo`, "cpu MHz", where a
//! host has no cpufreq; `Documentation/ABI/testing/sysfs-devices-system-cpu`, "core_throttle_count".

use super::counter::Counter;
use super::{Collector, Registry};
use crate::metric;
use kelvin_host::bytes::{decimal, first_number, lines, number, words};
use kelvin_host::{Buffer, KernelFile, SystemTree};

const DIRECTORY: &str = "/sys/devices/system/cpu";
const MEAN: (&str, &str, &str) = (metric::CPU_FREQUENCY, "MHz", "mean frequency of the CPUs now");
const LEAST: (&str, &str, &str) = ("host.cpu.total.frequency_min", "MHz", "frequency of the slowest CPU now");
const NOW: &str = "frequency now";

pub(super) fn register(source: &SystemTree, registry: &mut Registry, totals_only: bool) {
    let cpus = source.numbered(DIRECTORY, "cpu");
    let file = |cpu: u32, name: &str| source.open(format!("{DIRECTORY}/cpu{cpu}/{name}")).ok();
    let mut numbers = Vec::new();
    let (from, why) = {
        let found = cpus.iter().filter_map(|&cpu| Some((cpu, file(cpu, "cpufreq/scaling_cur_freq")?)));
        let files: Vec<KernelFile> = found
            .map(|(cpu, file)| {
                numbers.push(cpu);
                file
            })
            .collect();
        if files.is_empty() {
            let text = source.text("/proc/cpuinfo").unwrap_or_default();
            parse(text.as_bytes(), |cpu, _| numbers.push(cpu));
            let why = "no cpufreq in /sys/devices/system/cpu and no \"cpu MHz\" in /proc/cpuinfo: the \
                       kernel reports no frequencies";
            (
                source.open("/proc/cpuinfo").ok().filter(|_| !numbers.is_empty()).map(FrequencySource::Info),
                why,
            )
        } else {
            (Some(FrequencySource::Files(files)), "")
        }
    };
    match from {
        None => registry.absent(metric::CPU_FREQUENCY, why.into()),
        Some(from) => {
            let mut series: Vec<_> =
                [MEAN, LEAST].map(|(name, unit, help)| (name.to_owned(), unit, help)).into();
            if !totals_only {
                series.extend(numbers.iter().map(|cpu| (format!("host.cpu.{cpu}.frequency"), "MHz", NOW)));
            }
            registry.add(series, Frequency { from, numbers, totals_only });
        }
    }
    let throttled: Vec<_> =
        cpus.iter().filter_map(|&cpu| file(cpu, "thermal_throttle/core_throttle_count")).collect();
    if throttled.is_empty() {
        let why = "no thermal_throttle/core_throttle_count in /sys/devices/system/cpu: not an Intel CPU, or a virtual machine";
        return registry.absent(metric::CPU_THROTTLED, why.into());
    }
    let help = "thermal throttling events; each thread of a core counts";
    let counters = vec![Counter::default(); throttled.len()];
    let collector = Throttle { files: throttled, counters };
    registry.add(vec![(metric::CPU_THROTTLED.to_owned(), "1/s", help)], collector);
}

enum FrequencySource {
    Files(Vec<KernelFile>),
    Info(KernelFile),
}

struct Frequency {
    from: FrequencySource,
    /// The CPUs in the order of their series.
    numbers: Vec<u32>,
    totals_only: bool,
}

impl Collector for Frequency {
    fn sample(&mut self, buffer: &mut Buffer, _: f64, out: &mut [f64]) {
        let (mut sum, mut count, mut least) = (0.0, 0_u32, f64::INFINITY);
        let mut take = |at: usize, megahertz: f64| {
            sum += megahertz;
            count += 1;
            least = least.min(megahertz);
            if !self.totals_only {
                out[2 + at] = megahertz;
            }
        };
        match &self.from {
            FrequencySource::Files(files) => {
                for (i, file) in files.iter().enumerate() {
                    if let Some(kilohertz) = file.read(buffer).and_then(first_number) {
                        take(i, kilohertz as f64 / 1e3);
                    }
                }
            }
            FrequencySource::Info(file) => parse(file.read(buffer).unwrap_or_default(), |cpu, megahertz| {
                if let Ok(at) = self.numbers.binary_search(&cpu) {
                    take(at, megahertz);
                }
            }),
        }
        if count > 0 {
            out[0] = sum / f64::from(count);
            out[1] = least;
        }
    }
}

/// Each CPU of `/proc/cpuinfo` with its megahertz.
fn parse(text: &[u8], mut each: impl FnMut(u32, f64)) {
    let mut cpu = None;
    for line in lines(text) {
        if line.starts_with(b"processor") {
            cpu = value(line).and_then(number).and_then(|n| u32::try_from(n).ok());
        } else if line.starts_with(b"cpu MHz")
            && let (Some(cpu), Some(megahertz)) = (cpu, value(line).and_then(decimal))
        {
            each(cpu, megahertz);
        }
    }
}

/// What stands behind the colon.
fn value(line: &[u8]) -> Option<&[u8]> {
    let at = line.iter().position(|&b| b == b':')?;
    words(&line[at + 1..]).next()
}

struct Throttle {
    files: Vec<KernelFile>,
    counters: Vec<Counter>,
}

impl Collector for Throttle {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let (mut sum, mut known) = (0_u64, false);
        for (file, counter) in self.files.iter().zip(&mut self.counters) {
            if let Some(rise) = counter.strict(file.read(buffer).and_then(first_number)) {
                sum = sum.saturating_add(rise);
                known = true;
            }
        }
        if known {
            out[0] = sum as f64 / seconds;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_cpu_has_its_frequency() {
        let mut found = Vec::new();
        parse(b"processor\t: 0\ncpu MHz\t\t: 2596.124\n\nprocessor\t: 3\ncpu MHz\t\t: 800.5\n", |cpu, f| {
            found.push((cpu, f));
        });
        assert_eq!(found, [(0, 2596.124), (3, 800.5)]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "((processor|cpu MHz|\\PC)[\t :]{0,3}[0-9.]{0,22}\n?){0,20}", raw: Vec<u8>) {
            parse(text.as_bytes(), |_, _| {});
            parse(&raw, |_, _| {});
        }
    }
}

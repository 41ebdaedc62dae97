//! How long tasks that could run had to wait for a CPU: `/proc/schedstat`.
//!
//! SystemTree: `Documentation/scheduler/sched-stats.rst`: of a CPU's nine numbers the seventh is the time tasks ran, the
//! eighth the time they waited to run, both in nanoseconds; the same in versions 15 to 17.

use super::counter::{Counter, figure, ratio};
use super::{Collector, Registry};
use crate::metric;
use kelvin_host::bytes::{lines, number, words};
use kelvin_host::{Buffer, KernelFile, SystemTree};

const DELAY: &str = "seconds that tasks waited for a CPU, per second: the mean run queue length";
const SHARE: &str = "waiting for a CPU as a share of running and waiting";

struct RunQueue {
    file: KernelFile,
    cpus: Vec<(u32, Counter, Counter)>,
    totals_only: bool,
}

pub(super) fn register(source: &SystemTree, registry: &mut Registry, totals_only: bool) {
    let file = match source.open("/proc/schedstat") {
        Ok(file) => file,
        Err(why) => {
            let instead = "host.pressure.cpu.some shows how long any task waited, host.process.*.run_delay \
                           how long the sampled processes waited";
            return registry.absent(metric::RUN_QUEUE, format!("{why}; {instead}"));
        }
    };
    let text = source.text("/proc/schedstat").unwrap_or_default();
    let cpus: Vec<_> = lines(text.as_bytes())
        .filter_map(parse)
        .map(|(cpu, ..)| (cpu, Counter::default(), Counter::default()))
        .collect();
    if cpus.is_empty() {
        return registry.absent(metric::RUN_QUEUE, "/proc/schedstat lists no CPU".into());
    }
    let mut series = vec![
        (metric::RUN_QUEUE_DELAY.to_owned(), "s/s", DELAY),
        (metric::RUN_QUEUE_DELAY_SHARE.to_owned(), "ratio", SHARE),
    ];
    if !totals_only {
        series.extend(cpus.iter().map(|(cpu, ..)| (format!("host.run_queue.{cpu}.delay"), "s/s", DELAY)));
    }
    registry.add(series, RunQueue { file, cpus, totals_only });
}

impl Collector for RunQueue {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let text = self.file.read(buffer).unwrap_or_default();
        let mut found = lines(text).filter_map(parse).peekable();
        let (mut run, mut delay, mut known) = (0.0, 0.0, false);
        for (i, (cpu, runs, delays)) in self.cpus.iter_mut().enumerate() {
            while found.next_if(|(number, ..)| number < cpu).is_some() {}
            let now = found.next_if(|(number, ..)| number == cpu);
            let ran = runs.strict(now.map(|n| n.1));
            let delayed = delays.strict(now.map(|n| n.2));
            // A CPU that is offline has no queue.
            run += ran.unwrap_or(0) as f64;
            delay += delayed.unwrap_or(0) as f64;
            if !self.totals_only {
                out[2 + i] = figure(delayed) / 1e9 / seconds;
            }
            known |= delayed.is_some();
        }
        if known {
            out[0] = delay / 1e9 / seconds;
            out[1] = ratio(delay, run + delay);
        }
    }
}

/// A CPU's number, run time and delay.
fn parse(line: &[u8]) -> Option<(u32, u64, u64)> {
    let mut words = words(line.strip_prefix(b"cpu")?);
    let cpu = u32::try_from(number(words.next()?)?).ok()?;
    let run = number(words.nth(6)?)?;
    Some((cpu, run, number(words.next()?)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_seventh_and_eighth_number_count() {
        assert_eq!(parse(b"cpu3 0 0 1 2 3 4 500 60 7"), Some((3, 500, 60)));
        assert_eq!(parse(b"domain0 00000003 1 2 3 4 5 6 7 8 9"), None);
        assert_eq!(parse(b"cpu3 0 0 1 2 3 4 500"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(line in "(cpu[0-9]{0,12})?([ ]?([0-9]{1,22}|\\PC)){0,12}", raw: Vec<u8>) {
            let _ = (parse(line.as_bytes()), parse(&raw));
        }
    }
}

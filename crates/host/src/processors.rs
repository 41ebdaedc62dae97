//! CPU times from `/proc/stat`.

use crate::SystemTree;
use crate::bytes::{lines, number, words};

/// The places in [`cpu_times`] of the idle time, the time waiting for I/O, and the stolen time.
const IDLE: usize = 3;
const WAITING: usize = 4;
const STOLEN: usize = 7;
/// The place of the guests' time.
pub const GUEST: usize = 8;

/// The line of all CPUs, "cpu …", as none and its ticks, and that of a CPU, "cpu3 …", as its number and ticks:
/// user, nice, system, idle, iowait, irq, softirq, steal, and both kinds of guest time, which the
/// user and nice times include. Those that old kernels lack are zero. `None` for other lines.
pub fn cpu_times(line: &[u8]) -> Option<(Option<u32>, [u64; 9])> {
    let rest = line.strip_prefix(b"cpu")?;
    let mut words = words(rest);
    let cpu = match rest.first()? {
        b' ' => None,
        _ => Some(u32::try_from(number(words.next()?)?).ok()?),
    };
    let mut times = [0; 9];
    for (time, word) in times.iter_mut().zip(&mut words) {
        *time = number(word)?;
    }
    times[GUEST] = times[GUEST].saturating_add(words.next().and_then(number).unwrap_or(0));
    Some((cpu, times))
}

/// The number of CPUs online; `None` if the kernel does not list them.
pub fn online_cpus(tree: &SystemTree) -> Option<usize> {
    let text = tree.text("/proc/stat")?;
    let cpus = lines(text.as_bytes()).filter_map(cpu_times).filter(|(cpu, _)| cpu.is_some()).count();
    (cpus > 0).then_some(cpus)
}

/// Ticks of all CPUs since boot, by what the CPUs did: those of [`cpu_times`] without the guests'.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks([u64; 8]);

/// Shares of the ticks of all CPUs between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TickShares {
    /// A task ran, or would have run without the hypervisor.
    pub taken: f64,
    /// No task ran, and one of the CPU waited for I/O.
    pub waiting: f64,
    /// The hypervisor ran other guests.
    pub stolen: f64,
}

impl Ticks {
    /// The ticks now; `None` if the kernel does not show them.
    pub fn read(tree: &SystemTree) -> Option<Self> {
        Self::parse(&tree.text("/proc/stat")?)
    }

    /// Parses the first line of the file. Every kernel has the first four times.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.as_bytes();
        words(line).nth(4)?;
        let (None, [times @ .., _guests]) = cpu_times(line)? else { return None };
        times.iter().try_fold(0_u64, |sum, time| sum.checked_add(*time))?;
        Some(Self(times))
    }

    /// Ticks without a running task: idle, or waiting for I/O.
    pub fn idle(self) -> u64 {
        self.0[IDLE] + self.0[WAITING]
    }

    /// The shares since an earlier reading; `None` without a tick in between. A time that decreased, as the kernel's iowait
    /// can, counts as unchanged.
    pub fn shares_since(self, before: Self) -> Option<TickShares> {
        let mut rises = self.0;
        for (now, before) in rises.iter_mut().zip(before.0) {
            *now = now.saturating_sub(before);
        }
        let all: u64 = rises.iter().sum();
        let share = |ticks: u64| ticks as f64 / all as f64;
        (all > 0).then(|| TickShares {
            taken: share(all - rises[IDLE] - rises[WAITING]),
            waiting: share(rises[WAITING]),
            stolen: share(rises[STOLEN]),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_distinguished() {
        let parse = |text: &str| Ticks::parse(text).unwrap_or_default();
        let ticks = parse("cpu  100 5 20 800 50 3 2 20 7 0\ncpu0 1 2 3\nintr 5\n");
        assert_eq!((ticks, ticks.idle()), (Ticks([100, 5, 20, 800, 50, 3, 2, 20]), 850));
        let later = parse("cpu  140 5 20 825 45 3 2 55 7 0\n");
        let shares = TickShares { taken: 0.75, waiting: 0.0, stolen: 0.35 };
        assert_eq!((later.shares_since(ticks), ticks.shares_since(ticks)), (Some(shares), None));
        for wrong in [
            "",
            "cpu",
            "cpu ",
            "cpu  1 2 3",
            "cpu0 1 2 3 4 5 6 7 8",
            "cpu  1 2 3 4 5 6 7 x",
            "intr 1 2 3 4 5 6 7 8",
        ] {
            assert_eq!(Ticks::parse(wrong), None, "{wrong}");
        }
        assert_eq!(cpu_times(b"cpu17 1 2 3 4"), Some((Some(17), [1, 2, 3, 4, 0, 0, 0, 0, 0])));
        assert_eq!(cpu_times(b"cpu 1 2 3 4 5 6 7 8 9 10").map(|(_, times)| times[GUEST]), Some(19));
    }

    #[test]
    fn cpus_are_counted() {
        let root = std::env::temp_dir().join(format!("kelvin-host-cpus-{}", std::process::id()));
        std::fs::create_dir_all(root.join("proc")).unwrap();
        let text = "cpu  100 5 20 800 50 3 2 20 7 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n";
        std::fs::write(root.join("proc/stat"), text).unwrap();
        let cpus = online_cpus(&SystemTree::at(&root));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!((cpus, online_cpus(&SystemTree::at(&root))), (Some(2), None));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(cpu[0-9]{0,2}|\\PC)?([ ]?([0-9]{1,22}|\\PC)){0,12}", raw: Vec<u8>) {
            let _ = (cpu_times(text.as_bytes()), cpu_times(&raw));
            if let Some(ticks) = Ticks::parse(&text) {
                ticks.shares_since(Ticks::default());
            }
        }
    }
}

//! CPU use of the machine, by all its users together.

/// The counters of `/proc/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Machine {
    busy: u64,
    waiting: u64,
    all: u64,
}

/// Percent of the time of all CPUs; `None` if the kernel does not show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Use {
    pub(super) busy: Option<f64>,
    pub(super) waiting: Option<f64>,
}

impl Machine {
    pub(super) fn read() -> Self {
        std::fs::read_to_string("/proc/stat").ok().and_then(|text| Self::parse(&text)).unwrap_or_default()
    }

    /// The first line: user, nice, system, idle, iowait, irq, softirq, steal, in hundredths of a second.
    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let times: Vec<u64> = line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, waiting, irq, softirq, steal] = times.try_into().ok()?;
        let busy = user + nice + system + irq + softirq + steal;
        Some(Self { busy, waiting, all: busy + idle + waiting })
    }

    pub(super) fn since(&self, before: &Self) -> Use {
        let all = self.all.saturating_sub(before.all) as f64;
        // The kernel's iowait can decrease.
        let share =
            |now: u64, before: u64| (all > 0.0).then(|| 100.0 * now.saturating_sub(before) as f64 / all);
        Use { busy: share(self.busy, before.busy), waiting: share(self.waiting, before.waiting) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_passed() {
        let before = Machine::parse("cpu  100 0 100 700 100 0 0 0 0 0\ncpu0 1 2\n").unwrap();
        let after = Machine::parse("cpu  150 0 100 720 120 5 5 0 0 0\n").unwrap();
        assert_eq!(after.since(&before), Use { busy: Some(60.0), waiting: Some(20.0) });
        assert_eq!(before.since(&before), Use { busy: None, waiting: None });
        for text in ["", "cpu 1 2", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"] {
            assert_eq!(Machine::parse(text), None);
        }
    }
}

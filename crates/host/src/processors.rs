//! CPU times summed over all CPUs, from the first line of `/proc/stat`.

/// CPU ticks since boot. Guest time is part of user time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    /// The sum of all ticks.
    pub all: u64,
    /// Ticks without a running task: idle, or waiting for I/O.
    pub idle: u64,
    /// Ticks that the hypervisor gave to other guests.
    pub stolen: u64,
}

impl Ticks {
    /// Parses the file: user, nice, system, idle, iowait, irq, softirq, steal.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
        let mut fields = [0_u64; 8];
        for field in &mut fields {
            *field = words.next()?.parse().ok()?;
        }
        let all = fields.iter().try_fold(0_u64, |sum, field| sum.checked_add(*field))?;
        Some(Self { all, idle: fields[3] + fields[4], stolen: fields[7] })
    }

    /// Ticks in which a task ran, or would have run without the hypervisor.
    pub fn taken(self) -> u64 {
        self.all - self.idle
    }

    /// Ticks in which a task ran.
    pub fn busy(self) -> u64 {
        self.all - self.idle - self.stolen
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ticks_are_told_apart() {
        let ticks = Ticks::parse("cpu  100 5 20 800 50 3 2 20 7 0\ncpu0 1 2 3\nintr 5\n").unwrap_or_default();
        assert_eq!(ticks, Ticks { all: 1000, idle: 850, stolen: 20 });
        assert_eq!((ticks.taken(), ticks.busy()), (150, 130));
        for wrong in ["", "cpu  1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu  1 2 3 4 5 6 7 x"] {
            assert_eq!(Ticks::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: String) {
            if let Some(ticks) = Ticks::parse(&text) {
                ticks.busy();
            }
        }
    }
}

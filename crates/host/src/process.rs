//! Statistics of a process from `/proc/PID/stat`.

/// The fields after the name, which may contain blanks and parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// The state: "R", "S", "D", "T", "Z" and others.
    pub state: char,
    /// The parent process.
    pub parent: u32,
    /// CPU ticks in user and kernel mode, without child processes.
    pub ticks: u64,
    /// The start time in ticks since boot.
    pub started: u64,
}

impl ProcessStat {
    /// Parses the file. In proc(5) the state is field 3, the parent 4, user and system ticks 14 and 15, the
    /// start 22.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        let (user, system): (u64, u64) = (fields.nth(9)?.parse().ok()?, fields.next()?.parse().ok()?);
        let started = fields.nth(6)?.parse().ok()?;
        Some(Self { state, parent, ticks: user.checked_add(system)?, started })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_from_the_last_parenthesis() {
        let text = "42 (a) b (c) S 7 1 1 0 -1 4194304 1 2 3 4 100 23 5 6 20 0 1 0 8899 1000 2 3";
        let expected = ProcessStat { state: 'S', parent: 7, ticks: 123, started: 8899 };
        assert_eq!(ProcessStat::parse(text), Some(expected));
        assert_eq!(ProcessStat::parse("42 (a) S 7"), None);
        assert_eq!(ProcessStat::parse(""), None);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(7 \\(a\\) S)?([0-9]{1,20} ?){0,24}\\PC{0,9}") {
            ProcessStat::parse(&text);
        }
    }

    #[test]
    fn this_process_has_begun() {
        let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
        assert!(ProcessStat::parse(&text).is_some_and(|stat| stat.started > 0 && stat.parent > 0));
    }
}

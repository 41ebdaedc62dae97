//! Which I/Os have a separate priority (`cmdprio_percentage=`, `cmdprio_bssplit=`).

use kelvin_measure::Random;

use super::Request;
use super::blocking::chance;
use crate::Direction;
use crate::job::Job;

/// I/Os of a direction, and of a length if given, whose draw lies within these bounds.
#[derive(Debug, Clone, Copy)]
struct Rule {
    direction: Direction,
    length: Option<u32>,
    from: u64,
    to: u64,
    value: u16,
}

/// Draws priorities, and remembers those of the I/Os in flight.
#[derive(Debug)]
pub(super) struct Priorities {
    rules: Vec<Rule>,
    random: Random,
    /// By slot.
    drawn: Vec<Option<u16>>,
}

impl Priorities {
    /// For a depth; `stream` separates the engine's random numbers from others.
    pub(super) fn new(job: &Job, depth: u32, seed: u64, stream: u64) -> Self {
        let mut rules: Vec<Rule> = Vec::new();
        for one in &job.engine.command_priorities {
            let same = |rule: &&Rule| (rule.direction, rule.length) == (one.direction, one.length);
            let from = rules.iter().rev().find(same).map_or(0, |rule| rule.to);
            rules.push(Rule {
                direction: one.direction,
                length: one.length,
                from,
                to: from + chance(one.percent),
                value: one.value(),
            });
        }
        let drawn = if rules.is_empty() { Vec::new() } else { vec![None; depth as usize] };
        Self { rules, random: Random::part(seed, stream, 0), drawn }
    }

    /// The priority of an I/O that is about to be submitted, as `ioprio_set` takes it.
    #[inline]
    pub(super) fn draw(&mut self, request: &Request) -> Option<u16> {
        if self.rules.is_empty() { None } else { self.draw_one(request) }
    }

    fn draw_one(&mut self, request: &Request) -> Option<u16> {
        let number = u64::from(self.random.bits() as u32);
        let rule = self.rules.iter().find(|rule| {
            rule.direction == request.direction
                && rule.length.is_none_or(|length| length == request.length)
                && (rule.from..rule.to).contains(&number)
        });
        let value = rule.map(|rule| rule.value);
        if let Some(drawn) = self.drawn.get_mut(request.slot as usize) {
            *drawn = value;
        }
        value
    }

    /// The priority of the I/O in flight in a slot.
    pub(super) fn for_slot(&self, slot: u32) -> Option<u16> {
        self.drawn.get(slot as usize).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::CommandPriority;

    #[test]
    fn lengths_and_directions_have_their_shares() {
        let mut job = Job::named("a");
        let rule = |direction, length, percent, level| CommandPriority {
            direction,
            length,
            percent,
            class: 1,
            level,
            hint: 0,
        };
        job.engine.command_priorities = vec![
            rule(Direction::Read, Some(4096), 20.0, 1),
            rule(Direction::Read, Some(4096), 30.0, 2),
            rule(Direction::Write, None, 100.0, 3),
        ];
        let mut priorities = Priorities::new(&job, 1, 1, 2);
        let mut counts = [0_u32; 8];
        let mut none = 0;
        let request = |direction, length| Request {
            slot: 0,
            direction,
            target: 0,
            offset: 0,
            length,
            address: std::ptr::null_mut(),
        };
        for _ in 0..20_000 {
            match priorities.draw(&request(Direction::Read, 4096)) {
                Some(value) => counts[usize::from(value & 7)] += 1,
                None => none += 1,
            }
        }
        // Five standard deviations of a share of 20,000.
        for (count, share) in [(counts[1], 0.2), (counts[2], 0.3), (none, 0.5)] {
            let expected = 20_000.0 * share;
            assert!(
                (f64::from(count) - expected).abs() < 5.0 * (expected * (1.0 - share)).sqrt(),
                "{counts:?}"
            );
        }
        assert_eq!(priorities.draw(&request(Direction::Read, 8192)), None);
        assert_eq!(priorities.draw(&request(Direction::Write, 8192)), Some((1 << 13) | 3));
        assert_eq!(priorities.for_slot(0), Some((1 << 13) | 3));
    }
}

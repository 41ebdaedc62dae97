//! What the database's sessions were doing.

use std::collections::BTreeMap;

use kelvin_measure::observation::{Blocker, WaitGroup, WaitSamples};
use kelvin_measure::{Nanos, declare};

use super::Span;

/// Looks at sessions, in groups.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sessions {
    groups: Vec<WaitGroup>,
    taken: Vec<WaitSamples>,
    /// By time.
    blocking: Vec<(Nanos, Vec<Blocker>)>,
}

/// What sessions were doing over a stretch of time.
#[derive(Debug, Clone, Default)]
pub struct ActiveSessions {
    /// Looks taken.
    pub looks: u32,
    /// Average number of sessions in each state, the most first.
    pub groups: Vec<(WaitGroup, f64)>,
}

impl ActiveSessions {
    /// Average number of sessions in all states.
    pub fn sessions(&self) -> f64 {
        self.groups.iter().map(|(_, sessions)| sessions).sum()
    }

    /// Average number of sessions by what `key` says of their state, the most first.
    pub fn by<K: Ord>(&self, key: impl Fn(&WaitGroup) -> K) -> Vec<(K, f64)> {
        let mut sums: BTreeMap<K, f64> = BTreeMap::new();
        for (group, sessions) in &self.groups {
            *sums.entry(key(group)).or_default() += sessions;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by(|a, b| b.1.total_cmp(&a.1));
        sums
    }
}

impl Sessions {
    pub(crate) fn declare(&mut self, first: u32, groups: &[WaitGroup]) {
        declare(&mut self.groups, first, groups);
    }

    pub(crate) fn take(&mut self, waits: &WaitSamples) {
        self.taken.push(waits.clone());
    }

    pub(super) fn blocking(&mut self, at: Nanos, blockers: &[Blocker]) {
        self.blocking.push((at, blockers.to_vec()));
    }

    pub(super) fn blockers(&self, span: Span) -> &[(Nanos, Vec<Blocker>)] {
        let first = self.blocking.partition_point(|(at, _)| *at < span.from);
        let end = self.blocking.partition_point(|(at, _)| *at < span.to);
        self.blocking.get(first..end).unwrap_or(&[])
    }

    /// The events whose looks lie within the span by more than half.
    fn within(&self, span: Span) -> impl Iterator<Item = &WaitSamples> {
        let before = std::iter::once(None).chain(self.taken.iter().map(|waits| Some(waits.at)));
        self.taken.iter().zip(before).filter_map(move |(waits, before)| {
            let middle = before.map_or(waits.at, |before| before + waits.at.saturating_sub(before) / 2);
            (middle >= span.from && middle < span.to).then_some(waits)
        })
    }

    pub(crate) fn active(&self, span: Span, of: impl Fn(&WaitGroup) -> bool) -> ActiveSessions {
        let (mut looks, mut seen) = (0_u32, BTreeMap::<u32, u64>::new());
        for waits in self.within(span) {
            looks = looks.saturating_add(waits.looks);
            for (group, count) in &waits.seen {
                *seen.entry(*group).or_default() += u64::from(*count);
            }
        }
        let each = |(group, count): (u32, u64)| {
            let group = self.groups.get(group as usize).filter(|group| of(group))?;
            Some((group.clone(), count as f64 / f64::from(looks.max(1))))
        };
        let mut groups: Vec<_> = seen.into_iter().filter_map(each).collect();
        groups.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        ActiveSessions { looks, groups }
    }

    pub(super) fn rows(&self, span: Span) -> Vec<(String, f64)> {
        let (mut looks, mut sums) = (0_u32, BTreeMap::<&str, u64>::new());
        for waits in self.within(span) {
            looks = looks.saturating_add(waits.lock_looks);
            for (relation, count) in &waits.rows {
                *sums.entry(relation).or_default() += u64::from(*count);
            }
        }
        let mean =
            |(relation, count): (&str, u64)| (relation.to_owned(), count as f64 / f64::from(looks.max(1)));
        let mut rows: Vec<_> = sums.into_iter().map(mean).collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        rows
    }

    pub(super) fn over_time(&self) -> impl Iterator<Item = (Nanos, Vec<(&WaitGroup, f64)>)> {
        self.taken.iter().map(|waits| {
            let each = |(group, count): &(u32, u32)| {
                Some((self.groups.get(*group as usize)?, f64::from(*count) / f64::from(waits.looks.max(1))))
            };
            (waits.at, waits.seen.iter().filter_map(each).collect())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_looks_are_no_panic() {
        let mut sessions = Sessions::default();
        sessions.declare(0, &[WaitGroup::default()]);
        let waits = |at, looks| WaitSamples {
            at,
            looks,
            lock_looks: looks,
            seen: vec![(0, looks)],
            ..WaitSamples::default()
        };
        for waits in [waits(9, u32::MAX), waits(3, u32::MAX), waits(u64::MAX, 1), waits(4, 7)] {
            sessions.take(&waits);
        }
        let span = Span { from: 0, to: u64::MAX };
        assert_eq!(sessions.active(span, |_| true).looks, u32::MAX);
        assert_eq!(sessions.rows(span), []);
    }
}

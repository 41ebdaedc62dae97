//! The length of an I/O.

use kelvin_measure::Random;

use crate::job::{BlockSizes, Blocks, Job};
use crate::{Direction, PerDirection};

/// How often a length that does not fit is drawn again before it is cut.
const DRAWS: usize = 16;

/// The lengths of one direction, in bytes.
#[derive(Debug, Clone)]
pub(crate) enum Sizes {
    /// Always the same.
    One(u64),
    /// Multiples of the step from low to high.
    Range { low: u64, step: u64, count: u64 },
    /// Cumulative share and length, ascending.
    Split(Vec<(f64, u64)>),
}

impl Sizes {
    fn new(sizes: &BlockSizes, unaligned: bool) -> Self {
        match sizes {
            BlockSizes::One(size) => Self::One(u64::from(*size)),
            BlockSizes::Range(low, high) if low >= high => Self::One(u64::from(*low)),
            BlockSizes::Range(low, high) => {
                let (low, high) = (u64::from(*low), u64::from(*high));
                let step = if unaligned { 1 } else { low };
                Self::Range { low, step, count: (high - low) / step.max(1) + 1 }
            }
            BlockSizes::Split(parts) => {
                let whole: f64 = parts.iter().map(|part| part.1).sum();
                let mut sum = 0.0;
                let cumulative = parts.iter().map(|(size, percent)| {
                    sum += percent / whole;
                    (sum, u64::from(*size))
                });
                Self::Split(cumulative.collect())
            }
        }
    }

    /// The smallest length.
    pub(crate) fn smallest(&self) -> u64 {
        match self {
            Self::One(size) | Self::Range { low: size, .. } => *size,
            Self::Split(parts) => parts.iter().map(|part| part.1).min().unwrap_or(0),
        }
    }

    /// The length, if there is only one.
    pub(crate) fn one(&self) -> Option<u64> {
        match self {
            Self::One(size) => Some(*size),
            _ => None,
        }
    }

    /// Draws a length, whether it fits or not.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Self::One(size) => *size,
            Self::Range { low, step, count } => low + step * random.range(0, *count as i64 - 1) as u64,
            Self::Split(parts) => {
                let unit = random.unit();
                // Sums of shares may end a little below 1.
                parts.iter().find(|part| unit < part.0).or(parts.last()).map_or(0, |part| part.1)
            }
        }
    }

    /// Draws a length that fits into `room`; `None` if the smallest does not.
    #[inline]
    pub(crate) fn fitting(&self, random: &mut Random, room: u64) -> Option<u64> {
        if let Self::One(size) = self {
            return (*size <= room).then_some(*size);
        }
        if self.smallest() > room {
            return None;
        }
        (0..DRAWS).map(|_| self.draw(random)).find(|size| *size <= room).or_else(|| self.largest_within(room))
    }

    fn largest_within(&self, room: u64) -> Option<u64> {
        match self {
            Self::One(size) => (*size <= room).then_some(*size),
            Self::Range { low, step, count } => {
                Some(low + (room.checked_sub(*low)? / step).min(count - 1) * step)
            }
            Self::Split(parts) => parts.iter().map(|part| part.1).filter(|size| *size <= room).max(),
        }
    }
}

/// The lengths of a job.
#[derive(Debug, Clone)]
pub(crate) struct JobSizes {
    sequential: PerDirection<Sizes>,
    random: PerDirection<Sizes>,
}

impl JobSizes {
    pub(crate) fn new(blocks: &Blocks) -> Self {
        let of = |direction| Sizes::new(&blocks.sizes[direction], blocks.unaligned);
        if blocks.by_sequence {
            return Self {
                sequential: PerDirection::all(of(Direction::Read)),
                random: PerDirection::all(of(Direction::Write)),
            };
        }
        let sizes = PerDirection(Direction::ALL.map(of));
        Self { sequential: sizes.clone(), random: sizes }
    }

    #[inline]
    pub(crate) fn for_direction(&self, direction: Direction, random: bool) -> &Sizes {
        if random { &self.random[direction] } else { &self.sequential[direction] }
    }

    /// The sizes that a job can use.
    pub(crate) fn used<'a>(&'a self, job: &Job) -> impl Iterator<Item = &'a Sizes> {
        let (pattern, percentages) = (&job.pattern, job.pattern.percentage_random);
        let used: Vec<_> = Direction::ALL
            .into_iter()
            .filter(|direction| pattern.has(*direction))
            // A write after its trim has the same length.
            .filter(|direction| !pattern.trim_then_write || *direction == Direction::Trim)
            .flat_map(|direction| {
                let random = pattern.random && percentages[direction] > 0.0;
                let sequential =
                    !pattern.random || percentages[direction] < 100.0 || pattern.modifier.is_some();
                [(direction, true, random), (direction, false, sequential)]
            })
            .collect();
        used.into_iter()
            .filter(|(_, _, used)| *used)
            .map(|(direction, random, _)| self.for_direction(direction, random))
    }
}

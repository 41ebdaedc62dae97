//! Read, write, trim: what an I/O does, and values that there is one of for each.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// What an I/O does with the data. The numbers are those of fio's logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Direction {
    /// Data comes from the target.
    Read = 0,
    /// Data goes to the target.
    Write = 1,
    /// The target may discard the data.
    Trim = 2,
}

impl Direction {
    /// All of them, in the order of fio's comma triples.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// As fio writes it in its results.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Trim => "trim",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A value for each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PerDirection<T>(pub [T; 3]);

impl<T: Clone> PerDirection<T> {
    /// The same for all.
    pub fn all(value: T) -> Self {
        Self([value.clone(), value.clone(), value])
    }
}

impl<T> PerDirection<T> {
    /// The values with their directions.
    pub fn iter(&self) -> impl Iterator<Item = (Direction, &T)> {
        Direction::ALL.into_iter().zip(&self.0)
    }

    /// One value made of each.
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> PerDirection<U> {
        PerDirection(self.0.map(change))
    }
}

impl<T> Index<Direction> for PerDirection<T> {
    type Output = T;

    fn index(&self, direction: Direction) -> &T {
        &self.0[direction as usize]
    }
}

impl<T> IndexMut<Direction> for PerDirection<T> {
    fn index_mut(&mut self, direction: Direction) -> &mut T {
        &mut self.0[direction as usize]
    }
}

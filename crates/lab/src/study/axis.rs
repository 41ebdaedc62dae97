//! A factor as the design sees it: a name and its levels, whatever they change.

use crate::factor::Factor;

/// Maximum number of levels of one factor.
const MOST_LEVELS: usize = 64;

/// A factor's name and the names of its levels, the base level first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its levels, in the order of the file.
    pub levels: Vec<String>,
}

impl Axis {
    /// The axis of a valid factor.
    ///
    /// # Errors
    /// When it has more levels than a design supports.
    pub(super) fn of(factor: &Factor) -> Result<Self, String> {
        let levels: Vec<String> = factor.levels().into_iter().map(str::to_owned).collect();
        if levels.len() > MOST_LEVELS {
            return Err(format!(
                "factor \"{}\" has {} levels; at most {MOST_LEVELS} are allowed",
                factor.name(),
                levels.len()
            ));
        }
        Ok(Self { name: factor.name().into(), levels })
    }
}

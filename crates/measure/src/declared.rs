//! Metrics and states of sessions, which a stream declares by number before it refers to them.

/// A stream with more declarations than this is damaged.
pub const MOST_DECLARED: usize = 1_000_000;

/// Stores declarations at their numbers, from `first` on. Observers declare in any order: gaps are filled by later
/// declarations. Nothing is stored beyond [`MOST_DECLARED`].
pub fn declare<T: Clone + Default>(known: &mut Vec<T>, first: u32, new: &[T]) {
    let first = first as usize;
    let end = first + new.len();
    if end <= MOST_DECLARED {
        known.resize(known.len().max(end), T::default());
        known[first..end].clone_from_slice(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_declared_stands_at_its_number_and_no_number_takes_all_memory() {
        let mut known = Vec::new();
        declare(&mut known, 2, &["c", "d"]);
        declare(&mut known, 0, &["a"]);
        assert_eq!(known, ["a", "", "c", "d"]);
        declare(&mut known, u32::MAX, &["x"]);
        assert_eq!(known.len(), 4);
    }
}

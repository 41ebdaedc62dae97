//! The known name that was probably meant.

/// The known word that is nearest to what was written; none when all are far.
pub(crate) fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Longer than any word there is: not worth the square of its length.
    if written.len() > 64 {
        return None;
    }
    let written = written.to_ascii_lowercase().replace('-', "_");
    let far = (written.chars().count() / 3).max(1);
    known
        .map(|word| (distance(&written, &word.replace('-', "_")), word))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// `; did you mean "…"?` where there is a guess, nothing otherwise.
pub(crate) fn question<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(written, known).map(|word| format!("; did you mean {word:?}?")).unwrap_or_default()
}

/// How many letters have to be inserted, removed, replaced or swapped with their neighbour (Damerau and Levenshtein's
/// distance, where no letter is touched twice).
fn distance(one: &str, other: &str) -> usize {
    let one: Vec<char> = one.chars().collect();
    let other: Vec<char> = other.chars().collect();
    let mut before_last = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, b) in other.iter().enumerate() {
            let replaced = last[column] + usize::from(a != b);
            let mut least = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && *a == other[column - 1] && one[row - 1] == *b {
                least = least.min(before_last[column - 1] + 1);
            }
            current.push(least);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_guessed_and_nonsense_is_not() {
        let known = ["iodepth", "ioengine", "rw", "runtime", "hugepage-size"];
        for (written, guess) in [
            ("iodpeth", Some("iodepth")),
            ("IODEPTH", Some("iodepth")),
            ("io_engine", Some("ioengine")),
            ("rwx", Some("rw")),
            ("hugepage_size", Some("hugepage-size")),
            ("spindle", None),
        ] {
            assert_eq!(nearest(written, known.into_iter()), guess, "{written}");
        }
    }
}

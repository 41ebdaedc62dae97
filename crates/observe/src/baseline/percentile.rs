//! Percentiles of times, by nearest rank.

/// The time that a share `p` of them does not exceed; none when fewer than ten lie beyond it. Sorts them.
pub(super) fn percentile(times: &mut [u64], p: f64) -> Option<u64> {
    let n = times.len() as f64;
    if n * (1.0 - p) < 10.0 {
        return None;
    }
    times.sort_unstable();
    times.get((p * n).ceil() as usize - 1).copied()
}

/// The median of figures; none of none, or when one is no number.
pub(super) fn median(mut figures: Vec<f64>) -> Option<f64> {
    if figures.iter().any(|figure| !figure.is_finite()) {
        return None;
    }
    figures.sort_unstable_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => None,
        n if n % 2 == 1 => Some(figures[middle]),
        _ => Some(f64::midpoint(figures[middle - 1], figures[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_beyond_is_none() {
        let mut times: Vec<u64> = (1..=1000).rev().collect();
        assert_eq!((percentile(&mut times, 0.5), percentile(&mut times, 0.99)), (Some(500), Some(990)));
        assert_eq!(percentile(&mut times[..999], 0.99), None);
        assert_eq!(percentile(&mut [], 0.5), None);
    }

    #[test]
    fn the_middle_of_an_even_number_is_between_two() {
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!((median(vec![]), median(vec![1.0, f64::NAN])), (None, None));
    }
}

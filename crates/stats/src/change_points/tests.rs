use super::*;
use crate::bootstrap::Resampler;
use crate::dependence::autoregressive;

/// Levels of 100 times what is given, each for a number of values, with noise of 1 %.
fn history(levels: &[(f64, usize)], seed: u64) -> Vec<f64> {
    let mut random = Resampler::new(seed);
    let level = levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count));
    level.map(|level| 100.0 * level * (0.01 * random.normal()).exp()).collect()
}

fn indices(values: &[f64]) -> Vec<usize> {
    find(values, &Options::default()).iter().map(|point| point.index).collect()
}

#[test]
fn the_step_is_the_one_worked_by_hand() {
    // 1, 2, 4, 5 without dependence: around 3 and around 1.5 and 4.5, 10 and 1 are left; t² = 9/(1/2) with 2 degrees.
    let steps = Steps::from_values(&[1.0, 2.0, 4.0, 5.0], 0.0);
    assert_eq!(steps.largest(0..4), Some(2));
    let p = two_sided(18.0_f64.sqrt(), 2.0).unwrap();
    assert!((steps.p(0..4, 2) - p).abs() < 1e-12, "{} {p}", steps.p(0..4, 2));
    // φ = 0.5: a step of 1 in the third of five makes 0, 0, 1, 0.5, 0.5 of what is new, whatever lies before the range.
    let steps = Steps::from_values(&[9.0, 0.0, 0.0, 1.0, 1.0, 1.0], 0.5);
    assert_eq!((steps.largest(1..6), steps.p(1..6, 3)), (Some(3), 0.0));
    assert!(steps.p(1..6, 4) > 0.1);
    assert_eq!((steps.largest(1..3), steps.largest(0..0)), (None, None));
    assert_eq!(Steps::from_values(&[4.0; 10], 0.3).largest(0..10), None);
}

#[test]
fn a_step_is_found_where_it_is() {
    let (mut exact, mut near) = (0, 0);
    for seed in 0..50 {
        let found = indices(&history(&[(1.0, 40), (0.97, 30)], seed));
        exact += u32::from(found.contains(&40));
        near += u32::from(found.iter().any(|i| (38..=42).contains(i)));
    }
    assert!(exact >= 35 && near >= 49, "exact {exact}, near {near} of 50");
}

#[test]
fn a_passing_slowdown_is_two_points() {
    let both = (0..50)
        .filter(|seed| {
            let found = indices(&history(&[(1.0, 40), (0.95, 8), (1.0, 40)], *seed));
            found.iter().any(|i| (39..=41).contains(i)) && found.iter().any(|i| (47..=49).contains(i))
        })
        .count();
    assert!(both >= 47, "{both} of 50");
}

#[test]
fn a_long_history_of_many_levels_is_cut_into_them() {
    let levels = [(1.0, 60), (0.9, 70), (0.95, 55), (1.1, 80), (1.0, 35)];
    let values = history(&levels, 6);
    let found = find(&values, &Options::default());
    let near: Vec<bool> = [60_usize, 130, 185, 265]
        .iter()
        .map(|at| found.iter().any(|point| point.index.abs_diff(*at) <= 1))
        .collect();
    assert_eq!(near, [true; 4], "{found:?}");
    assert!((found[0].before - 100.0).abs() < 1.0 && (found[0].after - 90.0).abs() < 1.0);
    assert!(found.iter().all(|point| point.p < 0.001));
}

#[test]
fn noise_alone_seldom_has_a_change_point() {
    let alarms = (0..300).filter(|seed| !indices(&history(&[(1.0, 100)], 1000 + seed)).is_empty()).count();
    assert!((2..=20).contains(&alarms), "{alarms} of 300");
}

#[test]
fn a_change_too_small_to_matter_is_none() {
    let mut alone = 0;
    for seed in 0..20 {
        let values = history(&[(1.0, 40), (0.97, 40)], seed);
        let points = |magnitude: f64| find(&values, &Options { magnitude, ..Options::default() }).len();
        assert!(points(0.0) > 0);
        alone += u32::from(points(0.02) == 1);
        assert_eq!(points(0.06), 0);
    }
    assert!(alone >= 18, "{alone} of 20");
}

#[test]
fn what_never_varies_and_what_is_no_number_is_no_surprise() {
    assert!(indices(&[100.0; 80]).is_empty());
    let step: Vec<f64> = [100.0; 30].into_iter().chain([103.0; 10]).collect();
    assert_eq!(indices(&step), [30]);
    assert!(indices(&[]).is_empty() && indices(&[1.0, 2.0]).is_empty());
    assert!(indices(&[1.0, f64::NAN, 5.0, 5.0, 5.0]).is_empty());
}

/// How many of `histories` have a change point at all: `levels` in standard deviations of a noise with this φ.
fn found(
    levels: &[(f64, usize)],
    phi: f64,
    histories: usize,
    seed: u64,
    near: impl Fn(&[ChangePoint]) -> bool,
) -> usize {
    let mut random = Resampler::new(seed);
    let levels: Vec<f64> = levels.iter().flat_map(|(level, n)| std::iter::repeat_n(*level, *n)).collect();
    let history =
        |noise: Vec<f64>| -> Vec<f64> { noise.iter().zip(&levels).map(|(n, l)| 100.0 + n + l).collect() };
    (0..histories)
        .map(|_| history(autoregressive(levels.len(), phi, &mut random)))
        .filter(|values| near(&find(values, &Options::default())))
        .count()
}

#[test]
fn trial_a2_entries_that_resemble_their_neighbours_are_no_change() {
    // The full numbers: cargo xtask bench lab history.
    for phi in [0.0, 0.3, 0.5, 0.8] {
        let alarms = found(&[(0.0, 100)], phi, 200, 41, |points| !points.is_empty());
        assert!(alarms <= 14, "φ {phi}: {alarms} of 200");
    }
    let alarms = found(&[(0.0, 600)], 0.0, 30, 42, |points| !points.is_empty());
    assert!(alarms <= 4, "{alarms} of 30 long ones");
}

#[test]
fn trial_a2_a_step_is_found_among_entries_that_resemble_their_neighbours() {
    // 5 % where entries scatter by 1.5 %; and 3 % of independent ones that scatter by 1 %.
    let near = |points: &[ChangePoint]| points.iter().any(|point| point.index.abs_diff(50) <= 5);
    let dependent = found(&[(0.0, 50), (-3.33, 50)], 0.5, 100, 43, near);
    let independent = found(&[(0.0, 50), (-3.0, 50)], 0.0, 100, 44, near);
    assert!(dependent >= 90 && independent >= 97, "{dependent} {independent} of 100");
}

#[test]
fn a_step_is_placed_where_it_begins_among_entries_that_resemble_their_neighbours() {
    // 5 % where entries scatter by 2 %. With φ known 90 % lie within two entries; by the means of levels 78 % did.
    let two = |points: &[ChangePoint]| points.iter().any(|point| point.index.abs_diff(50) <= 2);
    let five = |points: &[ChangePoint]| points.iter().any(|point| point.index.abs_diff(50) <= 5);
    let levels = [(0.0, 50), (-2.5, 50)];
    let (two, five) = (found(&levels, 0.5, 200, 46, two), found(&levels, 0.5, 200, 46, five));
    assert!(two >= 160 && five >= 174, "{two} and {five} of 200");
}

#[test]
fn trial_a2_the_dependence_is_that_of_the_noise_and_not_of_the_steps() {
    let mut random = Resampler::new(45);
    for (phi, step, n) in
        [(0.0, 0.0, 100), (0.0, 8.0, 100), (0.5, 0.0, 100), (0.5, 8.0, 100), (0.8, 0.0, 300)]
    {
        let mean: f64 = (0..100)
            .map(|_| {
                let mut values = autoregressive(n, phi, &mut random);
                values.iter_mut().skip(n / 3).for_each(|value| *value += step);
                noise_phi(&values) / 100.0
            })
            .sum();
        // Never below 0, and a margin on top.
        assert!((phi - 0.02..phi + 0.09).contains(&mean), "φ {phi}, step {step}: {mean}");
    }
    assert_eq!((noise_phi(&[5.0; 40]), noise_phi(&[]), noise_phi(&[1.0, f64::NAN, 2.0])), (0.0, 0.0, 0.0));
}

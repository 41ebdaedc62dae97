use super::*;
use crate::bootstrap::Resampler;

/// The observations of a design in the order of its cells, all in one block, `values[i]` being the runs of cell i.
fn replicated(design: &Design, values: &[&[f64]]) -> Vec<Observation> {
    let cells = design.cells();
    assert_eq!(cells.len(), values.len());
    let of_cell = |(cell, values): (&Vec<usize>, &&[f64])| -> Vec<Observation> {
        values.iter().map(|value| Observation { cell: cell.clone(), block: 0, value: *value }).collect()
    };
    cells.iter().zip(values).flat_map(of_cell).collect()
}

fn close(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "{found} instead of {expected}");
}

fn effect_of<'a>(analysis: &'a Analysis, factors: &[usize]) -> &'a Effect {
    analysis.effects.iter().find(|effect| effect.factors == factors).unwrap()
}

#[test]
fn jains_memory_cache_and_processors() {
    // Jain 1991, chapter 17: memory A, cache B, processors C; y in the order of A fastest: 14 22 10 34 46
    // 58 50 86. q0 40, A 10, B 5, C 20, AB 5, AC 2, BC 3, ABC 1; SST 4512; 18, 4, 71, 4, 1, 2, 0 %.
    let design = Design::new(&[2, 2, 2]);
    let y = [14.0, 22.0, 10.0, 34.0, 46.0, 58.0, 50.0, 86.0];
    let observations: Vec<Observation> = (0..8)
        .map(|i| Observation { cell: vec![i & 1, i >> 1 & 1, i >> 2], block: 0, value: y[i] })
        .collect();
    let found = Analysis::from_observations(&design, &observations, 0.9).unwrap();
    let known: [(&[usize], f64); 8] = [
        (&[], 40.0),
        (&[0], 10.0),
        (&[1], 5.0),
        (&[2], 20.0),
        (&[0, 1], 5.0),
        (&[0, 2], 2.0),
        (&[1, 2], 3.0),
        (&[0, 1, 2], 1.0),
    ];
    assert_eq!(found.coded.len(), 8);
    for (coded, (factors, q)) in found.coded.iter().zip(known) {
        assert_eq!(
            (coded.factors.as_slice(), coded.low, coded.high),
            (factors, f64::NEG_INFINITY, f64::INFINITY)
        );
        close(coded.q, q, 1e-12);
        if !factors.is_empty() {
            let effect = effect_of(&found, factors);
            close(effect.sum_of_squares, 8.0 * q * q, 1e-9);
            close(effect.share, 8.0 * q * q / 4512.0, 1e-12);
            assert_eq!((effect.f, effect.p), (None, None));
        }
    }
    close(found.total.sum_of_squares, 4512.0, 1e-9);
    assert_eq!((found.error.degrees, found.total.degrees, found.blocks), (0, 7, None));
    let memory = effect_of(&found, &[0]);
    assert_eq!(memory.contrasts.len(), 1);
    assert_eq!(memory.contrasts[0].levels, [(0, 1)]);
    close(memory.contrasts[0].estimate, 20.0, 1e-12);
    close(memory.means[0].mean, 30.0, 1e-12);
    close(memory.means[1].mean, 50.0, 1e-12);
    // A difference of differences: 4q.
    close(effect_of(&found, &[0, 1]).contrasts[0].estimate, 20.0, 1e-12);
}

#[test]
fn jains_workstation_with_replications() {
    // Jain 1991, chapter 18: memory A and cache B, three runs a cell: q0 41, A 21.5, B 9.5, AB 5; SSE 102, SST 7032;
    // 78.88, 15.40, 4.27, 1.45 %; 90 % intervals ± 1.92.
    let design = Design::new(&[2, 2]);
    // Of cells (A, B): (0,0), (0,1), (1,0), (1,1).
    let runs: [&[f64]; 4] =
        [&[15.0, 18.0, 12.0], &[25.0, 28.0, 19.0], &[45.0, 48.0, 51.0], &[75.0, 75.0, 81.0]];
    let found = Analysis::from_observations(&design, &replicated(&design, &runs), 0.9).unwrap();
    for (coded, q) in found.coded.iter().zip([41.0, 21.5, 9.5, 5.0]) {
        close(coded.q, q, 1e-12);
        close(coded.high - q, 1.92, 0.01);
        close(q - coded.low, 1.92, 0.01);
    }
    close(found.error.sum_of_squares, 102.0, 1e-9);
    close(found.total.sum_of_squares, 7032.0, 1e-9);
    assert_eq!(found.error.degrees, 8);
    for (effect, share) in found.effects.iter().zip([0.7888, 0.1540, 0.0427]) {
        close(effect.share, share, 5e-5);
    }
    close(found.error.share, 0.0145, 5e-5);
    close(effect_of(&found, &[0]).f.unwrap(), 5547.0 / 12.75, 1e-9);
    assert!(effect_of(&found, &[0]).p.unwrap() < 1e-7);
    close(found.residuals.iter().sum::<f64>(), 0.0, 1e-9);
    // The interval of 2q is twice as wide.
    let contrast = &effect_of(&found, &[1]).contrasts[0];
    close(contrast.high - contrast.low, 4.0 * 1.92, 0.03);
}

#[test]
fn montgomerys_battery() {
    // Montgomery, Design and Analysis of Experiments, example 5.1: life of a battery by material and temperature, four
    // runs a cell: SS 10683.72, 39118.72, 9613.78, error 18230.75, total 77646.97; F 7.91, 28.97, 3.56.
    let design = Design::new(&[3, 3]);
    let runs: [&[f64]; 9] = [
        &[130.0, 155.0, 74.0, 180.0],
        &[34.0, 40.0, 80.0, 75.0],
        &[20.0, 70.0, 82.0, 58.0],
        &[150.0, 188.0, 159.0, 126.0],
        &[136.0, 122.0, 106.0, 115.0],
        &[25.0, 70.0, 58.0, 45.0],
        &[138.0, 110.0, 168.0, 160.0],
        &[174.0, 120.0, 150.0, 139.0],
        &[96.0, 104.0, 82.0, 60.0],
    ];
    let found = Analysis::from_observations(&design, &replicated(&design, &runs), 0.95).unwrap();
    let known = [(10683.72, 2, 7.91, 0.0020), (39118.72, 2, 28.97, 0.0000), (9613.78, 4, 3.56, 0.0186)];
    for (effect, (squares, degrees, f, p)) in found.effects.iter().zip(known) {
        close(effect.sum_of_squares, squares, 0.01);
        assert_eq!(effect.degrees, degrees);
        close(effect.f.unwrap(), f, 0.006);
        close(effect.p.unwrap(), p, 6e-5);
    }
    close(found.error.sum_of_squares, 18230.75, 0.01);
    close(found.total.sum_of_squares, 77646.97, 0.01);
    assert_eq!((found.error.degrees, found.total.degrees), (27, 35));
    assert!(found.coded.is_empty() && found.balanced);
    let interaction = effect_of(&found, &[0, 1]);
    assert_eq!((interaction.contrasts.len(), interaction.means.len()), (9, 9));
    // From the first material to the second and the first temperature to the second:
    // (119.75 − 155.75) − (57.25 − 134.75) = 41.5.
    assert_eq!(interaction.contrasts[0].levels, [(0, 1), (0, 1)]);
    close(interaction.contrasts[0].estimate, 41.5, 1e-9);
    let shares: f64 = found.effects.iter().map(|e| e.share).sum::<f64>() + found.error.share;
    close(shares, 1.0, 1e-12);
}

/// A 2 × 3 design in complete blocks of one run a cell.
fn in_blocks(blocks: u32, effect: f64, sd: f64, random: &mut Resampler) -> (Design, Vec<Observation>) {
    let design = Design::new(&[2, 3]);
    let mut observations = Vec::new();
    for block in 0..blocks {
        let level = 20.0 * random.normal();
        for cell in design.cells() {
            let value = 100.0 + level + effect * cell[0] as f64 + 3.0 * cell[1] as f64 + sd * random.normal();
            observations.push(Observation { cell, block, value });
        }
    }
    (design, observations)
}

#[test]
fn blocks_take_away_what_they_share() {
    let (design, observations) = in_blocks(6, 5.0, 1.0, &mut Resampler::new(3));
    let found = Analysis::from_observations(&design, &observations, 0.95).unwrap();
    let blocks = found.blocks.unwrap();
    assert_eq!((blocks.degrees, found.error.degrees), (5, 25));
    assert!(blocks.share > 0.8, "{blocks:?}");
    assert!(effect_of(&found, &[0]).p.unwrap() < 1e-6);
    let parts = found.effects.iter().map(|e| e.share).sum::<f64>() + blocks.share + found.error.share;
    close(parts, 1.0, 1e-12);
    // Without the blocks the same effect drowns.
    let without: Vec<Observation> =
        observations.iter().map(|o| Observation { block: 0, ..o.clone() }).collect();
    let without = Analysis::from_observations(&design, &without, 0.95).unwrap();
    close(effect_of(&without, &[0]).sum_of_squares, effect_of(&found, &[0]).sum_of_squares, 1e-6);
    assert!(effect_of(&without, &[0]).p.unwrap() > 0.05);
}

#[test]
fn least_squares_of_a_balanced_study_is_what_its_means_say() {
    let (design, observations) = in_blocks(4, 2.0, 1.0, &mut Resampler::new(9));
    let found = Analysis::from_observations(&design, &observations, 0.95).unwrap();
    let places: Vec<usize> = observations.iter().map(|o| design.place(&o.cell).unwrap()).collect();
    let blocks: Vec<usize> = observations.iter().map(|o| o.block as usize).collect();
    let values: Vec<f64> = observations.iter().map(|o| o.value).collect();
    let fit = Fit::unbalanced(&values, &places, &blocks, 6, 4).unwrap();
    let squares: f64 = fit.residuals.iter().map(|r| r * r).sum();
    close(squares, found.error.sum_of_squares, 1e-8);
    close(fit.blocks.unwrap().sum_of_squares, found.blocks.unwrap().sum_of_squares, 1e-7);
    let scale = Scale::from_error(&found.error, 0.95);
    for expected in &found.effects {
        let effect =
            effect(&design, &design.cells(), &fit, expected.factors.clone(), &found.error, &scale, &|s| s);
        close(effect.sum_of_squares, expected.sum_of_squares, 1e-8);
        for (contrast, expected) in effect.contrasts.iter().zip(&expected.contrasts) {
            close(contrast.estimate, expected.estimate, 1e-9);
            close(contrast.high, expected.high, 1e-8);
        }
    }
}

#[test]
fn void_runs_leave_an_answer_without_bias() {
    // Two of 24 runs are missing, and the levels of their blocks with them: least squares knows.
    let mut random = Resampler::new(12);
    let (mut covered, studies) = (0, 400);
    for _ in 0..studies {
        let (design, mut observations) = in_blocks(4, 5.0, 1.0, &mut random);
        observations.remove(13);
        observations.remove(2);
        let found = Analysis::from_observations(&design, &observations, 0.9).unwrap();
        assert!(!found.balanced);
        assert_eq!(found.error.degrees, 22 - 6 - 3);
        let contrast = &effect_of(&found, &[0]).contrasts[0];
        covered += u32::from(contrast.low <= 5.0 && 5.0 <= contrast.high);
    }
    // 360 ± 6.
    assert!((338..=380).contains(&covered), "{covered} of {studies}");
}

#[test]
fn no_effect_is_found_as_seldom_as_asked() {
    let mut random = Resampler::new(33);
    let alarms = (0..1000)
        .filter(|_| {
            let (design, observations) = in_blocks(3, 0.0, 1.0, &mut random);
            effect_of(&Analysis::from_observations(&design, &observations, 0.95).unwrap(), &[0]).p.unwrap()
                < 0.05
        })
        .count();
    assert!((30..=72).contains(&alarms), "{alarms} of 1000");
}

#[test]
fn what_cannot_be_analysed_is_refused() {
    let design = Design::new(&[2, 2]);
    let run = |cell: &[usize], block: u32, value: f64| Observation { cell: cell.to_vec(), block, value };
    let error = |design: &Design, observations: &[Observation]| {
        Analysis::from_observations(design, observations, 0.95).unwrap_err().to_string()
    };
    let all: Vec<Observation> = design.cells().iter().map(|cell| run(cell, 0, 1.0)).collect();
    assert!(error(&design, &all[..3]).contains("no valid run in the cells [[1, 1]]"));
    assert!(error(&design, &[run(&[0, 2], 0, 1.0)]).contains("observation 0: the cell [0, 2]"));
    assert!(error(&design, &[run(&[0], 0, 1.0)]).contains("is not in the design"));
    assert!(error(&design, &[run(&[0, 0], 0, f64::NAN)]).contains("not finite"));
    for levels in [&[][..], &[1, 2], &[0]] {
        assert!(error(&Design::new(levels), &[]).contains("at least two levels"));
        assert!(Design::new(levels).cells().is_empty());
    }
    let large = Design::new(&[usize::MAX, 3]);
    assert!(error(&large, &[]).contains("more than 1024") && large.cells().is_empty());
    assert!(
        Analysis::from_observations(&design, &all, 1.0).unwrap_err().to_string().contains("between 0 and 1")
    );
    // A = 0 in one block only, A = 1 in the other: they cannot be distinguished.
    let apart: Vec<Observation> =
        design.cells().iter().flat_map(|c| [run(c, c[0] as u32, 1.0), run(c, c[0] as u32, 2.0)]).collect();
    assert!(error(&design, &apart).contains("complete blocks"));
}

#[test]
fn a_study_without_any_scatter_has_certain_effects() {
    let design = Design::new(&[2, 2]);
    let runs: [&[f64]; 4] = [&[1.0, 1.0], &[2.0, 2.0], &[1.0, 1.0], &[2.0, 2.0]];
    let found = Analysis::from_observations(&design, &replicated(&design, &runs), 0.95).unwrap();
    let contrast = &effect_of(&found, &[1]).contrasts[0];
    assert_eq!((contrast.low, contrast.estimate, contrast.high), (1.0, 1.0, 1.0));
    assert_eq!((effect_of(&found, &[1]).f, effect_of(&found, &[1]).share), (None, 1.0));
    let same =
        Analysis::from_observations(&design, &replicated(&design, &[[3.0].as_slice(); 4]), 0.95).unwrap();
    assert_eq!((same.total.share, same.effects[0].share), (0.0, 0.0));
}

//! Results over options: bars of depth × jobs, and heat maps of block size × mix.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use kelvin_storage::Direction;

use super::Chart;
use super::draw::{COLOURS, SOFT, Stroke, WIDTH, header_height, legend, picture, rule, text, upright};
use super::measurements::{DirectionMeasurement, JobMeasurement, bytes};
use crate::chart::{number, ticks};
use kelvin_measure::text::{count, rate, significant, whole_unit};

const LEFT: f64 = 84.0;
const RIGHT: f64 = 28.0;
const HEIGHT: f64 = 280.0;

/// Values measured with the same options; their mean is drawn.
type Cells<X, Y> = BTreeMap<(X, Y), Vec<f64>>;

/// A value drawn for each direction: name, unit, and accessor.
type Figure = (&'static str, &'static str, fn(&DirectionMeasurement) -> Option<f64>);
const FIGURES: [Figure; 2] = [
    ("I/Os per second", "IOPS", |did| Some(did.iops)),
    ("mean completion time", "µs", |did| Some(did.mean? / 1e3)),
];

/// Bars of depth × jobs: a group for each depth, and a colour for each number of jobs.
pub(super) fn bars(all: &[JobMeasurement]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (what, unit, pick) in FIGURES {
        // Results that differ in other options are on separate charts.
        let mut groups: BTreeMap<(Direction, String), Cells<u64, u64>> = BTreeMap::new();
        for one in all {
            let (Some(depth), Some(jobs)) = (one.depth, one.jobs) else { continue };
            for did in &one.did {
                let Some(value) = pick(did) else { continue };
                let cells = groups.entry((did.direction, without(one, false))).or_default();
                cells.entry((depth, jobs)).or_default().push(value);
            }
        }
        let several = groups.iter().filter(|(_, cells)| cells.len() > 1);
        charts.extend(
            several.map(|((direction, other), cells)| bar_chart(*direction, other, (what, unit), cells)),
        );
    }
    charts
}

/// The options that are not on an axis, as text.
fn without(one: &JobMeasurement, is_map: bool) -> String {
    let mut words: Vec<String> = Vec::new();
    if is_map {
        words.extend(one.depth.map(|depth| format!("depth {depth}")));
        words.extend(one.jobs.map(|jobs| count(jobs, "job")));
        let order = one.pattern.as_ref().map(|p| if p.starts_with("rand") { "random" } else { "sequential" });
        words.extend(order.map(ToOwned::to_owned));
    } else {
        words.extend(one.pattern.clone());
        words.extend(one.mix.map(|mix| format!("{mix} % reads")));
        words.extend(one.block_size.as_ref().map(|size| format!("bs {size}")));
    }
    words.extend(one.others_in_words());
    words.push(one.version.clone());
    words.join(", ")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn repeats<X, Y>(cells: &Cells<X, Y>) -> Option<String> {
    let most = cells.values().map(Vec::len).max().unwrap_or(1);
    (most > 1).then(|| format!("means of up to {most} results"))
}

fn file_name(of: &str, direction: Direction, unit: &str, other: &str) -> String {
    let unit = if unit == "µs" { "clat" } else { "iops" };
    format!("{of}-{unit}-{direction}-{other}")
}

fn bar_chart(
    direction: Direction,
    other: &str,
    (what, unit): (&str, &str),
    cells: &Cells<u64, u64>,
) -> Chart {
    let depths: BTreeSet<u64> = cells.keys().map(|key| key.0).collect();
    let jobs: BTreeSet<u64> = cells.keys().map(|key| key.1).collect();
    let most = cells.values().map(|values| mean(values)).fold(0.0, f64::max);
    let marks = ticks(if most > 0.0 && most.is_finite() { most } else { 1.0 });
    let high = marks.last().copied().unwrap_or(most).max(most);
    let title = format!("{what} by depth and jobs, {direction}");
    let about: Vec<String> = [Some(other.to_owned()), repeats(cells)].into_iter().flatten().collect();
    let top = header_height(&about) + 6.0;
    let bottom = top + HEIGHT;
    let at_y = |value: f64| bottom - value / high * HEIGHT;
    let mut body = String::new();
    for mark in &marks {
        rule(&mut body, (LEFT, at_y(*mark)), (WIDTH - RIGHT, at_y(*mark)));
        text(&mut body, (LEFT - 8.0, at_y(*mark) + 4.0), "end", 11.0, SOFT, &number(*mark));
    }
    let group = (WIDTH - LEFT - RIGHT) / depths.len() as f64;
    let wide = (group * 0.8 / jobs.len() as f64).min(70.0);
    for (at, depth) in depths.iter().enumerate() {
        let middle = LEFT + (at as f64 + 0.5) * group;
        text(&mut body, (middle, bottom + 16.0), "middle", 12.0, SOFT, &depth.to_string());
        for (place, count) in jobs.iter().enumerate() {
            let Some(values) = cells.get(&(*depth, *count)) else { continue };
            let value = mean(values);
            let x = middle + (place as f64 - jobs.len() as f64 / 2.0) * wide;
            let _ = writeln!(
                body,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"><title>depth {depth}, {count} jobs: {} \
                 {unit}</title></rect>",
                x + 1.0,
                at_y(value),
                wide - 2.0,
                bottom - at_y(value),
                COLOURS[place % COLOURS.len()],
                significant(value)
            );
            if wide >= 34.0 {
                text(
                    &mut body,
                    (x + wide / 2.0, at_y(value) - 4.0),
                    "middle",
                    10.0,
                    SOFT,
                    &rate(Some(value)),
                );
            }
        }
    }
    text(
        &mut body,
        (f64::midpoint(LEFT, WIDTH - RIGHT), bottom + 36.0),
        "middle",
        12.0,
        SOFT,
        "I/O depth of each job",
    );
    upright(&mut body, (16.0, f64::midpoint(top, bottom)), &format!("{what}, {unit}"));
    let named = jobs.iter().enumerate().map(|(place, number)| {
        let name = count(*number, "job");
        (COLOURS[place % COLOURS.len()], Stroke::Full, name)
    });
    let end = legend(&mut body, bottom + 46.0, &named.collect::<Vec<_>>());
    Chart::new(&file_name("depth-jobs", direction, unit, other), &title, picture(&title, &about, end, &body))
}

/// Heat maps of block size × mix, if mix or pattern, and block size, were varied.
pub(super) fn maps(all: &[JobMeasurement]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (what, unit, pick) in FIGURES {
        let mut groups: BTreeMap<(Direction, String), Cells<u64, u64>> = BTreeMap::new();
        for one in all {
            let Some(size) = one.block_size.as_deref().and_then(bytes) else { continue };
            for did in &one.did {
                let Some(value) = pick(did) else { continue };
                // A job that only reads has a mix of 100 %.
                let alone = if did.direction == Direction::Read { 100.0 } else { 0.0 };
                let mix = (one.mix.unwrap_or(alone) * 1000.0) as u64;
                let cells = groups.entry((did.direction, without(one, true))).or_default();
                cells.entry((mix, size)).or_default().push(value);
            }
        }
        for ((direction, other), cells) in groups {
            let mixes: BTreeSet<u64> = cells.keys().map(|key| key.0).collect();
            let sizes: BTreeSet<u64> = cells.keys().map(|key| key.1).collect();
            if mixes.len() > 1 && sizes.len() > 1 {
                charts.push(map(direction, &other, (what, unit), &cells, (&mixes, &sizes)));
            }
        }
    }
    charts
}

fn map(
    direction: Direction,
    other: &str,
    (what, unit): (&str, &str),
    cells: &Cells<u64, u64>,
    (mixes, sizes): (&BTreeSet<u64>, &BTreeSet<u64>),
) -> Chart {
    let values = || cells.values().map(|values| mean(values));
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let title = format!("{what} by block size and mix, {direction}");
    let scale = format!(
        "{unit}: from {} (dark) to {} (bright); a cell without a number was not measured",
        significant(low),
        significant(high)
    );
    let about: Vec<String> =
        [Some(other.to_owned()), Some(scale), repeats(cells)].into_iter().flatten().collect();
    let top = header_height(&about) + 6.0;
    let wide = ((WIDTH - LEFT - RIGHT - 30.0) / sizes.len() as f64).min(140.0);
    let tall = 40.0;
    let mut body = String::new();
    // The largest share of reads is at the top.
    for (row, mix) in mixes.iter().rev().enumerate() {
        let y = top + row as f64 * tall;
        let share = number(*mix as f64 / 1000.0);
        text(&mut body, (LEFT + 20.0, y + tall / 2.0 + 4.0), "end", 12.0, SOFT, &format!("{share} %"));
        for (column, size) in sizes.iter().enumerate() {
            let x = LEFT + 30.0 + column as f64 * wide;
            let Some(values) = cells.get(&(*mix, *size)) else { continue };
            let value = mean(values);
            let share = if high > low { (value - low) / (high - low) } else { 0.5 };
            let (red, green, blue) = viridis(share);
            let _ = writeln!(
                body,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#{red:02x}{green:02x}{blue:02x}\"/>",
                wide - 2.0,
                tall - 2.0
            );
            let ink = ink_on((red, green, blue));
            text(
                &mut body,
                (x + wide / 2.0 - 1.0, y + tall / 2.0 + 4.0),
                "middle",
                12.0,
                ink,
                &significant(value),
            );
        }
    }
    let bottom = top + mixes.len() as f64 * tall;
    for (column, size) in sizes.iter().enumerate() {
        let x = LEFT + 30.0 + (column as f64 + 0.5) * wide;
        text(&mut body, (x, bottom + 16.0), "middle", 12.0, SOFT, &whole_unit(*size));
    }
    let middle = LEFT + 30.0 + sizes.len() as f64 * wide / 2.0;
    text(&mut body, (middle, bottom + 36.0), "middle", 12.0, SOFT, "block size");
    upright(&mut body, (16.0, f64::midpoint(top, bottom).max(top + 34.0)), "share of reads");
    Chart::new(
        &file_name("blocks-mix", direction, unit, other),
        &title,
        picture(&title, &about, bottom + 44.0, &body),
    )
}

/// Nine points of viridis (S. van der Walt and N. Smith, CC0). Its steps are perceptually uniform and its
/// lightness increases monotonically, so that it can also be read in greyscale.
const VIRIDIS: [[f64; 3]; 9] = [
    [68.0, 1.0, 84.0],
    [71.0, 44.0, 122.0],
    [59.0, 81.0, 139.0],
    [44.0, 113.0, 142.0],
    [33.0, 144.0, 141.0],
    [39.0, 173.0, 129.0],
    [92.0, 200.0, 99.0],
    [170.0, 220.0, 50.0],
    [253.0, 231.0, 37.0],
];

/// The contrast ratio of two luminances, as defined by WCAG 2.
fn contrast(a: f64, b: f64) -> f64 {
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// The relative luminance of a colour, 0 to 1, as defined by WCAG 2.
fn lightness((red, green, blue): (u8, u8, u8)) -> f64 {
    let linear = |part: u8| {
        let share = f64::from(part) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

/// Black or white, whichever has more contrast: at least 4.5 to 1 on any colour.
fn ink_on(ground: (u8, u8, u8)) -> &'static str {
    let ground = lightness(ground);
    if contrast(ground, 0.0) >= contrast(ground, 1.0) { "#000000" } else { "#ffffff" }
}

fn viridis(share: f64) -> (u8, u8, u8) {
    let place = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let below = (place.floor() as usize).min(VIRIDIS.len() - 2);
    let part = place - below as f64;
    let (from, to) = (VIRIDIS[below], VIRIDIS[below + 1]);
    let [red, green, blue] = [0, 1, 2].map(|at| (from[at] + (to[at] - from[at]) * part).round() as u8);
    (red, green, blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_read_on_every_cell() {
        assert_eq!([ink_on((255, 255, 255)), ink_on((0, 0, 0))], ["#000000", "#ffffff"]);
        for share in 0..=100 {
            let ground = viridis(f64::from(share) / 100.0);
            let ink = if ink_on(ground) == "#000000" { 0.0 } else { 1.0 };
            assert!(contrast(lightness(ground), ink) >= 4.5, "{share} %");
        }
    }
}

//! The part of a file or device that belongs to a worker.

use kelvin_measure::Random;

use crate::job::{Amount, Job};
use crate::{Direction, TargetKind};
use kelvin_measure::text::exact;

/// A worker's region in a target, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Region {
    pub begin: u64,
    pub length: u64,
}

/// A target before the layout.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExistingTarget {
    pub kind: TargetKind,
    /// Its size in bytes; for a file, its size when the worker's turn comes; `None` for targets without a size.
    pub size: Option<u64>,
    /// The total capacity of its filesystem, in bytes.
    pub capacity: u64,
}

/// The smallest block of a job, in bytes. Percentages are rounded to it.
pub(super) fn smallest_block(job: &Job) -> u64 {
    Direction::ALL.iter().map(|d| u64::from(job.blocks.sizes[*d].smallest())).min().unwrap_or(1).max(1)
}

/// The region of a clone in its file number `index` of `count`; the error, if none is possible. Sizes follow fio.
/// `size` is divided among the files; if it does not divide evenly, the first files get a block more. With `filesize`,
/// files are as large as it specifies, existing files within its range are unchanged, and `size` is the amount of them
/// that is moved. Percentages are of the target's present size, or of the size by `filesize`.
pub(super) fn region(
    job: &Job,
    clone: u32,
    (index, count): (usize, usize),
    found: ExistingTarget,
    random: &mut Random,
) -> std::result::Result<Region, String> {
    let targets = &job.targets;
    let block = smallest_block(job);
    let size = found.size.unwrap_or(0);
    let share = match targets.size {
        Some(Amount::Bytes(all)) => share(all, index, count, block),
        _ => 0,
    };
    let begin = begin(job, clone, found, if size > 0 { size } else { share }, block)?;
    let behind = |size: u64| {
        size.checked_sub(begin)
            .filter(|rest| *rest > 0)
            .ok_or_else(|| format!("offset={} is at or beyond its end: it has {}", exact(begin), exact(size)))
    };
    let whole = whole_file(targets.file_size, size, block, random);
    let length = match (targets.fills(), whole) {
        (true, _) if found.kind == TargetKind::Block => behind(size)?,
        (true, _) => found.capacity.max(size),
        (_, Some(whole)) => behind(whole)?,
        (_, None) if share > 0 => share,
        (_, None) if size == 0 => return Err(unsized_problem(targets.size, found.kind)),
        (_, None) => behind(size)?,
    };
    let length = match targets.size {
        Some(percent @ Amount::Percent(_)) => {
            let whole = begin + length;
            let part = percent.bytes_of(whole).unwrap_or(0).min(length);
            if part == whole { part } else { part - part % block }
        }
        Some(Amount::Zones(_)) => {
            return Err("sizes in zones need zoned devices, which are not supported".into());
        }
        _ => length,
    };
    // The size of a device is fixed: a region extends to its end at most, as with fio.
    let length = if found.kind == TargetKind::Block { length.min(behind(size)?) } else { length };
    Ok(Region { begin, length })
}

/// The size of a file by `filesize=`; `None` without it.
fn whole_file(range: Option<(u64, u64)>, size: u64, block: u64, random: &mut Random) -> Option<u64> {
    let (low, high) = range?;
    if (low..=high).contains(&size) {
        return Some(size);
    }
    if low == high {
        return Some(low);
    }
    let drawn = random.range(low as i64, high as i64) as u64;
    Some((drawn - drawn % block).max(low))
}

fn unsized_problem(size: Option<Amount>, kind: TargetKind) -> String {
    let problem = match kind {
        TargetKind::File => "it does not exist or is empty: give its size with size=",
        _ => "its size is unknown: give size=",
    };
    match size {
        Some(Amount::Percent(_)) => format!("size= in percent needs an existing size, but {problem}"),
        _ => problem.to_owned(),
    }
}

/// The share of one of several files in `all` bytes.
fn share(all: u64, index: usize, count: usize, block: u64) -> u64 {
    let count = count.max(1) as u64;
    let each = all / count;
    let more = (all - each * count) / block;
    each + if (index as u64) < more { block } else { 0 }
}

fn begin(
    job: &Job,
    clone: u32,
    found: ExistingTarget,
    whole: u64,
    block: u64,
) -> std::result::Result<u64, String> {
    let targets = &job.targets;
    if targets.append && found.kind == TargetKind::File {
        return Ok(found.size.unwrap_or(0));
    }
    let zones = || "offsets in zones need zoned devices, which are not supported".to_owned();
    let offset = targets.offset.bytes_of(whole).ok_or_else(zones)?;
    let increment = targets.offset_increment.bytes_of(whole).ok_or_else(zones)?;
    let begin = increment
        .checked_mul(u64::from(clone))
        .and_then(|far| far.checked_add(offset))
        .ok_or("offset_increment= is too large")?;
    let is_percent = |amount| matches!(amount, Amount::Percent(percent) if percent > 0.0);
    if !is_percent(targets.offset) && !is_percent(targets.offset_increment) {
        return Ok(begin);
    }
    // Only a calculated offset is rounded to a boundary, upwards.
    let align = if targets.offset_align > 0 { targets.offset_align } else { block };
    begin.checked_next_multiple_of(align).ok_or_else(|| "offset_align= is too large".into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_make_up_the_whole_but_for_less_than_a_block_a_file(
            all in 0_u64..1 << 40, count in 1_usize..100, block in 1_u64..1 << 20,
        ) {
            let sum: u64 = (0..count).map(|index| share(all, index, count, block)).sum();
            prop_assert!(sum <= all);
            prop_assert!(all - sum < block.max(count as u64) + block);
        }
    }

    #[test]
    fn the_first_files_get_the_blocks_that_do_not_divide() {
        let shares: Vec<u64> = (0..3).map(|index| share(12 * 4096, index, 3, 4096)).collect();
        assert_eq!(shares, [16384; 3]);
        let shares: Vec<u64> = (0..4).map(|index| share(42, index, 4, 1)).collect();
        assert_eq!(shares, [11, 11, 10, 10]);
    }
}

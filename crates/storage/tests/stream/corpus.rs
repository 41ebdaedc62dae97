//! Every job of the corpus of job files: the offsets, lengths and directions of its I/Os are those of its options. The
//! effect of distributions and modifiers on offsets is tested separately, with more I/Os, in the other files here.

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use kelvin_stats::kolmogorov;
use kelvin_storage::job::{BlockSizes, Distribution, Job};
use kelvin_storage::stream::IoSource;
use kelvin_storage::{Direction, Io, jobfile};

use crate::statistics::chi_squared;
use crate::support::{many, targets};

/// Long enough that few I/Os hit an offset that was used before.
const LENGTH: u64 = 16 << 30;
/// I/Os per job.
const COUNT: usize = 2000;
/// Several hundred values are tested, each of which may be improbable once.
const UNLIKELY: f64 = 1e-6;

fn corpus() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fio/tests/jobs");
    let files = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|name| name == "fio")).collect();
    files.sort();
    files
}

/// The directions have the requested mix.
fn directions(job: &Job, ios: &[Io]) {
    let of = |direction| ios.iter().filter(|io| io.direction == direction).count();
    let counts = Direction::ALL.map(of);
    let pattern = &job.pattern;
    if pattern.trim_then_write {
        let [reads, writes, trims] = counts;
        assert!(reads == 0 && writes.abs_diff(trims) <= 1, "{counts:?}");
        return;
    }
    for (direction, count) in Direction::ALL.into_iter().zip(counts) {
        // Trims of written blocks are additional.
        let among = direction == Direction::Trim && job.trims.percentage > 0.0;
        assert!(pattern.has(direction) || among || count == 0, "{counts:?}");
    }
    if pattern.reads && pattern.changes_data() {
        let all = (counts[0] + if pattern.writes { counts[1] } else { counts[2] }) as f64;
        let share = pattern.mix_read / 100.0;
        let deviation = (all * share * (1.0 - share)).sqrt();
        assert!((counts[0] as f64 - all * share).abs() <= 5.0 * deviation, "{counts:?} at {share}");
    }
}

/// The lengths of each direction have the requested distribution.
fn lengths(job: &Job, ios: &[Io]) {
    // Sizes in order instead of by direction are tested separately.
    if job.blocks.by_sequence {
        return;
    }
    for direction in Direction::ALL.into_iter().filter(|direction| job.pattern.has(*direction)) {
        let all: Vec<u32> = ios.iter().filter(|io| io.direction == direction).map(|io| io.length).collect();
        if all.len() < 200 {
            continue;
        }
        let sizes = &job.blocks.sizes[if job.pattern.trim_then_write { Direction::Trim } else { direction }];
        let p = match sizes {
            BlockSizes::One(size) => {
                assert!(all.iter().all(|length| length == size), "{direction}s of {size} bytes");
                continue;
            }
            BlockSizes::Range(least, most) if job.blocks.unaligned => {
                let span = f64::from(most - least + 1);
                let parts: Vec<f64> =
                    all.iter().map(|length| (f64::from(length - least) + 0.5) / span).collect();
                kolmogorov::one_sample(&parts, |x| x).unwrap().p
            }
            BlockSizes::Range(least, most) => {
                let mut seen = vec![0; (most / least) as usize];
                for length in &all {
                    assert!(length % least == 0, "{length} is no multiple of {least}");
                    seen[(length / least) as usize - 1] += 1;
                }
                chi_squared(&seen, &vec![1.0; seen.len()], seen.len() as u64 - 1)
            }
            BlockSizes::Split(parts) => {
                let mut wanted: Vec<(u32, f64)> = Vec::new();
                for (size, share) in parts.iter().filter(|part| part.1 > 0.0) {
                    match wanted.iter_mut().find(|known| known.0 == *size) {
                        Some(known) => known.1 += share,
                        None => wanted.push((*size, *share)),
                    }
                }
                let of = |size: u32| all.iter().filter(|length| **length == size).count() as u64;
                let seen: Vec<u64> = wanted.iter().map(|part| of(part.0)).collect();
                // If each block occurs once, a length that does not fit between used blocks is cut, as in fio.
                let (least, most) = wanted
                    .iter()
                    .fold((u32::MAX, 0), |(least, most), part| (least.min(part.0), most.max(part.0)));
                let others: Vec<u32> = all
                    .iter()
                    .copied()
                    .filter(|length| !wanted.iter().any(|part| part.0 == *length))
                    .collect();
                assert!(
                    others.iter().all(|length| *length < most && length % least == 0)
                        && others.len() * 50 <= all.len(),
                    "no other lengths than {wanted:?} but cut ones: {others:?}"
                );
                if seen.len() < 2 {
                    continue;
                }
                let shares: Vec<f64> = wanted.iter().map(|part| part.1).collect();
                chi_squared(&seen, &shares, seen.len() as u64 - 1)
            }
        };
        assert!(p > UNLIKELY, "{direction}s of {sizes:?}: {p}");
    }
}

/// Offsets are sequential, or uniformly distributed. Returns whether this test can decide that.
fn places(job: &Job, ios: &[Io], files: usize) -> bool {
    let pattern = &job.pattern;
    let plain = pattern.modifier.is_none() && pattern.zones.is_none() && !pattern.trim_then_write;
    if !plain || job.trims.percentage > 0.0 {
        return false;
    }
    if !pattern.random {
        // Each direction proceeds separately through a file.
        let mut ends = vec![[None; 3]; files];
        for io in ios {
            let end = &mut ends[io.target as usize][io.direction as usize];
            assert!(end.is_none_or(|end| end == io.offset), "{io:?} does not follow {end:?}");
            *end = Some(io.offset + u64::from(io.length));
        }
        return true;
    }
    let even = pattern.distribution.0.iter().all(|distribution| *distribution == Distribution::Uniform);
    if !even || pattern.percentage_random.0.iter().any(|share| *share < 100.0) {
        return false;
    }
    for file in 0..files as u32 {
        let of_file = ios.iter().filter(|io| io.target == file);
        let parts: Vec<f64> = of_file.map(|io| (io.offset as f64 + 2048.0) / LENGTH as f64).collect();
        if parts.len() >= 200 {
            let p = kolmogorov::one_sample(&parts, |x| x).unwrap().p;
            assert!(p > UNLIKELY, "places in file {file}: {p}");
        }
    }
    true
}

/// Whether the offsets could be checked, too.
fn offsets_checked(job: &Job) -> bool {
    let files = job.targets.filenames.len().max(job.targets.files as usize).clamp(1, 16);
    let over = targets(&vec![LENGTH; files]);
    let ios = many(&mut IoSource::new(job, 0, &over, 42).unwrap(), COUNT);
    for io in &ios {
        assert!(io.offset + u64::from(io.length) <= LENGTH && io.length > 0, "{io:?}");
    }
    directions(job, &ios);
    lengths(job, &ios);
    places(job, &ios, files)
}

#[test]
fn every_job_does_what_its_options_say() {
    let (mut looked, mut placed) = (0, 0);
    for path in corpus() {
        for mut job in jobfile::parse_file(&path, &[]).unwrap().jobs {
            if job.replay.is_some() {
                continue;
            }
            // Repeatable in every run of the test.
            job.pattern.repeatable = true;
            // The failed assertion describes the error; this adds the job.
            let checked = catch_unwind(|| offsets_checked(&job));
            assert!(checked.is_ok(), "{} [{}]", path.display(), job.name);
            placed += u32::from(checked.unwrap_or_default());
            looked += 1;
        }
    }
    assert!(looked >= 100 && placed >= 60, "{looked}, {placed}");
}

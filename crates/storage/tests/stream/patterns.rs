//! The kinds of `rw=`, and the options that change their order.

use kelvin_storage::Direction;
use kelvin_storage::stream::IoSource;

use crate::statistics::chi_squared;
use crate::support::{KIB, MIB, describe_ios, ios, job, many, offsets, pass, source, targets};

/// Passes of fio 3.33 with the same options (`write_iolog`), without random choices.
#[test]
fn sequential_passes_are_fios() {
    for (options, kib, expected) in [
        ("rw=read", 10, "r0 r4"),
        ("rw=write", 16, "w0 w4 w8 w12"),
        ("rw=trim", 8, "t0 t4"),
        ("rw=trimwrite", 12, "t0 w0 t4 w4 t8 w8"),
        ("rw=read:8k", 64, "r0 r12 r24 r36 r48 r60"),
        ("rw=write fsync=2 fdatasync=3", 32, "w0 w4 sync w8 datasync w12 sync w16 w20 sync w24 w28 sync"),
        ("rw=write sync_file_range=write:2", 16, "w0 w4 range2 w8 w12 range2"),
        (
            "rw=read zonemode=strided zonesize=16k zoneskip=16k zonerange=16k",
            64,
            "r0 r4 r8 r12 r32 r36 r40 r44 r0 r4 r8 r12 r32 r36 r40 r44",
        ),
        (
            "rw=read zonemode=strided zonesize=16k zoneskip=16k zonerange=8k",
            48,
            "r0 r4 r0 r4 r24 r28 r24 r28 r0 r4 r0 r4",
        ),
        // The last zone is shorter: it gets no more bytes than its length, and the first follows.
        (
            "rw=read zonemode=strided zonesize=8k zonerange=16k zoneskip=4k",
            44,
            "r0 r4 r20 r24 r40 r0 r4 r20 r24 r40 r0",
        ),
    ] {
        assert_eq!(describe_ios(&pass(&mut source(options, kib * KIB))), expected, "{options}");
    }
}

#[test]
fn going_backwards_begins_again_at_the_end() {
    let mut source = source("rw=read:-8k", 32 * KIB);
    assert_eq!(describe_ios(&pass(&mut source)), "r0 r24 r20 r16 r12 r8 r4 r0");
}

#[test]
fn a_map_draws_each_block_once_a_pass_whatever_the_direction() {
    for options in [
        "rw=randread",
        "rw=randwrite",
        "rw=randtrim",
        "rw=randrw rwmixread=30",
        "rw=randread random_generator=lfsr",
        "rw=randread random_generator=lfsr norandommap=1",
        "rw=randread random_generator=tausworthe64",
        "rw=randread randrepeat=0",
        "rw=randread bssplit=4k/100",
        "rw=randread softrandommap=1",
    ] {
        let mut source = source(options, 5 * MIB + 1000);
        for _ in 0..3 {
            let mut all = offsets(&ios(&mut source));
            assert!(all.windows(2).any(|pair| pair[0] > pair[1]), "{options}");
            all.sort_unstable();
            assert!(all.into_iter().eq((0..1280).map(|block| block * 4 * KIB)), "{options}");
            source.restart();
        }
        assert_eq!(source.pass_bytes() / 4096 * 4096, 5 * MIB);
    }
}

#[test]
fn each_place_is_trimmed_and_then_written() {
    let mut source = source("rw=randtrimwrite", MIB);
    let all = ios(&mut source);
    assert_eq!((all.len(), source.pass_bytes()), (512, 2 * MIB));
    for pair in all.chunks(2) {
        assert_eq!((pair[0].direction, pair[1].direction), (Direction::Trim, Direction::Write));
        assert_eq!((pair[0].offset, pair[0].length), (pair[1].offset, pair[1].length));
    }
    let mut trims: Vec<u64> = all.iter().step_by(2).map(|io| io.offset).collect();
    trims.sort_unstable();
    assert!(trims.into_iter().eq((0..256).map(|block| block * 4 * KIB)));
}

#[test]
fn a_seed_gives_the_same_again_and_clones_differ() {
    for options in ["rw=randread", "rw=randread norandommap=1", "rw=randrw bssplit=4k/60:8k/40", "rw=read"] {
        let job = job(options);
        let new = |clone, seed| IoSource::new(&job, clone, &targets(&[4 * MIB]), seed).unwrap();
        let first = ios(&mut new(0, 1));
        assert_eq!(first, ios(&mut new(0, 1)), "{options}");
        if options != "rw=read" {
            assert_ne!(first, ios(&mut new(0, 2)), "{options}");
            assert_ne!(first, ios(&mut new(1, 1)), "{options}");
            assert_ne!(ios(&mut new(7, 1)), ios(&mut new(8, 1)), "{options}");
        }
        // A second pass repeats the first.
        let mut again = new(0, 1);
        assert_eq!(ios(&mut again), first);
        again.restart();
        assert_eq!(ios(&mut again), first, "{options}");
        // Also if the first was not completed.
        again.restart();
        let _ = again.next();
        again.restart();
        assert_eq!(ios(&mut again), first, "{options}");
    }
    // Jobs with different names differ, workers with the same randseed differ by their positions, and unrepeatable
    // streams differ.
    let all = |options: &str, name: &str, seed| {
        let mut job = job(options);
        job.name = name.into();
        ios(&mut IoSource::new(&job, 0, &targets(&[MIB]), seed).unwrap())
    };
    assert_ne!(all("rw=randread", "a", 1), all("rw=randread", "b", 1));
    assert_eq!(all("rw=randread randseed=9", "a", 1), all("rw=randread randseed=9", "a", 1));
    assert_ne!(all("rw=randread randseed=9", "a", 1), all("rw=randread randseed=9", "a", 2));
    assert_ne!(all("rw=randread randseed=9", "a", 1), all("rw=randread randseed=8", "a", 1));
    assert_ne!(all("rw=randread randrepeat=0", "a", 1), all("rw=randread randrepeat=0", "a", 1));
}

#[test]
fn passes_that_need_not_repeat_are_others() {
    for options in ["rw=randread randrepeat=0", "rw=randrw randrepeat=0 bsrange=4k-16k"] {
        let mut source = source(options, MIB);
        let first = ios(&mut source);
        source.restart();
        assert_ne!(ios(&mut source), first, "{options}");
    }
}

#[test]
fn a_mix_has_its_share_of_reads() {
    for (options, share) in [
        ("rw=rw", 0.5),
        ("rw=randrw rwmixread=70", 0.7),
        ("rw=randrw rwmixwrite=90", 0.1),
        ("rw=rw rwmixread=100", 1.0),
    ] {
        let all = many(&mut source(options, 64 * MIB), 16_000);
        let reads = all.iter().filter(|io| io.direction == Direction::Read).count() as u64;
        let weights = [share, 1.0 - share];
        let p = chi_squared(&[reads, 16_000 - reads], &weights, 1);
        assert!(p > 1e-4, "{options}: {reads}");
        // Each direction is independent of the previous one.
        let twice = all.windows(2).filter(|pair| pair[0].direction == pair[1].direction).count() as f64;
        let expected = (share * share + (1.0 - share) * (1.0 - share)) * 15_999.0;
        assert!((twice - expected).abs() < 400.0, "{options}: {twice} of {expected}");
    }
    // Each direction of a sequential mix proceeds separately through the file.
    let all = ios(&mut source("rw=rw", MIB));
    for direction in [Direction::Read, Direction::Write] {
        let own: Vec<u64> = all.iter().filter(|io| io.direction == direction).map(|io| io.offset).collect();
        assert!(own.iter().copied().eq((0..own.len() as u64).map(|block| block * 4 * KIB)));
    }
    assert_eq!(all.len(), 256);
}

#[test]
fn a_number_behind_random_makes_runs() {
    let all = offsets(&ios(&mut source("rw=randread:8", 64 * MIB)));
    assert_eq!(all.len(), 16_384);
    let seeks = all.windows(2).filter(|pair| pair[1] != pair[0] + 4 * KIB).count();
    // A run that reaches the end of the region is cut.
    assert!((2040..2060).contains(&seeks), "{seeks}");
    let all = offsets(&ios(&mut source("rw=randread:8 rw_sequencer=identical", 64 * MIB)));
    for run in all.chunks(8) {
        assert!(run.iter().all(|offset| *offset == run[0]));
    }
    let mut starts: Vec<u64> = all.chunks(8).map(|run| run[0]).collect();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), all.len() / 8, "a place begins one run only");
}

#[test]
fn a_percentage_is_random_and_the_rest_goes_on_behind() {
    for percent in [0_u64, 25, 80, 100] {
        let options = format!("rw=randread percentage_random={percent} norandommap=1");
        let all = offsets(&ios(&mut source(&options, 256 * MIB)));
        let follows = all.windows(2).filter(|pair| pair[1] == pair[0] + 4 * KIB).count() as u64;
        let count = all.len() as u64 - 1;
        let weights = [1.0 - percent as f64 / 100.0, percent as f64 / 100.0];
        // A random one may follow the last by chance, once in 65,536.
        let p = if percent == 100 {
            f64::from(follows < 10)
        } else {
            chi_squared(&[follows, count - follows], &weights, 1)
        };
        assert!(p > 1e-4, "{percent}: {follows} of {count}");
    }
    // Random reads, sequential writes.
    let all = ios(&mut source("rw=randrw percentage_random=100,0", 16 * MIB));
    let writes: Vec<u64> =
        all.iter().filter(|io| io.direction == Direction::Write).map(|io| io.offset).collect();
    assert!(writes.iter().copied().eq((0..writes.len() as u64).map(|block| block * 4 * KIB)));
    let mut reads: Vec<u64> =
        all.iter().filter(|io| io.direction == Direction::Read).map(|io| io.offset).collect();
    reads.sort_unstable();
    let count = reads.len();
    reads.dedup();
    assert!(reads.len() == count && count > 1800, "{count}");
}

#[test]
fn random_io_stays_in_its_zone_and_the_zones_follow_each_other() {
    for (options, each_once) in
        [("", true), ("norandommap=1", false), ("random_distribution=zipf:1.1", false)]
    {
        let options = format!(
            "rw=randread zonemode=strided zonesize=64k zonerange=256k zoneskip=128k randrepeat=0 {options}"
        );
        let mut source = source(&options, 4 * MIB);
        let all = offsets(&many(&mut source, 16 * 200));
        let period = 384 * KIB;
        let mut seen = vec![0_u64; 64];
        for (visit, zone) in all.chunks(16).enumerate() {
            // 11 zones begin within 4 MiB; a pass of 1,024 I/Os is 64 visits.
            let from = (visit as u64 % 64 % 11) * period;
            for offset in zone {
                assert!((from..from + 256 * KIB).contains(offset), "{options}: visit {visit}, {offset}");
            }
            if from < 10 * period {
                for offset in zone {
                    seen[((offset - from) / (4 * KIB)) as usize] += 1;
                }
            }
            let mut sorted = zone.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert!(!each_once || sorted.len() == 16, "{options}");
        }
        if !options.contains("zipf") {
            let p = chi_squared(&seen, &[1.0; 64], 63);
            assert!(p > 1e-4, "{options}: {p}");
        }
    }
}

#[test]
fn trims_follow_the_writes_that_they_take_back() {
    let mut source =
        source("rw=randwrite trim_percentage=40 trim_backlog=32 trim_backlog_batch=64", 16 * MIB);
    let all = pass(&mut source);
    let mut written = std::collections::HashSet::new();
    let (mut writes, mut trims, mut drained) = (0_u64, 0_u64, false);
    for next in all {
        match next {
            kelvin_storage::NextIo::Drain => drained = true,
            kelvin_storage::NextIo::Io(io) if io.direction == Direction::Trim => {
                assert!(written.remove(&io.offset), "{io:?} was not written, or trimmed before");
                assert!(drained, "a trim must not overtake its write");
                assert!(writes.is_multiple_of(32));
                trims += 1;
            }
            kelvin_storage::NextIo::Io(io) => {
                assert_eq!(io.direction, Direction::Write);
                written.insert(io.offset);
                writes += 1;
                drained = false;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(writes, 4096);
    let p = chi_squared(&[trims, writes - trims], &[0.4, 0.6], 1);
    assert!(p > 1e-4, "{trims} of {writes}");
}

#[test]
fn a_barrier_lets_nothing_pass() {
    let mut source = source("rw=write write_barrier=3", 24 * KIB);
    assert_eq!(describe_ios(&pass(&mut source)), "w0 w4 drain w8 drain w12 w16 drain w20 drain");
}

#[test]
fn targets_begin_where_they_begin() {
    for options in ["rw=randread", "rw=read", "rw=randread norandommap=1", "rw=randrw"] {
        let target = crate::support::target(0, 12_345, 3 * MIB);
        let mut source = IoSource::new(&job(options), 0, &[target], 1).unwrap();
        let all = many(&mut source, 10_000);
        let least = all.iter().map(|io| io.offset).min().unwrap();
        let end = all.iter().map(|io| io.offset + u64::from(io.length)).max().unwrap();
        assert_eq!(least, 12_345, "{options}");
        assert_eq!(end, 12_345 + 3 * MIB, "{options}");
        assert!(all.iter().all(|io| (io.offset - 12_345).is_multiple_of(4 * KIB)));
    }
}

#[test]
fn a_job_without_room_for_a_block_is_refused() {
    for options in ["rw=read bs=64k", "rw=randread bs=64k", "rw=randrw bs=64k", "rw=randread bsrange=64k-1m"]
    {
        let error = IoSource::new(&job(options), 0, &targets(&[10_000, 20_000]), 1).unwrap_err().to_string();
        assert!(error.contains("no block fits") && error.contains("20000 bytes"), "{error}");
    }
    let error =
        IoSource::new(&job("rw=randread bssplit=512/50:4k/50"), 0, &targets(&[1 << 50]), 1).unwrap_err();
    assert!(error.to_string().contains("softrandommap=1"), "{error}");
    let soft = job("rw=randread bssplit=512/50:4k/50 softrandommap=1");
    assert!(IoSource::new(&soft, 0, &targets(&[1 << 50]), 1).is_ok());
}

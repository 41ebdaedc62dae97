//! `file_service_type=`: the order of files.

use kelvin_storage::stream::IoSource;

use crate::statistics::chi_squared;
use crate::support::{KIB, MIB, describe_ios, ios, job, many, pass, targets};

fn over(options: &str, lengths: &[u64]) -> IoSource {
    let mut job = job(options);
    // The text describes a job with one file, so at most one can be open.
    let open = options.split_whitespace().find_map(|option| option.strip_prefix("openfiles="));
    job.targets.open_files = open.map(|open| open.parse().unwrap());
    IoSource::new(&job, 0, &targets(lengths), 3).unwrap()
}

/// The order of fio 3.33 over three files.
#[test]
fn the_orders_are_fios() {
    for (options, expected) in [
        ("", "r0 1:r0 2:r0 r4 1:r4 2:r4 r8 1:r8 2:r8"),
        ("file_service_type=roundrobin:2", "r0 r4 1:r0 1:r4 2:r0 2:r4 r8 1:r8 2:r8"),
        ("file_service_type=sequential", "r0 r4 r8 1:r0 1:r4 1:r8 2:r0 2:r4 2:r8"),
        ("openfiles=1", "r0 r4 r8 1:r0 1:r4 1:r8 2:r0 2:r4 2:r8"),
        ("openfiles=2", "r0 1:r0 r4 1:r4 r8 1:r8 2:r0 2:r4 2:r8"),
    ] {
        let mut source = over(&format!("rw=read {options}"), &[12 * KIB; 3]);
        for _ in 0..2 {
            assert_eq!(describe_ios(&pass(&mut source)), expected, "{options}");
            source.restart();
        }
    }
    let mut source = over("rw=read", &[4 * KIB, 12 * KIB, 1, 8 * KIB]);
    assert_eq!(describe_ios(&pass(&mut source)), "r0 1:r0 3:r0 1:r4 3:r4 1:r8");
}

#[test]
fn a_sync_is_for_the_file_that_was_written() {
    let mut source = over("rw=write fsync=2", &[8 * KIB; 2]);
    assert_eq!(describe_ios(&pass(&mut source)), "w0 1:w0 1:sync w4 1:w4 1:sync");
}

#[test]
fn every_file_is_gone_through_where_the_choice_is_even() {
    let lengths: Vec<u64> = (1..40).map(|n| n * 8 * KIB).collect();
    for choice in [
        "roundrobin",
        "roundrobin:5",
        "sequential",
        "random",
        "random:3",
        "zipf:1.1",
        "pareto:0.3",
        "normal:20",
    ] {
        for rw in ["read", "randread", "rw"] {
            for open in ["", "openfiles=7"] {
                let options = format!("rw={rw} file_service_type={choice} {open}");
                let all = ios(&mut over(&options, &lengths));
                let mut bytes = vec![0; lengths.len()];
                for io in all {
                    bytes[io.target as usize] += u64::from(io.length);
                }
                // If some are more frequent than others, these are repeated, as with fio.
                let uneven = ["zipf", "pareto", "normal"].iter().any(|uneven| choice.starts_with(uneven));
                if uneven || rw == "rw" && !choice.starts_with("seq") && open.is_empty() {
                    assert_eq!(bytes.iter().sum::<u64>(), lengths.iter().sum::<u64>(), "{options}");
                } else {
                    assert_eq!(bytes, lengths, "{options}");
                }
            }
        }
    }
}

#[test]
fn many_files_take_no_longer_than_few() {
    let mut source = over("rw=randread file_service_type=random", &vec![8 * KIB; 100_000]);
    assert_eq!(ios(&mut source).len(), 200_000);
    let mut source = over("rw=read", &vec![8 * KIB; 100_000]);
    assert_eq!(ios(&mut source).len(), 200_000);
}

#[test]
fn random_files_are_even_and_keep_for_their_number() {
    let all =
        many(&mut over("rw=randread norandommap=1 file_service_type=random:4", &[64 * MIB; 10]), 20_000);
    let mut seen = [0_u64; 10];
    for run in all.chunks(4) {
        assert!(run.iter().all(|io| io.target == run[0].target));
        seen[run[0].target as usize] += 1;
    }
    let p = chi_squared(&seen, &[1.0; 10], 9);
    assert!(p > 1e-4, "{seen:?}");
}

#[test]
fn uneven_choices_follow_their_laws() {
    let count = |options: &str| {
        let options = format!("rw=randread norandommap=1 file_service_type={options}");
        let mut seen = vec![0_u64; 50];
        for io in many(&mut over(&options, &[64 * MIB; 50]), 20_000) {
            seen[io.target as usize] += 1;
        }
        seen
    };
    let mut zipf = count("zipf:1.2");
    zipf.sort_unstable_by(|a, b| b.cmp(a));
    let law: Vec<f64> = (1..=50).map(|k| f64::from(k).powf(-1.2)).collect();
    let whole: f64 = law.iter().sum();
    for (rank, (seen, part)) in zipf.iter().zip(&law).take(5).enumerate() {
        let expected = part / whole * 20_000.0;
        assert!((*seen as f64 - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {seen}, {expected}");
    }
    let mut pareto = count("pareto:0.2");
    pareto.sort_unstable_by(|a, b| b.cmp(a));
    let hottest = pareto.iter().take(10).sum::<u64>() as f64 / 20_000.0;
    assert!((hottest - 0.8).abs() < 0.02, "{hottest}");
    // The middle files are the most likely; the deviation is a fifth of 50 files.
    let normal = count("normal:20");
    let mean = normal.iter().enumerate().map(|(i, n)| (i as f64 + 0.5) * *n as f64).sum::<f64>() / 20_000.0;
    let square =
        normal.iter().enumerate().map(|(i, n)| (i as f64 + 0.5 - mean).powi(2) * *n as f64).sum::<f64>()
            / 20_000.0;
    // Values outside the range are drawn again, which reduces the deviation by 4.5 %.
    assert!((mean - 25.0).abs() < 0.3 && (square.sqrt() - 9.55).abs() < 0.25, "{mean} {}", square.sqrt());
}

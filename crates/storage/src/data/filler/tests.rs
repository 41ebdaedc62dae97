use std::collections::HashSet;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::super::example;
use super::*;

/// Blocks written one after another, each from a buffer that a read has filled with other data.
fn blocks(job: &Job, seed: u64, count: usize, length: usize) -> Vec<Vec<u8>> {
    let mut filler = Filler::new(job, seed).unwrap();
    let mut buffers = [vec![0xaa; length], vec![0xaa; length]];
    for buffer in &mut buffers {
        filler.prepare(buffer);
    }
    (0..count)
        .map(|index| {
            let buffer = &mut buffers[index % 2];
            filler.fill(&example::write((index * length) as u64, length as u32), buffer);
            buffer.clone()
        })
        .collect()
}

/// The share that remains after deflating all blocks as one.
fn compressed(blocks: &[Vec<u8>]) -> f64 {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    for block in blocks {
        encoder.write_all(block).unwrap();
    }
    let length: usize = blocks.iter().map(Vec::len).sum();
    encoder.finish().unwrap().len() as f64 / length as f64
}

/// The share of blocks that occurred before.
fn repeated(blocks: &[Vec<u8>]) -> f64 {
    let different: HashSet<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
    1.0 - different.len() as f64 / blocks.len() as f64
}

#[test]
fn by_default_no_sector_is_like_another_and_nothing_compresses() {
    for length in [512, 4096, 65536 + 512, 1 << 20] {
        let blocks = blocks(&example::job(), 1, (2 << 20) / length + 1, length);
        let sectors: HashSet<&[u8]> = blocks.iter().flat_map(|block| block.chunks(512)).collect();
        assert_eq!(sectors.len(), blocks.len() * length / 512, "{length}");
        assert!(compressed(&blocks) > 0.999, "{length}: {}", compressed(&blocks));
    }
    // Two workers write different content; the same worker writes the same again.
    let job = example::job();
    assert_ne!(blocks(&job, 1, 1, 4096), blocks(&job, 2, 1, 4096));
    assert_eq!(blocks(&job, 1, 3, 4096), blocks(&job, 1, 3, 4096));
    let mut refilled = example::job();
    refilled.buffers.refill = true;
    assert!(compressed(&blocks(&refilled, 1, 64, 4096)) > 0.999);
    assert_eq!(repeated(&blocks(&refilled, 1, 64, 4096)), 0.0);
}

#[test]
fn a_compressor_reaches_the_ratio_that_was_asked_for() {
    for percent in [0.0, 10.0, 50.0, 75.0, 90.0, 100.0] {
        for (chunk, length) in [(512, 4096), (4096, 65536), (0, 65536), (3000, 8192)] {
            let mut job = example::job();
            job.buffers.compress_percentage = Some(percent);
            job.buffers.compress_chunk = chunk;
            let blocks = blocks(&job, 1, (1 << 20) / length, length);
            let (left, asked) = (compressed(&blocks), 1.0 - percent / 100.0);
            // Each chunk costs the compressor a few bytes to mark the beginning and end of the fixed part.
            assert!((left - asked).abs() < 0.025, "{percent} % in {chunk}: {left}");
            if percent < 100.0 {
                assert_eq!(repeated(&blocks), 0.0);
            }
        }
    }
    let mut job = example::job();
    job.buffers.compress_percentage = Some(50.0);
    job.buffers.pattern = Some(b"abc".to_vec());
    let block = &blocks(&job, 1, 1, 4096)[0];
    assert_eq!(block[256..512], b"abc".repeat(100)[..256]);
}

#[test]
fn as_many_blocks_are_equal_as_were_asked_for() {
    for percent in [10.0, 50.0, 90.0] {
        let mut job = example::job();
        job.buffers.dedupe_percentage = Some(percent);
        let count = 20_000;
        let blocks = blocks(&job, 1, count, 512);
        // Five standard deviations of a binomial share.
        let p = percent / 100.0;
        let most = 5.0 * (p * (1.0 - p) / count as f64).sqrt();
        assert!((repeated(&blocks) - p).abs() < most, "{percent}: {}", repeated(&blocks));
        let different: Vec<Vec<u8>> = blocks.into_iter().collect::<HashSet<_>>().into_iter().collect();
        assert!(compressed(&different) > 0.99);
    }
    let mut job = example::job();
    job.buffers.dedupe_percentage = Some(100.0);
    assert_eq!(repeated(&blocks(&job, 1, 100, 512)), 0.99);
}

#[test]
fn repeated_blocks_come_from_the_working_set() {
    let mut job = example::job();
    job.buffers.dedupe_percentage = Some(60.0);
    job.buffers.dedupe_working_set = Some(25.0);
    // A quarter of 1 MiB in blocks of 4 KiB: 64 blocks.
    let count = 4000;
    let of = |job: &Job, seed| blocks(job, seed, count, 4096);
    let one = of(&job, 1);
    let different: HashSet<&Vec<u8>> = one.iter().collect();
    let expected = 0.4 * count as f64 + 64.0;
    assert!((different.len() as f64 - expected).abs() < 160.0, "{}", different.len());
    let shared = |one: &[Vec<u8>], other: &[Vec<u8>]| {
        let one: HashSet<&Vec<u8>> = one.iter().collect();
        other.iter().collect::<HashSet<_>>().intersection(&one).count()
    };
    assert_eq!(shared(&one, &of(&job, 2)), 0);
    job.buffers.dedupe_global = true;
    assert_eq!(shared(&of(&job, 1), &of(&job, 2)), 64);
    job.targets.size = None;
    let refused = Filler::new(&job, 1).unwrap_err().to_string();
    assert_eq!(
        refused,
        "job \"example\": dedupe_mode=working_set needs size= in bytes: the working set is a percentage of it"
    );
}

#[test]
fn what_never_changes_is_written_once_and_only_where_no_read_spoils_it() {
    let mut job = example::job();
    job.buffers.zero = true;
    assert!(Filler::new(&job, 1).unwrap().is_static());
    assert!(blocks(&job, 1, 3, 4096).iter().flatten().all(|byte| *byte == 0));
    job.pattern.reads = true;
    assert!(!Filler::new(&job, 1).unwrap().is_static());
    let mut filler = Filler::new(&job, 1).unwrap();
    let mut buffer = vec![9; 100];
    filler.fill(&example::read(0, 100), &mut buffer);
    assert_eq!(buffer, [9; 100]);
    filler.fill(&example::write(0, 100), &mut buffer);
    assert_eq!(buffer, [0; 100]);

    let mut job = example::job();
    job.buffers.pattern = Some(vec![1, 2, 3]);
    assert!(Filler::new(&job, 1).unwrap().is_static());
    assert_eq!(blocks(&job, 1, 2, 7)[1], [1, 2, 3, 1, 2, 3, 1]);

    let mut job = example::job();
    job.buffers.scramble = false;
    assert!(Filler::new(&job, 1).unwrap().is_static());
    let twice = blocks(&job, 1, 3, 4096);
    assert_eq!(twice[0], twice[2]);
    assert_ne!(twice[0], twice[1]);

    let mut job = example::job();
    (job.pattern.reads, job.pattern.writes) = (true, false);
    assert!(Filler::new(&job, 1).unwrap().is_static());
}

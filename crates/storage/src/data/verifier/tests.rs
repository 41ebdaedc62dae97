use std::path::Path;

use super::super::example::{read, target, verifying, write};
use super::*;
use crate::NextIo;
use crate::job::VerifyMethod;

const BLOCK: u32 = 4096;

fn verifier(job: &Job) -> Verifier {
    Verifier::new(job, 0, &[target("/t/file")], 1).unwrap()
}

/// A medium in memory.
struct Medium(Vec<u8>);

impl Medium {
    fn new() -> Self {
        Self(vec![0; 1 << 20])
    }

    fn write(&mut self, verifier: &mut Verifier, offset: u64, length: u32) -> u64 {
        let io = write(offset, length);
        let range = offset as usize..(offset + u64::from(length)) as usize;
        let number = verifier.stamp(&io, &mut self.0[range]);
        verifier.written(&io, number);
        number
    }

    fn at(&self, io: &Io) -> &[u8] {
        &self.0[io.offset as usize..(io.offset + u64::from(io.length)) as usize]
    }

    /// The whole verifying pass: the number of blocks, and the errors.
    fn pass(&self, verifier: &mut Verifier) -> (u64, Vec<Corruption>) {
        let (mut count, mut wrong) = (0, Vec::new());
        while let Some(io) = verifier.next_read() {
            count += 1;
            wrong.extend(verifier.check(&io, self.at(&io)).err());
        }
        (count, wrong)
    }
}

#[test]
fn what_was_written_is_found_again_and_the_last_of_overlapping_writes_counts() {
    let mut job = verifying(VerifyMethod::Crc32c);
    job.verify.as_mut().unwrap().interval = Some(512);
    let mut verifier = verifier(&job);
    let mut medium = Medium::new();
    let mut random = kelvin_measure::Random::part(1, 2, 3);
    for _ in 0..1000 {
        let offset = random.range(0, 2000) as u64 * 512;
        medium.write(&mut verifier, offset, 512 * random.range(1, 40) as u32);
    }
    let known = verifier.remaining();
    let (count, wrong) = medium.pass(&mut verifier);
    assert_eq!((count, wrong), (known, vec![]));
    assert!(known > 50);
}

#[test]
fn lost_writes_misdirected_writes_and_zeros_are_distinguished() {
    let job = verifying(VerifyMethod::Md5);
    let mut verifier = verifier(&job);
    let mut medium = Medium::new();
    for offset in 0..4 {
        medium.write(&mut verifier, offset * 4096, BLOCK);
    }
    let old = medium.0[..4096].to_vec();
    medium.write(&mut verifier, 0, BLOCK);
    medium.0[..4096].copy_from_slice(&old);
    medium.0.copy_within(2 * 4096..3 * 4096, 4096);
    medium.0[3 * 4096..4 * 4096].fill(0);
    let wrong = medium.pass(&mut verifier).1;
    let problems: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "offset 0: write 4 was expected here, but another was found (its header is from write 0)",
            "offset 4096: this block belongs at offset 8192 (its header is from write 2): it was written to, or read from, the wrong offset",
            "offset 12288: the block is all zeros: it was never written, or its data is lost",
        ]
    );
}

#[test]
fn without_sequence_and_seed_an_older_write_passes() {
    let mut job = verifying(VerifyMethod::XxHash);
    let verify = job.verify.as_mut().unwrap();
    (verify.write_sequence, verify.header_seed) = (false, false);
    let mut relaxed = verifier(&job);
    let mut medium = Medium::new();
    medium.write(&mut relaxed, 0, BLOCK);
    let old = medium.0.clone();
    medium.write(&mut relaxed, 0, BLOCK);
    medium.0 = old;
    assert_eq!(medium.pass(&mut relaxed), (1, vec![]));
    job.verify.as_mut().unwrap().header_seed = true;
    let mut seeded = verifier(&job);
    medium.write(&mut seeded, 0, BLOCK);
    let old = medium.0.clone();
    medium.write(&mut seeded, 0, BLOCK);
    medium.0 = old;
    assert!(medium.pass(&mut seeded).1[0].problem.starts_with("the content was generated from another seed"));
}

#[test]
fn a_backlog_is_verified_in_batches_and_forgotten() {
    let mut job = verifying(VerifyMethod::Crc32c);
    let verify = job.verify.as_mut().unwrap();
    (verify.backlog, verify.backlog_batch) = (Some(10), Some(4));
    let mut verifier = verifier(&job);
    let mut medium = Medium::new();
    let mut looked = Vec::new();
    for block in 0..25 {
        medium.write(&mut verifier, block * 4096, BLOCK);
        if verifier.backlog_due() {
            looked.push(medium.pass(&mut verifier));
        }
    }
    assert_eq!(looked, [(4, vec![]), (4, vec![])]);
    assert_eq!(verifier.remaining(), 17);
    assert_eq!(medium.pass(&mut verifier), (17, vec![]));
    assert_eq!(medium.pass(&mut verifier), (0, vec![]));
}

#[test]
fn what_is_being_written_is_not_held_against_anything() {
    let mut job = verifying(VerifyMethod::Crc32c);
    job.pattern.reads = true;
    let mut verifier = verifier(&job);
    let mut medium = Medium::new();
    medium.write(&mut verifier, 0, BLOCK);
    assert_eq!(verifier.check(&read(0, BLOCK), &medium.0[..4096]), Ok(()));
    // Two concurrent writes of a block: either may be the last, but nothing older.
    let old = medium.0[..4096].to_vec();
    let (mut one, mut other) = (vec![0; 4096], vec![0; 4096]);
    let io = write(0, BLOCK);
    let (first, second) = (verifier.stamp(&io, &mut one), verifier.stamp(&io, &mut other));
    assert_eq!(verifier.remaining(), 0);
    assert_eq!(verifier.check(&read(0, BLOCK), &vec![0; 4096]), Ok(()));
    verifier.written(&io, second);
    verifier.written(&io, first);
    for (content, right) in [(&one, true), (&other, true), (&old, false)] {
        assert_eq!(verifier.check(&read(0, BLOCK), content).is_ok(), right);
    }
    // Two that overlap partly leave the content unknown.
    let io = write(4096, BLOCK);
    let (first, second) = (verifier.stamp(&io, &mut one), verifier.stamp(&write(6144, BLOCK), &mut other));
    verifier.written(&io, first);
    verifier.written(&write(6144, BLOCK), second);
    assert_eq!(verifier.remaining(), 1);
    // A failed write does, too.
    let number = verifier.stamp(&write(0, BLOCK), &mut one);
    verifier.failed(&write(0, BLOCK), number);
    assert_eq!(verifier.remaining(), 0);
}

#[test]
fn a_block_that_is_written_again_while_the_backlog_reads_it_is_left_alone() {
    let mut job = verifying(VerifyMethod::Crc32c);
    job.depth.depth = 8;
    job.engine.name = crate::job::EngineName::IoUring;
    let mut verifier = verifier(&job);
    let mut medium = Medium::new();
    medium.write(&mut verifier, 0, BLOCK);
    let io = verifier.next_read().unwrap();
    let number = verifier.stamp(&write(0, BLOCK), &mut medium.0[..4096]);
    assert_eq!(verifier.check(&io, &vec![7; 4096]), Ok(()));
    verifier.written(&write(0, BLOCK), number);
    assert_eq!(medium.pass(&mut verifier), (1, vec![]));
}

#[test]
fn trimmed_blocks_are_to_be_zeros_where_that_was_asked_for() {
    let mut job = verifying(VerifyMethod::Crc32c);
    job.trims.verify_zero = true;
    let mut verifier = verifier(&job);
    let mut medium = Medium::new();
    for block in 0..3 {
        medium.write(&mut verifier, block * 4096, BLOCK);
    }
    for block in [0, 1] {
        verifier.trimmed(&Io { direction: Direction::Trim, ..write(block * 4096, BLOCK) });
    }
    medium.0[..4096].fill(0);
    let (count, wrong) = medium.pass(&mut verifier);
    assert_eq!(count, 3);
    assert_eq!(wrong.len(), 1);
    assert_eq!(wrong[0].to_string(), "offset 4096: byte 0 is 0xca instead of zero after a trim");
}

#[test]
fn what_was_read_and_what_was_expected_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    for method in [VerifyMethod::Crc32c, VerifyMethod::Pattern, VerifyMethod::PatternHeader] {
        let mut job = verifying(method);
        let verify = job.verify.as_mut().unwrap();
        verify.dump = true;
        verify.interval = Some(1024);
        let mut verifier = verifier(&job);
        verifier.dump_into(directory.path().to_owned());
        let mut medium = Medium::new();
        medium.write(&mut verifier, 8192, BLOCK);
        let right = medium.0.clone();
        medium.0[8192 + 1024 + 700] ^= 1;
        let wrong = medium.pass(&mut verifier).1.remove(0);
        assert_eq!(wrong.offset, 8192 + 1024);
        assert!(wrong.problem.ends_with("file.9216.received and .expected"), "{wrong}");
        let kept = |kind: &str| std::fs::read(directory.path().join(format!("file.9216.{kind}"))).unwrap();
        assert_eq!(kept("received"), medium.0[9216..10240]);
        assert_eq!(kept("expected"), right[9216..10240]);
    }
}

#[test]
fn a_reader_verifies_by_the_headers_alone() {
    let job = verifying(VerifyMethod::Sha256);
    let mut medium = Medium::new();
    let mut writer = verifier(&job);
    medium.write(&mut writer, 4096, BLOCK);
    let mut job = job;
    (job.pattern.reads, job.pattern.writes) = (true, false);
    let mut reader = verifier(&job);
    let io = read(4096, BLOCK);
    assert_eq!(reader.check(&io, medium.at(&io)), Ok(()));
    medium.0[5000] ^= 0x80;
    assert!(
        reader
            .check(&io, medium.at(&io))
            .unwrap_err()
            .problem
            .starts_with("the data does not match the checksum")
    );
    assert!(reader.check(&read(0, BLOCK), &medium.0[..4096]).is_err());
}

/// Writes in an order that follows from a seed.
#[derive(Debug)]
struct Drawn(kelvin_measure::Random, u64);

impl Drawn {
    fn new(seed: u64) -> Self {
        Self(kelvin_measure::Random::part(seed, 0, 0), 100)
    }
}

impl replay::Draws for Drawn {
    fn next(&mut self) -> NextIo {
        if self.1 == 0 {
            return NextIo::End;
        }
        self.1 -= 1;
        NextIo::Io(write(self.0.range(0, 50) as u64 * 4096, BLOCK))
    }

    fn restart(&mut self) {
        self.1 = 100;
    }
}

#[test]
fn instead_of_being_remembered_writes_are_drawn_again() {
    let job = verifying(VerifyMethod::Crc32c);
    let mut verifier = verifier(&job);
    verifier.replay = Some(replay::Replay::from_draws(Box::new(Drawn::new(5))));
    let mut medium = Medium::new();
    let mut source = Drawn::new(5);
    for _ in 0..150 {
        let io = loop {
            match replay::Draws::next(&mut source) {
                NextIo::Io(io) => break io,
                _ => replay::Draws::restart(&mut source),
            }
        };
        medium.write(&mut verifier, io.offset, BLOCK);
    }
    assert_eq!(verifier.remaining(), 0);
    let before = medium.0.clone();
    assert_eq!(medium.pass(&mut verifier), (150, vec![]));
    assert_eq!(medium.0, before);
    medium.0[4096 + 99] ^= 1;
    verifier.replay = Some(replay::Replay::from_draws(Box::new(Drawn::new(5))));
    let wrong = medium.pass(&mut verifier).1;
    assert!(!wrong.is_empty() && wrong.iter().all(|wrong| wrong.offset == 4096), "{wrong:?}");
}

#[test]
fn the_writes_of_a_real_job_are_drawn_again_also_by_a_later_run() {
    let mut job = verifying(VerifyMethod::XxHash);
    job.verify.as_mut().unwrap().replay_generator = true;
    job.course.loops = 2;
    job.blocks.sizes =
        crate::PerDirection::all(crate::job::BlockSizes::Split(vec![(4096, 50.0), (8192, 50.0)]));
    let targets = [target("/t/file")];
    let mut source = crate::stream::IoSource::new(&job, 0, &targets, 1).unwrap();
    let mut verifier = verifier(&job);
    let (mut medium, mut writes, mut pass) = (Medium::new(), 0, 0);
    while pass < 2 {
        match source.next() {
            NextIo::Io(io) => {
                medium.write(&mut verifier, io.offset, io.length);
                writes += 1;
            }
            NextIo::End => {
                source.restart();
                pass += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(writes > 250, "{writes}");
    let (count, wrong) = medium.pass(&mut verifier);
    assert_eq!((count, wrong), (writes, vec![]));

    // A run that writes nothing verifies what one pass wrote.
    let verify = job.verify.as_mut().unwrap();
    (verify.replay_generator, verify.only) = (false, true);
    job.course.loops = 1;
    let mut later = self::verifier(&job);
    let (count, wrong) = medium.pass(&mut later);
    assert_eq!((count, wrong), (writes / 2, vec![]));
    medium.0[70_000] ^= 1;
    let mut later = self::verifier(&job);
    assert_eq!(medium.pass(&mut later).1.len(), 1);

    job.pattern.repeatable = false;
    let refused = Verifier::new(&job, 0, &targets, 1).unwrap_err().to_string();
    assert!(refused.contains("which randrepeat=0 prevents"), "{refused}");
}

#[test]
fn what_cannot_be_verified_whole_is_refused() {
    let refused = |change: &dyn Fn(&mut Job)| {
        let mut job = verifying(VerifyMethod::Sha512);
        change(&mut job);
        Verifier::new(&job, 0, &[target("/t/file")], 1).unwrap_err().to_string()
    };
    let messages = [
        refused(&|job| job.verify.as_mut().unwrap().interval = Some(128)),
        refused(&|job| job.verify.as_mut().unwrap().offset = 100),
        refused(&|job| job.verify.as_mut().unwrap().offset = 4000),
        refused(&|job| job.verify.as_mut().unwrap().method = VerifyMethod::Pattern),
        refused(&|job| {
            job.verify.as_mut().unwrap().replay_generator = true;
            job.pattern.trims = true;
        }),
        refused(&|job| job.verify = None),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    job "example": verify=sha512 needs chunks of at least 169 bytes, but the smallest has 128; give a larger bs or verify_interval
    job "example": verify_offset=100 is within the header, which has 168 bytes with verify=sha512; give 168 or more
    job "example": verify=sha512 with verify_offset=4000 needs chunks of at least 4169 bytes, but the smallest has 4096; give a larger bs or verify_interval
    job "example": verify=pattern needs verify_pattern=
    job "example": experimental_verify and verify_only generate the writes again and cannot know which were trimmed; remove the trims or the option
    job "example": nothing to verify: verify= is not given
    "#);
}

/// The killed writer: writes blocks by number, and saves the state after every few, until it is killed.
fn write_until_killed(directory: &Path) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::create(directory.join("file")).unwrap();
    let job = verifying(VerifyMethod::Crc32c);
    let mut verifier = Verifier::new(&job, 0, &[target(directory.join("file"))], 7).unwrap();
    let mut random = kelvin_measure::Random::part(7, 7, 7);
    let mut buffer = vec![0; 4096];
    // Bounded: if the parent dies, the writer must end, too.
    for count in 0..2_000_000_u64 {
        let io = write(random.range(0, 255) as u64 * 4096, BLOCK);
        let number = verifier.stamp(&io, &mut buffer);
        file.write_all_at(&buffer, io.offset).unwrap();
        verifier.written(&io, number);
        if count % 300 == 299 {
            verifier.save_state(&directory.join("state")).unwrap();
        }
    }
}

#[test]
fn what_a_killed_run_wrote_is_verified_from_its_state() {
    use std::os::unix::fs::FileExt;
    if let Some(directory) = std::env::var_os("KELVIN_TEST_KILLED_WRITER") {
        return write_until_killed(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let name = "data::verifier::tests::what_a_killed_run_wrote_is_verified_from_its_state";
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env("KELVIN_TEST_KILLED_WRITER", directory.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let state = directory.path().join("state");
    let since = std::time::Instant::now();
    while !state.exists() {
        assert!(since.elapsed().as_secs() < 60);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(30));
    child.kill().unwrap();
    child.wait().unwrap();

    let path = directory.path().join("file");
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let mut job = verifying(VerifyMethod::Crc32c);
    (job.pattern.reads, job.pattern.writes) = (true, false);
    let pass = || {
        let mut verifier = Verifier::new(&job, 0, &[target(&path)], 99).unwrap();
        verifier.load_state(&state).unwrap();
        let (mut count, mut wrong) = (0, Vec::new());
        while let Some(io) = verifier.next_read() {
            let mut buffer = vec![0; 4096];
            file.read_exact_at(&mut buffer, io.offset).unwrap();
            wrong.extend(verifier.check(&io, &buffer).err());
            count += 1;
        }
        (count, wrong)
    };
    let (count, wrong) = pass();
    assert!(count > 100 && wrong.is_empty(), "{count} {wrong:?}");
    file.write_all_at(b"X", 4096 + 1000).unwrap();
    let wrong = pass().1;
    assert_eq!(wrong.len(), 1);
    assert_eq!(wrong[0].offset, 4096);
    let mut other = Verifier::new(&job, 1, &[target(&path)], 99).unwrap();
    let refused = other.load_state(&state).unwrap_err().to_string();
    assert!(
        refused.ends_with("is the verify state of job \"example\", clone 0, not of this job"),
        "{refused}"
    );
}

#[test]
fn trial_c4_a_reader_with_a_state_looks_only_at_what_the_interrupted_run_is_known_to_have_written() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let mut job = verifying(VerifyMethod::Crc32c);
    let mut writer = verifier(&job);
    let mut medium = Medium::new();
    for block in [1, 3] {
        medium.write(&mut writer, block * 4096, BLOCK);
    }
    writer.save_state(&state).unwrap();
    (job.pattern.reads, job.pattern.writes) = (true, false);
    let mut reader = verifier(&job);
    reader.load_state(&state).unwrap();
    for block in 0..6 {
        let io = read(block * 4096, BLOCK);
        assert_eq!(reader.check(&io, medium.at(&io)), Ok(()), "{block}");
    }
    assert_eq!(reader.doubtful().unwrap(), (4, 0), "nobody knows of four places");
    medium.0[4096..8192].fill(0);
    let io = read(4096, BLOCK);
    assert!(reader.check(&io, medium.at(&io)).unwrap_err().problem.starts_with("the block is all zeros"));
}

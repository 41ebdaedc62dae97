//! Against the real fio: each verifies what the other wrote.

use std::path::Path;
use std::process::Command;

use super::super::example::{read, target, verifying, write};
use super::*;
use crate::job::VerifyMethod;

/// Methods whose blocks both tools can verify, with fio's names.
const METHODS: [(VerifyMethod, &str); 13] = [
    (VerifyMethod::Md5, "md5"),
    (VerifyMethod::Crc64, "crc64"),
    (VerifyMethod::Crc32c, "crc32c"),
    (VerifyMethod::Crc32, "crc32"),
    (VerifyMethod::Crc16, "crc16"),
    (VerifyMethod::Crc7, "crc7"),
    (VerifyMethod::XxHash, "xxhash"),
    (VerifyMethod::Sha1, "sha1"),
    (VerifyMethod::Sha3_224, "sha3-224"),
    (VerifyMethod::Sha3_256, "sha3-256"),
    (VerifyMethod::Sha3_384, "sha3-384"),
    (VerifyMethod::Sha3_512, "sha3-512"),
    (VerifyMethod::Pattern, "pattern"),
];
const SIZE: usize = 16 * 4096;

/// Runs fio with a job for each of the methods at the same time, each with a separate file. Returns the number of jobs
/// that found an error; `None` without fio.
#[allow(clippy::print_stderr, reason = "a test reports why it compared nothing")]
fn fio(directory: &Path, rw: &str, jobs: &[(&str, &[&str])]) -> Option<i32> {
    let mut command = Command::new("fio");
    command.current_dir(directory);
    for (method, more) in jobs {
        command
            .args([format!("--name={method}"), format!("--filename={method}"), format!("--verify={method}")])
            .args(["--size=64k", "--bs=4k", "--do_verify=0", "--thread=1", "--verify_state_save=0"])
            .arg(format!("--rw={rw}"))
            .args((*method == "pattern").then_some("--verify_pattern=\"kelvin\"%o"))
            .args(*more);
    }
    let Ok(output) = command.output() else {
        eprintln!("fio is not installed: nothing to compare with");
        return None;
    };
    output.status.code()
}

/// The layouts of a block, as fio's options and as Kelvin's.
const SHAPES: [(&[&str], Option<u32>, u32); 3] =
    [(&[], None, 0), (&["--verify_interval=1k"], Some(1024), 0), (&["--verify_offset=1000"], None, 1000)];

fn job(method: VerifyMethod, interval: Option<u32>, offset: u32) -> Job {
    let mut job = verifying(method);
    let verify = job.verify.as_mut().unwrap();
    (verify.interval, verify.offset) = (interval, offset);
    job
}

/// The methods with a shape each.
fn jobs() -> Vec<(VerifyMethod, &'static str, usize)> {
    METHODS.iter().enumerate().map(|(index, (method, word))| (*method, *word, index % SHAPES.len())).collect()
}

fn words(jobs: &[(VerifyMethod, &'static str, usize)]) -> Vec<(&'static str, &'static [&'static str])> {
    jobs.iter().map(|(_, word, shape)| (*word, SHAPES[*shape].0)).collect()
}

/// Changes a byte of the fifth block, in its last chunk: with several chunks in a block, fio 3.33 lets the last one
/// decide.
fn change(path: &Path) {
    let mut content = std::fs::read(path).unwrap();
    content[5 * 4096 + 4000] ^= 4;
    std::fs::write(path, content).unwrap();
}

#[test]
fn fio_verifies_what_kelvin_wrote_and_finds_what_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let jobs = jobs();
    for (method, word, shape) in &jobs {
        let (_, interval, offset) = SHAPES[*shape];
        let path = directory.path().join(word);
        let mut verifier = Verifier::new(&job(*method, interval, offset), 0, &[target(&path)], 5).unwrap();
        let mut content = vec![0; SIZE];
        for block in 0..SIZE / 4096 {
            let part = &mut content[block * 4096..(block + 1) * 4096];
            verifier.stamp(&write(block as u64 * 4096, 4096), part);
        }
        std::fs::write(&path, &content).unwrap();
    }
    let Some(wrong) = fio(directory.path(), "read", &words(&jobs)) else { return };
    assert_eq!(wrong, 0);
    for (_, word, _) in &jobs {
        change(&directory.path().join(word));
    }
    assert_eq!(fio(directory.path(), "read", &words(&jobs)), Some(jobs.len() as i32));
}

#[test]
fn kelvin_verifies_what_fio_wrote_and_finds_what_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let jobs = jobs();
    let Some(wrong) = fio(directory.path(), "write", &words(&jobs)) else { return };
    assert_eq!(wrong, 0);
    for (method, word, shape) in jobs {
        let (_, interval, offset) = SHAPES[shape];
        let path = directory.path().join(word);
        let mut job = job(method, interval, offset);
        (job.pattern.reads, job.pattern.writes) = (true, false);
        let mut verifier = Verifier::new(&job, 0, &[target(&path)], 5).unwrap();
        let mut check = || {
            let content = std::fs::read(&path).unwrap();
            (0..SIZE / 4096)
                .filter_map(|block| {
                    let part = &content[block * 4096..(block + 1) * 4096];
                    verifier.check(&read(block as u64 * 4096, 4096), part).err()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(check(), [], "{word}");
        change(&path);
        assert_eq!(check().len(), 1, "{word}");
    }
}

#[test]
fn fios_sha_headers_hold_no_digest_and_kelvin_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let methods = [(VerifyMethod::Sha256, "sha256"), (VerifyMethod::Sha512, "sha512")];
    let Some(wrong) = fio(directory.path(), "write", &methods.map(|(_, word)| (word, [].as_slice()))) else {
        return;
    };
    assert_eq!(wrong, 0);
    for (method, word) in methods {
        let path = directory.path().join(word);
        let mut job = job(method, None, 0);
        (job.pattern.reads, job.pattern.writes) = (true, false);
        let mut verifier = Verifier::new(&job, 0, &[target(&path)], 5).unwrap();
        let content = std::fs::read(&path).unwrap();
        let wrong = verifier.check(&read(0, 4096), &content[..4096]).unwrap_err();
        assert!(wrong.problem.starts_with("fio wrote this block, and fio's headers do not hold"), "{wrong}");
    }
}

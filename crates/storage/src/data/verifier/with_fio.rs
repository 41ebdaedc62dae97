//! Against the real fio: each looks at what the other wrote.

use std::path::Path;
use std::process::Command;

use super::super::example::{read, target, verifying, write};
use super::*;

/// Methods whose blocks both tools understand, as fio calls them.
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

/// Runs fio in a directory on its file `file`; whether it found nothing wrong. None without fio.
fn fio(directory: &Path, rw: &str, method: &str, more: &[&str]) -> Option<bool> {
    let pattern = (method == "pattern").then_some("--verify_pattern=\"kelvin\"%o");
    let output = Command::new("fio")
        .current_dir(directory)
        .args(["--name=a", "--filename=file", "--size=64k", "--bs=4k", "--do_verify=0", "--thread=1"])
        .args(["--verify_state_save=0", &format!("--rw={rw}"), &format!("--verify={method}")])
        .args(pattern)
        .args(more)
        .output()
        .ok()?;
    Some(output.status.success())
}

/// Both ways of laying out a block, in fio's words and ours.
const SHAPES: [(&[&str], Option<u32>, u32); 3] =
    [(&[], None, 0), (&["--verify_interval=1k"], Some(1024), 0), (&["--verify_offset=1000"], None, 1000)];

fn job(method: VerifyMethod, interval: Option<u32>, offset: u32) -> Job {
    let mut job = verifying(method);
    let verify = job.verify.as_mut().unwrap();
    (verify.interval, verify.offset) = (interval, offset);
    job
}

#[test]
fn fio_verifies_what_kelvin_wrote_and_finds_what_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for (index, (method, word)) in METHODS.into_iter().enumerate() {
        let (more, interval, offset) = SHAPES[index % SHAPES.len()];
        let mut verifier = Verifier::new(&job(method, interval, offset), 0, &[target(&path)], 5).unwrap();
        let mut content = vec![0; SIZE];
        for block in 0..SIZE / 4096 {
            verifier.stamp(&write(block as u64 * 4096, 4096), &mut content[block * 4096..(block + 1) * 4096]);
        }
        std::fs::write(&path, &content).unwrap();
        let Some(right) = fio(directory.path(), "read", word, more) else {
            eprintln!("fio is not installed: nothing to compare with");
            return;
        };
        assert!(right, "fio refuses what kelvin wrote with {word} {more:?}");
        content[5 * 4096 + 2000] ^= 4;
        std::fs::write(&path, &content).unwrap();
        assert_eq!(fio(directory.path(), "read", word, more), Some(false), "{word}");
    }
}

#[test]
fn kelvin_verifies_what_fio_wrote_and_finds_what_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for (index, (method, word)) in METHODS.into_iter().enumerate() {
        let (more, interval, offset) = SHAPES[(index + 1) % SHAPES.len()];
        let Some(done) = fio(directory.path(), "write", word, more) else {
            eprintln!("fio is not installed: nothing to compare with");
            return;
        };
        assert!(done);
        let mut job = job(method, interval, offset);
        (job.pattern.reads, job.pattern.writes) = (true, false);
        let mut verifier = Verifier::new(&job, 0, &[target(&path)], 5).unwrap();
        let mut content = std::fs::read(&path).unwrap();
        let check = |verifier: &mut Verifier, content: &[u8]| {
            (0..SIZE / 4096)
                .filter_map(|block| {
                    let part = &content[block * 4096..(block + 1) * 4096];
                    verifier.check(&read(block as u64 * 4096, 4096), part).err()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(check(&mut verifier, &content), [], "{word} {more:?}");
        content[3 * 4096 + 3000] ^= 0x11;
        assert_eq!(check(&mut verifier, &content).len(), 1, "{word}");
    }
}

#[test]
fn fios_sha_headers_hold_no_digest_and_kelvin_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    for (method, word) in [(VerifyMethod::Sha256, "sha256"), (VerifyMethod::Sha512, "sha512")] {
        if fio(directory.path(), "write", word, &[]).is_none() {
            eprintln!("fio is not installed: nothing to compare with");
            return;
        }
        let mut job = job(method, None, 0);
        (job.pattern.reads, job.pattern.writes) = (true, false);
        let mut verifier = Verifier::new(&job, 0, &[target(&path)], 5).unwrap();
        let content = std::fs::read(&path).unwrap();
        let wrong = verifier.check(&read(0, 4096), &content[..4096]).unwrap_err();
        assert!(wrong.problem.starts_with("fio wrote this block, and fio's headers do not hold"), "{wrong}");
    }
}

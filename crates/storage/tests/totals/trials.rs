//! Cases from earlier trials.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kelvin_measure::Stop;
use kelvin_storage::control::{RunOptions, prepare, run};
use kelvin_storage::event::{IoEvent, IoWatcher};
use kelvin_storage::jobfile::parse_text;
use kelvin_storage::result::JobsOutcome;
use kelvin_storage::{Direction, Result};

struct Nobody;

impl IoWatcher for Nobody {
    fn event(&mut self, _event: &IoEvent<'_>) {}
}

/// Runs a job file whose `DIR` is a directory.
fn outcome(directory: &Path, text: &str) -> Result<JobsOutcome> {
    let text = text.replace("DIR", &directory.display().to_string());
    // Nothing is written to the working directory, which is the source tree.
    let options = RunOptions {
        log_directory: Some(directory.to_owned()),
        aux_directory: Some(directory.to_owned()),
        ..RunOptions::default()
    };
    run(prepare(&parse_text(&text, None, &[])?, &options)?, &options, &Stop::new(), &mut Nobody)
}

/// I/Os of each job in a direction, and the error, if any.
fn ios(directory: &Path, direction: Direction, text: &str) -> (Vec<u64>, Option<String>) {
    let outcome = outcome(directory, text).unwrap();
    let mut ios = vec![0; outcome.jobs.jobs.len()];
    for worker in &outcome.workers {
        ios[worker.job] += worker.targets.iter().map(|target| target.directions[direction].ios).sum::<u64>();
    }
    let error = outcome.workers.into_iter().find_map(|worker| worker.error);
    (ios, error.map(|(_, message)| message))
}

fn written(text: &str) -> Vec<u64> {
    let directory = tempfile::tempdir().unwrap();
    let (ios, error) = ios(directory.path(), Direction::Write, text);
    assert_eq!(error, None);
    ios
}

#[test]
fn trial_c1_a_device_is_not_filled_beyond_what_was_said() {
    let job = "[a]\nrw=write\nbs=64k\nfill_device=1\nfilename=DIR/f\n";
    assert_eq!(written(&format!("{job}size=4m\n")), [64]);
    assert_eq!(written(&format!("{job}filesize=4m\n")), [64]);
    assert_eq!(written(&format!("{job}io_size=2m\n")), [32]);
    assert_eq!(written(&format!("{job}size=4m\nio_size=2m\nloops=2\n")), [64]);
    // A reader does not fill the filesystem first, either.
    let directory = tempfile::tempdir().unwrap();
    let text = "[a]\nrw=read\nbs=64k\nfill_device=1\nfilename=DIR/f\nsize=1m\n";
    assert_eq!(ios(directory.path(), Direction::Read, text), (vec![16], None));
    assert_eq!(fs::metadata(directory.path().join("f")).unwrap().len(), 1 << 20);
}

#[test]
fn trial_c2_a_size_beside_a_filesize_says_how_much_is_moved() {
    let job = "[a]\nrw=write\nbs=64k\nfilesize=32m\n";
    assert_eq!(written(&format!("{job}filename=DIR/f\nsize=4m\n")), [64]);
    assert_eq!(written(&format!("{job}filename=DIR/f\nsize=100%\nio_size=25%\n")), [128]);
    assert_eq!(written(&format!("{job}filename=DIR/f\nsize=50%\n")), [256]);
    assert_eq!(written(&format!("{job}directory=DIR\nnrfiles=3\nsize=4m\n")), [64]);
    assert_eq!(written(&format!("{job}filename=DIR/f:DIR/g\nsize=4m\n")), [64]);
    let clones = "directory=DIR\nsize=4m\nnumjobs=3\noffset_increment=1m\n";
    assert_eq!(written(&format!("{job}{clones}")), [192]);
    assert_eq!(written(&format!("{job}filename=DIR/f\nsize=4m\nloops=3\n")), [192]);
}

/// The error of a job that verifies a writer's data with the options `looks`.
fn looked_at(writer: &str, looks: &str) -> Option<String> {
    let directory = tempfile::tempdir().unwrap();
    let common = "filename=DIR/f\nbs=4k\nsize=256k\nverify=crc32c\nverify_state_save=0\n";
    let text = format!("[global]\n{common}[w]\ndo_verify=0\n{writer}[v]\nstonewall\nverify_only=1\n{looks}");
    ios(directory.path(), Direction::Write, &text).1
}

#[test]
fn trial_c3_verify_only_of_another_name_reports_no_loss_that_is_none() {
    for line in [
        "rw=write\n",
        "rw=randwrite\n",
        "rw=randwrite\nnorandommap=1\n",
        "rw=randwrite\nrandom_distribution=zipf:1.1\n",
        "rw=randwrite\nbsrange=1k-8k\n",
        "rw=write\nbssplit=2k/50:8k/50\n",
        "rw=randrw\n",
        "rw=randwrite\nnumber_ios=9\n",
        "rw=write\nnumber_ios=9\n",
        "rw=randwrite\nloops=3\n",
        "rw=write\nfilesize=1m\nsize=128k\n",
        "rw=randwrite\nverify_interval=1k\nnorandommap=1\n",
    ] {
        assert_eq!(looked_at(line, line), None, "{line}");
    }
}

#[test]
fn trial_c3_verify_only_finds_what_is_lost_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let common = "filename=DIR/f\nbs=4k\nsize=256k\nverify=crc32c\nverify_state_save=0\n";
    for (name, rw) in [("w", "write"), ("v", "write"), ("v", "randwrite"), ("w", "randwrite\nnorandommap=1")]
    {
        let job = |name: &str, more: &str| format!("[{name}]\n{common}rw={rw}\n{more}\n");
        outcome(directory.path(), &job("w", "do_verify=0")).unwrap();
        let good = fs::read(&path).unwrap();
        let look = || ios(directory.path(), Direction::Write, &job(name, "verify_only=1")).1;
        assert_eq!(look(), None, "{name} {rw}");
        let place = (0..64).find(|block| good[block * 4096..][..40] != [0; 40]).unwrap() * 4096;
        for damage in [place..place + 4096, place + 1000..place + 1001] {
            let mut bad = good.clone();
            bad[damage.clone()].iter_mut().for_each(|byte| *byte = if damage.len() > 1 { 0 } else { !*byte });
            fs::write(&path, &bad).unwrap();
            let found = look().unwrap_or_default();
            assert!(found.contains("verify"), "{name} {rw} {damage:?}: {found:?}");
            assert_eq!(fs::read(&path).unwrap(), bad, "nothing is written");
        }
        // Shorter than specified: it is not laid out for verification.
        fs::write(&path, &good[..64 << 10]).unwrap();
        assert!(look().is_some() || rw.contains("norandommap"));
        assert_eq!(fs::metadata(&path).unwrap().len(), 64 << 10);
        fs::remove_file(&path).unwrap();
        let refusal = outcome(directory.path(), &job(name, "verify_only=1")).unwrap_err().to_string();
        assert!(refusal.contains("does not exist, and verify_only does not write it"), "{refusal}");
        assert!(!path.exists());
    }
}

/// The files of a directory: name, size and time of the last change.
fn files(directory: &Path) -> Vec<(String, u64, i64)> {
    let mut all: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let (entry, facts) = entry.map(|entry| (entry.file_name(), entry.metadata().unwrap())).unwrap();
            (entry.to_string_lossy().into_owned(), facts.size(), facts.mtime_nsec())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn trial_c8_nothing_is_emptied_before_all_is_decided() {
    let directory = tempfile::tempdir().unwrap();
    for file in 0..20 {
        fs::write(directory.path().join(format!("precious{file}")), b"precious").unwrap();
    }
    let before = files(directory.path());
    for text in [
        // A share of 3 KiB holds no block.
        "[a]\nrw=write\nsize=64k\nopendir=DIR\n",
        "[a]\nrw=randwrite\nsize=64k\nopendir=DIR\nbsrange=4k-8k\n",
        "[a]\nrw=write\nsize=1m\nopendir=DIR\nverify=crc32c\nverify_only=1\nrandrepeat=0\n",
        // A job after others.
        "[a]\nrw=write\nsize=1m\nopendir=DIR\n[b]\nstonewall\nrw=write\nsize=64k\nopendir=DIR\n",
        "[a]\nrw=write\nsize=1m\nopendir=DIR\nverify=crc32c\nverify_state_load=1\n",
        "[a]\nrw=write\nsize=1m\nopendir=DIR\ndedupe_percentage=50\ndedupe_mode=working_set\nfilesize=10m\nsize=50%\n",
    ] {
        let refusal = outcome(directory.path(), text);
        assert!(refusal.is_err(), "{text}");
        assert_eq!(files(directory.path()), before, "{text}: {refusal:?}");
    }
}

#[test]
fn trial_c8_more_files_than_can_be_are_refused() {
    for text in ["[a]\nsize=1g\nnrfiles=1000000000\n", "[a]\nsize=1g\nnrfiles=100000\nnumjobs=50\n"] {
        let refusal = parse_text(text, None, &[]).unwrap_err().to_string();
        assert!(refusal.contains("nrfiles") && refusal.contains("1000000"), "{refusal}");
    }
}

#[test]
fn trial_c6_sequential_holes_end_where_fio_ends() {
    let read = |text: &str| {
        let directory = tempfile::tempdir().unwrap();
        ios(directory.path(), Direction::Read, &format!("[a]\nfilename=DIR/f\nioengine=null\n{text}")).0
    };
    assert_eq!(read("rw=read:512k\nbs=1m\nsize=128m\n"), [85]);
    assert_eq!(read("rw=read:1m\nbs=1m\nsize=128m\n"), [128], "exactly at the end it begins again");
    assert_eq!(read("rw=read:-128k\nbs=4k\nsize=64k\n"), [1]);
}

#[test]
fn trial_c7_number_ios_is_for_each_loop() {
    assert_eq!(written("[a]\nfilename=DIR/f\nrw=write\nbs=4k\nsize=1m\nnumber_ios=10\nloops=3\n"), [30]);
    assert_eq!(written("[a]\nfilename=DIR/f\nrw=write\nbs=4k\nsize=32k\nnumber_ios=10\nloops=3\n"), [24]);
}

#[test]
fn an_io_size_above_size_is_what_a_pass_moves() {
    let job = "[a]\nfilename=DIR/f\nbs=12k\nfilesize=540k\nsize=216k\nloops=2\n";
    for (rw, io_size, ios) in [
        ("write", "300k", 50),
        ("write", "540k", 90),
        ("write", "1800k", 180),
        ("randwrite", "800k", 90),
        ("randwrite\nnorandommap=1", "800k", 134),
    ] {
        assert_eq!(written(&format!("{job}rw={rw}\nio_size={io_size}\n")), [ios], "{rw} {io_size}");
    }
}

#[test]
fn an_io_size_above_size_is_what_a_pass_moves_of_several_files() {
    let job = "[a]\ndirectory=DIR\nbs=4k\nnrfiles=6\n";
    // Each file gets its share repeatedly.
    for line in
        ["openfiles=1", "openfiles=4", "file_service_type=sequential", "openfiles=2\npercentage_random=0"]
    {
        let text = format!("{job}rw=randwrite\nsize=96k\nloops=2\nio_size=772k\nnorandommap=1\n{line}\n");
        assert_eq!(written(&text), [386], "{line}");
    }
    let drawn = format!(
        "{job}rw=randwrite\nbsrange=4k-8k\nsize=96k\nloops=2\nio_size=772k\nnorandommap=1\nopenfiles=1\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let outcome = outcome(directory.path(), &drawn).unwrap();
    let bytes: u64 =
        outcome.workers[0].targets.iter().map(|target| target.directions[Direction::Write].bytes).sum();
    assert!((1_581_056..1_581_056 + 8192).contains(&bytes), "{bytes}");
    // Finished files begin again.
    let uneven = format!("{job}file_service_type=zipf\nsize=292k\n");
    assert_eq!(written(&format!("{uneven}rw=randwrite\nio_size=324k\nloops=3\n")), [243]);
    assert_eq!(written(&format!("{uneven}rw=randwrite\nio_size=294k\n")), [74]);
    assert_eq!(written(&format!("{uneven}rw=write\nio_size=324k\nloops=3\n")), [243]);
}

#[test]
fn what_is_appended_is_one_pass_where_blocks_come_once() {
    let job = "[a]\nfilename=DIR/f\nbs=4k\nsize=40k\nfile_append=1\nloops=2\n";
    assert_eq!(written(&format!("{job}rw=write\n")), [10]);
    assert_eq!(written(&format!("{job}rw=write\nio_size=100k\n")), [10]);
    assert_eq!(written(&format!("{job}rw=randwrite\n")), [10]);
    assert_eq!(written(&format!("{job}rw=randwrite\nnorandommap=1\n")), [20]);
    assert_eq!(
        written(&format!("{job}rw=write\nfilesize=64k\n")),
        [16],
        "to the end of what two passes ask for"
    );
    let files = "[a]\ndirectory=DIR\nnrfiles=6\nfile_service_type=zipf\nsize=24k\nfile_append=1\nloops=2\n";
    assert_eq!(written(&format!("{files}rw=write\n")), [12], "files that come again");
    assert_eq!(written(&format!("{files}rw=randwrite\n")), [12]);
}

#[test]
fn nothing_random_ends_as_a_sequence_does() {
    let job = "[a]\ndirectory=DIR\nrw=randwrite\npercentage_random=0\n";
    assert_eq!(written(&format!("{job}nrfiles=6\nsize=94208\n")), [18]);
    assert_eq!(written(&format!("{job}size=145408\n")), [35]);
}

#[test]
fn what_lies_partly_over_each_other_is_no_loss() {
    let directory = tempfile::tempdir().unwrap();
    for rw in ["write:32k", "write:-40k", "randwrite\nnorandommap=1"] {
        let text = format!(
            "[a]\nfilename=DIR/f\nrw={rw}\nbssplit=8k/60:24k/40\nsize=781361\nverify=crc64\nverify_state_save=0\n\
             experimental_verify=1\n"
        );
        let (ios, error) = ios(directory.path(), Direction::Write, &text);
        assert!(ios[0] > 0 && error.is_none(), "{rw}: {ios:?} {error:?}");
    }
}

#[test]
fn without_a_sum_it_is_read_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[a]\nfilename=DIR/f\nrw=write\nsize=64k\nverify=null\nverify_state_save=0\n";
    let outcome = outcome(directory.path(), text).unwrap();
    let verified = outcome.workers[0].verified.as_ref().unwrap();
    assert_eq!(verified[Direction::Read].ios, 16);
}

#[test]
fn files_that_nobody_came_to_have_nothing_to_sync() {
    let job = "[a]\ndirectory=DIR\nrw=write\nbs=4k\nnrfiles=4\nopenfiles=3\nfile_service_type=sequential\n";
    assert_eq!(written(&format!("{job}filesize=16k\nsize=20k\ncreate_on_open=1\nend_fsync=1\n")), [5]);
}

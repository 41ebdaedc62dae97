//! The files of jobs: their names, sizes, and content before the first I/O.
#![allow(clippy::unwrap_used)]

mod control_support;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

use control_support::*;
use kelvin_measure::Stop;
use kelvin_storage::TargetKind;
use kelvin_storage::control::{RunOptions, lay_out, prepare};
use kelvin_storage::job::{Amount, BlockSizes, EngineName, Fallocate, Job, Jobs};
use kelvin_storage::{PerDirection, Target};

const MIB: u64 = 1 << 20;

/// Lays out jobs; returns the targets of each worker.
fn laid_out(jobs: &Jobs, options: &RunOptions) -> (Vec<Vec<Target>>, Heard) {
    let mut heard = Heard::default();
    let mut prepared = prepare(jobs, options).unwrap();
    lay_out(&mut prepared, &Stop::new(), &mut heard).unwrap();
    (prepared.targets().into_iter().map(|(_, targets)| targets).collect(), heard)
}

fn refusal(jobs: &Jobs, options: &RunOptions) -> String {
    prepare(jobs, options).unwrap_err().to_string()
}

fn regions(targets: &[Target]) -> Vec<(String, u64, u64)> {
    let name = |target: &Target| target.path.file_name().unwrap().to_string_lossy().into_owned();
    targets.iter().map(|target| (name(target), target.begin, target.length)).collect()
}

/// The number of 4 KiB blocks of a file that contain only zeros.
fn zero_blocks(path: &Path) -> usize {
    fs::read(path).unwrap().chunks(4096).filter(|block| block.iter().all(|byte| *byte == 0)).count()
}

#[test]
fn names_and_sizes_are_fios() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("one")).unwrap();
    fs::create_dir_all(at("two")).unwrap();
    let mut made = reader("made", directory.path(), 3 * 4096 * 2 + 8192);
    (made.clones, made.targets.files) = (2, 3);
    made.targets.directories = vec![at("one"), at("two")];
    let mut shared = on(reader("shared", directory.path(), MIB), &at("file"));
    shared.clones = 3;
    (shared.targets.offset, shared.targets.offset_increment) = (Amount::Bytes(8192), Amount::Bytes(MIB));
    let mut formatted = reader("formatted", directory.path(), 4096);
    formatted.targets.filename_format = "deep/$jobnum/$filenum-$jobname".into();
    let (targets, _) = laid_out(&jobs([made, shared, formatted]), &RunOptions::default());
    // 32768 bytes are 10922 for each, and no whole block remains to distribute.
    let equal = |clone: usize| -> Vec<(String, u64, u64)> {
        (0..3).map(|file| (format!("made.{clone}.{file}"), 0, 10922)).collect()
    };
    assert_eq!(regions(&targets[0]), equal(0));
    assert_eq!(regions(&targets[1]), equal(1));
    assert_eq!(targets[0][0].path, at("one/made.0.0"));
    assert_eq!(targets[1][0].path, at("two/made.1.0"));
    for clone in 0..3 {
        assert_eq!(regions(&targets[2 + clone]), [("file".to_owned(), 8192 + clone as u64 * MIB, MIB)]);
    }
    assert_eq!(targets[5][0].path, at("deep/0/0-formatted"));
    assert_eq!(fs::metadata(at("file")).unwrap().len(), 3 * MIB + 8192);
    assert_eq!(fs::metadata(at("one/made.0.2")).unwrap().len(), 10922);
}

#[test]
fn files_for_readers_hold_data_and_files_for_writers_only_room() {
    let directory = tempfile::tempdir().unwrap();
    let kinds = [Fallocate::None, Fallocate::Native, Fallocate::Posix, Fallocate::Keep, Fallocate::Truncate];
    let writers = kinds.iter().enumerate().map(|(number, kind)| {
        let mut job = writer(&format!("w{number}"), directory.path(), MIB);
        job.targets.fallocate = *kind;
        job
    });
    let mut overwriter = writer("over", directory.path(), MIB);
    overwriter.sync.overwrite = true;
    let all = [reader("read", directory.path(), 3 * MIB + 4096), overwriter].into_iter().chain(writers);
    let (_, heard) = laid_out(&jobs(all), &RunOptions::default());
    let at = |name: &str| directory.path().join(format!("{name}.0.0"));
    for (name, size) in [("read", 3 * MIB + 4096), ("over", MIB)] {
        assert_eq!(fs::metadata(at(name)).unwrap().len(), size);
        assert_eq!(zero_blocks(&at(name)), 0, "{name}");
        assert!(fs::metadata(at(name)).unwrap().blocks() * 512 >= size);
    }
    let facts = |number: usize| fs::metadata(at(&format!("w{number}"))).unwrap();
    let seen: Vec<(u64, bool)> = (0..5).map(|n| (facts(n).len(), facts(n).blocks() * 512 >= MIB)).collect();
    assert_eq!(seen, [(0, false), (MIB, true), (MIB, true), (0, true), (MIB, false)]);
    let (_, _, done, total) = heard.layouts.last().unwrap().clone();
    assert_eq!(total, 4 * MIB + 4096);
    assert_eq!(done, total);
    assert!(heard.layouts.windows(2).all(|pair| pair[0].2 <= pair[1].2));
}

#[test]
fn a_file_that_several_share_is_laid_out_once_and_what_was_in_it_stays() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, vec![7; MIB as usize]).unwrap();
    let mut first = on(reader("first", directory.path(), 4 * MIB), &path);
    first.clones = 3;
    let second = on(writer("second", directory.path(), 2 * MIB), &path);
    let run = jobs([first, second]);
    let (_, heard) = laid_out(&run, &RunOptions::default());
    assert_eq!(heard.layouts.last().unwrap().3, 3 * MIB, "only what was missing");
    let content = fs::read(&path).unwrap();
    assert_eq!(content.len() as u64, 4 * MIB);
    assert!(content[..MIB as usize].iter().all(|byte| *byte == 7));
    assert_eq!(zero_blocks(&path), 0);
    let (_, heard) = laid_out(&run, &RunOptions::default());
    assert_eq!(heard.layouts.len(), 0, "nothing is left to do");
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[test]
fn a_writer_begins_with_a_new_file_but_drops_nothing_outside_its_region() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let canary = vec![7; 64 << 10];
    fs::write(&path, &canary).unwrap();
    let mut behind = on(writer("behind", directory.path(), MIB), &path);
    behind.targets.offset = Amount::Bytes(64 << 10);
    let (targets, _) = laid_out(&jobs([behind]), &RunOptions::default());
    assert_eq!((targets[0][0].begin, targets[0][0].length), (64 << 10, MIB));
    assert_eq!(fs::read(&path).unwrap()[..64 << 10], canary);
    let mut append = on(writer("append", directory.path(), MIB), &path);
    append.targets.append = true;
    let (targets, _) = laid_out(&jobs([append]), &RunOptions::default());
    assert_eq!(targets[0][0].begin, (64 << 10) + MIB);
    assert_eq!(fs::read(&path).unwrap()[..64 << 10], canary);
    let (_, _) =
        laid_out(&jobs([on(writer("anew", directory.path(), 8 * MIB), &path)]), &RunOptions::default());
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 0), "as fio: a new file");
}

#[test]
fn a_writer_drops_nothing_that_another_job_reads() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, vec![7; MIB as usize]).unwrap();
    let mut growing = on(writer("growing", directory.path(), 2 * MIB), &path);
    growing.course.stonewall = true;
    laid_out(&jobs([on(job("read"), &path), growing]), &RunOptions::default());
    let content = fs::read(&path).unwrap();
    assert_eq!(content.len() as u64, 2 * MIB);
    assert!(content[..MIB as usize].iter().all(|byte| *byte == 7));
}

#[test]
fn percentages_and_ranges_are_of_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, vec![7; 10 * MIB as usize]).unwrap();
    let mut part = on(job("part"), &path);
    part.targets.size = Some(Amount::Percent(33.0));
    part.targets.offset = Amount::Percent(20.0);
    let mut rest = on(job("rest"), &path);
    rest.targets.offset = Amount::Bytes(9 * MIB + 100);
    let mut clones = on(job("clones"), &path);
    clones.clones = 3;
    clones.targets.offset_increment = Amount::Percent(33.3);
    clones.targets.offset_align = MIB;
    let mut ranged = reader("ranged", directory.path(), 0);
    ranged.targets.size = None;
    (ranged.targets.file_size, ranged.targets.files) = (Some((MIB, 2 * MIB)), 8);
    let run = jobs([part, rest, clones, ranged]);
    let (targets, _) = laid_out(&run, &RunOptions::default());
    let one = |worker: usize| (targets[worker][0].begin, targets[worker][0].length);
    assert_eq!(one(0), (2 * MIB, 3_457_024), "10 MiB · 33 % without the part of a block");
    assert_eq!(one(1), (9 * MIB + 100, MIB - 100));
    assert_eq!([one(2).0, one(3).0, one(4).0], [0, 4 * MIB, 7 * MIB], "rounded up");
    let sizes: Vec<u64> = targets[5].iter().map(|target| target.length).collect();
    assert!(sizes.iter().all(|size| (MIB..=2 * MIB).contains(size) && size % 4096 == 0), "{sizes:?}");
    assert!(sizes.iter().any(|size| *size != sizes[0]));
    let (again, heard) = laid_out(&run, &RunOptions::default());
    assert_eq!(again, targets, "files within the range are taken as they are");
    assert_eq!(heard.layouts.len(), 0);
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let none = RunOptions::default();
    let read_only = RunOptions { read_only: true, ..RunOptions::default() };
    let said = |job: Job, options: &RunOptions| {
        let text = refusal(&jobs([job]), options);
        text.replace(&directory.path().display().to_string(), "DIR")
    };
    fs::write(at("small"), vec![1; 8192]).unwrap();
    let mut forbidden = reader("a", directory.path(), MIB);
    forbidden.targets.allow_create = false;
    let mut behind = on(job("a"), &at("small"));
    behind.targets.offset = Amount::Bytes(8192);
    let mut zones = reader("a", directory.path(), MIB);
    zones.targets.size = Some(Amount::Zones(3));
    let mut large_blocks = on(job("a"), &at("small"));
    large_blocks.blocks.sizes = PerDirection::all(BlockSizes::One(1 << 20));
    let all = [
        said(on(job("a"), &at("missing/file")), &none),
        said(on(job("a"), &at("none")), &none),
        said(reader("a", &at("missing"), MIB), &none),
        said(on(job("a"), directory.path()), &none),
        said(forbidden, &none),
        said(behind, &none),
        said(zones, &none),
        said(large_blocks, &none),
        said(writer("a", directory.path(), MIB), &read_only),
        said(reader("a", directory.path(), MIB), &read_only),
        said(on(job("a"), Path::new("/dev/zero")), &none),
    ];
    insta::assert_snapshot!(all.join("\n"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was made");
    assert!(prepare(&jobs([on(job("a"), &at("small"))]), &read_only).is_ok());
}

#[test]
fn more_than_there_is_room_for_is_refused_with_the_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let text = refusal(&jobs([reader("huge", directory.path(), 1 << 50)]), &RunOptions::default());
    assert!(text.contains("needs 1 PiB more space, but the filesystem has "), "{text}");
    // A hole takes no space.
    let mut hole = writer("hole", directory.path(), 1 << 42);
    hole.targets.fallocate = Fallocate::Truncate;
    assert!(prepare(&jobs([hole]), &RunOptions::default()).is_ok());
}

#[test]
fn preparing_fills_holes_and_reserved_extents_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let file = File::create(&path).unwrap();
    file.set_len(8 * MIB).unwrap();
    let mine = vec![7; MIB as usize];
    file.write_all_at(&mine, 2 * MIB).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 4 * MIB, MIB).unwrap();
    let mut part = on(job("part"), &path);
    part.targets.size = Some(Amount::Bytes(6 * MIB));
    let prepared = RunOptions { prepare: true, ..RunOptions::default() };
    let (_, heard) = laid_out(&jobs([part.clone()]), &prepared);
    let content = fs::read(&path).unwrap();
    assert_eq!(content[2 * MIB as usize..3 * MIB as usize], mine);
    let zeros = content.chunks(4096).map(|block| block.iter().all(|byte| *byte == 0));
    assert_eq!(
        zeros.filter(|zero| *zero).count() as u64,
        2 * MIB / 4096,
        "behind the region it is left as it was"
    );
    assert_eq!(heard.layouts.last().map(|layout| (layout.2, layout.3)), Some((6 * MIB, 6 * MIB)));
    laid_out(&jobs([part]), &prepared);
    assert_eq!(fs::read(&path).unwrap(), content, "a second time there is nothing to fill");
}

#[test]
fn an_interrupted_layout_goes_on_where_it_ended() {
    /// Requests a stop after the first few MiB.
    struct Impatient(Stop);
    impl kelvin_storage::event::IoWatcher for Impatient {
        fn event(&mut self, event: &kelvin_storage::event::IoEvent<'_>) {
            if let kelvin_storage::event::IoEvent::Layout { done, .. } = event
                && *done >= 2 * MIB
            {
                self.0.request();
            }
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let run = jobs([reader("read", directory.path(), 200 * MIB)]);
    let stop = Stop::new();
    let mut prepared = prepare(&run, &RunOptions::default()).unwrap();
    assert_eq!(prepared.layout_bytes(), 200 * MIB);
    lay_out(&mut prepared, &stop, &mut Impatient(stop.clone())).unwrap();
    let path = directory.path().join("read.0.0");
    let there = fs::metadata(&path).unwrap().len();
    assert!((2 * MIB..200 * MIB).contains(&there), "{there}");
    let left = prepare(&run, &RunOptions::default()).unwrap().layout_bytes();
    assert_eq!(left, 200 * MIB - there);
}

#[test]
fn devices_are_taken_as_they_are() {
    let zero = on(reader("zero", Path::new("/"), MIB), Path::new("/dev/zero"));
    let (targets, _) = laid_out(&jobs([zero]), &RunOptions::default());
    assert_eq!((targets[0][0].kind, targets[0][0].length), (TargetKind::Character, MIB));
    let mut null = job("null");
    null.engine.name = EngineName::Null;
    null.targets.size = Some(Amount::Bytes(MIB));
    null.targets.directories = vec!["/tmp".into()];
    let (targets, _) = laid_out(&jobs([null]), &RunOptions::default());
    assert_eq!((targets[0][0].kind, targets[0][0].length), (TargetKind::None, MIB));
    assert!(!targets[0][0].path.exists());
    // Any disk of this machine.
    let disks = fs::read_dir("/dev").unwrap().flatten().filter(|entry| {
        let size = fs::read_to_string(format!("/sys/class/block/{}/size", entry.file_name().display()));
        entry.file_type().is_ok_and(|kind| kind.is_block_device())
            && size.is_ok_and(|size| size.trim() != "0")
    });
    for disk in disks.take(1) {
        let name = disk.file_name().into_string().unwrap();
        let targets =
            prepare(&jobs([on(job("disk"), &disk.path())]), &RunOptions::default()).unwrap().targets();
        let sectors: u64 =
            fs::read_to_string(format!("/sys/class/block/{name}/size")).unwrap().trim().parse().unwrap();
        let target = &targets[0].1[0];
        assert_eq!(
            (target.kind, target.length, target.device.as_deref()),
            (TargetKind::Block, sectors * 512, Some(&*name))
        );
    }
}

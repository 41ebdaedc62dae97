//! Runs between stores: what comes out is what went in, and a damaged file changes nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use common::{Noise, new_run, open_loop, open_series, whole_run};
use kelvin_measure::event::{Event, Status};
use kelvin_measure::{Sink, SourceId};
use kelvin_store::{
    Error, Exporter, GroupId, GroupKind, GroupSlot, ImportSource, Judgement, NewGroup, NewRun, RunId, Store,
};

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn store(&self, name: &str) -> Store {
        Store::open(self.path(name)).unwrap()
    }
}

fn begun(seed: u64) -> NewRun {
    let started = jiff::Timestamp::from_millisecond(1_795_000_000_000 + seed as i64 * 77_000).unwrap();
    NewRun { seed, started, ..new_run(Some("base")) }
}

fn add(store: &Store, run: &NewRun, events: &[Event]) -> RunId {
    let mut writer = store.begin_run(run).unwrap();
    for (index, event) in events.iter().enumerate() {
        writer.event_from(SourceId(u16::from(index % 3 == 2)), event).unwrap();
    }
    writer.id()
}

/// An A/B comparison of three runs, the last of them left out by its group, with a branch and what they were judged to be; an
/// open loop beside it.
fn filled(store: &Store) -> GroupId {
    let group = store
        .begin_group(&NewGroup {
            kind: GroupKind::Ab,
            name: Some("buffers".into()),
            created: jiff::Timestamp::from_millisecond(1_795_000_000_123).unwrap(),
            body: serde_json::json!({"blocks": 6}),
        })
        .unwrap();
    for (place, treatment) in [(0, "A"), (1, "B"), (2, "A")] {
        let run = add(store, &begun(u64::from(place)), &whole_run(u64::from(place) + 5, 4, 12));
        store
            .enter_group(group, run, &GroupSlot { place, block: place / 2, treatment: treatment.into() })
            .unwrap();
        store.enter_history(run, "main", "rack 7").unwrap();
        store.keep_judgement(run, &Judgement::from_reasons(Vec::new())).unwrap();
    }
    store.set_void(RunId(3), "the cache was cold").unwrap();
    add(store, &NewRun { kinds: open_series(), label: None, ..begun(9) }, &open_loop(3));
    group
}

fn exporter(runs: &[i64], groups: &[i64]) -> Exporter {
    Exporter {
        runs: runs.iter().copied().map(RunId).collect(),
        groups: groups.iter().copied().map(GroupId).collect(),
        host: "db1".into(),
        kelvin_version: "0.1.0".into(),
    }
}

/// Everything that is known of a run but its number, and whether it was imported.
fn content(store: &Store, run: RunId) -> (String, Vec<String>) {
    let summary = store.runs().unwrap().into_iter().find(|summary| summary.id == run).unwrap();
    let summary = kelvin_store::RunSummary { id: RunId(0), ..summary };
    let stored = store.load(run).unwrap();
    let slot = store.membership(run).unwrap().map(|member| (member.slot, member.void));
    let figures: Vec<_> = stored.points().iter().map(|point| stored.point_statistics(point.point)).collect();
    let events = stored.sourced_events().map(|event| serde_json::to_string(&event.unwrap()).unwrap());
    let events = events.collect();
    let history = store.in_history(run).unwrap();
    (format!("{summary:?} {:?} {slot:?} {history:?} {figures:?}", stored.info), events)
}

#[test]
fn what_was_exported_is_imported_the_same_under_new_numbers_and_once() {
    let place = Place::new();
    let source = place.store("source.db");
    let group = filled(&source);
    let file = place.path("all.kelvin");
    let written = exporter(&[4], &[group.0]).write(&source, &file).unwrap();
    assert_eq!(written, [1, 2, 3, 4].map(RunId));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // The file is a store, with the numbers that the runs had.
    let read = Store::open_read_only(&file).unwrap();
    for run in &written {
        assert_eq!(content(&read, *run), content(&source, *run));
    }
    assert_eq!(read.members(group).unwrap(), source.members(group).unwrap());

    let mut target = place.store("target.db");
    add(&target, &begun(77), &whole_run(1, 2, 10));
    let imported = target.import(&ImportSource::open(&file).unwrap()).unwrap();
    let numbers: Vec<_> = imported.runs.iter().map(|run| (run.number.0, run.run.0, run.was_there)).collect();
    assert_eq!(numbers, [(1, 2, false), (2, 3, false), (3, 4, false), (4, 5, false)]);
    assert_eq!(imported.host.as_deref(), Some("db1"));
    for run in &imported.runs {
        assert_eq!(content(&target, run.run), content(&source, run.number));
        let origin = target.origin(run.run).unwrap().unwrap();
        assert_eq!((origin.number, origin.describe()), (run.number, "source.db on db1".into()));
    }
    let members: Vec<_> =
        target.members(GroupId(1)).unwrap().into_iter().map(|m| (m.run.0, m.slot.place)).collect();
    assert_eq!(members, [(2, 0), (3, 1), (4, 2)]);
    assert_eq!(target.history().unwrap().iter().map(|(run, ..)| run.0).collect::<Vec<_>>(), [2, 3, 4]);

    // A second time nothing is added; what was said here of a run in the meantime stays.
    target.set_label(RunId(2), Some("mine")).unwrap();
    let again = target.import(&ImportSource::open(&file).unwrap()).unwrap();
    assert!(again.runs.iter().all(|run| run.was_there) && again.groups.iter().all(|group| group.was_there));
    assert_eq!(target.runs().unwrap().len(), 5);
    assert_eq!(target.load(RunId(2)).unwrap().info.label.as_deref(), Some("mine"));

    // On to a third store, where they are still what they were first; and back home, where they are known.
    let onward = place.path("onward.kelvin");
    exporter(&[2, 5], &[1]).write(&target, &onward).unwrap();
    let mut third = place.store("third.db");
    let imported = third.import(&ImportSource::open(&onward).unwrap()).unwrap();
    assert_eq!(third.origin(imported.runs[0].run).unwrap().unwrap().describe(), "source.db on db1");
    let mut source = source;
    assert!(
        source.import(&ImportSource::open(&onward).unwrap()).unwrap().runs.iter().all(|run| run.was_there)
    );
}

#[test]
fn a_whole_store_is_added_to_another_and_a_group_grows() {
    let place = Place::new();
    let source = place.store("source.db");
    let group = filled(&source);
    let mut target = place.store("target.db");
    // Before its group was there.
    let alone = place.path("alone.kelvin");
    exporter(&[1], &[]).write(&source, &alone).unwrap();
    target.import(&ImportSource::open(&alone).unwrap()).unwrap();
    assert_eq!(target.membership(RunId(1)).unwrap(), None);
    let imported = target.import(&ImportSource::open(source.path()).unwrap()).unwrap();
    assert_eq!(imported.host, None);
    assert_eq!(imported.runs.iter().filter(|run| run.was_there).count(), 1);
    assert_eq!(target.members(GroupId(1)).unwrap().len(), 3);
    assert_eq!(target.origin(RunId(2)).unwrap().unwrap().describe(), "source.db");
    // A fourth run of the group.
    let run = add(&source, &begun(20), &whole_run(20, 3, 20));
    source.enter_group(group, run, &GroupSlot { place: 3, block: 1, treatment: "B".into() }).unwrap();
    let imported = target.import(&ImportSource::open(source.path()).unwrap()).unwrap();
    assert_eq!(imported.runs.iter().filter(|run| !run.was_there).count(), 1);
    assert_eq!(target.members(GroupId(1)).unwrap().len(), 4);
    assert_eq!(target.groups().unwrap().len(), 1);
    let itself = ImportSource::open(target.path()).unwrap();
    assert!(target.import(&itself).unwrap_err().to_string().contains("the store itself"));
}

#[test]
fn what_cannot_be_exported_is_refused_and_leaves_no_file() {
    let place = Place::new();
    let store = place.store("kelvin.db");
    filled(&store);
    let file = place.path("out.kelvin");
    let refused = |runs: &[i64], groups: &[i64]| {
        let error = exporter(runs, groups).write(&store, &file).unwrap_err().to_string();
        assert!(!file.exists(), "{error}");
        error
    };
    assert!(refused(&[99], &[]).contains("no run \"99\""));
    assert!(refused(&[], &[7]).contains("there is no group 7"));
    assert!(refused(&[], &[]).contains("no run"));
    // Without its group it would count.
    assert!(refused(&[3], &[]).contains("export group:1"));
    let writer = store.begin_run(&begun(50)).unwrap();
    assert!(refused(&[writer.id().0], &[]).contains("still running"));
    std::fs::write(&file, "mine").unwrap();
    assert!(matches!(exporter(&[1], &[]).write(&store, &file), Err(Error::Exists { .. })));
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

#[test]
fn no_password_leaves_a_store_that_has_one() {
    let place = Place::new();
    let store = place.store("kelvin.db");
    filled(&store);
    // As if an earlier guard had let them through.
    let conn = rusqlite::Connection::open(store.path()).unwrap();
    for change in [
        "UPDATE run SET target = 'postgres://joe:S3cr3t@h/db', command = 'kelvin --target x://joe:S3cr3t@h', \
         spec_toml = 'password = \"S3cr3t\"', notes = '[\"PGPASSWORD=S3cr3t\"]', \
         environment = '{\"database\":{\"settings\":{\"primary_conninfo\":\"host=h password=S3cr3t\"}}}'",
        "UPDATE event SET body = json_set(body, '$.text', 'x://joe:S3cr3t@h') WHERE name = 'note'",
        "UPDATE run_group SET name = 'x://joe:S3cr3t@h', body = '{\"target\":\"x://joe:S3cr3t@h\"}'",
        "UPDATE judgement SET body = '{\"state\":\"void\",\"reasons\":[\"x://joe:S3cr3t@h\"]}' WHERE run = 1",
        "UPDATE member SET void = 'x://joe:S3cr3t@h' WHERE run = 3",
    ] {
        assert!(conn.execute(change, []).unwrap() > 0, "{change}");
    }
    let file = place.path("out.kelvin");
    exporter(&[], &[1]).write(&store, &file).unwrap();
    let bytes = std::fs::read(&file).unwrap();
    assert!(!bytes.windows(6).any(|bytes| bytes == b"S3cr3t"));
    ImportSource::open(&file).unwrap();
}

#[test]
fn a_file_that_says_otherwise_than_the_store_is_refused() {
    let place = Place::new();
    let source = place.store("source.db");
    filled(&source);
    let mut target = place.store("target.db");
    target.import(&ImportSource::open(source.path()).unwrap()).unwrap();
    let conn = rusqlite::Connection::open(source.path()).unwrap();
    let mut refused = |change: &str, back: &str, words: &str| {
        assert!(conn.execute(change, []).unwrap() > 0, "{change}");
        let before = std::fs::read(target.path()).unwrap();
        let error =
            ImportSource::open(source.path()).and_then(|file| target.import(&file)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(std::fs::read(target.path()).unwrap(), before);
        conn.execute(back, []).unwrap();
    };
    refused(
        "UPDATE second SET failed = failed + 1 WHERE run = 2",
        "UPDATE second SET failed = failed - 1 WHERE run = 2",
        "different content",
    );
    refused(
        "UPDATE run_group SET created_ms = 5",
        "UPDATE run_group SET created_ms = 1795000000123",
        "in group 1",
    );
    refused("CREATE TABLE other (x); ", "DROP TABLE other", "its tables are not those");
    let error = ImportSource::open(&place.path("none.db")).unwrap_err().to_string();
    assert!(error.contains("the file does not exist"), "{error}");
    assert!(
        ImportSource::open(place.store("empty.db").path())
            .unwrap_err()
            .to_string()
            .contains("it contains no run")
    );
}

/// Imports a damaged copy of `whole` into a store of one run. Whether it was refused, with the words.
fn tried(
    place: &Place,
    bytes: &[u8],
    untouched: &Path,
    content_before: &BTreeSet<(String, Vec<String>)>,
) -> Option<String> {
    let (bad, copy) = (place.path("bad.kelvin"), place.path("copy.db"));
    std::fs::write(&bad, bytes).unwrap();
    std::fs::copy(untouched, &copy).unwrap();
    let mut target = Store::open(&copy).unwrap();
    match ImportSource::open(&bad).and_then(|file| target.import(&file)) {
        Ok(imported) => {
            // Damage where nothing stands: what was imported is what was exported.
            let content: BTreeSet<_> = imported.runs.iter().map(|run| content(&target, run.run)).collect();
            assert_eq!(&content, content_before);
            None
        }
        Err(error) => {
            assert_eq!((target.runs().unwrap().len(), target.groups().unwrap().len()), (1, 0));
            Some(error.to_string())
        }
    }
}

#[test]
fn a_damaged_file_is_refused_or_imported_as_it_was_and_never_in_part() {
    let place = Place::new();
    let source = place.store("source.db");
    let group = filled(&source);
    let file = place.path("whole.kelvin");
    exporter(&[], &[group.0]).write(&source, &file).unwrap();
    let untouched = place.path("untouched.db");
    add(&Store::open(&untouched).unwrap(), &begun(300), &whole_run(8, 1, 5));
    let whole = std::fs::read(&file).unwrap();
    let exported: BTreeSet<_> = (1..=3).map(|run| content(&source, RunId(run))).collect();
    assert_eq!(tried(&place, &whole, &untouched, &exported), None);

    let mut noise = Noise(42);
    for _ in 0..12 {
        let keep = noise.next(whole.len() as u64) as usize;
        let words = tried(&place, &whole[..keep], &untouched, &exported).unwrap();
        assert!(words.starts_with("cannot import"), "{keep} bytes kept: {words}");
    }
    let mut refused = 0;
    for round in 0..60 {
        let mut bytes = whole.clone();
        // The header and the first page decide what all else means: a quarter of the damage is done there.
        let within = if round % 4 == 0 { 4096 } else { bytes.len() };
        // Much of a small file's pages is empty or left over from splits, where damage does no harm.
        let mut at = noise.next(within as u64) as usize;
        while whole[at] == 0 {
            at = noise.next(within as u64) as usize;
        }
        bytes[at] ^= 1 << noise.next(8);
        if let Some(words) = tried(&place, &bytes, &untouched, &exported) {
            refused += 1;
            assert!(
                words.starts_with("cannot import") || words.contains("is a store of version"),
                "byte {at}: {words}"
            );
        }
    }
    assert!(refused > 20, "{refused} of 60 were refused");
    // Whole pages of something else.
    for page in (0..whole.len() / 4096).step_by(13) {
        let mut bytes = whole.clone();
        for byte in &mut bytes[page * 4096..(page + 1) * 4096] {
            *byte = noise.next(256) as u8;
        }
        assert!(tried(&place, &bytes, &untouched, &exported).is_some(), "page {page}");
    }
}

#[test]
fn a_run_that_was_killed_is_so_elsewhere() {
    let place = Place::new();
    let source = place.store("source.db");
    let events = whole_run(4, 4, 20);
    add(&source, &begun(1), &events[..events.len() - 1]);
    // As if it had been another process.
    let conn = rusqlite::Connection::open(source.path()).unwrap();
    conn.execute("UPDATE run SET writer = json_set(writer, '$.start', 1)", []).unwrap();
    let file = place.path("killed.kelvin");
    exporter(&[1], &[]).write(&source, &file).unwrap();
    let mut target = place.store("target.db");
    target.import(&ImportSource::open(&file).unwrap()).unwrap();
    assert_eq!(content(&target, RunId(1)), content(&source, RunId(1)));
    assert_eq!(target.load(RunId(1)).unwrap().status, Status::Partial);
}

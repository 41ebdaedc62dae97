//! Runs that belong together, and the history.

mod common;

use common::new_run;
use kelvin_store::{GroupKind, GroupSlot, NewGroup, Store};

fn slot(place: u32, block: u32, treatment: &str) -> GroupSlot {
    GroupSlot { place, block, treatment: treatment.into() }
}

#[test]
fn a_group_keeps_its_runs_in_their_order_with_what_voids_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path().join("kelvin.db")).unwrap();
    let group = NewGroup {
        kind: GroupKind::Ab,
        name: Some("buffers".into()),
        created: jiff::Timestamp::from_millisecond(1_795_000_000_123).unwrap(),
        body: serde_json::json!({"blocks": 6, "target": "postgres://joe:secret@host/db"}),
    };
    let id = store.begin_group(&group).unwrap();
    let runs: Vec<_> = (0..3).map(|_| store.begin_run(&new_run(None)).unwrap().id()).collect();
    store.enter_group(id, runs[1], &slot(0, 0, "B")).unwrap();
    store.enter_group(id, runs[0], &slot(1, 0, "A")).unwrap();
    store.set_void(runs[1], "steal").unwrap();

    let members = store.members(id).unwrap();
    let seen: Vec<_> =
        members.iter().map(|m| (m.run, m.slot.treatment.as_str(), m.void.as_deref())).collect();
    assert_eq!(seen, [(runs[1], "B", Some("void: steal")), (runs[0], "A", None)]);
    assert_eq!(store.membership(runs[0]).unwrap().unwrap().group, id);
    assert_eq!(store.membership(runs[2]).unwrap(), None);
    let stored = store.group(id).unwrap().unwrap();
    assert_eq!((stored.info.kind, stored.info.name.as_deref()), (GroupKind::Ab, Some("buffers")));
    assert_eq!(stored.info.created, group.created);
    assert!(!stored.info.body.to_string().contains("secret"), "{}", stored.info.body);
    assert!(store.enter_group(id, runs[0], &slot(2, 1, "A")).is_err(), "a run stands in one group only");

    // A deleted run leaves its group; one that is being written is not deleted, so it has to end first.
    drop(store.begin_run(&new_run(None)).unwrap());
    let ended = {
        use kelvin_measure::Event;
        use kelvin_measure::Sink;
        use kelvin_measure::event::Status;
        let mut writer = store.begin_run(&new_run(None)).unwrap();
        writer.event(&Event::Finished { status: Status::Complete, error: None }).unwrap();
        writer.id()
    };
    store.enter_group(id, ended, &slot(2, 1, "A")).unwrap();
    store.enter_history(ended, "main", "rack 7").unwrap();
    assert_eq!(store.in_history(ended).unwrap(), Some(("main".into(), "rack 7".into())));
    store.delete(ended).unwrap();
    assert_eq!((store.members(id).unwrap().len(), store.history().unwrap().len()), (2, 0));
}

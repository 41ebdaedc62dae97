//! A study from its file to its results on a simulated bench. However and whenever a session ends, the study
//! continues to the same results, and its changes are restored.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell as Shared;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use kelvin_diagnose::{Better, KeyFigure};
use kelvin_lab::bench::{Bench, BenchError, Measured, Planned};
use kelvin_lab::conditions::{CellConditions, DesignCell};
use kelvin_lab::study::{
    Deviation, EnvironmentFacts, Execution, Ledger, LedgerEntry, LedgerEvent, Lock, Opening, State, Study,
    StudyEnd, StudyEnvironment, StudyError, StudyPlan, begin, execute,
};
use kelvin_run::spec::Spec;
use kelvin_store::{GroupId, Judgement, RunId};
use proptest::prelude::*;

/// The events of the simulated world.
#[derive(Debug, Clone, Default)]
struct World {
    /// Number of consecutive void attempts, by block and treatment.
    void: BTreeMap<(u32, String), u32>,
    /// Number of consecutive failed attempts, likewise; they precede the void ones.
    fail: BTreeMap<(u32, String), u32>,
    /// A stop is requested in this run of the session.
    interrupt: Option<u32>,
    /// The bench panics in this run of the session.
    panic: Option<u32>,
}

struct Simulated {
    world: World,
    /// Void and failed attempts so far.
    tried: BTreeMap<(u32, String), u32>,
    runs: u32,
    applied: Rc<Shared<bool>>,
    messages: Vec<String>,
}

impl Simulated {
    fn new(world: &World, entries: &[LedgerEntry], applied: &Rc<Shared<bool>>) -> Self {
        let mut tried = BTreeMap::new();
        for entry in entries {
            if let LedgerEvent::Void { attempt, .. } | LedgerEvent::Failed { attempt, .. } = &entry.event {
                *tried.entry((attempt.block, attempt.treatment.clone())).or_default() += 1;
            }
        }
        Self { world: world.clone(), tried, runs: 0, applied: Rc::clone(applied), messages: Vec::new() }
    }
}

impl Bench for Simulated {
    fn measure(&mut self, planned: &Planned<'_>) -> Result<Measured, BenchError> {
        assert!(self.applied.get(), "a run without its conditions");
        self.runs += 1;
        assert_ne!(Some(self.runs), self.world.panic, "planned");
        if Some(self.runs) == self.world.interrupt {
            return Err(BenchError::Interrupted);
        }
        let key = (planned.slot.block, planned.slot.treatment.clone());
        let (fail, void) = (self.world.fail.get(&key), self.world.void.get(&key));
        let (fail, void) = (fail.copied().unwrap_or(0), void.copied().unwrap_or(0));
        let tried = self.tried.entry(key).or_default();
        if *tried < fail {
            *tried += 1;
            return Err(BenchError::Failed("the server crashed".into()));
        }
        let mut why = Vec::new();
        if *tried < fail + void {
            *tried += 1;
            why.push("a checkpoint fell into the window".to_owned());
        }
        // The value depends only on the run and the seed. A third has no finite binary representation.
        let length: usize = planned.slot.treatment.len();
        let value = (planned.spec.load.seed as f64 + length as f64) / 3.0;
        let figure = |id: &str, value| KeyFigure {
            id: id.into(),
            name: id.into(),
            unit: "1".into(),
            better: Some(Better::Higher),
            value: Some(value),
            at_least: false,
        };
        Ok(Measured {
            run: RunId(i64::from(planned.slot.place) + 100),
            figures: vec![figure("nopm", value), figure("p99", 1.0 / value)],
            judgement: Judgement::from_reasons(why),
            seconds: 20.0,
        })
    }

    fn report(&mut self, text: &str) {
        self.messages.push(text.into());
    }

    fn stopped(&self) -> bool {
        false
    }
}

struct Changed(Rc<Shared<bool>>);

impl CellConditions for Changed {
    fn apply(&mut self, _cell: &DesignCell, _spec: &mut Spec) -> Result<(), BenchError> {
        self.0.set(true);
        Ok(())
    }

    fn undo(&mut self) -> Result<(), BenchError> {
        self.0.set(false);
        Ok(())
    }
}

struct Answers;

impl StudyEnvironment for Answers {
    fn revive(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn set_void(&mut self, _run: RunId, why: &str) -> Result<(), BenchError> {
        panic!("every run here has a value: {why}")
    }
}

fn study(levels: &[usize], blocks: u32, control: bool) -> Study {
    let mut text = format!(
        "name = \"s\"\nquestion = \"?\"\n[goal]\nmetric = \"nopm\"\ndirection = \"higher\"\nsmallest-effect = \"3%\"\n\
         [hypothesis]\nstatement = \"s\"\nmechanism = \"m\"\nfactor = \"f0\"\nfrom = \"1\"\nto = \"2\"\n\
         predicts = [{{ metric = \"nopm\", direction = \"higher\" }}]\n\
         [design]\nkind = \"factorial\"\nblocks = {blocks}\ncontrol = {control}\nseed = 7\n\
         [run]\nworkload = \"tproc-c\"\n"
    );
    for (index, &count) in levels.iter().enumerate() {
        let values: Vec<String> = (1..=count).map(|level| level.to_string()).collect();
        // Paths of existing values, so that no two factors change the same one.
        let path = ["load.users", "load.retries", "tproc-c.warehouses"][index];
        let values = values.join(", ");
        text.push_str(&format!("[[factor]]\nname = \"f{index}\"\nlevels = [{values}]\nspec = \"{path}\"\n"));
    }
    Study::parse(&text, "study.toml", Path::new(".")).unwrap()
}

/// One session: opens the ledger, continues the study, and checks that everything is restored.
fn session(study: &Study, ledger: &Path, world: &World) -> (Result<StudyEnd, StudyError>, State) {
    let plan = StudyPlan::new(study);
    let (mut ledger, entries) = Ledger::open(ledger).unwrap();
    let mut state = State::from_entries(&plan, &entries);
    let applied = Rc::new(Shared::new(false));
    let opening = Opening {
        study,
        plan: &plan,
        lock: None,
        facts: EnvironmentFacts::from([("kernel".into(), "6.1".into())]),
        store: Path::new("/kelvin.db"),
        group: GroupId(1),
    };
    begin(&mut ledger, &mut state, &opening).unwrap();
    let mut bench = Simulated::new(world, &entries, &applied);
    let execution = Execution {
        study,
        plan: &plan,
        group: GroupId(1),
        budget: plan.replacements,
        ledger: &mut ledger,
        state: &mut state,
    };
    let ended = execute(execution, &mut bench, &mut Changed(Rc::clone(&applied)), &mut Answers);
    assert!(!applied.get(), "something is left changed");
    (ended, state)
}

/// The data that determines the answer: the metrics of each run of each cell.
fn table(study: &Study, state: &State) -> Vec<(u32, usize, bool, Vec<KeyFigure>)> {
    let counted = state.counted(&StudyPlan::new(study));
    counted.into_iter().map(|one| (one.block, one.cell, one.control, one.results.figures)).collect()
}

/// A directory in memory if possible, because the ledger waits for the disk at every line.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn worlds(plan: &StudyPlan) -> impl Strategy<Value = World> + use<> {
    let keys: Vec<_> = plan.runs.iter().map(|&run| (run.block, plan.treatment(run).name.clone())).collect();
    let some = proptest::collection::btree_map(proptest::sample::select(keys), 1_u32..3, 0..4);
    (some.clone(), some).prop_map(|(void, fail)| World { void, fail, ..World::default() })
}

fn studies() -> impl Strategy<Value = (Study, World)> {
    let levels = proptest::collection::vec(2_usize..4, 1..3);
    let studies = (levels, 1_u32..4, any::<bool>())
        .prop_map(|(levels, blocks, control)| study(&levels, blocks, control));
    studies.prop_flat_map(|study| {
        let worlds = worlds(&StudyPlan::new(&study));
        (Just(study), worlds)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// A kill after any line, or within one, leaves an intact ledger; the next session continues from it.
    #[test]
    fn killed_anywhere_it_comes_to_the_same_results((study, world) in studies(), kills in proptest::collection::vec((0.0..1.0, 0_usize..80), 1..4)) {
        let place = directory();
        let whole = place.path().join("whole.jsonl");
        let (ended, state) = session(&study, &whole, &world);
        // Three consecutive failures end a session; the next one continues.
        let mut ended = ended;
        let mut state = state;
        while ended.is_err() {
            (ended, state) = session(&study, &whole, &world);
        }
        let text = std::fs::read(&whole).unwrap();

        let killed = place.path().join("killed.jsonl");
        std::fs::write(&killed, &text).unwrap();
        for (share, torn) in kills {
            let text = std::fs::read(&killed).unwrap();
            let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
            let keep = (share * lines.len() as f64) as usize;
            let mut left = lines[..keep].concat();
            left.extend(lines[keep].iter().take(torn.min(lines[keep].len() - 1)));
            std::fs::write(&killed, left).unwrap();
            while session(&study, &killed, &world).0.is_err() {}
        }
        let (again, after) = session(&study, &killed, &world);
        prop_assert_eq!(again.unwrap(), ended.unwrap());
        prop_assert_eq!(table(&study, &after), table(&study, &state));
        prop_assert_eq!(after.void.len(), state.void.len());
        prop_assert_eq!(after.replaced() <= StudyPlan::new(&study).replacements, true);
    }

    /// A stop request in any run, and a bench that panics.
    #[test]
    fn stopped_anywhere_it_comes_to_the_same_results((study, world) in studies(), at in 1_u32..12) {
        let place = directory();
        let (mut whole, mut stopped) = (session(&study, &place.path().join("a"), &world), None);
        while whole.0.is_err() {
            whole = session(&study, &place.path().join("a"), &world);
        }
        let path = place.path().join("b");
        let interrupting = World { interrupt: Some(at), ..world.clone() };
        for _ in 0..3 {
            stopped = Some(session(&study, &path, &interrupting));
        }
        if let Some((Ok(StudyEnd::Interrupted), state)) = &stopped {
            prop_assert!(state.missing() > 0);
        }
        let (mut ended, mut state) = session(&study, &path, &world);
        while ended.is_err() {
            (ended, state) = session(&study, &path, &world);
        }
        prop_assert_eq!(table(&study, &state), table(&study, &whole.1));
    }
}

#[test]
fn every_block_has_every_treatment_once_and_more_blocks_change_no_order() {
    let (few, many) = (study(&[3, 2], 4, true), study(&[3, 2], 9, true));
    let (few, many) = (StudyPlan::new(&few), StudyPlan::new(&many));
    assert_eq!(few.runs.len(), 4 * 7);
    assert_eq!(few.runs, many.runs[..few.runs.len()]);
    for block in 0..9 {
        let mut treatments: Vec<usize> =
            many.runs.iter().filter(|run| run.block == block).map(|run| run.treatment).collect();
        treatments.sort_unstable();
        assert_eq!(treatments, (0..7).collect::<Vec<_>>());
    }
    let orders: std::collections::BTreeSet<Vec<usize>> =
        many.runs.chunks(7).map(|block| block.iter().map(|run| run.treatment).collect()).collect();
    assert!(orders.len() > 5, "each block is shuffled by itself: {orders:?}");
}

#[test]
fn a_panic_puts_everything_back() {
    let place = directory();
    let study = study(&[2], 4, false);
    let plan = StudyPlan::new(&study);
    let applied = Rc::new(Shared::new(false));
    let world = World { panic: Some(3), ..World::default() };
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let (mut ledger, entries) = Ledger::open(&place.path().join("ledger.jsonl")).unwrap();
        let mut state = State::from_entries(&plan, &entries);
        let execution = Execution {
            study: &study,
            plan: &plan,
            group: GroupId(1),
            budget: 2,
            ledger: &mut ledger,
            state: &mut state,
        };
        let mut bench = Simulated::new(&world, &entries, &applied);
        execute(execution, &mut bench, &mut Changed(Rc::clone(&applied)), &mut Answers)
    }));
    assert!(caught.is_err());
    assert!(!applied.get(), "something is left changed");
    let (ended, state) = session(&study, &place.path().join("ledger.jsonl"), &World::default());
    assert_eq!(ended.unwrap(), StudyEnd::Complete);
    assert_eq!(state.counted_runs(), 8);
}

#[test]
fn void_runs_are_kept_replaced_at_their_blocks_end_and_end_with_the_budget() {
    let place = directory();
    let path = place.path().join("ledger.jsonl");
    let study = study(&[2], 4, false);
    let base = "f0=1".to_owned();
    // 8 runs, therefore 2 replacements. The first one counts, the second is void, too.
    let void = BTreeMap::from([((0, base.clone()), 1), ((1, base.clone()), 9)]);
    let (ended, state) = session(&study, &path, &World { void, ..World::default() });
    assert_eq!(ended.unwrap(), StudyEnd::Missing(1));
    assert_eq!((state.counted_runs(), state.void.len(), state.replaced()), (7, 3, 2));
    let blocks: Vec<u32> = Ledger::read(&path)
        .unwrap()
        .iter()
        .filter_map(|entry| {
            if let LedgerEvent::Started { attempt } = &entry.event { Some(attempt.block) } else { None }
        })
        .collect();
    assert!(blocks.is_sorted(), "a block stays together: {blocks:?}");
    assert!(state.void.iter().all(|(_, results, why)| results.run.0 >= 100 && !why.is_empty()));
    // In another session, a larger budget fills the gap.
    let (mut ledger, entries) = Ledger::open(&path).unwrap();
    let plan = StudyPlan::new(&study);
    let mut state = State::from_entries(&plan, &entries);
    let applied = Rc::new(Shared::new(false));
    let execution = Execution {
        study: &study,
        plan: &plan,
        group: GroupId(1),
        budget: 5,
        ledger: &mut ledger,
        state: &mut state,
    };
    let mut bench = Simulated::new(&World::default(), &[], &applied);
    let ended = execute(execution, &mut bench, &mut Changed(applied), &mut Answers);
    assert_eq!(ended.unwrap(), StudyEnd::Complete);
    assert!(
        bench.messages[0].starts_with("run 8 of 8 · block 2 of 4 · f0=1 · about "),
        "{:?}",
        bench.messages
    );
}

#[test]
fn a_replacement_that_was_interrupted_is_one_of_the_budget() {
    let place = directory();
    let path = place.path().join("ledger.jsonl");
    // Four runs, therefore two replacements; both cells of the first block are void once.
    let study = study(&[2], 2, false);
    let void = ["f0=1", "f0=2"].map(|name| ((0, name.to_owned()), 1)).into_iter().collect();
    let world = World { void, ..World::default() };
    // The third run is the first replacement.
    let interrupting = World { interrupt: Some(3), ..world.clone() };
    assert_eq!(session(&study, &path, &interrupting).0.unwrap(), StudyEnd::Interrupted);
    let (ended, state) = session(&study, &path, &world);
    assert_eq!(ended.unwrap(), StudyEnd::Complete);
    assert_eq!((state.counted_runs(), state.replaced()), (4, 2));
}

#[test]
fn three_failures_in_a_row_end_the_session_and_keep_what_there_is() {
    let place = directory();
    let path = place.path().join("ledger.jsonl");
    let study = study(&[3], 2, false);
    let fail = ["f0=1", "f0=2", "f0=3"].map(|name| ((1, name.to_owned()), 1)).into_iter().collect();
    let world = World { fail, ..World::default() };
    let (ended, state) = session(&study, &path, &world);
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("3 runs failed in a row") && error.contains("the server crashed"), "{error}");
    assert_eq!((state.counted_runs(), state.failed.len()), (3, 3));
}

#[test]
fn a_study_is_run_by_one_at_a_time_and_a_damaged_ledger_is_not_gone_on_with() {
    let place = directory();
    let path = place.path().join("ledger.jsonl");
    let open = Ledger::open(&path).unwrap();
    assert!(Ledger::open(&path).unwrap_err().to_string().contains("already running"));
    drop(open);
    let (mut ledger, _) = Ledger::open(&path).unwrap();
    ledger.append(LedgerEvent::Interrupted { place: None }).unwrap();
    drop(ledger);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.insert_str(0, "{\"at\": \"yesterday\"}\n");
    std::fs::write(&path, text).unwrap();
    let error = Ledger::open(&path).unwrap_err().to_string();
    assert!(error.contains("line 1"), "{error}");
}

#[test]
fn what_changes_after_the_lock_or_between_sessions_is_a_deviation() {
    let place = directory();
    let locked = study(&[2], 6, false);
    let lock = Lock::new(&locked, "0.1.0", 0).unwrap();
    lock.write(&place.path().join("lock.json")).unwrap();
    assert!(lock.write(&place.path().join("lock.json")).is_err(), "a lock is written once");
    let lock = Lock::read(&place.path().join("lock.json")).unwrap().unwrap();
    assert_eq!(lock.deviations(&locked).unwrap(), []);
    assert_eq!(Lock::new(&locked, "9", 3).unwrap().sha256, lock.sha256, "of what is fixed, and nothing else");

    let changed = study(&[3], 4, false);
    let changes: Vec<String> = lock.deviations(&changed).unwrap().iter().map(Deviation::describe).collect();
    assert_eq!(changes, ["study.toml design.blocks: 6 → 4", "study.toml factor.f0.levels: [1,2] → [1,2,3]"]);
    let mut forged = lock.clone();
    forged.parts.insert("question".into(), "another".into());
    assert!(forged.deviations(&locked).unwrap()[0].describe().starts_with("lock.json sha256: "));

    let (mut ledger, entries) = Ledger::open(&place.path().join("ledger.jsonl")).unwrap();
    let plan = StudyPlan::new(&changed);
    let mut state = State::from_entries(&plan, &entries);
    let mut begin = |kernel: &str| {
        let opening = Opening {
            study: &changed,
            plan: &plan,
            lock: Some(&lock),
            facts: EnvironmentFacts::from([("kernel".into(), kernel.into())]),
            store: Path::new("/kelvin.db"),
            group: GroupId(1),
        };
        let new = begin(&mut ledger, &mut state, &opening).unwrap();
        new.iter().map(Deviation::describe).collect::<Vec<_>>()
    };
    assert_eq!(begin("6.1"), changes);
    assert_eq!(begin("6.1"), Vec::<String>::new(), "reported once");
    assert_eq!(begin("6.2"), ["environment kernel: 6.1 → 6.2"]);
    assert_eq!(begin("6.1"), ["environment kernel: 6.2 → 6.1"]);
    assert_eq!(state.deviations.len(), 4);
}

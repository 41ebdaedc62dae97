//! A bench that applies the conditions of a side before each of its runs.

use std::time::Instant;

use crate::bench::{Bench, BenchError, Measured, Planned};
use crate::conditions::{CellConditions, DesignCell};

/// Makes the runs of a comparison whose sides A and B differ in conditions. The caller undoes the conditions.
pub struct ConditionedBench<'a> {
    bench: &'a mut dyn Bench,
    conditions: &'a mut dyn CellConditions,
    cells: [DesignCell; 2],
    until: Option<Instant>,
    late: bool,
}

impl<'a> ConditionedBench<'a> {
    /// Runs on `bench` with the conditions of A and B. No run starts after `until`.
    pub fn new(
        bench: &'a mut dyn Bench,
        conditions: &'a mut dyn CellConditions,
        cells: [DesignCell; 2],
        until: Option<Instant>,
    ) -> Self {
        Self { bench, conditions, cells, until, late: false }
    }

    /// Whether it ended because the time was over, and not because a stop was requested.
    pub fn is_late(&self) -> bool {
        self.late && !self.bench.stopped()
    }
}

impl Bench for ConditionedBench<'_> {
    fn measure(&mut self, planned: &Planned<'_>) -> Result<Measured, BenchError> {
        let [a, b] = &self.cells;
        // A second run of a side is named "A'" or "B'".
        let cell = if planned.slot.treatment.starts_with('A') { a } else { b };
        let mut spec = planned.spec.clone();
        self.conditions.apply(cell, &mut spec)?;
        let measured = self.bench.measure(&Planned { spec: &spec, ..*planned });
        self.late |= self.until.is_some_and(|until| Instant::now() >= until);
        measured
    }

    fn report(&mut self, text: &str) {
        self.bench.report(text);
    }

    fn stopped(&self) -> bool {
        self.late || self.bench.stopped()
    }
}

#[cfg(test)]
mod tests {
    use kelvin_run::Spec;
    use kelvin_store::GroupId;

    use super::*;
    use crate::ab;
    use crate::conditions::FactorSetting;
    use crate::repeat::RepeatEnd;
    use crate::simulated::studies::plan;
    use crate::simulated::{Simulated, Simulation};

    /// Marks the specification with the cell.
    #[derive(Default)]
    struct Marks {
        applied: Vec<String>,
    }

    impl CellConditions for Marks {
        fn apply(&mut self, cell: &DesignCell, spec: &mut Spec) -> Result<(), BenchError> {
            self.applied.push(cell.name());
            spec.label = Some(cell.name());
            Ok(())
        }

        fn undo(&mut self) -> Result<(), BenchError> {
            Ok(())
        }
    }

    fn cells() -> [DesignCell; 2] {
        ["before", "changed"]
            .map(|level| DesignCell(vec![FactorSetting { factor: "change".into(), level: level.into() }]))
    }

    #[test]
    fn each_run_has_the_conditions_of_its_side_and_none_begins_after_the_time_is_over() {
        let specs: Vec<Spec> = vec![Spec::new(kelvin_run::spec::WorkloadName::TprocC); 2];
        let describe = |_: &ab::AbEvent<'_>| String::new();
        let mut faster = Simulated::new(|planned: &Planned<'_>| {
            let changed = planned.spec.label.as_deref() == Some("change=changed");
            assert_eq!(changed, planned.slot.treatment.starts_with('B'), "{planned:?}");
            Ok(Simulation::of(if changed { 200.0 } else { 100.0 } + f64::from(planned.slot.place % 3)))
        });
        let mut marks = Marks::default();
        let mut bench = ConditionedBench::new(&mut faster, &mut marks, cells(), None);
        let ran = ab::run(&plan(), &specs, GroupId(1), &mut bench, &describe).unwrap();
        assert!(matches!(ran.ended, RepeatEnd::Done) && !bench.is_late());
        assert_eq!(marks.applied.len(), 24);

        let mut any = Simulated::new(|_: &Planned<'_>| Ok(Simulation::of(100.0)));
        let mut marks = Marks::default();
        let mut bench = ConditionedBench::new(&mut any, &mut marks, cells(), Some(Instant::now()));
        let ran = ab::run(&plan(), &specs, GroupId(1), &mut bench, &describe).unwrap();
        assert!(matches!(ran.ended, RepeatEnd::Interrupted) && bench.is_late() && ran.rows.len() == 1);
    }
}

//! A job while its options are being read: inheritance from `[global]`, and values that can only be resolved when all
//! are known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kelvin_measure::SECOND;

use super::value::Value;
use crate::error::Location;
use crate::job::{
    BlockSizes, Flow, Job, Replay, SteadyFigure, SteadyState, Strided, Thinking, Verify, VerifyMethod,
};
use crate::{Direction, PerDirection};

/// A part of `bssplit=`: the size, and its percentage where one was given.
pub(crate) type SplitPart = (u32, Option<f64>);

/// A part of `cmdprio_bssplit=`: a length, the percentage of its I/Os (`None` for the remainder that other entries leave), and their class, level and
/// hint where given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PriorityPart {
    pub(super) length: u32,
    pub(super) percent: Option<f64>,
    pub(super) priority: Option<(u8, u8, u16)>,
}

/// An option was given.
#[derive(Debug, Clone)]
pub(crate) struct OptionOrigin {
    pub(crate) place: Location,
    /// By the job itself, and not by `[global]`.
    pub(crate) own: bool,
}

/// A job in the making.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// Options that need no resolving are written into it immediately.
    pub(crate) job: Job,
    /// Where each option was given last, by its canonical name (never an alias).
    pub(crate) written: BTreeMap<&'static str, OptionOrigin>,
    pub(crate) sizes: PerDirection<Option<u32>>,
    pub(crate) ranges: PerDirection<Option<(u32, u32)>>,
    pub(crate) splits: PerDirection<Option<Vec<SplitPart>>>,
    pub(crate) verify: Option<VerifyMethod>,
    pub(crate) verify_options: Verify,
    pub(crate) thinking: Thinking,
    pub(crate) flow: Flow,
    pub(crate) steady: SteadyState,
    pub(crate) replay: Replay,
    pub(crate) strided: bool,
    pub(crate) zones: Strided,
    pub(crate) priority_class: Option<u8>,
    pub(crate) priority_level: Option<u8>,
    pub(crate) command_percentage: Option<[f64; 2]>,
    pub(crate) command_split: [Vec<PriorityPart>; 2],
    pub(crate) command_class: [Option<u8>; 2],
    pub(crate) command_level: [Option<u8>; 2],
    pub(crate) working_set: bool,
    pub(crate) working_set_percentage: f64,
    pub(crate) epoch: bool,
    pub(crate) epoch_clock: i32,
    pub(crate) log_compression: bool,
    pub(crate) open_directory: Option<PathBuf>,
}

impl Draft {
    /// fio's defaults.
    pub(crate) fn new() -> Self {
        Self {
            job: Job::named(""),
            written: BTreeMap::new(),
            sizes: PerDirection::all(None),
            ranges: PerDirection::all(None),
            splits: PerDirection::all(None),
            verify: None,
            verify_options: Verify::by(VerifyMethod::Null),
            thinking: Thinking { time: 0, spin: 0, blocks: 1, by_issue: false, io_time: None },
            flow: Flow { id: 0, weight: 0, sleep: 0 },
            steady: SteadyState {
                figure: SteadyFigure::Iops,
                slope: true,
                limit: 0.01,
                percent: true,
                window: 0,
                ramp: 0,
                interval: SECOND,
            },
            replay: Replay {
                files: Vec::new(),
                no_stall: false,
                time_scale: 100.0,
                redirect: None,
                align: None,
                scale: None,
                skip: Vec::new(),
                chunked: false,
            },
            strided: false,
            zones: Strided { range: 0, size: 0, skip: 0 },
            priority_class: None,
            priority_level: None,
            command_percentage: None,
            command_split: [Vec::new(), Vec::new()],
            command_class: [None; 2],
            command_level: [None; 2],
            working_set: false,
            working_set_percentage: 5.0,
            epoch: false,
            epoch_clock: 0,
            log_compression: false,
            open_directory: None,
        }
    }

    /// Whether one of the options was given, by the job or by `[global]`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.written.contains_key(name)
    }

    /// Where an option was given last; where the job begins if it was not given.
    pub(crate) fn location_of(&self, name: &str) -> Location {
        self.written.get(name).map_or_else(|| self.job.place.clone(), |written| written.place.clone())
    }

    /// `kb_base=1000` holds.
    pub(crate) fn thousand(&self) -> bool {
        self.job.report.thousand
    }

    /// The sizes of a direction: `bssplit` goes before `bsrange`, and that before `bs`, as in fio, whatever the order.
    pub(crate) fn block_sizes(&self, direction: Direction) -> BlockSizes {
        if let Some(split) = &self.splits[direction] {
            return BlockSizes::Split(filled(split));
        }
        match self.ranges[direction] {
            Some((least, most)) if least != most => BlockSizes::Range(least, most),
            Some((size, _)) => BlockSizes::One(size),
            None => BlockSizes::One(self.sizes[direction].unwrap_or(4096)),
        }
    }
}

/// The percentages, where those without one share the rest evenly.
fn filled(split: &[SplitPart]) -> Vec<(u32, f64)> {
    let given: f64 = split.iter().filter_map(|part| part.1).sum();
    let open = split.iter().filter(|part| part.1.is_none()).count().max(1);
    let share = (100.0 - given) / open as f64;
    split.iter().map(|(size, percent)| (*size, percent.unwrap_or(share))).collect()
}

/// Reads a value into a draft.
pub(crate) type Apply = fn(&mut Draft, &Value<'_>) -> Result<(), String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_fills_what_was_left_open() {
        let split = [(4096, Some(50.0)), (1024, None), (32768, None)];
        assert_eq!(filled(&split), [(4096, 50.0), (1024, 25.0), (32768, 25.0)]);
    }
}

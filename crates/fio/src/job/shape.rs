//! The I/Os of a job, their lengths, the number in flight, and the rate.

use kelvin_measure::Nanos;

use crate::{Direction, PerDirection};

/// `rw=` and related options.
#[derive(Debug, Clone, PartialEq)]
pub struct Pattern {
    /// Reads are among them.
    pub reads: bool,
    /// Writes are among them.
    pub writes: bool,
    /// Trims are among them.
    pub trims: bool,
    /// `trimwrite`, `randtrimwrite`: each block is trimmed, then written.
    pub trim_then_write: bool,
    /// Offsets are drawn at random.
    pub random: bool,
    /// `rw=…:N`: for random, I/Os in a row; for sequential, bytes skipped after each (may be negative).
    pub modifier: Option<i64>,
    /// `rw_sequencer=`.
    pub sequencer: Sequencer,
    /// `rwmixread=`, 0 to 100: the chance of a read in a mix, in percent.
    pub mix_read: f64,
    /// `percentage_random=`, 0 to 100 each.
    pub percentage_random: PerDirection<f64>,
    /// `random_distribution=`.
    pub distribution: PerDirection<Distribution>,
    /// `norandommap=`: blocks may be drawn again before all were drawn.
    pub no_random_map: bool,
    /// `softrandommap=`: as above when there is no memory for the map.
    pub soft_random_map: bool,
    /// `random_generator=`.
    pub generator: RandomGenerator,
    /// `randrepeat=`, default true: the same offsets every time.
    pub repeatable: bool,
    /// `allrandrepeat=`.
    pub all_repeatable: bool,
    /// `randseed=`; `None` when not given.
    pub seed: Option<u64>,
    /// `zonemode=strided` and its sizes.
    pub zones: Option<Strided>,
}

impl Pattern {
    /// Whether I/Os of this direction are among them.
    pub fn has(&self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.reads,
            Direction::Write => self.writes,
            Direction::Trim => self.trims,
        }
    }

    /// Whether something on the target is changed.
    pub fn changes_data(&self) -> bool {
        self.writes || self.trims
    }
}

/// `rw_sequencer=`: what `rw=…:N` means for the offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequencer {
    /// N sequential I/Os, then a new random offset.
    Sequential,
    /// The same offset N times.
    Identical,
}

/// `random_distribution=`: how often the places of a target are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// Zipf distribution.
    Zipf {
        /// The exponent, above 0 and not 1.
        theta: f64,
        /// The hottest position, 0 to 1 of the target; `None` for a random one.
        center: Option<f64>,
    },
    /// Pareto distribution.
    Pareto {
        /// The share that gets 1 − h of the accesses, between 0 and 1.
        h: f64,
        /// The hottest position.
        center: Option<f64>,
    },
    /// A normal distribution.
    Normal {
        /// Its deviation in percent of the target.
        deviation: f64,
        /// The position of its mean.
        center: Option<f64>,
    },
    /// `zoned:`: shares of the accesses for shares of the target.
    Zoned(Vec<Zone>),
    /// `zoned_abs:`: shares of the accesses for amounts of bytes.
    ZonedAbsolute(Vec<AbsoluteZone>),
}

/// A zone of `zoned:`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zone {
    /// Percent of the accesses.
    pub access: f64,
    /// Percent of the target.
    pub share: f64,
}

/// A zone of `zoned_abs:`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AbsoluteZone {
    /// Percent of the accesses.
    pub access: f64,
    /// Bytes of the target; 0 in the last zone means the rest.
    pub bytes: u64,
}

/// `random_generator=`. The distribution is the same; the generator is Kelvin's (Xoshiro256++), and a full-period
/// permutation for `Lfsr`, which needs no map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RandomGenerator {
    /// `tausworthe`, `tausworthe64`.
    Random,
    /// `lfsr`.
    Lfsr,
}

/// `zonemode=strided`: I/O stays in a zone for so long, then skips to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Strided {
    /// `zonerange=`: from the beginning of one zone to the beginning of the next, without the skip, in bytes.
    pub range: u64,
    /// `zonesize=`: bytes moved in a zone.
    pub size: u64,
    /// `zoneskip=`: bytes between zones.
    pub skip: u64,
}

/// Lengths of I/Os.
#[derive(Debug, Clone, PartialEq)]
pub struct Blocks {
    /// The sizes of each direction.
    pub sizes: PerDirection<BlockSizes>,
    /// `bs_unaligned=`: any length in a range, not only multiples of the smallest.
    pub unaligned: bool,
    /// `bs_is_seq_rand=`: the read sizes are for sequential, the write sizes for random I/O.
    pub by_sequence: bool,
    /// `blockalign=`: the alignment of random offsets, in bytes; the smallest size if `None`.
    pub align: PerDirection<Option<u64>>,
}

/// The lengths of one direction, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum BlockSizes {
    /// `bs=`.
    One(u32),
    /// `bsrange=`: evenly from the first to the second.
    Range(u32, u32),
    /// `bssplit=`: size and its chance in percent; they sum to 100.
    Split(Vec<(u32, f64)>),
}

impl BlockSizes {
    /// The smallest.
    #[inline]
    pub fn smallest(&self) -> u32 {
        match self {
            Self::One(size) | Self::Range(size, _) => *size,
            Self::Split(parts) => parts.iter().map(|part| part.0).min().unwrap_or(0),
        }
    }

    /// The largest.
    #[inline]
    pub fn largest(&self) -> u32 {
        match self {
            Self::One(size) | Self::Range(_, size) => *size,
            Self::Split(parts) => parts.iter().map(|part| part.0).max().unwrap_or(0),
        }
    }

    /// The lengths that are named: of a range both ends.
    pub fn lengths(&self) -> Vec<u32> {
        match self {
            Self::One(size) => vec![*size],
            Self::Range(least, most) => vec![*least, *most],
            Self::Split(parts) => parts.iter().map(|part| part.0).collect(),
        }
    }
}

/// The number of I/Os in flight, and the number submitted at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// `iodepth=`, default 1.
    pub depth: u32,
    /// `iodepth_batch_submit=`; `None` when not given: Kelvin chooses.
    pub submit: Option<u32>,
    /// `iodepth_batch_complete_min=`; `None` when not given: Kelvin chooses. 0 polls.
    pub complete_min: Option<u32>,
    /// `iodepth_batch_complete_max=`.
    pub complete_max: Option<u32>,
    /// `iodepth_low=`: the depth down to which the queue empties before it is refilled.
    pub low: Option<u32>,
    /// `serialize_overlap=`: I/Os that overlap wait for each other.
    pub serialize_overlap: bool,
    /// `io_submit_mode=offload`: separate threads submit and reap.
    pub offload: bool,
}

/// Limits of each worker and direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// `rate=`: bytes per second.
    pub bytes: PerDirection<Option<u64>>,
    /// `rate_min=`: bytes per second below which the job ends.
    pub bytes_min: PerDirection<Option<u64>>,
    /// `rate_iops=`.
    pub iops: PerDirection<Option<u64>>,
    /// `rate_iops_min=`.
    pub iops_min: PerDirection<Option<u64>>,
    /// `rate_process=`.
    pub process: RateProcess,
    /// `rate_cycle=`: the period over which the minima are averaged.
    pub cycle: Nanos,
    /// `rate_ignore_thinktime=`.
    pub ignore_think_time: bool,
}

impl Rate {
    /// Whether there is a limit at all.
    #[inline]
    pub fn limits(&self) -> bool {
        self.bytes.0.iter().chain(&self.iops.0).any(Option::is_some)
    }
}

/// `rate_process=`: how starts follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateProcess {
    /// Evenly.
    Linear,
    /// With exponentially distributed gaps.
    Poisson,
}

/// `thinktime=` and its company.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thinking {
    /// The pause.
    pub time: Nanos,
    /// `thinktime_spin=`: how much of it burns CPU.
    pub spin: Nanos,
    /// `thinktime_blocks=`: I/Os between pauses.
    pub blocks: u64,
    /// `thinktime_blocks_type=issue`.
    pub by_issue: bool,
    /// `thinktime_iotime=`: time between pauses instead.
    pub io_time: Option<Nanos>,
}

/// `latency_target=` and `max_latency=`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LatencyGoal {
    /// The maximum completion time; the depth is searched for.
    pub target: Option<Nanos>,
    /// `latency_window=`.
    pub window: Nanos,
    /// `latency_percentile=`: the percentage of I/Os that must meet it.
    pub percentile: f64,
    /// `latency_run=`: continue to adjust the depth.
    pub keep_running: bool,
    /// `max_latency=`: an I/O that takes longer ends the job with an error.
    pub maximum: PerDirection<Option<Nanos>>,
}

//! When a job begins and ends, with which calls and in what process it runs.

use kelvin_measure::Nanos;

use crate::Direction;

/// The course of a job in time.
#[derive(Debug, Clone, PartialEq)]
pub struct JobTiming {
    /// `runtime=`; none for as long as the I/O takes.
    pub runtime: Option<Nanos>,
    /// `time_based=`: begin again until the time is over.
    pub time_based: bool,
    /// `startdelay=`: drawn evenly from the range.
    pub start_delay: (Nanos, Nanos),
    /// `ramp_time=`: I/O before the figures begin, on top of `runtime`.
    pub ramp: Nanos,
    /// `loops=`.
    pub loops: u64,
    /// `stonewall=`: begins when all before it have ended.
    pub stonewall: bool,
    /// `wait_for=`: begins when the job of this name has ended.
    pub wait_for: Option<String>,
    /// `exitall=`: when one ends, others end.
    pub exit_all: bool,
    /// `exit_what=`.
    pub exit_what: ExitWhat,
    /// `new_group=`.
    pub new_group: bool,
    /// `group_reporting=`.
    pub group_reporting: bool,
}

/// `exit_what=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitWhat {
    /// Those of the same group (the default).
    Group,
    /// All.
    All,
    /// The running and those behind the next stonewall.
    Stonewall,
}

/// The environment of a worker.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Process {
    /// `thread=`; without effect: workers are always threads.
    pub thread: bool,
    /// `uid=`: the user whose rights the worker has.
    pub user: Option<u32>,
    /// `gid=`: the group.
    pub group: Option<u32>,
    /// `nice=`.
    pub nice: Option<i32>,
    /// `prioclass=` and `prio=`, as `ioprio_set` takes them.
    pub io_priority: Option<(u8, u8)>,
    /// `cpus_allowed=`, `cpumask=`.
    pub cpus: Vec<u32>,
    /// `cpus_allowed_policy=split`: one of them for each worker.
    pub cpus_split: bool,
    /// `numa_cpu_nodes=`.
    pub numa_cpu_nodes: Vec<u32>,
    /// `numa_mem_policy=`.
    pub numa_memory: Option<NumaMemory>,
    /// `exec_prerun=`.
    pub before: Option<String>,
    /// `exec_postrun=`.
    pub after: Option<String>,
    /// `ioscheduler=`.
    pub scheduler: Option<String>,
}

/// `numa_mem_policy=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NumaMemory {
    /// Where the thread runs.
    Local,
    /// On this node if there is room.
    Prefer(u32),
    /// On these nodes only.
    Bind(Vec<u32>),
    /// Over these nodes in turn.
    Interleave(Vec<u32>),
}

/// `ioengine=`, as it is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineName {
    /// `io_uring`.
    IoUring,
    /// `libaio`.
    Libaio,
    /// `sync`: lseek, read, write.
    Sync,
    /// `psync`: pread, pwrite (fio's default).
    Psync,
    /// `vsync`, `pvsync`: preadv, pwritev.
    Pvsync,
    /// `pvsync2`: preadv2, pwritev2.
    Pvsync2,
    /// `mmap`.
    Mmap,
    /// `null`: nothing is done.
    Null,
}

impl EngineName {
    /// fio's name of it.
    pub fn word(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Libaio => "libaio",
            Self::Sync => "sync",
            Self::Psync => "psync",
            Self::Pvsync => "pvsync",
            Self::Pvsync2 => "pvsync2",
            Self::Mmap => "mmap",
            Self::Null => "null",
        }
    }

    /// Whether several I/Os of one worker can be in flight.
    pub fn is_asynchronous(self) -> bool {
        matches!(self, Self::IoUring | Self::Libaio | Self::Null)
    }
}

/// The engine and its options. Where nothing was given, Kelvin chooses what is fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineOptions {
    /// What does the I/O.
    pub name: EngineName,
    /// The name as it was given, such as `posixaio`, where another engine stands in for it.
    pub given: String,
    /// `fixedbufs=`; none when not given.
    pub fixed_buffers: Option<bool>,
    /// `registerfiles=`; none when not given.
    pub register_files: Option<bool>,
    /// `sqthread_poll=`.
    pub sq_poll: bool,
    /// `sqthread_poll_cpu=`.
    pub sq_poll_cpu: Option<u32>,
    /// `hipri=`.
    pub high_priority: bool,
    /// `hipri_percentage=`, 0 to 100.
    pub high_priority_percentage: Option<f64>,
    /// `nonvectored=`, default true.
    pub nonvectored: bool,
    /// `force_async=`: every so many; 0 for never.
    pub force_async: u32,
    /// `nowait=`.
    pub no_wait: bool,
    /// `uncached=`.
    pub uncached: bool,
    /// `cmdprio_percentage=` or `cmdprio_bssplit=`: which I/Os have a separate priority.
    pub command_priorities: Vec<CommandPriority>,
    /// `userspace_reap=` of libaio.
    pub userspace_reap: bool,
}

/// A part of the I/Os that has a separate priority.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommandPriority {
    /// Of reads or of writes.
    pub direction: Direction,
    /// Of this length only.
    pub length: Option<u32>,
    /// How many of them, 0 to 100. Parts of the same direction and length exclude each other.
    pub percent: f64,
    /// The class: 1 realtime, 2 best effort, 3 idle.
    pub class: u8,
    /// The level: 0 highest, 7 lowest.
    pub level: u8,
    /// The hint that the kernel passes to the device (6.5 and later): 0 for nothing, up to 1023.
    pub hint: u16,
}

impl CommandPriority {
    /// As `ioprio_set` takes it.
    pub fn value(&self) -> u16 {
        (u16::from(self.class) << 13) | (self.hint << 3) | u16::from(self.level)
    }
}

/// `flow=`: jobs of one `flow_id` keep their I/Os in the proportion of their weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// `flow_id=`.
    pub id: i64,
    /// `flow=`: the weight.
    pub weight: i64,
    /// `flow_sleep=`.
    pub sleep: Nanos,
}

/// `steadystate=`: end when the figures no longer change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyState {
    /// Of what.
    pub figure: SteadyFigure,
    /// The slope is judged, and not the largest deviation.
    pub slope: bool,
    /// The limit in the figure's unit, or in percent of its mean.
    pub limit: f64,
    /// `limit` is in percent.
    pub percent: bool,
    /// `ss_dur=`.
    pub window: Nanos,
    /// `ss_ramp=`.
    pub ramp: Nanos,
    /// `ss_interval=`, default one second.
    pub interval: Nanos,
}

/// What is to be steady.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SteadyFigure {
    /// I/Os a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
    /// Completion time in nanoseconds.
    Latency,
}

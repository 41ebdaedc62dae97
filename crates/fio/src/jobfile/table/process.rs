//! Threads, processors, memory nodes, and what is run around a job.

use super::entry::{OptionEntry, ValueKind, ignored, option, refused};
use crate::job::NumaMemory;
use crate::jobfile::lists;

const POLICY: &[(&str, &str)] =
    &[("shared", "workers share the CPUs"), ("split", "each worker gets one CPU")];

const MEMORY: &[(&str, &str)] = &[
    ("default", "the kernel's choice"),
    ("local", "the NUMA node where the thread runs"),
    ("prefer", "prefer:NODE, on this NUMA node if possible"),
    ("bind", "bind:NODES, only on these NUMA nodes"),
    ("interleave", "interleave:NODES, interleaved over these NUMA nodes"),
];

const CLOCKS: &[(&str, &str)] = &[
    ("cpu", "the CPU time stamp counter"),
    ("clock_gettime", "the system call"),
    ("gettimeofday", "the system call"),
];

const GROUP: &str = "run Kelvin in a cgroup: systemd-run --scope -p IOWeight=… kelvin io …";

/// Nodes as a list, or all of them.
fn nodes(text: &str) -> Result<Vec<u32>, String> {
    if text != "all" {
        return lists::numbers(text);
    }
    let online = std::fs::read_to_string("/sys/devices/system/node/online").unwrap_or_else(|_| "0".into());
    lists::numbers(online.trim())
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    ignored(
        "thread",
        ValueKind::Flag,
        "use threads instead of processes",
        "workers are always threads",
        |draft, value| {
            draft.job.process.thread = value.flag()?;
            Ok(())
        },
    ),
    ignored(
        "threads",
        ValueKind::Number,
        "threads of fio's tiobench; implies thread",
        "it belongs to a built-in fio job, and workers are always threads",
        |_, value| value.count(0).map(|_| ()),
    ),
    option("nice", ValueKind::Number, "nice value of the workers, -20 to 19", |draft, value| {
        draft.job.process.nice = Some(value.signed(-20..=19)? as i32);
        Ok(())
    })
    .default("0"),
    option("prio", ValueKind::Number, "I/O priority level: 0 highest, 7 lowest", |draft, value| {
        draft.priority_level = Some(value.small(0..=7)? as u8);
        Ok(())
    }),
    option(
        "prioclass",
        ValueKind::Number,
        "I/O priority class: 1 realtime, 2 best effort, 3 idle",
        |draft, value| {
            draft.priority_class = Some(value.small(0..=3)? as u8);
            Ok(())
        },
    ),
    option("cpus_allowed", ValueKind::List, "CPUs that the workers may use", |draft, value| {
        draft.job.process.cpus = lists::numbers(value.text()?)?;
        Ok(())
    }),
    option("cpumask", ValueKind::Number, "CPUs that the workers may use, as a bit mask", |draft, value| {
        let mask = value.count(1)?;
        draft.job.process.cpus = (0..64).filter(|cpu| mask & (1 << cpu) != 0).collect();
        Ok(())
    }),
    option("cpus_allowed_policy", ValueKind::Words(POLICY), "how workers share the CPUs", |draft, value| {
        draft.job.process.cpus_split = value.word(POLICY)? == "split";
        Ok(())
    })
    .default("shared"),
    option(
        "numa_cpu_nodes",
        ValueKind::List,
        "run on the CPUs of these NUMA nodes, or all",
        |draft, value| {
            draft.job.process.numa_cpu_nodes = nodes(value.text()?)?;
            Ok(())
        },
    ),
    option("numa_mem_policy", ValueKind::Words(MEMORY), "NUMA memory policy", |draft, value| {
        let (word, rest) = value.word_and_rest(MEMORY)?;
        let rest = rest.filter(|rest| !rest.is_empty());
        draft.job.process.numa_memory = match (word, rest) {
            ("default", None) => None,
            ("local", None) => Some(NumaMemory::Local),
            ("default" | "local", Some(_)) => return Err(format!("{word} does not take NUMA nodes")),
            (_, None) => return Err(format!("the NUMA nodes are missing: write for example {word}:0")),
            ("prefer", Some(rest)) => match nodes(rest)?.as_slice() {
                [node] => Some(NumaMemory::Prefer(*node)),
                _ => return Err("only one NUMA node can be preferred".into()),
            },
            ("bind", Some(rest)) => Some(NumaMemory::Bind(nodes(rest)?)),
            (_, Some(rest)) => Some(NumaMemory::Interleave(nodes(rest)?)),
        };
        Ok(())
    })
    .default("default"),
    option("exec_prerun", ValueKind::Text, "shell command to run before the job", |draft, value| {
        draft.job.process.before = Some(value.text()?.to_owned());
        Ok(())
    }),
    option("exec_postrun", ValueKind::Text, "shell command to run after the job", |draft, value| {
        draft.job.process.after = Some(value.text()?.to_owned());
        Ok(())
    }),
    option("ioscheduler", ValueKind::Text, "I/O scheduler of the device during the job", |draft, value| {
        let name = value.text()?;
        // It becomes the content of a file in /sys.
        if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_') {
            return Err("is not the name of a scheduler".into());
        }
        draft.job.process.scheduler = Some(name.to_owned());
        Ok(())
    }),
    ignored(
        "clocksource",
        ValueKind::Words(CLOCKS),
        "clock source",
        "Kelvin uses the fastest reliable clock",
        |_, value| value.word(CLOCKS).map(|_| ()),
    ),
    ignored(
        "gtod_cpu",
        ValueKind::Number,
        "CPU dedicated to reading the clock",
        "reading the clock takes about 20 ns, and workers do it themselves",
        |_, value| value.small(0..=65_535).map(|_| ()),
    ),
    option("uid", ValueKind::Number, "user ID of the workers", |draft, value| {
        draft.job.process.user = Some(value.small(0..=u32::MAX - 1)?);
        Ok(())
    }),
    option("gid", ValueKind::Number, "group ID of the workers", |draft, value| {
        draft.job.process.group = Some(value.small(0..=u32::MAX - 1)?);
        Ok(())
    }),
    refused("cgroup", "cgroup of a worker", GROUP),
    refused("cgroup_weight", "weight of the cgroup", GROUP),
    refused("cgroup_nodelete", "keep the cgroup after the job", GROUP),
];

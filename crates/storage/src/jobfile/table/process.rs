//! Threads, processors, memory nodes, and what is run around a job.

use super::entry::{OptionEntry, ValueKind, ignored, option, refused};
use crate::job::NumaMemory;
use crate::jobfile::lists;

const POLICY: &[(&str, &str)] =
    &[("shared", "workers share the processors"), ("split", "each worker has one of them")];

const MEMORY: &[(&str, &str)] = &[
    ("default", "the kernel's choice"),
    ("local", "where the thread runs"),
    ("prefer", "prefer:NODE, on this node if there is room"),
    ("bind", "bind:NODES, on these nodes only"),
    ("interleave", "interleave:NODES, over these nodes in turn"),
];

const CLOCKS: &[(&str, &str)] =
    &[("cpu", "the processor's counter"), ("clock_gettime", "the call"), ("gettimeofday", "the call")];

const GROUP: &str = "put Kelvin itself into a group: systemd-run --scope -p IOWeight=… kelvin io …";

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
        "threads and not processes",
        "workers are always threads",
        |draft, value| {
            draft.job.process.thread = value.flag()?;
            Ok(())
        },
    ),
    ignored(
        "threads",
        ValueKind::Number,
        "threads of fio's tiobench; jobs with it mean thread",
        "it belongs to a built-in job of fio's, and workers are always threads",
        |_, value| value.count(0).map(|_| ()),
    ),
    option("nice", ValueKind::Number, "the workers' niceness, -20 to 19", |draft, value| {
        draft.job.process.nice = Some(value.signed(-20..=19)? as i32);
        Ok(())
    })
    .default("0"),
    option("prio", ValueKind::Number, "level of the I/O priority: 0 highest, 7 lowest", |draft, value| {
        draft.priority_level = Some(value.small(0..=7)? as u8);
        Ok(())
    }),
    option("prioclass", ValueKind::Number, "its class: 1 realtime, 2 best effort, 3 idle", |draft, value| {
        draft.priority_class = Some(value.small(0..=3)? as u8);
        Ok(())
    }),
    option("cpus_allowed", ValueKind::List, "the processors of the workers", |draft, value| {
        draft.job.process.cpus = lists::numbers(value.text()?)?;
        Ok(())
    }),
    option("cpumask", ValueKind::Number, "the same as bits of a number", |draft, value| {
        let mask = value.count(1)?;
        draft.job.process.cpus = (0..64).filter(|cpu| mask & (1 << cpu) != 0).collect();
        Ok(())
    }),
    option("cpus_allowed_policy", ValueKind::Words(POLICY), "how workers share them", |draft, value| {
        draft.job.process.cpus_split = value.word(POLICY)? == "split";
        Ok(())
    })
    .default("shared"),
    option(
        "numa_cpu_nodes",
        ValueKind::List,
        "run on the processors of these nodes; all is allowed",
        |draft, value| {
            draft.job.process.numa_cpu_nodes = nodes(value.text()?)?;
            Ok(())
        },
    ),
    option("numa_mem_policy", ValueKind::Words(MEMORY), "on which nodes the memory is", |draft, value| {
        let (word, rest) = value.word_and_rest(MEMORY)?;
        let rest = rest.filter(|rest| !rest.is_empty());
        draft.job.process.numa_memory = match (word, rest) {
            ("default", None) => None,
            ("local", None) => Some(NumaMemory::Local),
            ("default" | "local", Some(_)) => return Err(format!("{word} takes no nodes")),
            (_, None) => return Err(format!("the nodes are missing, as in {word}:0")),
            ("prefer", Some(rest)) => match nodes(rest)?.as_slice() {
                [node] => Some(NumaMemory::Prefer(*node)),
                _ => return Err("one node only can be preferred".into()),
            },
            ("bind", Some(rest)) => Some(NumaMemory::Bind(nodes(rest)?)),
            (_, Some(rest)) => Some(NumaMemory::Interleave(nodes(rest)?)),
        };
        Ok(())
    })
    .default("default"),
    option("exec_prerun", ValueKind::Text, "a command of the shell before the job", |draft, value| {
        draft.job.process.before = Some(value.text()?.to_owned());
        Ok(())
    }),
    option("exec_postrun", ValueKind::Text, "a command of the shell after the job", |draft, value| {
        draft.job.process.after = Some(value.text()?.to_owned());
        Ok(())
    }),
    option("ioscheduler", ValueKind::Text, "the scheduler of the device during the job", |draft, value| {
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
        "where the time comes from",
        "Kelvin takes the fastest clock that can be relied on",
        |_, value| value.word(CLOCKS).map(|_| ()),
    ),
    ignored(
        "gtod_cpu",
        ValueKind::Number,
        "a processor that does nothing but read the clock",
        "reading the clock costs some 20 ns and is left to the workers",
        |_, value| value.small(0..=65_535).map(|_| ()),
    ),
    option("uid", ValueKind::Number, "the user whose rights the workers have, by number", |draft, value| {
        draft.job.process.user = Some(value.small(0..=u32::MAX - 1)?);
        Ok(())
    }),
    option("gid", ValueKind::Number, "the group whose rights the workers have, by number", |draft, value| {
        draft.job.process.group = Some(value.small(0..=u32::MAX - 1)?);
        Ok(())
    }),
    refused("cgroup", "the control group of a worker", GROUP),
    refused("cgroup_weight", "the weight of that group", GROUP),
    refused("cgroup_nodelete", "whether that group is left there", GROUP),
];

//! What is written, and the memory it is in.

use super::entry::{OptionEntry, ValueKind, option, refused};
use crate::job::Memory;
use crate::jobfile::special::bytes;

const MODE: &[(&str, &str)] =
    &[("repeat", "a copy of the previous write"), ("working_set", "a copy of one of the first blocks")];

const MEMORY: &[(&str, &str)] = &[
    ("malloc", "the heap"),
    ("shm", "System V shared memory"),
    ("shmhuge", "System V shared memory in huge pages"),
    ("mmap", "mmap; mmap:PATH maps a file"),
    ("mmaphuge", "mmap in huge pages; mmaphuge:PATH maps a file in hugetlbfs"),
    ("mmapshared", "shared mmap of a file: mmapshared:PATH"),
    ("cudamalloc", "not supported"),
];

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("zero_buffers", ValueKind::Flag, "fill buffers with zeros", |draft, value| {
        draft.job.buffers.zero = value.flag()?;
        Ok(())
    })
    .default("0"),
    option("refill_buffers", ValueKind::Flag, "refill the buffer for each write", |draft, value| {
        draft.job.buffers.refill = value.flag()?;
        Ok(())
    })
    .default("0"),
    option(
        "scramble_buffers",
        ValueKind::Bool,
        "change part of the buffer for each write",
        |draft, value| {
            draft.job.buffers.scramble = value.boolean()?;
            Ok(())
        },
    )
    .default("1"),
    option(
        "buffer_pattern",
        ValueKind::Text,
        "fill buffers with these bytes: 0xHEX, number, \"text\", 'file'",
        |draft, value| {
            draft.job.buffers.pattern = Some(bytes::fixed(value.text()?)?);
            Ok(())
        },
    ),
    option(
        "buffer_compress_percentage",
        ValueKind::Percent,
        "compressibility of the data",
        |draft, value| {
            draft.job.buffers.compress_percentage = Some(value.percent()?);
            Ok(())
        },
    ),
    option(
        "buffer_compress_chunk",
        ValueKind::Size,
        "size of compressible chunks; 0 for the block size",
        |draft, value| {
            draft.job.buffers.compress_chunk = value.small(0..=1 << 30)?;
            Ok(())
        },
    )
    .default("512"),
    option(
        "dedupe_percentage",
        ValueKind::Percent,
        "percentage of writes that repeat a block",
        |draft, value| {
            draft.job.buffers.dedupe_percentage = Some(value.percent()?);
            Ok(())
        },
    ),
    option("dedupe_mode", ValueKind::Words(MODE), "which block is repeated", |draft, value| {
        draft.working_set = value.word(MODE)? == "working_set";
        Ok(())
    })
    .default("repeat"),
    option(
        "dedupe_working_set_percentage",
        ValueKind::Percent,
        "size of the dedupe working set",
        |draft, value| {
            draft.working_set_percentage = value.percent()?;
            Ok(())
        },
    )
    .default("5"),
    option("dedupe_global", ValueKind::Bool, "share the working set among jobs", |draft, value| {
        draft.job.buffers.dedupe_global = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("mem", ValueKind::Words(MEMORY), "type of memory for buffers", |draft, value| {
        let (word, path) = value.word_and_rest(MEMORY)?;
        let path = path.filter(|path| !path.is_empty()).map(std::path::PathBuf::from);
        draft.job.buffers.memory = match (word, path) {
            ("mmap", None) => Memory::Mmap,
            ("mmap", Some(path)) => Memory::MmapFile(path),
            ("mmaphuge", path) => Memory::MmapHuge(path),
            ("mmapshared", Some(path)) => Memory::MmapShared(path),
            ("mmapshared", None) => return Err("the file is missing: write mmapshared:PATH".into()),
            (_, Some(_)) => return Err(format!("{word} takes no path")),
            ("shm", None) => Memory::Shm,
            ("shmhuge", None) => Memory::ShmHuge,
            ("cudamalloc", None) => {
                return Err("GPU memory is not supported: remove the option".into());
            }
            (_, None) => Memory::Malloc,
        };
        Ok(())
    })
    .alias(&["iomem"])
    .default("malloc"),
    option("iomem_align", ValueKind::Size, "alignment of the buffers in memory", |draft, value| {
        let align = value.small(0..=1 << 30)?;
        if align != 0 && !align.is_power_of_two() {
            return Err("must be a power of two".into());
        }
        draft.job.buffers.memory_align = align;
        Ok(())
    })
    .alias(&["mem_align"])
    .default("0, a page"),
    option("hugepage-size", ValueKind::Size, "the size of a huge page", |draft, value| {
        let size = value.count(4096)?;
        if !size.is_power_of_two() {
            return Err("must be a power of two".into());
        }
        draft.job.buffers.huge_page_size = Some(size);
        Ok(())
    })
    .default("the kernel's"),
    refused("lockmem", "amount of memory to lock", "to limit memory, run Kelvin in a cgroup with memory.max"),
];

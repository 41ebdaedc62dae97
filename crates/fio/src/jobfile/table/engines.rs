//! The engines by fio's names: those that are there, those that another stands in for, those that are refused.

use crate::job::EngineName;
use crate::jobfile::guess;

/// What an engine's name leads to.
pub(crate) enum Carried {
    /// The engine itself.
    As(EngineName),
    /// Another in its place, and what the reader should know of it.
    Instead(EngineName, &'static str),
    /// Nothing: why.
    Refused(&'static str),
}

/// An engine.
pub(crate) struct EngineEntry {
    /// fio's name of it.
    pub(crate) word: &'static str,
    /// What it does.
    pub(crate) help: &'static str,
    /// How it is handled.
    pub(crate) carried: Carried,
}

const fn here(word: &'static str, name: EngineName, help: &'static str) -> EngineEntry {
    EngineEntry { word, help, carried: Carried::As(name) }
}

const fn instead(
    word: &'static str,
    name: EngineName,
    help: &'static str,
    note: &'static str,
) -> EngineEntry {
    EngineEntry { word, help, carried: Carried::Instead(name, note) }
}

const fn not(word: &'static str, reason: &'static str) -> EngineEntry {
    EngineEntry { word, help: "not supported", carried: Carried::Refused(reason) }
}

const REMOTE: &str = "it accesses network storage through its own library; Kelvin uses local files and \
                      block devices: mount or map the storage, then use io_uring or libaio";
const NETWORK: &str = "it measures a network, not storage";
const METADATA: &str = "it measures metadata operations, not I/O";
const OTHER_SYSTEM: &str = "it belongs to another operating system: use io_uring";
const MEMORY: &str = "it writes persistent memory through its own library: use mmap on a DAX filesystem";

/// All engines that fio has, on any system and in any version.
pub(crate) const ENGINES: &[EngineEntry] = &[
    here("io_uring", EngineName::IoUring, "Linux io_uring: submission and completion rings"),
    here("libaio", EngineName::Libaio, "Linux native asynchronous I/O: io_submit, io_getevents"),
    here("psync", EngineName::Psync, "pread and pwrite (the default)"),
    here("pvsync", EngineName::Pvsync, "preadv and pwritev"),
    here("pvsync2", EngineName::Pvsync2, "preadv2 and pwritev2, with their flags"),
    here("sync", EngineName::Sync, "lseek, read and write"),
    here("mmap", EngineName::Mmap, "the file mapped into memory"),
    here("null", EngineName::Null, "does no I/O: measures the overhead of the tool"),
    instead("linuxaio", EngineName::Libaio, "fio's other name for libaio", "linuxaio is libaio"),
    instead(
        "posixaio",
        EngineName::IoUring,
        "POSIX asynchronous I/O; io_uring is used instead",
        "posixaio runs as io_uring, the closest engine without the C library's threads",
    ),
    instead(
        "vsync",
        EngineName::Pvsync,
        "readv and writev; pvsync is used instead",
        "vsync runs as pvsync: adjacent I/Os are not merged into one call",
    ),
    not("io_uring_cmd", "it passes commands through to NVMe drives: use io_uring on the block device"),
    not("splice", "it moves data through pipes: use psync for buffered I/O"),
    not("sg", "it sends SCSI commands: use io_uring on the block device"),
    not("libzbc", "it drives zoned devices: use io_uring on the block device"),
    not("mtd", "it drives raw flash"),
    not("cpuio", "it uses CPU time and does no I/O: use another program for that, such as stress-ng"),
    not("exec", "it runs another program: use exec_prerun, or start it alongside Kelvin"),
    not("net", NETWORK),
    not("netsplice", NETWORK),
    not("rdma", NETWORK),
    not("librpma_apm_client", NETWORK),
    not("librpma_apm_server", NETWORK),
    not("librpma_gpspm_client", NETWORK),
    not("librpma_gpspm_server", NETWORK),
    not("falloc", METADATA),
    not("ftruncate", METADATA),
    not("filecreate", METADATA),
    not("filestat", METADATA),
    not("filedelete", METADATA),
    not("dircreate", METADATA),
    not("dirstat", METADATA),
    not("dirdelete", METADATA),
    not("e4defrag", METADATA),
    not("rados", REMOTE),
    not("rbd", REMOTE),
    not("http", REMOTE),
    not("gfapi", REMOTE),
    not("gfapi_async", REMOTE),
    not("libhdfs", REMOTE),
    not("nbd", REMOTE),
    not("nfs", REMOTE),
    not("dfs", REMOTE),
    not("libiscsi", REMOTE),
    not("ime_psync", REMOTE),
    not("ime_psyncv", REMOTE),
    not("ime_aio", REMOTE),
    not("pmemblk", MEMORY),
    not("libpmem", MEMORY),
    not("dev-dax", MEMORY),
    not("xnvme", "it drives devices through its own library: use io_uring on the block device"),
    not("libblkio", "it drives devices through its own library: use io_uring on the block device"),
    not("libcufile", "it reads into GPU memory"),
    not("external", "it loads an engine from a file"),
    not("windowsaio", OTHER_SYSTEM),
    not("solarisaio", OTHER_SYSTEM),
    not("guasi", OTHER_SYSTEM),
];

/// The engine of a name.
pub(crate) fn find(name: &str) -> Result<&'static EngineEntry, String> {
    let word = name.split_once(':').map_or(name, |(word, _)| word);
    ENGINES.iter().find(|engine| engine.word == word).ok_or_else(|| {
        let there: Vec<&str> = ENGINES
            .iter()
            .filter(|engine| matches!(engine.carried, Carried::As(_)))
            .map(|engine| engine.word)
            .collect();
        let guess = guess::question(word, ENGINES.iter().map(|engine| engine.word));
        format!("there is no such engine; the engines are {}{guess}", there.join(", "))
    })
}

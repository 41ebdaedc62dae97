//! Parsers of the kernel's files about this host. Each takes text and returns values. A [`SystemTree`] reads
//! the files, from `/` or from a test's directory. Files that are sampled are kept open, and their parsers do
//! not allocate.
//!
//! Sources: proc(5), `Documentation/filesystems/proc.rst`, `Documentation/admin-guide/cputopology.rst`.

pub mod bytes;
pub mod cgroup;
pub mod disk;
mod list;
mod mount;
mod process;
mod processors;
mod tree;

pub use list::{chosen, field, numbers};
pub use mount::Mount;
pub use process::{ProcessStat, run_and_delay};
pub use processors::{GUEST, TickShares, Ticks, cpu_times, online_cpus};
pub use tree::{Buffer, KernelFile, SystemTree};

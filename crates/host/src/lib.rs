//! The forms of the kernel's files about this host, each once: text in, values out. A [`SystemTree`] reads the file, from `/`
//! or from the tree of a test; what is sampled is kept open, and its parsers allocate nothing.
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

pub use list::{chosen, numbers};
pub use mount::Mount;
pub use process::ProcessStat;
pub use processors::Ticks;
pub use tree::{Buffer, KernelFile, SystemTree};

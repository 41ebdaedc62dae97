//! The forms of the kernel's files about this host, each once: text in, values out. Who asks reads the file, from `/` or from
//! the tree of a test. What is read in a measured path has readers of its own that allocate nothing (`kelvin_observe::sample`).
//!
//! Sources: proc(5), `Documentation/filesystems/proc.rst`, `Documentation/admin-guide/cputopology.rst`.

mod list;
mod mount;
mod process;
mod processors;

pub use list::numbers;
pub use mount::Mount;
pub use process::ProcessStat;
pub use processors::Ticks;

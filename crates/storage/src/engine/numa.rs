//! The NUMA nodes of the buffers' memory (`numa_mem_policy=`).

use std::io;

use crate::error::{Error, Result};
use crate::job::NumaMemory;

/// Maximum number of nodes in a mask: the limit of any kernel's configuration.
const NODES: usize = 1024;
const WORD: usize = u64::BITS as usize;

/// Binds a region. Must be called before its pages are touched.
#[allow(unsafe_code, reason = "mbind is a system call without a safe wrapper")]
pub(super) fn bind(begin: *mut u8, length: usize, policy: &NumaMemory) -> Result<()> {
    let (mode, nodes): (i32, &[u32]) = match policy {
        NumaMemory::Local => (libc::MPOL_LOCAL, &[]),
        NumaMemory::Prefer(node) => (libc::MPOL_PREFERRED, std::slice::from_ref(node)),
        NumaMemory::Bind(nodes) => (libc::MPOL_BIND, nodes),
        NumaMemory::Interleave(nodes) => (libc::MPOL_INTERLEAVE, nodes),
    };
    let what = || format!("numa_mem_policy {policy:?}");
    let mut mask = [0_u64; NODES / WORD];
    for node in nodes {
        let Some(word) = mask.get_mut(*node as usize / WORD) else {
            return Err(Error::system(what())(io::Error::from_raw_os_error(libc::EINVAL)));
        };
        *word |= 1 << (*node as usize % WORD);
    }
    let (mask, bits) = if nodes.is_empty() { (std::ptr::null(), 0) } else { (mask.as_ptr(), NODES + 1) };
    // SAFETY: the region is mapped and belongs to the caller; the mask outlives the call and has `bits` − 1 bits, as
    // mbind counts them.
    let answer = unsafe { libc::syscall(libc::SYS_mbind, begin, length, mode, mask, bits, 0) };
    if answer != 0 {
        return Err(Error::system(what())(io::Error::last_os_error()));
    }
    Ok(())
}

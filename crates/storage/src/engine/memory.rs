//! The memory of the buffers: one region, aligned, touched before the clock starts, and separate from the heap, so that
//! a device that responds too late cannot overwrite anything else.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{self, NonNull};

use crate::error::{Error, Result};
use crate::job::{Buffers, Memory, NumaMemory};

/// The page size of alignment, unless the job sets one.
const PAGE: usize = 4096;
/// The default size of a huge page.
const HUGE: usize = 2 << 20;

/// Buffers of equal size in one region.
#[derive(Debug)]
pub(crate) struct BufferPool {
    region: Region,
    /// The offset of the first buffer in the region.
    shift: usize,
    /// The distance from one buffer to the next.
    step: usize,
    size: usize,
    count: usize,
}

impl BufferPool {
    /// `count` buffers of `size` bytes in the memory that the job wants.
    pub(crate) fn new(
        count: usize,
        size: usize,
        buffers: &Buffers,
        numa: Option<&NumaMemory>,
    ) -> Result<Self> {
        let align = (buffers.memory_align as usize).next_power_of_two().max(PAGE);
        let step = size.max(1).next_multiple_of(align);
        // Maps begin at a page: this leaves room to move to a multiple of the alignment.
        let spare = if align > PAGE { align } else { 0 };
        let bytes = step.checked_mul(count).and_then(|bytes| bytes.checked_add(spare));
        let what = || format!("{count} buffers of {size} bytes (iomem)");
        let Some(bytes) = bytes.filter(|bytes| *bytes < isize::MAX as usize / 2) else {
            return Err(Error::system(what())(io::Error::from_raw_os_error(libc::ENOMEM)));
        };
        let region =
            Region::new(bytes, &buffers.memory, buffers.huge_page_size).map_err(Error::system(what()))?;
        if let Some(policy) = numa {
            super::numa::bind(region.begin.as_ptr(), region.length, policy)?;
        }
        let off = region.begin.as_ptr() as usize % align;
        let pool = Self { shift: if off == 0 { 0 } else { align - off }, region, step, size, count };
        pool.region.touch();
        Ok(pool)
    }

    /// The size of each.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The number of buffers.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The address of a buffer. The kernel may change its bytes while an I/O is in flight.
    #[inline]
    #[allow(unsafe_code, reason = "computes an address within its own region")]
    pub(crate) fn address(&self, buffer: u32) -> *mut u8 {
        debug_assert!((buffer as usize) < self.count);
        // SAFETY: buffers 0 to `count` lie within the region, by its size.
        unsafe { self.region.begin.as_ptr().add(self.shift + buffer as usize * self.step) }
    }

    /// The bytes of a buffer that has no I/O in flight.
    #[inline]
    #[allow(unsafe_code, reason = "returns memory that it owns")]
    pub(crate) fn bytes(&mut self, buffer: u32, length: usize) -> &mut [u8] {
        debug_assert!((buffer as usize) < self.count);
        let length = length.min(self.size);
        // SAFETY: within the region, initialised by `touch`; the caller holds the pool exclusively, and requests only
        // buffers that the kernel is not using.
        unsafe { std::slice::from_raw_parts_mut(self.address(buffer), length) }
    }
}

/// Memory from the kernel.
#[derive(Debug)]
struct Region {
    begin: NonNull<u8>,
    length: usize,
    /// System V shared memory is detached and not unmapped.
    attached: bool,
}

// SAFETY: the memory is owned by this value alone.
#[allow(unsafe_code, reason = "a pointer to memory that it owns")]
unsafe impl Send for Region {}

impl Region {
    fn new(bytes: usize, memory: &Memory, huge_page: Option<u64>) -> io::Result<Self> {
        let huge = huge_page.map_or(HUGE, |size| size as usize).max(PAGE);
        let in_huge_pages = bytes.next_multiple_of(huge);
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        match memory {
            Memory::Malloc | Memory::Mmap => Self::map(bytes.next_multiple_of(PAGE), anonymous, None),
            Memory::MmapHuge(None) => Self::map(in_huge_pages, anonymous | libc::MAP_HUGETLB, None),
            Memory::MmapHuge(Some(path)) => Self::of_file(in_huge_pages, libc::MAP_PRIVATE, path),
            Memory::MmapFile(path) => Self::of_file(bytes.next_multiple_of(PAGE), libc::MAP_PRIVATE, path),
            Memory::MmapShared(path) => Self::of_file(bytes.next_multiple_of(PAGE), libc::MAP_SHARED, path),
            Memory::Shm => Self::attach(bytes.next_multiple_of(PAGE), 0),
            Memory::ShmHuge => Self::attach(in_huge_pages, libc::SHM_HUGETLB),
        }
    }

    fn of_file(length: usize, flags: i32, path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() < length as u64 {
            file.set_len(length as u64)?;
        }
        Self::map(length, flags, Some(&file))
    }

    #[allow(unsafe_code, reason = "maps memory")]
    fn map(length: usize, flags: i32, file: Option<&File>) -> io::Result<Self> {
        let fd = file.map_or(-1, AsRawFd::as_raw_fd);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new map at an address of the kernel's choice touches no memory in use.
        let address = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, fd, 0) };
        if address == libc::MAP_FAILED {
            return Err(hinted(io::Error::last_os_error(), flags & libc::MAP_HUGETLB != 0));
        }
        let begin = NonNull::new(address.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Self { begin, length, attached: false })
    }

    #[allow(unsafe_code, reason = "attaches memory")]
    fn attach(length: usize, flags: i32) -> io::Result<Self> {
        // SAFETY: makes a segment; no memory is touched.
        let segment = unsafe { libc::shmget(libc::IPC_PRIVATE, length, flags | libc::IPC_CREAT | 0o600) };
        if segment < 0 {
            return Err(hinted(io::Error::last_os_error(), flags & libc::SHM_HUGETLB != 0));
        }
        // SAFETY: attached at an address of the kernel's choice.
        let address = unsafe { libc::shmat(segment, ptr::null(), 0) };
        let failed = io::Error::last_os_error();
        // SAFETY: the segment is removed when it is detached; nothing else uses it.
        unsafe { libc::shmctl(segment, libc::IPC_RMID, ptr::null_mut()) };
        match NonNull::new(address.cast()) {
            Some(begin) if address as isize != -1 => Ok(Self { begin, length, attached: true }),
            _ => Err(failed),
        }
    }

    /// Makes the kernel provide every page now and not during the first I/O.
    #[allow(unsafe_code, reason = "writes to memory that it owns")]
    fn touch(&self) {
        for at in (0..self.length).step_by(PAGE) {
            // SAFETY: `at` lies within the map, which is writable and owned by this value.
            unsafe { self.begin.as_ptr().add(at).write_volatile(0) };
        }
    }
}

impl Drop for Region {
    #[allow(unsafe_code, reason = "frees memory")]
    fn drop(&mut self) {
        // SAFETY: the region was mapped or attached by `new` and there are no pointers to it any more.
        unsafe {
            if self.attached {
                libc::shmdt(self.begin.as_ptr().cast());
            } else {
                libc::munmap(self.begin.as_ptr().cast(), self.length);
            }
        }
    }
}

/// Adds the remedy when huge pages are requested and unavailable.
fn hinted(error: io::Error, huge: bool) -> io::Error {
    if huge && error.raw_os_error() == Some(libc::ENOMEM) {
        let words = "no huge pages are free; increase vm.nr_hugepages";
        return io::Error::new(io::ErrorKind::OutOfMemory, words);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::buffers;

    #[test]
    fn buffers_are_aligned_apart_and_of_every_kind() {
        let directory = tempfile::tempdir().unwrap();
        let kinds = [
            Memory::Malloc,
            Memory::Mmap,
            Memory::Shm,
            Memory::MmapFile(directory.path().join("private")),
            Memory::MmapShared(directory.path().join("shared")),
        ];
        for (memory, align) in kinds.into_iter().zip([0, 65_536, 512, 1 << 20, 4096]) {
            let wanted = Buffers { memory, memory_align: align, ..buffers() };
            let mut pool = BufferPool::new(3, 5000, &wanted, None).unwrap();
            for buffer in 0..3 {
                assert_eq!(pool.address(buffer) as usize % (align as usize).max(4096), 0);
                pool.bytes(buffer, 5000).fill(buffer as u8 + 1);
            }
            for buffer in 0..3 {
                assert!(pool.bytes(buffer, 5000).iter().all(|byte| *byte == buffer as u8 + 1));
            }
        }
    }

    #[test]
    fn too_much_memory_is_an_error() {
        let error = BufferPool::new(usize::MAX / 2, 1 << 20, &buffers(), None).unwrap_err();
        assert!(error.to_string().contains("buffers of 1048576 bytes"), "{error}");
    }
}

//! The file of a recording.
//!
//! Eight bytes of magic and version, then chunks: a letter, the length of the content, the CRC-32C of letter, length and
//! content (both 32 bits, little-endian), the content. `H` is the [`Header`](crate::recording::Header) (JSON), `B` a block of requests, `F`, `X` and `N` are files and their places, `G` control groups of processes (JSON), `U` room of
//! files that was never written (JSON), `E` the [`Recording`](crate::recording::Recording) (JSON), which ends the recording; a file without it was cut off. Behind it
//! may be `Z`, a sample of what reads found ([`crate::recording::ReadSample`], JSON). Each block can be read without the
//! others. A request is, as variable-length numbers: its class (device, operation, flags, process; described where it
//! is first used in the block), the time since the issue before, the response time and one, the distance from the end
//! of the request before on the device, the length; both in sectors where the class says so.

mod places;
mod read;
pub(crate) mod varint;
mod write;

pub(crate) use read::is_ours;
pub use read::read;
pub use write::FileWriter;
pub(crate) use write::append_sample;

/// The first bytes; the last is the version. Version 1 had no files, version 2 no control groups, version 3 neither
/// unwritten room nor a sample of what reads found.
pub(crate) const MAGIC: [u8; 8] = *b"KELVTRC\x04";
/// A chunk's content is no longer than this.
pub(crate) const LONGEST_CHUNK: usize = 1 << 20;
/// A block ends when it has so many bytes.
pub(crate) const BLOCK: usize = 1 << 16;
/// Bytes before a chunk's content.
pub(crate) const CHUNK_HEAD: usize = 9;

/// The CRC-32C of a chunk: of its letter and length, and its content.
fn checksum(head: &[u8; CHUNK_HEAD], content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[..5]), content)
}

//! Integers and bytes of a message that cannot be trusted, in the byte order of MySQL's and SQL Server's protocols: the lowest
//! byte first. (PostgreSQL's is the network's.)

use crate::{Error, Result};

/// Bytes of a message that are still to be read. Every length is checked before it is used. Each protocol adds its own forms of
/// texts and lengths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    #[inline]
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(too_short)?;
        self.0 = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or_else(too_short)?;
        self.0 = rest;
        Ok(*taken)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }
}

#[cold]
pub(crate) fn too_short() -> Error {
    Error::protocol("the server sent a message that is too short")
}

//! Messages out, cut into packets of the negotiated size.

/// Kinds of packets, by the protocol's numbers.
pub(crate) mod kind {
    pub(crate) const SQL_BATCH: u8 = 0x01;
    pub(crate) const RPC: u8 = 0x03;
    pub(crate) const RESPONSE: u8 = 0x04;
    pub(crate) const ATTENTION: u8 = 0x06;
    pub(crate) const BULK_LOAD: u8 = 0x07;
    pub(crate) const TRANSACTION_MANAGER: u8 = 0x0e;
    pub(crate) const LOGIN7: u8 = 0x10;
    pub(crate) const PRELOGIN: u8 = 0x12;
}

/// Kind, status, length, session, number and window.
pub(crate) const HEADER: usize = 8;
/// Status: the message ends with this packet.
pub(crate) const LAST: u8 = 0x01;
/// The size of packets until the server has agreed to another.
pub(crate) const FIRST_SIZE: usize = 4096;
/// The size that we ask for: a whole answer of most calls, and within one TLS record.
pub(crate) const WANTED_SIZE: u32 = 8000;

/// Length of [`put_all_headers`].
pub(crate) const ALL_HEADERS: usize = 22;

/// Begins a message of `kind` in `out`; [`close`] ends it.
#[inline]
pub(crate) fn open(out: &mut Vec<u8>, kind: u8) {
    out.clear();
    out.extend_from_slice(&[kind, LAST, 0, 0, 0, 0, 1, 0]);
}

/// The headers of a request: the transaction that it belongs to.
#[inline]
pub(crate) fn put_all_headers(out: &mut Vec<u8>, transaction: u64) {
    const TRANSACTION_DESCRIPTOR: u8 = 2;
    out.extend_from_slice(&[ALL_HEADERS as u8, 0, 0, 0, 18, 0, 0, 0, TRANSACTION_DESCRIPTOR, 0]);
    out.extend_from_slice(&transaction.to_le_bytes());
    // One request at a time.
    out.extend_from_slice(&[1, 0, 0, 0]);
}

/// Ends the message that `out` is: fills in its length, or cuts it into packets of `size`.
#[inline]
pub(crate) fn close(out: &mut Vec<u8>, size: usize) {
    if out.len() <= size {
        let [high, low] = (out.len() as u16).to_be_bytes();
        out[2..4].copy_from_slice(&[high, low]);
    } else {
        close_long(out, size);
    }
}

#[cold]
fn close_long(out: &mut Vec<u8>, size: usize) {
    let content = out.split_off(HEADER);
    let kind = out[0];
    out.clear();
    frame(out, kind, &content, size, &mut 1, true);
}

/// Appends `content` as packets of `size`, the first with this number; the last of them ends the message if `ends`.
pub(crate) fn frame(out: &mut Vec<u8>, kind: u8, content: &[u8], size: usize, number: &mut u8, ends: bool) {
    let mut parts = content.chunks(size - HEADER).peekable();
    if parts.peek().is_none() && ends {
        out.extend_from_slice(&[kind, LAST, 0, HEADER as u8, 0, 0, *number, 0]);
    }
    while let Some(part) = parts.next() {
        let status = if ends && parts.peek().is_none() { LAST } else { 0 };
        let [high, low] = ((part.len() + HEADER) as u16).to_be_bytes();
        out.extend_from_slice(&[kind, status, high, low, 0, 0, *number, 0]);
        out.extend_from_slice(part);
        *number = number.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_and_only_the_last_packet_says_so() {
        for (length, packets) in [(0, 1), (504, 1), (505, 2), (1008, 2), (1009, 3)] {
            let mut out = Vec::new();
            open(&mut out, kind::RPC);
            out.extend((0..length).map(|at| at as u8));
            close(&mut out, 512);
            let (mut at, mut found, mut content) = (0, 0, Vec::new());
            while at < out.len() {
                let size = usize::from(u16::from_be_bytes([out[at + 2], out[at + 3]]));
                found += 1;
                assert_eq!((out[at], out[at + 6]), (kind::RPC, found));
                assert_eq!(out[at + 1], u8::from(at + size == out.len()));
                content.extend_from_slice(&out[at + HEADER..at + size]);
                at += size;
            }
            assert_eq!(usize::from(found), packets, "{length}");
            assert_eq!(content, (0..length).map(|at| at as u8).collect::<Vec<_>>());
        }
    }
}

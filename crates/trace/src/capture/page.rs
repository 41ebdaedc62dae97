//! A page of the kernel's ring buffer, as `trace_pipe_raw` gives it.
//!
//! Source: `include/linux/ring_buffer.h` and the texts of `events/header_page` and `events/header_event`. A page has the
//! time of its first record, the length of its records (with flags in the upper bits: what was lost is in `stats`),
//! and the records: a word of 5 bits of type and 27 of time since the record before, and the data. Types 1 to 28 are
//! data of so many words, 0 is data whose length follows, 29 padding, 30 an extension of the time, 31 an absolute
//! time.

use super::format::PageFormat;

/// Records of the type length 0 to this are data.
const LONGEST_TYPE: u32 = 28;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time in a record's first word.
const TIME_BITS: u32 = 27;
/// The length within the commit field; the flags are above.
const LENGTH: u64 = (1 << 27) - 1;
/// Bits of an absolute time; the upper ones are those of the page.
const STAMP_BITS: u32 = 59;

/// Calls `each` with the time (ns) and the data of all records of a page.
///
/// # Errors
/// Where the page contradicts itself.
pub(super) fn decode(
    page: &[u8],
    format: PageFormat,
    each: &mut dyn FnMut(u64, &[u8]),
) -> Result<(), &'static str> {
    let mut time = format.timestamp.number(page).ok_or("the page has no time")?;
    let commit = format.commit.number(page).ok_or("the page has no length")?;
    let length = (commit & LENGTH) as usize;
    let data = page.get(format.data..).and_then(|data| data.get(..length)).ok_or("the page is truncated")?;
    let mut rest = data;
    while let Some((word, after)) = word(rest) {
        let (kind, delta) = (word & 0x1f, u64::from(word >> 5));
        let (payload, used) = match kind {
            PADDING if delta == 0 => break,
            PADDING => {
                let (length, _) = self::word(after).ok_or("padding without a length")?;
                (None, length as usize)
            }
            TIME_EXTEND | TIME_STAMP => {
                let (upper, _) = self::word(after).ok_or("a time is truncated")?;
                let extended = delta | u64::from(upper) << TIME_BITS;
                if kind == TIME_EXTEND {
                    time = time.wrapping_add(extended);
                } else {
                    time = absolute(time, extended);
                }
                rest = after.get(4..).unwrap_or_default();
                continue;
            }
            0 => {
                let (length, behind) = self::word(after).ok_or("a record without a length")?;
                // It counts its own word.
                let length = (length as usize).checked_sub(4).ok_or("a record without a length")?;
                (Some(behind.get(..length).ok_or("a record is truncated")?), length.next_multiple_of(4) + 4)
            }
            words => {
                debug_assert!(words <= LONGEST_TYPE, "five bits have no more values");
                let length = words as usize * 4;
                (Some(after.get(..length).ok_or("a record is truncated")?), length)
            }
        };
        time = time.wrapping_add(delta);
        if let Some(payload) = payload {
            each(time, payload);
        }
        rest = after.get(used..).unwrap_or_default();
    }
    Ok(())
}

/// An absolute time has 59 bits; the upper five are those of the time before, or one more after an overflow.
fn absolute(before: u64, stamp: u64) -> u64 {
    let stamp = stamp & ((1 << STAMP_BITS) - 1);
    let upper = before >> STAMP_BITS << STAMP_BITS;
    let whole = upper | stamp;
    // As the kernel reads it: without upper bits there is no overflow, but a record that is a moment older.
    if upper > 0 && whole < before { whole.wrapping_add(1 << STAMP_BITS) } else { whole }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_ne_bytes(*word), rest))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::format::tests::HEADER_PAGE;
    use super::*;

    fn format() -> PageFormat {
        PageFormat::parse(HEADER_PAGE).unwrap()
    }

    /// Writes a page as the kernel does.
    pub(in super::super) struct Page(Vec<u8>, u64);

    impl Page {
        pub(in super::super) fn new(time: u64) -> Self {
            Self(time.to_ne_bytes().into_iter().chain([0; 8]).collect(), time)
        }

        fn word(&mut self, word: u32) {
            self.0.extend(word.to_ne_bytes());
        }

        pub(in super::super) fn record(&mut self, time: u64, data: &[u8]) {
            let mut delta = time - self.1;
            self.1 = time;
            if delta >= 1 << TIME_BITS {
                self.word(TIME_EXTEND | (delta as u32 & 0x7ff_ffff) << 5);
                self.word((delta >> TIME_BITS) as u32);
                delta = 0;
            }
            let padded = data.len().next_multiple_of(4);
            if padded == 0 || padded > 112 {
                self.word((delta as u32) << 5);
                self.word(data.len() as u32 + 4);
            } else {
                self.word((padded / 4) as u32 | (delta as u32) << 5);
            }
            self.0.extend(data);
            self.0.resize(self.0.len() + padded - data.len(), 0);
        }

        pub(in super::super) fn finish(mut self) -> Vec<u8> {
            let commit = self.0.len() as u64 - 16;
            self.0[8..16].copy_from_slice(&commit.to_ne_bytes());
            self.0
        }
    }

    #[test]
    fn padding_and_absolute_times_are_skipped() {
        let mut page = Page::new(100);
        page.word(TIME_STAMP | 7 << 5);
        page.word(1);
        // A record that the kernel took back.
        page.word(PADDING | 5 << 5);
        page.word(8);
        page.word(0);
        page.word(1 | 3 << 5);
        page.word(0xabcd);
        page.word(PADDING);
        page.0.extend([0xff; 40]);
        let mut seen = Vec::new();
        let page = page.finish();
        decode(&page, format(), &mut |time, data| seen.push((time, data.to_vec()))).unwrap();
        assert_eq!(seen, [((1 << TIME_BITS) + 7 + 5 + 3, 0xabcd_u32.to_ne_bytes().to_vec())]);
        assert_eq!(absolute((3 << STAMP_BITS) + 10, 5), (4 << STAMP_BITS) + 5, "its 59 bits overflowed");
        assert_eq!(absolute(10, 5), 5);
    }

    proptest! {
        #[test]
        fn what_the_kernel_writes_is_read(start in 0..1_u64 << 40, records in prop::collection::vec((0..1_u64 << 34, prop::collection::vec(any::<u8>(), 1..200)), 0..15)) {
            let mut page = Page::new(start);
            let mut time = start;
            let mut expected = Vec::new();
            for (delta, data) in records {
                time += delta;
                page.record(time, &data);
                expected.push((time, data));
            }
            let mut seen = Vec::new();
            let bytes = page.finish();
            prop_assert_eq!(decode(&bytes, format(), &mut |time, data| seen.push((time, data.to_vec()))), Ok(()));
            prop_assert_eq!(seen.len(), expected.len());
            for ((time, data), (expected_time, expected_data)) in seen.iter().zip(&expected) {
                prop_assert_eq!(time, expected_time);
                prop_assert!(data.starts_with(expected_data));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), length in 0..400_u64) {
            let _ = decode(&bytes, format(), &mut |_, _| ());
            let mut page = Page::new(5).finish();
            page[8..16].copy_from_slice(&length.to_ne_bytes());
            page.extend(&bytes);
            let _ = decode(&page, format(), &mut |_, _| ());
        }
    }
}

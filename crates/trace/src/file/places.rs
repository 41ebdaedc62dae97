//! Files and their places in a recording.
//!
//! `F` has a list of files (JSON), which continues those before. `X` has changes of one look: the time, then as
//! variable-length numbers the file and one (0: free), the device's major and minor, the first byte as the distance from the
//! end of the change before, the length, and where the part begins in the file. `N` has names of objects (JSON).

use super::varint::{Input, put, put_signed};
use crate::recording::{Change, TracedFile};

/// Changes in a recording at most: memory of the reader.
pub(super) const MOST_CHANGES: usize = 8_000_000;
/// Files in a recording at most.
pub(super) const MOST_FILES: usize = 1_000_000;

/// The content of chunks with these changes, each at most about `bytes` long.
pub(super) fn encode(changes: &[Change], bytes: usize) -> Vec<Vec<u8>> {
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let mut begun: Option<(u64, u64)> = None;
    for change in changes {
        let is_full = chunks.last().is_none_or(|chunk| chunk.len() >= bytes);
        if is_full || begun.is_none_or(|(seen, _)| seen != change.seen) {
            let mut chunk = Vec::new();
            put(&mut chunk, change.seen);
            chunks.push(chunk);
            begun = Some((change.seen, 0));
        }
        let (Some(chunk), Some((_, end))) = (chunks.last_mut(), begun.as_mut()) else { continue };
        put(chunk, change.file.map_or(0, |file| u64::from(file) + 1));
        put(chunk, u64::from(change.device.0));
        put(chunk, u64::from(change.device.1));
        put_signed(chunk, change.begin.wrapping_sub(*end) as i64);
        put(chunk, change.length);
        put(chunk, change.logical);
        *end = change.begin.wrapping_add(change.length);
    }
    chunks
}

/// The changes of a chunk, as far as there is room for them.
pub(super) fn decode(content: &[u8], into: &mut Vec<Change>) -> Option<()> {
    let mut input = Input(content);
    let seen = input.number()?;
    let mut end = 0_u64;
    while !input.0.is_empty() {
        let file = match input.number()? {
            0 => None,
            number => Some(u32::try_from(number - 1).ok()?),
        };
        let device = (u32::try_from(input.number()?).ok()?, u32::try_from(input.number()?).ok()?);
        let begin = end.wrapping_add(input.signed()? as u64);
        let length = input.number()?;
        let logical = input.number()?;
        // What follows computes ends.
        begin.checked_add(length)?;
        logical.checked_add(length)?;
        end = begin + length;
        if into.len() < MOST_CHANGES {
            into.push(Change { seen, device, begin, length, file, logical });
        }
    }
    Some(())
}

/// Splits files into lists whose text is about `bytes` long.
pub(super) fn lists(files: &[TracedFile], bytes: usize) -> impl Iterator<Item = &[TracedFile]> {
    let mut left = files;
    std::iter::from_fn(move || {
        let mut length = 0;
        let full = left.iter().position(|file| {
            length += file.path.len() + file.object.len() + 64;
            length > bytes
        });
        let (list, rest) = left.split_at(full.map_or(left.len(), |place| place.max(1)));
        left = rest;
        (!list.is_empty()).then_some(list)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn change() -> impl Strategy<Value = Change> {
        let place = (0..1_u64 << 60, 0..1_u64 << 40, 0..1_u64 << 40);
        (0..3_u64, 0..300_u32, place, prop::option::of(0..70_000_u32)).prop_map(
            |(seen, minor, (begin, length, logical), file)| Change {
                seen,
                device: (8, minor),
                begin,
                length,
                file,
                logical,
            },
        )
    }

    proptest! {
        #[test]
        fn changes_are_read_as_they_were_written(changes in prop::collection::vec(change(), 0..60), junk: Vec<u8>) {
            let mut found = Vec::new();
            for chunk in encode(&changes, 64) {
                prop_assert!(chunk.len() < 164);
                decode(&chunk, &mut found).unwrap();
            }
            prop_assert_eq!(found, changes);
            let _ = decode(&junk, &mut Vec::new());
        }
    }

    #[test]
    fn lists_of_files_are_split_and_complete() {
        let files: Vec<TracedFile> =
            (0..50).map(|n| TracedFile { path: "x".repeat(n * 10), ..TracedFile::default() }).collect();
        let split: Vec<&[TracedFile]> = lists(&files, 300).collect();
        assert!(split.len() > 10 && split.iter().all(|list| list.len() < 6));
        assert_eq!(split.concat(), files);
        assert_eq!(lists(&[], 300).count(), 0);
    }
}

//! Encoding of an observer's readings as bytes.
//!
//! | bytes | hold |
//! |---|---|
//! | 1 | 1 when every value is there (a key), 0 when only those that changed; 2 more when the values are compressed |
//! | 4 | number of values, little-endian |
//! | a bit a value | unless it is a key: which values changed, the lowest bit first |
//! | the rest | the values, 32-bit floating point: little-endian one after another, or their first bytes, then their second, third and fourth, compressed (raw deflate) |
//!
//! A value has changed when its bits have, so that unknown values (NaN) are restored unchanged. A key is written once
//! in [`KEY_EVERY`] readings, so that a reader that starts in the middle of the table has a short way back.

use std::collections::HashMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// Readings of one observer from one key to the next.
const KEY_EVERY: u32 = 60;

/// Values above which a reading is damaged: a host of 1000 CPUs with ten metrics each has a hundredth of it.
const MOST: usize = 1_000_000;

const KEY: u8 = 1;
const COMPRESSED: u8 = 2;
const HEADER: usize = 5;

/// Packs the readings of a run, in their order.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    observers: HashMap<u32, Last>,
}

#[derive(Debug, Default)]
struct Last {
    values: Vec<f32>,
    since_key: u32,
}

impl Packer {
    /// Encodes a reading of the observer whose first metric is `first`.
    pub(crate) fn pack(&mut self, first: u32, values: &[f32]) -> Result<Vec<u8>, String> {
        if values.len() > MOST {
            return Err(format!("a reading has {} values; the limit is {MOST}", values.len()));
        }
        let last = self.observers.entry(first).or_default();
        let key = last.since_key == 0 || last.values.len() != values.len();
        let mut body = Vec::with_capacity(HEADER + values.len() * 2);
        body.push(u8::from(key) * KEY);
        body.extend_from_slice(&(values.len() as u32).to_le_bytes());
        if key {
            write_values(&mut body, values);
        } else {
            let mut changed = Vec::with_capacity(values.len());
            body.resize(HEADER + values.len().div_ceil(8), 0);
            for (place, (new, old)) in values.iter().zip(&last.values).enumerate() {
                if new.to_bits() != old.to_bits() {
                    body[HEADER + place / 8] |= 1 << (place % 8);
                    changed.push(*new);
                }
            }
            write_values(&mut body, &changed);
        }
        last.since_key = if key { 1 } else { (last.since_key + 1) % KEY_EVERY };
        last.values.clear();
        last.values.extend_from_slice(values);
        Ok(body)
    }
}

/// Adds the values to the bytes, compressed where that is shorter.
fn write_values(body: &mut Vec<u8>, values: &[f32]) {
    let bytes: Vec<[u8; 4]> = values.iter().map(|value| value.to_le_bytes()).collect();
    let mut planes = DeflateEncoder::new(Vec::with_capacity(values.len() * 4), Compression::default());
    // Sign and exponent repeat from value to value and the last digits never do.
    let packed = (0..4)
        .try_for_each(|plane| planes.write_all(&bytes.iter().map(|b| b[plane]).collect::<Vec<_>>()))
        .and_then(|()| planes.finish());
    match packed {
        Ok(packed) if packed.len() < values.len() * 4 => {
            body[0] |= COMPRESSED;
            body.extend_from_slice(&packed);
        }
        _ => body.extend(bytes.iter().flatten()),
    }
}

/// Unpacks the readings of a run, in their order.
#[derive(Debug, Default)]
pub(crate) struct Unpacker {
    observers: HashMap<u32, Vec<f32>>,
}

impl Unpacker {
    /// Decodes a reading of the observer whose first metric is `first`.
    pub(crate) fn unpack(&mut self, first: u32, body: &[u8]) -> Result<Vec<f32>, String> {
        let (head, rest) = body.split_at_checked(HEADER).ok_or("it is truncated")?;
        let (flags, count) = (head[0], u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize);
        if flags & !(KEY | COMPRESSED) != 0 || count > MOST {
            return Err(format!("it claims {count} values of type {flags}"));
        }
        let compressed = flags & COMPRESSED != 0;
        let values = if flags & KEY != 0 {
            read_values(rest, count, compressed)?
        } else {
            let mut values =
                self.observers.get(&first).cloned().ok_or("no earlier reading has all values")?;
            if values.len() != count {
                return Err(format!("it has {count} values, and the previous reading has {}", values.len()));
            }
            let (bits, rest) = rest.split_at_checked(count.div_ceil(8)).ok_or("it is truncated")?;
            let changed: Vec<usize> =
                (0..bits.len() * 8).filter(|place| bits[place / 8] >> (place % 8) & 1 == 1).collect();
            if changed.last().is_some_and(|place| *place >= count) {
                return Err("it changes values that do not exist".into());
            }
            for (place, value) in changed.iter().zip(read_values(rest, changed.len(), compressed)?) {
                values[*place] = value;
            }
            values
        };
        self.observers.insert(first, values.clone());
        Ok(values)
    }
}

fn read_values(bytes: &[u8], count: usize, compressed: bool) -> Result<Vec<f32>, String> {
    if !compressed {
        if bytes.len() != count * 4 {
            return Err(format!("it has {} bytes for {count} values", bytes.len()));
        }
        return Ok(bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect());
    }
    let mut planes = Vec::new();
    // One byte more than there may be, to see whether there are more.
    let limit = count as u64 * 4 + 1;
    DeflateDecoder::new(bytes).take(limit).read_to_end(&mut planes).map_err(|e| e.to_string())?;
    if planes.len() != count * 4 {
        return Err(format!("its {count} values do not match its size"));
    }
    let byte = |plane: usize, value: usize| planes[plane * count + value];
    Ok((0..count).map(|v| f32::from_le_bytes([byte(0, v), byte(1, v), byte(2, v), byte(3, v)])).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values of which many do not change, like those of a host.
    fn readings() -> impl Strategy<Value = Vec<(u32, Vec<f32>)>> {
        let value = prop_oneof![Just(0.0_f32), Just(f32::NAN), Just(1.0), any::<f32>()];
        let one = (0_u32..3, proptest::collection::vec(value, 0..70));
        proptest::collection::vec(one, 0..150)
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_readings_come_back_bit_by_bit(readings in readings(), same in any::<bool>()) {
            let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
            for (first, mut values) in readings {
                if same {
                    values.resize(70, 0.0);
                }
                let body = packer.pack(first, &values).unwrap();
                prop_assert!(body.len() <= HEADER + values.len().div_ceil(8) + values.len() * 4);
                prop_assert_eq!(bits(&unpacker.unpack(first, &body).unwrap()), bits(&values));
            }
        }

        #[test]
        fn damaged_bytes_are_an_error_or_values_and_never_a_panic(
            readings in readings(), at in any::<proptest::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
        ) {
            let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
            for (first, values) in readings {
                let mut body = packer.pack(first, &values).unwrap();
                let place = at.index(body.len());
                if cut {
                    body.truncate(place);
                    prop_assert!(unpacker.unpack(first, &body).is_err());
                } else {
                    body[place] = byte;
                    if let Ok(back) = unpacker.unpack(first, &body) {
                        prop_assert!(back.len() <= MOST);
                    }
                }
            }
        }

        #[test]
        fn garbage_never_panics(bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 0..20)) {
            let mut unpacker = Unpacker::default();
            for mut body in bodies {
                if let Some(byte) = body.first_mut() {
                    *byte %= 4;
                }
                if let Some(claim) = body.get_mut(2..5) {
                    claim.fill(0);
                }
                let _ = unpacker.unpack(0, &body);
            }
        }
    }

    #[test]
    fn what_changes_nothing_costs_next_to_nothing_and_a_key_comes_again() {
        let mut packer = Packer::default();
        let values: Vec<f32> = (0_u16..300).map(f32::from).collect();
        let sizes: Vec<usize> = (0..130).map(|_| packer.pack(7, &values).unwrap().len()).collect();
        assert_eq!(sizes[1], HEADER + 38);
        let keys: Vec<usize> = (0..130).filter(|i| sizes[*i] > 100).collect();
        assert_eq!(keys, [0, 60, 120]);
    }

    #[test]
    fn a_claim_without_its_bytes_takes_no_memory() {
        let mut unpacker = Unpacker::default();
        for flags in 0..4 {
            let body = [&[flags][..], &999_999_u32.to_le_bytes(), &[0; 10]].concat();
            assert!(unpacker.unpack(0, &body).is_err(), "{flags}");
        }
        assert!(unpacker.unpack(0, &[1, 0xff, 0xff, 0xff, 0xff]).unwrap_err().contains("claims"));
        // Ten megabytes of zeros in ten kilobytes, for one value.
        let mut deflate = DeflateEncoder::new(Vec::new(), Compression::best());
        deflate.write_all(&vec![0; 10 << 20]).unwrap();
        let bomb = [&[3, 1, 0, 0, 0][..], &deflate.finish().unwrap()].concat();
        assert!(unpacker.unpack(0, &bomb).unwrap_err().contains("do not match"));
    }
}

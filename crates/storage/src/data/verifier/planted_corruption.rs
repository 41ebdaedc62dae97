//! A thousand planted changes of one byte for each method: all must be found.

use super::super::example::{target, verifying, write};
use super::*;
use crate::job::VerifyMethod;

const METHODS: [VerifyMethod; 16] = [
    VerifyMethod::Md5,
    VerifyMethod::Crc64,
    VerifyMethod::Crc32c,
    VerifyMethod::Crc32,
    VerifyMethod::Crc16,
    VerifyMethod::Crc7,
    VerifyMethod::XxHash,
    VerifyMethod::Sha1,
    VerifyMethod::Sha256,
    VerifyMethod::Sha512,
    VerifyMethod::Sha3_224,
    VerifyMethod::Sha3_256,
    VerifyMethod::Sha3_384,
    VerifyMethod::Sha3_512,
    VerifyMethod::Pattern,
    VerifyMethod::PatternHeader,
];

/// How blocks are divided and where their headers are: (block, interval, offset).
const SHAPES: [(u32, Option<u32>, u32); 4] =
    [(2048, None, 0), (2048, Some(512), 0), (2048, None, 300), (2500, Some(700), 200)];

#[test]
fn every_one_of_a_thousand_changes_of_a_byte_is_found() {
    for method in METHODS {
        let mut random = kelvin_measure::Random::part(1, method as u64, 0);
        let mut found = 0;
        for index in 0..1000 {
            let (block, interval, offset) = SHAPES[index % SHAPES.len()];
            let mut job = verifying(method);
            job.blocks.sizes.0 = std::array::from_fn(|_| crate::job::BlockSizes::One(block));
            let verify = job.verify.as_mut().unwrap();
            (verify.interval, verify.offset) = (interval, offset);
            let mut verifier = Verifier::new(&job, 0, &[target("/t/file")], index as u64).unwrap();
            let mut buffer = vec![0; block as usize];
            let io = write(index as u64 * u64::from(block), block);
            let number = verifier.stamp(&io, &mut buffer);
            verifier.written(&io, number);
            let io = verifier.next_read().unwrap();
            // Every fourth is within the first bytes, where the header is.
            let most = if index % 16 < 4 { 64 } else { i64::from(block) };
            let at = random.range(0, most - 1) as usize;
            buffer[at] ^= random.range(1, 255) as u8;
            match verifier.check(&io, &buffer) {
                Ok(()) => {
                    panic!("{method:?} {block} {interval:?} {offset}: a change of byte {at} was not found")
                }
                Err(wrong) => {
                    let chunk = u64::from(interval.unwrap_or(block));
                    let within = (at as u64 / chunk * chunk).min(wrong.offset - io.offset);
                    assert_eq!(wrong.offset, io.offset + within, "{method:?} at {at}");
                    found += 1;
                }
            }
        }
        assert_eq!(found, 1000);
    }
}

#[test]
fn no_change_of_a_byte_passes_the_shortest_sum() {
    // Seven bits miss one of 255 changes. The CRC-16 does not.
    let mut verifier = Verifier::new(&verifying(VerifyMethod::Crc7), 0, &[target("/t/file")], 1).unwrap();
    let mut buffer = vec![0; 512];
    verifier.stamp(&write(0, 512), &mut buffer);
    let (mut changed, mut passed_first) = (buffer.clone(), 0);
    for at in 41..512 {
        for change in 1..=255 {
            changed[at] ^= change;
            assert!(verifier.examiner.sealer.check(0, 0, &changed, None).is_err(), "{at} {change}");
            let mut field = [0];
            checksum::sum(VerifyMethod::Crc7, &changed[41..], &mut field);
            passed_first += u32::from(field[0] == buffer[40]);
            changed[at] = buffer[at];
        }
    }
    assert!(passed_first > 0);
}

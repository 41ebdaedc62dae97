//! Histograms as bytes: HdrHistogram's V2 format, or its compressed form where that is smaller. Both are
//! formats of HdrHistogram's own tools, and the first four bytes identify it.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use kelvin_measure::{Exact, Histogram, HistogramError};

/// Cookie of the compressed V2 encoding (HdrHistogram, `EncodableHistogram.java`: V2CompressedEncodingCookieBase
/// 0x1c849304 with the word size flag 0x10).
const COMPRESSED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// A plain V2 blob of the widest histogram is under 600 kB; a blob that claims more is damaged.
const LONGEST: u64 = 4 << 20;

/// The histogram's bytes; none when it is empty.
pub(crate) fn encode(histogram: &Histogram) -> Result<Option<Vec<u8>>, HistogramError> {
    if histogram.is_empty() {
        return Ok(None);
    }
    let plain = histogram.encode()?;
    let broken = |e: std::io::Error| HistogramError::Encode(e.to_string());
    let mut zlib = ZlibEncoder::new(Vec::with_capacity(plain.len()), Compression::best());
    zlib.write_all(&plain).map_err(broken)?;
    let body = zlib.finish().map_err(broken)?;
    if body.len() + 8 >= plain.len() {
        return Ok(Some(plain));
    }
    let mut blob = Vec::with_capacity(body.len() + 8);
    blob.extend_from_slice(&COMPRESSED);
    blob.extend_from_slice(&(body.len() as u32).to_be_bytes());
    blob.extend_from_slice(&body);
    Ok(Some(blob))
}

/// Decodes the output of [`encode`], with the values stored beside it.
pub(crate) fn decode(blob: Option<&[u8]>, exact: Exact) -> Result<Histogram, HistogramError> {
    let Some(blob) = blob else { return Ok(Histogram::new()) };
    let Some(body) = blob.strip_prefix(&COMPRESSED) else { return Histogram::decode(blob, exact) };
    let body = body.get(4..).ok_or_else(|| HistogramError::Decode("truncated".into()))?;
    let mut plain = Vec::with_capacity(body.len() * 2);
    ZlibDecoder::new(body)
        .take(LONGEST)
        .read_to_end(&mut plain)
        .map_err(|e| HistogramError::Decode(e.to_string()))?;
    Histogram::decode(&plain, exact)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_histogram_comes_back(values in proptest::collection::vec(0_u64..4_000_000_000_000, 0..300)) {
            let mut histogram = Histogram::new();
            for value in values {
                histogram.record(value);
            }
            let blob = encode(&histogram).unwrap();
            let back = decode(blob.as_deref(), histogram.exact()).unwrap();
            prop_assert_eq!(back.summary(), histogram.summary());
            prop_assert_eq!(back.clamped(), histogram.clamped());
            prop_assert!(back.buckets().eq(histogram.buckets()));
        }

        #[test]
        fn garbage_is_an_error_and_never_a_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), keep in any::<bool>()) {
            if keep {
                bytes.splice(0..0, COMPRESSED);
            }
            prop_assert!(decode(Some(&bytes), Exact::default()).is_err());
        }
    }

    #[test]
    fn a_damaged_blob_is_an_error() {
        let mut histogram = Histogram::new();
        for value in 0..5000 {
            histogram.record(value * 1000);
        }
        let blob = encode(&histogram).unwrap().unwrap();
        assert!(blob.starts_with(&COMPRESSED), "5000 even values compress");
        assert!(decode(Some(&blob[..blob.len() / 2]), Exact::default()).is_err());
        assert!(decode(Some(&blob[..6]), Exact::default()).is_err());
    }
}

//! Values that JSON cannot express: non-finite numbers, and histograms.

use serde::{Deserialize, Deserializer};

/// JSON has no number for what is none, and writes null: it must not make a whole run unreadable.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// A bound that is not there: JSON has no infinity either.
pub(crate) fn lower<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NEG_INFINITY))
}

pub(crate) fn upper<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

/// Histograms: what people look at, and all of it as HdrHistogram's V2 format in base64, so that nothing is lost.
pub(crate) mod histogram {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::de::Error as _;
    use serde::ser::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::Histogram;
    use crate::histogram::{Exact, LatencySummary};

    /// A V2 blob of the widest histogram is under 600 kB; one that claims more is damaged.
    const LONGEST: usize = 1 << 20;

    #[derive(Serialize)]
    struct Written {
        #[serde(flatten)]
        summary: LatencySummary,
        sum: u64,
        clamped: u64,
        v2: Option<String>,
    }

    #[derive(Deserialize)]
    struct Read {
        sum: u64,
        max: Option<u64>,
        clamped: u64,
        v2: Option<String>,
    }

    pub(crate) fn serialize<S: Serializer>(histogram: &Histogram, serializer: S) -> Result<S::Ok, S::Error> {
        let v2 = if histogram.is_empty() {
            None
        } else {
            Some(STANDARD.encode(histogram.encode().map_err(S::Error::custom)?))
        };
        let sum = u64::try_from(histogram.sum())
            .map_err(|_| S::Error::custom("the latencies of one second add up to more than 584 years"))?;
        Written { summary: histogram.summary(), sum, clamped: histogram.clamped(), v2 }.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        let Read { sum, max, clamped, v2 } = Read::deserialize(deserializer)?;
        let Some(text) = v2 else {
            return if (sum, max, clamped) == (0, None, 0) {
                Ok(Histogram::new())
            } else {
                Err(D::Error::custom("a histogram has a sum but no counts"))
            };
        };
        if text.len() > LONGEST {
            return Err(D::Error::custom("a histogram exceeds one megabyte"));
        }
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        let max = max.ok_or_else(|| D::Error::missing_field("max"))?;
        Histogram::decode(&bytes, Exact { sum: sum.into(), max, clamped }).map_err(D::Error::custom)
    }
}

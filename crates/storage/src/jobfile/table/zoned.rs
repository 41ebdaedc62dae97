//! `zonemode=strided`, and what belongs to zoned devices, which is refused.

use super::entry::{OptionEntry, ValueKind, option, refused};
use crate::jobfile::value::Value;

const MODE: &[(&str, &str)] = &[
    ("none", "no zones"),
    ("strided", "so many bytes in each zone, then on to the next"),
    ("zbd", "not supported"),
];

const ZONED: &str = "it belongs to zoned devices (zonemode=zbd), which Kelvin does not know";

fn bytes(value: &Value<'_>) -> Result<u64, String> {
    if value.text()?.ends_with('%') {
        return Err("percent of a zone are not supported: write bytes".into());
    }
    value.count(0)
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("zonemode", ValueKind::Words(MODE), "whether I/O keeps to zones", |draft, value| {
        draft.strided = match value.word(MODE)? {
            "zbd" => {
                return Err("zoned devices are not supported: zonemode=strided works on any target".into());
            }
            word => word == "strided",
        };
        Ok(())
    })
    .default("none"),
    option("zonerange", ValueKind::Size, "bytes of a zone, with zonemode=strided", |draft, value| {
        draft.zones.range = bytes(value)?;
        Ok(())
    })
    .default("the zone's size"),
    option("zonesize", ValueKind::Size, "bytes moved in a zone, with zonemode=strided", |draft, value| {
        draft.zones.size = bytes(value)?;
        Ok(())
    }),
    option("zoneskip", ValueKind::Size, "bytes between zones, with zonemode=strided", |draft, value| {
        draft.zones.skip = bytes(value)?;
        Ok(())
    })
    .default("0"),
    refused("zonecapacity", "bytes of a zone that can be written", ZONED),
    refused("read_beyond_wp", "read behind a zone's write pointer", ZONED),
    refused("max_open_zones", "how many zones may be open", ZONED),
    refused("job_max_open_zones", "how many zones a worker may have open", ZONED),
    refused("ignore_zone_limits", "open more zones than the device allows", ZONED),
    refused("zone_reset_threshold", "when zones are reset", ZONED),
    refused("zone_reset_frequency", "how often zones are reset", ZONED),
];

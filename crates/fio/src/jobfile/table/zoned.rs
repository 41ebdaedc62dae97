//! `zonemode=strided`, and what belongs to zoned devices, which is refused.

use super::entry::{OptionEntry, ValueKind, option, refused};
use crate::jobfile::value::Value;

const MODE: &[(&str, &str)] = &[
    ("none", "no zones"),
    ("strided", "do zonesize bytes in each zone, then skip to the next"),
    ("zbd", "not supported"),
];

const ZONED: &str = "it belongs to zoned devices (zonemode=zbd), which Kelvin does not support";

fn bytes(value: &Value<'_>) -> Result<u64, String> {
    if value.text()?.ends_with('%') {
        return Err("percent of a zone is not supported: give bytes".into());
    }
    value.count(0)
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("zonemode", ValueKind::Words(MODE), "zone mode", |draft, value| {
        draft.strided = match value.word(MODE)? {
            "zbd" => {
                return Err("zoned devices are not supported: zonemode=strided works on any target".into());
            }
            word => word == "strided",
        };
        Ok(())
    })
    .default("none"),
    option("zonerange", ValueKind::Size, "size of a zone, with zonemode=strided", |draft, value| {
        draft.zones.range = bytes(value)?;
        Ok(())
    })
    .default("the zone's size"),
    option(
        "zonesize",
        ValueKind::Size,
        "bytes transferred per zone, with zonemode=strided",
        |draft, value| {
            draft.zones.size = bytes(value)?;
            Ok(())
        },
    ),
    option(
        "zoneskip",
        ValueKind::Size,
        "bytes skipped between zones, with zonemode=strided",
        |draft, value| {
            draft.zones.skip = bytes(value)?;
            Ok(())
        },
    )
    .default("0"),
    refused("zonecapacity", "writable capacity of a zone", ZONED),
    refused("read_beyond_wp", "allow reads beyond a zone's write pointer", ZONED),
    refused("max_open_zones", "maximum number of open zones", ZONED),
    refused("job_max_open_zones", "maximum number of open zones per worker", ZONED),
    refused("ignore_zone_limits", "ignore the device's limit of open zones", ZONED),
    refused("zone_reset_threshold", "threshold for zone resets", ZONED),
    refused("zone_reset_frequency", "frequency of zone resets", ZONED),
];

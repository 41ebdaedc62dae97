//! Finds a profile by the name or file that the user gives, and computes its sizes.

use std::path::Path;

use anyhow::{Context, Result, bail};
use kelvin_database::managed::{HostResources, Profile, ProfileLoad, Profiles};
use kelvin_diagnose::Evidence;
use kelvin_run::Spec;
use kelvin_store::Store;

use crate::args::Global;
use crate::paths;

/// Maximum size of a settings file in bytes.
const LONGEST: u64 = 1 << 20;

/// Whether Kelvin has a built-in profile of this name.
pub(super) fn is_built_in(name: &str) -> bool {
    ["default", "durable", "steady"].contains(&name)
}

/// The profile with this name or in this file.
pub(super) fn resolve(
    name: &str,
    sized_for: Option<&str>,
    host: HostResources,
    profiles: &dyn Profiles,
    global: &Global,
) -> Result<Profile> {
    if let Some(run) = sized_for
        && name != "steady"
    {
        bail!("--for {run}: only the profile steady is sized for a run");
    }
    let (load, caution) = load(sized_for, global)?;
    match profiles.built_in(name, host, &load) {
        Some(mut profile) => {
            profile.cautions.extend(caution);
            Ok(profile)
        }
        None => read(Path::new(name), profiles),
    }
}

fn read(path: &Path, profiles: &dyn Profiles) -> Result<Profile> {
    let shown = path.display().to_string();
    let length = match std::fs::metadata(path) {
        Ok(found) => found.len(),
        Err(error) => {
            bail!("--profile {shown}: neither default, durable nor steady, nor a readable file: {error}")
        }
    };
    if length > LONGEST {
        bail!("--profile {shown}: {length} bytes is too large for a settings file");
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("--profile {shown}: cannot read it"))?;
    // The name is written to the server's configuration as a single line.
    let name: String = shown.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    Ok(profiles.parse(&name, &text)?)
}

/// The load for which `steady` is sized, with a remark if necessary: that of a stored run, whose WAL or redo log was
/// measured, or that of a specification.
fn load(sized_for: Option<&str>, global: &Global) -> Result<(ProfileLoad, Option<String>)> {
    let Some(name) = sized_for else { return Ok((ProfileLoad::default(), None)) };
    let path = Path::new(name);
    if path.extension().is_some_and(|extension| extension == "toml") || path.is_file() {
        let spec = Spec::read(path).with_context(|| format!("--for {name}"))?;
        return Ok((ProfileLoad { seconds: seconds(&spec), ..ProfileLoad::default() }, None));
    }
    let store = Store::open_read_only(&paths::store(global.store.as_deref())?)
        .with_context(|| format!("--for {name}: not a file, and there are no stored runs"))?;
    let run = store.load(store.find(name)?)?;
    let spec = Spec::parse(&run.info.spec_toml, &format!("the specification of run {}", run.id))?;
    let evidence = Evidence::from_run(&run)?;
    let rates = evidence
        .points()
        .filter_map(|point| evidence.mean_of_first_known(point.point, kelvin_diagnose::metric::LOG_BYTES));
    let rate = rates.reduce(f64::max).filter(|rate| *rate > 0.0);
    if rate.is_none() {
        bail!(
            "--for {name}: run {} did not measure the volume of the log (postgres.wal.bytes, \
             mysql.redo.bytes); name an observed run on a server, or a specification",
            run.id
        );
    }
    let database = run.info.environment.get("database_bytes").and_then(serde_json::Value::as_u64);
    let setting = |name: &str| {
        let value = run.info.environment.pointer(&format!("/database/settings/{name}"))?.as_str()?;
        Some(value.split(' ').next().unwrap_or(value).to_owned())
    };
    let waits = |name: &str, value: &str| setting(name).as_deref() == Some(value);
    let why = if waits("fsync", "on") {
        Some("fsync was on")
    } else if waits("innodb_flush_log_at_trx_commit", "1") {
        Some("innodb_flush_log_at_trx_commit was 1")
    } else {
        None
    };
    let caution = why.map(|why| {
        format!(
            "run {} waited for the disk ({why}): with steady it may write more log than the {:.1} MB/s it was \
             sized for; run it once, then size again with --for last",
            run.id,
            rate.unwrap_or(0.0) / 1e6
        )
    });
    Ok((ProfileLoad { wal_rate: rate, seconds: seconds(&spec), database }, caution))
}

/// Ramp-ups and windows of all points in seconds: a checkpoint comes before the run, not before each point.
fn seconds(spec: &Spec) -> f64 {
    let point = spec.load.ramp_up.duration() + spec.load.duration.duration();
    point.as_secs_f64() * spec.load.points().len().max(1) as f64
}

//! Settings of the server: of findings that name one, and of the log where sessions waited for it.

use kelvin_measure::observation::WaitKind;
use kelvin_measure::text;
use kelvin_observe::metric;

use super::{Change, Remedy, Rules, WAITS, finding, waited_share};
use crate::engine::engine_advice;
use crate::findings::generic_plan::{self, PlanKind};
use crate::findings::{buffers_too_small, temporary_files, wal_forced_checkpoint};
use crate::{Effect, EffectBasis, Evidence, Finding};

const DURABILITY: Rules =
    Rules::Forbidden { why: "TPC-C 3.5: a committed transaction must survive a failure of the system" };

/// Whether TPC-C's rules allow a value of a setting: not where commits can be lost.
pub fn rules_of_setting(name: &str, value: &str) -> Rules {
    let off = ["off", "false", "no", "0"].contains(&value.trim().to_ascii_lowercase().as_str());
    let loses = match name.trim().to_ascii_lowercase().as_str() {
        "fsync" | "full_page_writes" | "synchronous_commit" | "innodb_doublewrite" => off,
        "innodb_flush_log_at_trx_commit" => value.trim() != "1",
        _ => false,
    };
    if loses { DURABILITY } else { Rules::Allowed }
}

pub(super) fn remedies(evidence: &Evidence, found: &[Finding]) -> Vec<Remedy> {
    let of_findings =
        [checkpoints, buffers, jit, plans, spills].into_iter().filter_map(|of| of(evidence, found));
    of_findings.chain(log(evidence)).collect()
}

/// Bytes as the engine's settings take them, whatever unit the setting has.
fn size(evidence: &Evidence, bytes: f64) -> Option<String> {
    let (unit, name) = engine_advice(evidence).host().size_unit?;
    Some(format!("{:.0}{name}", bytes / unit))
}

/// A setting with a size. Both sides of a comparison state it, so both need its present value.
fn sized(evidence: &Evidence, name: &str, bytes: f64) -> Option<(String, Change)> {
    let before = evidence.setting_number(name).filter(|now| *now >= 0.0)?;
    let change =
        Change::Setting { name: name.into(), before: size(evidence, before)?, value: size(evidence, bytes)? };
    (bytes > before)
        .then(|| (format!("{name} = {} (now {})", text::memory(bytes), text::memory(before)), change))
}

/// A switch that has another position in the run.
fn switched(evidence: &Evidence, name: &str, value: &str) -> Option<(String, Change)> {
    let before = evidence.setting(name).filter(|before| *before != value)?;
    let change = Change::Setting { name: name.into(), before: before.into(), value: value.into() };
    Some((format!("{name} = {value} (now {before})"), change))
}

fn remedy(from: &Finding, (title, change): (String, Change)) -> Remedy {
    Remedy {
        finding: from.id,
        title,
        change,
        reason: from.title.clone(),
        effect: from.effect.clone(),
        rules: Rules::Allowed,
    }
}

fn checkpoints(evidence: &Evidence, found: &[Finding]) -> Option<Remedy> {
    let from = finding(found, "wal-forced-checkpoint")?;
    let bytes = wal_forced_checkpoint::needed(evidence, from.point?)?;
    Some(remedy(from, sized(evidence, "max_wal_size", bytes)?))
}

fn buffers(evidence: &Evidence, found: &[Finding]) -> Option<Remedy> {
    let from = finding(found, "buffers-too-small")?;
    let (setting, bytes) = buffers_too_small::wanted(evidence)?;
    Some(remedy(from, sized(evidence, setting, bytes)?))
}

fn jit(evidence: &Evidence, found: &[Finding]) -> Option<Remedy> {
    Some(remedy(finding(found, "jit-cost")?, switched(evidence, "jit", "off")?))
}

fn plans(evidence: &Evidence, found: &[Finding]) -> Option<Remedy> {
    let from = finding(found, "generic-plan")?;
    let point = from.point?;
    let kind = generic_plan::wanted(evidence, point)?;
    let effect = match kind {
        // A generic plan shows that its statement is a prepared one.
        PlanKind::Custom => from.effect.clone(),
        PlanKind::Generic => {
            let share = generic_plan::prepared_planning_share(evidence, point)?;
            Effect::up_to(share, EffectBasis::StatementTime)
        }
    };
    Some(Remedy { effect, ..remedy(from, switched(evidence, "plan_cache_mode", kind.mode())?) })
}

/// Sixteen times the memory: most sorts that spill are a few times too large. At most a sixteenth of the host's memory for all users
/// together; where that is not known or not twice the present value, nothing.
fn spills(evidence: &Evidence, found: &[Finding]) -> Option<Remedy> {
    const TIMES: f64 = 16.0;
    let from = finding(found, "temporary-files")?;
    let setting = engine_advice(evidence).spills().setting?;
    let merges = |point| temporary_files::merges(evidence, point) > 0.0;
    // A temporary table, which is no sort, is limited by two settings.
    if from.point.is_some_and(|point| temporary_files::is_counted(evidence, point) && !merges(point)) {
        return None;
    }
    let now = evidence.setting_number(setting)?;
    let users = evidence.points().map(|point| f64::from(point.users)).fold(1.0, f64::max);
    let most = buffers_too_small::memory(evidence)? / 16.0 / users;
    let bytes = (now * TIMES).min(most);
    (bytes >= 2.0 * now).then_some(())?;
    Some(remedy(from, sized(evidence, setting, bytes)?))
}

fn images_are_plain(evidence: &Evidence) -> bool {
    evidence.setting("wal_compression") == Some("off")
}

/// Where sessions waited for the log: what makes the log smaller, or commits wait less. The bound is their time in these waits;
/// what they do instead is not known.
fn log(evidence: &Evidence) -> Vec<Remedy> {
    let Some(waits) = waited_share(evidence, &[WaitKind::Log, WaitKind::LogFlush]) else {
        return Vec::new();
    };
    let reason = format!("sessions waited for the log for {} of their time", text::percent(waits));
    let effect = || Effect::up_to(waits, EffectBasis::TransactionTime);
    let made = |change: Option<(String, Change)>, reason: String, rules| {
        change.map(|(title, change)| Remedy {
            finding: WAITS,
            title,
            change,
            reason,
            effect: effect(),
            rules,
        })
    };
    let mut all = Vec::new();
    for (name, value) in [("synchronous_commit", "off"), ("innodb_flush_log_at_trx_commit", "2")] {
        all.extend(made(switched(evidence, name, value), reason.clone(), DURABILITY));
    }
    let images = evidence.points().filter_map(|point| {
        let images = evidence.mean(point.point, metric::FULL_PAGE_IMAGES)?;
        let records = evidence.mean(point.point, metric::WAL_RECORDS).filter(|records| *records > 0.0)?;
        Some(images / records)
    });
    // Only images are compressed.
    if let Some(share) = images.reduce(f64::max).filter(|share| *share > 0.0) {
        let reason = format!("{reason}; {} of the WAL records are full-page images", text::percent(share));
        // A switch until 14, then a method.
        let since_15 =
            evidence.setting_number("server_version_num").is_some_and(|version| version >= 150_000.0);
        let value = if since_15 { "pglz" } else { "on" };
        let change = switched(evidence, "wal_compression", value).filter(|_| images_are_plain(evidence));
        all.extend(made(change, reason, Rules::Allowed));
    }
    all
}

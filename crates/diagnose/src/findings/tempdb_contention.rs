//! Did sessions queue for pages of tempdb?
//!
//! Every temporary table and work table allocates pages there; the pages that keep account of them are few, and the catalogue of
//! temporary tables is one for all.

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_measure::text;
use kelvin_observe::metric;

use super::{FindingDefinition, setting};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity, is_client};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "tempdb-contention", question: "Did sessions queue for pages of tempdb?", find };

/// Share of the active sessions from which a class is the limit (METHOD B6), and from which it should be known.
const LIMIT: f64 = 0.4;
const KNOWN: f64 = 0.1;

/// Whether a session waits for a page of tempdb that another one uses.
pub(super) fn is_tempdb(group: &WaitGroup) -> bool {
    group.kind == WaitKind::Page && group.object.as_deref().is_some_and(|object| object.starts_with("tempdb"))
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let active = evidence.active(point, is_client);
    let pages = active.by(|group| group.object.clone().filter(|_| is_tempdb(group)));
    let pages: Vec<(&str, f64)> =
        pages.iter().filter_map(|(object, sessions)| Some((object.as_deref()?, *sessions))).collect();
    let waiting: f64 = pages.iter().map(|(_, sessions)| sessions).sum();
    let share = waiting / active.sessions();
    if share.is_nan() || share < KNOWN || waiting < 0.5 {
        return None;
    }
    let mut facts =
        vec![EvidenceLine::of_active("sessions waiting for a page of tempdb", waiting, active.sessions())];
    facts.extend(pages.iter().take(4).map(|(object, sessions)| {
        EvidenceLine::new((*object).to_owned(), format!("{} of them", text::number(*sessions)))
    }));
    facts.extend(
        setting::setting_value(evidence, "tempdb data files")
            .map(|files| EvidenceLine::new("data files of tempdb", files)),
    );
    for (name, what) in
        [(metric::TEMPORARY_TABLES, "temporary tables created"), (metric::WORK_TABLES, "work tables created")]
    {
        facts.extend(
            evidence
                .mean(point, name)
                .map(|rate| EvidenceLine::new(what, format!("{} per second", text::number(rate)))),
        );
    }
    Some(Finding {
        id: ABOUT.id,
        severity: if share >= LIMIT && waiting >= 1.0 { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!("Sessions queued for pages of tempdb: {} of their active time", text::percent(share)),
        evidence: facts,
        effect: Effect::up_to(share, EffectBasis::TransactionTime),
        below_precision: false,
        threshold: "amber from 10 % of the active sessions, red from 40 % (the verdict's own threshold)"
            .into(),
        next: "For PFS, GAM and SGAM pages: as many tempdb data files of equal size as CPUs, up to eight. \
            For other pages (the catalogue of temporary tables): `ALTER SERVER CONFIGURATION SET \
            MEMORY_OPTIMIZED TEMPDB_METADATA = ON`, or fewer temporary tables; a statement that spills to \
            tempdb needs better estimates."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(object: &str, waiting: f64) -> Option<Severity> {
        let page = WaitGroup {
            backend: "client backend".into(),
            kind: WaitKind::Page,
            class: "Buffer Latch".into(),
            event: "PAGELATCH_UP".into(),
            query: None,
            object: Some(object.into()),
        };
        let cpu = WaitGroup {
            kind: WaitKind::Cpu,
            class: "CPU".into(),
            event: String::new(),
            object: None,
            ..page.clone()
        };
        let evidence = Staged::new().states(&[(page, waiting), (cpu, 4.0)]).done();
        let elsewhere = super::super::hot_page::ABOUT;
        assert_eq!((elsewhere.find)(&evidence).is_empty(), object.starts_with("tempdb") || waiting < 0.4);
        find(&evidence).first().map(|finding| finding.severity)
    }

    #[test]
    fn pages_of_tempdb_are_reported_here_and_others_as_hot_pages() {
        assert_eq!(severity("tempdb PFS page", 6.0), Some(Severity::Red));
        assert_eq!(severity("tempdb PFS page", 0.6), Some(Severity::Amber));
        assert_eq!(severity("tempdb PFS page", 0.2), None);
        assert_eq!(severity("dbo.warehouse (pk)", 6.0), None);
    }
}

//! What SQL Server's optimizer decides by: the model with which it estimates numbers of rows, which a level of compatibility brings.

use kelvin_measure::observation::StatementTotals;

use super::setting::setting_value;
use crate::{Evidence, EvidenceLine};

/// What to do about a statement with a bad plan.
pub(super) const ADVICE: &str = "Look at its plan (`kelvin top-sql --plans --save-plans DIR` saves it as .sqlplan). If it reads whole \
    tables since the compatibility level changed, compare the older cardinality estimator as an A/B (`ALTER \
    DATABASE SCOPED CONFIGURATION SET LEGACY_CARDINALITY_ESTIMATION = ON`, or the hint \
    FORCE_LEGACY_CARDINALITY_ESTIMATION for this statement alone), or force the former plan in Query Store; \
    update statistics first.";

/// Settings that choose the model.
const SETTINGS: [(&str, &str); 2] = [
    ("compatibility_level", "compatibility level (which chooses the cardinality estimator)"),
    ("LEGACY_CARDINALITY_ESTIMATION", "LEGACY_CARDINALITY_ESTIMATION"),
];

/// The settings that choose the model.
pub(super) fn model(evidence: &Evidence) -> Vec<EvidenceLine> {
    let fact = |(name, what): (&str, &str)| Some(EvidenceLine::new(what, setting_value(evidence, name)?));
    SETTINGS.into_iter().filter_map(fact).collect()
}

/// Those that differ from an earlier run's.
pub(super) fn changed(evidence: &Evidence, earlier: &Evidence) -> Vec<EvidenceLine> {
    let fact = |(name, what): (&str, &str)| {
        let (now, before) = (setting_value(evidence, name)?, setting_value(earlier, name)?);
        (now != before).then(|| EvidenceLine::new(what, format!("{now} now, {before} before")))
    };
    SETTINGS.into_iter().filter_map(fact).collect()
}

/// Tables that a statement's plan reads as a whole.
pub(super) fn scans(statement: &StatementTotals) -> Option<EvidenceLine> {
    let scans = statement.plan.iter().flat_map(|plan| &plan.scans).filter(|scan| scan.node == "Seq Scan");
    let mut tables: Vec<&str> = scans.map(|scan| scan.relation.as_str()).collect();
    tables.sort_unstable();
    tables.dedup();
    (!tables.is_empty()).then(|| EvidenceLine::new("its plan reads all of", tables.join(", ")))
}

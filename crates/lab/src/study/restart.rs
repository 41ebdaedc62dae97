//! The factors that restart the server, determined without connecting to one.

use kelvin_database::is_read_at_start;

use crate::factor::{Factor, FactorKind};

/// Whether changing the factor's level restarts the server. A later version may differ: this is for the plan only.
/// When a setting is changed, the server is asked.
pub fn restarts(factor: &Factor) -> bool {
    match factor.how() {
        FactorKind::Setting(name) => is_read_at_start(name),
        FactorKind::HugePages => true,
        FactorKind::Bind(_)
        | FactorKind::Kernel(_)
        | FactorKind::Spec(_)
        | FactorKind::Mount(_)
        | FactorKind::Command
        | FactorKind::Sql => false,
    }
}

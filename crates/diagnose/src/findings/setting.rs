//! A setting of the database: as the observer read it, or as the run's environment has it.

use crate::Evidence;

/// A setting's word, such as "off".
pub(crate) fn setting_value<'a>(evidence: &'a Evidence, name: &str) -> Option<&'a str> {
    evidence.setting(name).or_else(|| {
        // "off (configuration file)": the value, and its source in parentheses.
        let known = evidence.context.environment(&format!("/database/settings/{name}"))?.as_str()?;
        Some(known.rsplit_once(" (").map_or(known, |(value, _)| value))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Context;

    #[test]
    fn what_the_observer_read_comes_first() {
        let environment = json!({ "database": { "settings": { "fsync": "off (configuration file)" } } });
        let mut evidence = Evidence::new(Context::default().with_environment(json!({}), environment));
        assert_eq!(setting_value(&evidence, "fsync"), Some("off"));
        assert_eq!(setting_value(&evidence, "jit"), None);
        let values = [("fsync".to_owned(), "on".to_owned())].into();
        let settings = kelvin_measure::observation::Observation::Settings { values };
        evidence.event(&kelvin_measure::event::Event::Observed(settings));
        assert_eq!(setting_value(&evidence, "fsync"), Some("on"));
    }
}

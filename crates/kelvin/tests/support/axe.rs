//! Faults of accessibility, by axe-core.

use std::path::PathBuf;

use serde_json::Value;

use super::browser::Browser;

/// Must be that of xtask/src/axe.rs.
const FILE: &str = "axe-core/axe-4.14.1.min.js";

/// What is asked of a page: its violations, with the first places of each, and how many rules it passed.
const ASKED: &str = "axe.run(document).then((found) => ({ passed: found.passes.length, faults: found.violations.map((fault) => \
    `${fault.impact}: ${fault.id}, ${fault.help}: ` + fault.nodes.slice(0, 3).map((node) => node.html).join(' | ')) }))";

/// axe-core's script, as `cargo xtask axe` fetches it.
pub(crate) fn script() -> String {
    // The test itself stands in target/PROFILE/deps.
    let test = std::env::current_exe().unwrap();
    let found = test.ancestors().map(|directory| directory.join(FILE)).find(|file| file.is_file());
    let file = found.unwrap_or_else(|| PathBuf::from(FILE));
    std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{}: {error}; cargo xtask axe fetches axe-core (npm)", file.display()))
}

/// Fails where the page has a fault in light or dark colours.
#[track_caller]
pub(crate) fn is_accessible(browser: &mut Browser, script: &str, name: &str) {
    for dark in [false, true] {
        browser.resize(1440, 900, dark);
        browser.wait("innerWidth === 1440");
        browser.value(&format!("{script};0"));
        let found = browser.value(ASKED);
        assert_eq!(found["faults"], Value::Array(Vec::new()), "{name}, dark: {dark}");
        assert!(found["passed"].as_u64().is_some_and(|rules| rules > 10), "{name}: {found}");
    }
}

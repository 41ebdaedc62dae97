//! Accessibility checks with axe-core.

use serde_json::Value;

use super::browser::Browser;

/// The same as in xtask/src/axe.rs.
const FILE: &str = "axe-core/axe-4.14.1.min.js";

/// The script that returns a page's violations, each with its first elements, and the number of rules passed.
const ASKED: &str = "axe.run(document).then((found) => ({ passed: found.passes.length, faults: found.violations.map((fault) => \
    `${fault.impact}: ${fault.id}, ${fault.help}: ` + fault.nodes.slice(0, 3).map((node) => node.html).join(' | ')) }))";

/// The file that exists instead if `cargo xtask test` could not fetch axe-core.
const UNAVAILABLE: &str = "axe-core/unavailable";

/// axe-core's script, as fetched by `cargo xtask axe`; `None` if that failed.
pub(crate) fn script() -> Option<String> {
    // The test binary is in target/PROFILE/deps.
    let test = std::env::current_exe().unwrap();
    let find = |name| test.ancestors().map(|directory| directory.join(name)).find(|file| file.is_file());
    match (find(FILE), find(UNAVAILABLE)) {
        (Some(file), _) => Some(std::fs::read_to_string(file).unwrap()),
        (None, Some(_)) => None,
        (None, None) => panic!("no {FILE}: cargo xtask axe fetches axe-core (npm)"),
    }
}

/// Fails if the page has a violation in light or dark colours.
#[track_caller]
pub(crate) fn is_accessible(browser: &mut Browser, script: Option<&str>, name: &str) {
    let Some(script) = script else { return };
    for dark in [false, true] {
        browser.resize(1440, 900, dark);
        browser.wait("innerWidth === 1440");
        browser.value(&format!("{script};0"));
        let found = browser.value(ASKED);
        assert_eq!(found["faults"], Value::Array(Vec::new()), "{name}, dark: {dark}");
        assert!(found["passed"].as_u64().is_some_and(|rules| rules > 10), "{name}: {found}");
    }
}

//! The bill of materials (SBOM): every package that is linked into the executable, in CycloneDX 1.5.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{PACKAGE, Release, text};

/// Writes `….cdx.json`.
pub(super) fn write(release: &Release, target: &str) -> Result<()> {
    let metadata = text(
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(&release.top)
            .args(["metadata", "--format-version=1", "--locked", "--filter-platform", target]),
    )?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata did not print JSON")?;
    let sbom = bill(&metadata, release)?;
    std::fs::write(release.file(".cdx.json"), serde_json::to_string_pretty(&sbom)?)?;
    Ok(())
}

fn bill(metadata: &Value, release: &Release) -> Result<Value> {
    let linked = linked(metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut components = Vec::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        if !linked.contains(text("id")) || package["source"].is_null() {
            continue;
        }
        let (name, version) = (text("name"), text("version"));
        let purl = format!("pkg:cargo/{name}@{version}");
        let license = json!([{"expression": text("license").replace('/', " OR ")}]);
        components.push(json!({
            "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl, "licenses": license,
        }));
    }
    Ok(json!({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {
            "type": "application", "name": PACKAGE, "version": release.version,
            "licenses": [{"expression": "Apache-2.0"}],
            "properties": [{"name": "commit", "value": release.commit}],
        }},
        "components": components,
    }))
}

/// Identifiers of the packages that are linked into the command: its direct and indirect normal dependencies.
fn linked(metadata: &Value) -> Result<BTreeSet<&str>> {
    let nodes =
        metadata["resolve"]["nodes"].as_array().context("cargo metadata has no dependency resolution")?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let command =
        packages.iter().find(|package| package["name"] == PACKAGE).context("there is no such package")?;
    let mut linked = BTreeSet::new();
    let mut next = vec![command["id"].as_str().context("the package has no identifier")?];
    while let Some(id) = next.pop() {
        if !linked.insert(id) {
            continue;
        }
        let node = nodes.iter().find(|node| node["id"] == id).context("a package is not resolved")?;
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array();
            if kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null())) {
                next.extend(dependency["pkg"].as_str());
            }
        }
    }
    Ok(linked)
}

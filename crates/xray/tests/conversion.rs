//! Scenarios of our own that use every construct, as Kelvin's; and X-Ray's, where they are at hand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kelvin_xray::{Assignment, Conversion, Faults, Scenario, Settings, convert, parse, read, render};
use proptest::prelude::*;

/// Commands for all steps that need one.
const COMMANDS: &[&str] = &[
    "vm_group.RunCommand=sh -c {command}",
    "vm_group.CreatePeriodicSnapshots=lvcreate -s -n snap{snapshot} ${VG:-vg}/{vm_group_name}",
    "nodes.PowerOff=virsh destroy node{nodes}",
    "nodes.WaitForPowerOff=true",
    "nodes.PowerOn=virsh start node{nodes}",
    "vm_group.MigrateGroup=migrate {from_node} {to_node}",
    "meta.RollingUpgrade=true",
];

fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios").join(name)
}

fn settings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn converted(
    scenario: &Scenario,
    bind: &[&str],
    map: &[&str],
    scale: (f64, f64),
) -> Result<Conversion, Faults> {
    let assignments = |texts: &[&str]| texts.iter().map(|text| Assignment::parse(text)).collect::<Vec<_>>();
    convert(
        scenario,
        &Settings {
            bindings: &assignments(bind),
            maps: &assignments(map),
            directory: Path::new("/data"),
            nodes: None,
            time: scale.0,
            size: scale.1,
        },
    )
}

#[test]
fn a_colocation_scenario_becomes_tenants_steps_and_expectations() {
    let scenario = read(&own("colocation"), &settings(&[])).unwrap();
    let conversion = converted(&scenario, &[], &["Reports=/slow"], (0.02, 0.01)).unwrap();
    assert!(conversion.warnings.is_empty(), "{:?}", conversion.warnings);
    insta::assert_snapshot!(render(&scenario, &conversion));
}

#[test]
fn every_step_is_converted_or_bound() {
    let scenario = read(&own("every_step/test.yml"), &settings(&[("machines", "4")])).unwrap();
    let conversion =
        converted(&scenario, COMMANDS, &["/dev/sdb=/dev/disk/by-id/{group}-{copy}"], (1.0, 1.0)).unwrap();
    insta::assert_snapshot!(render(&scenario, &conversion).replace(env!("CARGO_MANIFEST_DIR"), ""));
}

#[test]
fn steps_without_a_command_are_refused_by_name_all_at_once() {
    let scenario = read(&own("every_step"), &settings(&[])).unwrap();
    let faults = converted(&scenario, &["nodes.PowerOn=true"], &[], (1.0, 1.0)).unwrap_err();
    insta::assert_snapshot!(faults.to_string().replace(env!("CARGO_MANIFEST_DIR"), ""));
}

/// The fault of the first scenario with one part replaced by another.
fn fault_with(from: &str, to: &str) -> String {
    let file = own("colocation/test.yml");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{from}");
    let read_job = |path: &Path| Ok(std::fs::read_to_string(own("colocation").join(path)).unwrap());
    let scenario = parse(&text.replacen(from, to, 1), Path::new("test.yml"), &settings(&[]), &read_job);
    let result = scenario.map_err(|fault| fault.to_string());
    match result
        .map(|scenario| converted(&scenario, &[], &[], (1.0, 1.0)).map_err(|faults| faults.to_string()))
    {
        Err(fault) | Ok(Err(fault)) => fault,
        Ok(Ok(_)) => panic!("accepted: {to}"),
    }
}

#[test]
fn what_is_wrong_has_its_line() {
    for (from, to, expected) in [
        (
            "workload.PrefillRun",
            "workload.PrefilRun",
            "there is no step workload.PrefilRun; did you mean workload.PrefillRun?",
        ),
        (
            "stagger_secs: 60",
            "stager_secs: 60",
            "workload.Start has no argument stager_secs; did you mean stagger_secs?",
        ),
        ("runtime_secs: 600", "runtime_secs: soon", "runtime_secs must be a number, not \"soon\""),
        (
            "workload_name: Orders Warmup",
            "workload_name: Order",
            "there is no workload \"Order\"; did you mean Orders?",
        ),
        ("duration_secs: 10", "duration_secs: 0", "duration_secs must be greater than 0"),
        ("vcpus: 4", "vcpu: 4", "a VM group has no key vcpu; did you mean vcpus?"),
        (
            "template: ubuntu1604\n      data",
            "count_per_node: 2\n      data",
            "Reports has both count_per_node and count_per_cluster",
        ),
        ("nodes: 0", "nodes: 0..2", "nodes \"0..2\": '.' is not understood"),
        ("config_file: reports.fio", "config_file: ../reports.fio", "not a file of the scenario's folder"),
        (
            "aggregate: sum\n      result_expected",
            "aggregate: total\n      result_expected",
            "aggregate must be one of sum, min, mean, median, max",
        ),
        ("count_per_cluster: {{ report_hosts }}", "count_per_cluster: {{ hosts }}", "undefined"),
        ("tags: [performance]", "tags: [performance", "is not valid YAML"),
        (
            "  - workload.Wait:\n      workload_name: Orders",
            "  - workload.Stop:\n      workload_name: Orders\n  - workload.Wait:\n      workload_name: Nobody",
            "there is no workload \"Nobody\"",
        ),
        ("async: True", "timeout_secs: 5\n      async: True", "timeout_secs has no effect"),
        ("run:\n", "rum:\n", "has no steps in run"),
    ] {
        let fault = fault_with(from, to);
        assert!(fault.contains(expected), "{to}: {fault}");
        let line = fault.split(':').nth(1).and_then(|text| text.trim().parse::<u32>().ok());
        let file = std::fs::read_to_string(own("colocation/test.yml")).unwrap();
        let written = file[..file.find(from).unwrap()].lines().count() as u32;
        if to != "rum:\n" {
            let line = line.unwrap_or_else(|| panic!("no line: {fault}"));
            assert!(line.abs_diff(written + 1) <= 3, "{to}: line {line}, not about {written}: {fault}");
        }
    }
}

#[test]
fn flags_that_mean_nothing_are_refused() {
    let scenario = read(&own("colocation"), &settings(&[])).unwrap();
    let refused =
        |bind: &[&str], map: &[&str]| converted(&scenario, bind, map, (1.0, 1.0)).unwrap_err().to_string();
    for (fault, expected) in [
        (
            refused(&["nodes.Poweroff=x"], &[]),
            "there is no step nodes.Poweroff; did you mean nodes.PowerOff?",
        ),
        (refused(&["nodes.PowerOff"], &[]), "must be STEP=COMMAND"),
        (refused(&["workload.Start=x"], &[]), "needs no command"),
        (refused(&[], &["Report=/x"]), "did you mean Reports?"),
        (refused(&[], &["Reports:sdb=/dev/null"]), "write {copy} where the number of the copy belongs"),
        (refused(&[], &["sdc=/x", "Orders:/dev/sdb=/x"]), "is in the same place as"),
    ] {
        assert!(fault.contains(expected), "{expected}: {fault}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// No text makes it panic, or take long: neither any text, nor a scenario with a few places changed.
    #[test]
    fn no_text_is_more_than_refused(
        noise in "\\PC{0,60}",
        places in prop::collection::vec((0usize..5000, "(\\PC|[-:{}%\\[\\]&*<>0-9 \n]){0,4}"), 1..6),
        which in 0usize..2,
    ) {
        let folder = own(["colocation", "every_step"][which]);
        let change = |text: String| places.iter().fold(text, |mut text, (place, part)| {
            let mut at = place % (text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let end = (at..=text.len()).rev().find(|end| end - at <= 2 && text.is_char_boundary(*end)).unwrap_or(at);
            text.replace_range(at..end, part);
            text
        });
        let read_job = |path: &Path| Ok(change(std::fs::read_to_string(folder.join(path)).unwrap_or_default()));
        let original = std::fs::read_to_string(folder.join("test.yml")).unwrap();
        for text in [noise, change(original.clone()), original] {
            if let Ok(scenario) = parse(&text, Path::new("test.yml"), &settings(&[]), &read_job)
                && let Ok(conversion) = converted(&scenario, COMMANDS, &[], (0.02, 0.01))
            {
                prop_assert!(render(&scenario, &conversion).starts_with('#'));
            }
        }
    }
}

/// X-Ray's own scenarios: a checkout of nutanix/curie, or another directory of scenario folders.
#[test]
#[ignore = "reads X-Ray's scenarios: KELVIN_TEST_XRAY is the directory of their folders"]
fn each_scenario_of_x_ray_converts_warns_or_is_refused() {
    let directory = std::env::var_os("KELVIN_TEST_XRAY").expect("KELVIN_TEST_XRAY");
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let (mut clean, mut warned, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let scenario = read(&folder, &settings(&[])).unwrap_or_else(|fault| panic!("{fault}"));
        let snapshots: &[&str] = &["vm_group.CreatePeriodicSnapshots=true {snapshot}"];
        match converted(&scenario, snapshots, &[], (0.02, 0.01)) {
            Err(faults) => {
                assert!(faults.to_string().contains("needs a hypervisor"), "{faults}");
                refused.push(name);
            }
            Ok(conversion) => {
                assert!(!render(&scenario, &conversion).is_empty());
                if conversion.warnings.is_empty() { clean.push(name) } else { warned.push(name) }
            }
        }
    }
    let six = [
        "extended_node_failure",
        "rolling_upgrade",
        "sequential_node_failure",
        "total_power_loss",
        "vm_high_availability",
        "vm_live_migration",
    ];
    assert_eq!(refused, six);
    assert_eq!((clean.len(), warned.len()), (13, 13), "{clean:?} {warned:?}");
}

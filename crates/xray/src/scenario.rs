//! A scenario folder, as it is written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::fault::{Fault, Location, Problem, hint};
use crate::job::{JobFile, ReadText};
use crate::result::{ResultLine, result_line};
use crate::step::{self, Phase, Step};
use crate::template::{self, Variable};
use crate::yaml::{self, Node};

/// The largest scenario file: their descriptions hold pictures.
const LARGEST: u64 = 8 << 20;
/// The largest job file.
const LARGEST_JOB: u64 = 1 << 20;
/// More steps than any scenario.
const MOST_STEPS: usize = 10_000;
/// More groups, workloads or results than any scenario.
const MOST_ENTRIES: usize = 1_000;
/// X-Ray's limit for the name of a group.
const LONGEST_GROUP: usize = 18;
/// X-Ray's values, where a scenario has none.
const VCPUS: u32 = 2;
const RAM_MIB: u32 = 2048;
const REPORTING_INTERVAL: f64 = 5.0;

/// A scenario of X-Ray's.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The file.
    pub file: PathBuf,
    /// Its name.
    pub name: String,
    /// The name for people; the name where there is none.
    pub title: String,
    /// What it is for, in a line.
    pub summary: String,
    /// Its variables.
    pub variables: Vec<Variable>,
    /// Its groups of machines.
    pub groups: Vec<Group>,
    /// Its workloads.
    pub workloads: Vec<Workload>,
    /// What it shows, with what it claims of it.
    pub results: Vec<ResultLine>,
    /// Its steps, in the order in which they run.
    pub steps: Vec<Step>,
    /// What is odd in it, and was read nevertheless.
    pub remarks: Vec<Fault>,
}

/// A group of equal machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub line: u32,
    /// Virtual processors of each machine.
    pub vcpus: u32,
    /// Memory of each machine, in MiB.
    pub ram_mib: u32,
    /// Data disks of each machine; the first is /dev/sdb.
    pub disks: u32,
    /// Which nodes of the cluster have machines of it.
    pub nodes: String,
    /// Where that is written.
    pub nodes_line: u32,
    /// Machines on each of those nodes.
    pub per_node: Option<u32>,
    /// Machines on all nodes together.
    pub per_cluster: Option<u32>,
}

/// A load on the machines of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// Where it is declared.
    pub line: u32,
    /// The group on whose machines it runs.
    pub group: String,
    /// The name of its job file.
    pub file: String,
    /// Seconds between two reports of its results.
    pub reporting_interval: f64,
    pub(crate) job: JobFile,
}

/// Reads a scenario: a folder that has one .yml or .yaml file, or that file. `settings` are values for its variables.
///
/// # Errors
///
/// The first thing that is wrong, with its file and line.
pub fn read(path: &Path, settings: &BTreeMap<String, String>) -> Result<Scenario, Fault> {
    let file = scenario_file(path)?;
    let text = read_text(&file, LARGEST)?;
    parse(&text, &file, settings, &|path| read_text(path, LARGEST_JOB))
}

/// Reads a scenario's text. `file` is its name, and `read_job` gives the texts of the job files beside it.
///
/// # Errors
///
/// The first thing that is wrong, with its file and line.
pub fn parse(
    text: &str,
    file: &Path,
    settings: &BTreeMap<String, String>,
    read_job: &ReadText<'_>,
) -> Result<Scenario, Fault> {
    let directory = file.parent().unwrap_or(Path::new("."));
    let here = |problem: Problem| problem.in_file(file);
    let rendered = template::render(text, settings).map_err(here)?;
    let tree = yaml::parse(&rendered.text, &rendered.lines).map_err(here)?;
    let mut scenario = top_level(&tree, file).map_err(here)?;
    scenario.variables = rendered.variables;
    scenario.groups = named(&tree, "vms", group).map_err(here)?;
    for (name, line, definition) in entries(&tree, "workloads").map_err(here)? {
        let mut workload =
            workload(name, line, definition, &scenario.groups, &mut scenario.remarks, file).map_err(here)?;
        workload.job = JobFile::read(directory, &workload.file, read_job)
            .map_err(|fault| at_workload(fault, file, line, name))?;
        scenario.workloads.push(workload);
    }
    let groups: Vec<&str> = scenario.groups.iter().map(|group| group.name.as_str()).collect();
    let workloads: Vec<&str> = scenario.workloads.iter().map(|workload| workload.name.as_str()).collect();
    for (name, line, definition) in entries(&tree, "results").map_err(here)? {
        scenario.results.push(result_line(name, line, definition, &groups, &workloads).map_err(here)?);
    }
    for phase in Phase::ALL {
        let Some(steps) = tree.get(phase.key()) else { continue };
        for node in steps.expect_items(phase.key()).map_err(here)? {
            if scenario.steps.len() == MOST_STEPS {
                return Err(here(Problem::new(node.line, format!("has more than {MOST_STEPS} steps"))));
            }
            scenario.steps.push(step::parse(node, phase, &groups, &workloads).map_err(here)?);
        }
    }
    if !scenario.steps.iter().any(|step| step.phase == Phase::Run) {
        return Err(here(Problem::new(0, "has no steps in run")));
    }
    Ok(scenario)
}

/// A file that cannot be read is a fault of the line that names it.
fn at_workload(fault: Fault, file: &Path, line: u32, workload: &str) -> Fault {
    if fault.location.line > 0 {
        return fault;
    }
    let message = format!("workload {workload}: {fault}");
    Fault { location: Location { file: file.into(), line }, message }
}

fn scenario_file(path: &Path) -> Result<PathBuf, Fault> {
    let fault = |message: String| Fault { location: Location { file: path.into(), line: 0 }, message };
    let metadata = std::fs::metadata(path).map_err(|error| fault(error.to_string()))?;
    let is_scenario =
        |file: &Path| file.extension().is_some_and(|name| matches!(name.to_str(), Some("yml" | "yaml")));
    if !metadata.is_dir() {
        return if is_scenario(path) {
            Ok(path.to_owned())
        } else {
            Err(fault("is not a scenario: its name must end in .yml or .yaml".into()))
        };
    }
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| fault(error.to_string()))? {
        let file = entry.map_err(|error| fault(error.to_string()))?.path();
        // Playbooks are YAML, too.
        if file.file_name().is_some_and(|name| name == "test.yml") {
            return Ok(file);
        }
        if is_scenario(&file) {
            files.push(file);
        }
    }
    match files.as_slice() {
        [file] => Ok(file.clone()),
        [] => Err(fault("has no scenario file (test.yml)".into())),
        _ => Err(fault("has several .yml files, and none is test.yml: name the scenario's".into())),
    }
}

/// The text of a file of at most `largest` bytes.
fn read_text(file: &Path, largest: u64) -> Result<String, Fault> {
    let fault = |line, message: String| Fault { location: Location { file: file.into(), line }, message };
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(largest + 1).read_to_end(&mut bytes));
    read.map_err(|error| fault(0, error.to_string()))?;
    if bytes.len() as u64 > largest {
        return Err(fault(0, format!("is larger than {} MiB", largest >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        fault(valid.split(|byte| *byte == b'\n').count() as u32, "is not UTF-8 text".into())
    })
}

const TOP_LEVEL: &[&str] = &[
    "id",
    "name",
    "display_name",
    "summary",
    "description",
    "tags",
    "estimated_runtime",
    "vars",
    "vms",
    "workloads",
    "results",
    "pre_setup",
    "setup",
    "run",
    "teardown",
];

fn top_level(tree: &Node, file: &Path) -> Result<Scenario, Problem> {
    let mut remarks = Vec::new();
    for (key, _) in tree.expect_entries("a scenario")? {
        let name = key.expect_text("a key")?;
        if !TOP_LEVEL.contains(&name) {
            let message = format!("the key {name} is not used{}", hint(name, TOP_LEVEL.iter().copied()));
            remarks.push(Problem::new(key.line, message).in_file(file));
        }
    }
    let text = |key: &str| {
        tree.get(key).map_or(Ok(String::new()), |node| Ok(node.expect_text(key)?.trim().to_owned()))
    };
    let name = text("name")?;
    if name.is_empty() {
        return Err(Problem::new(tree.line, "has no name"));
    }
    let title = Some(text("display_name")?).filter(|title| !title.is_empty()).unwrap_or_else(|| name.clone());
    Ok(Scenario {
        file: file.into(),
        name,
        title,
        summary: text("summary")?,
        variables: Vec::new(),
        groups: Vec::new(),
        workloads: Vec::new(),
        results: Vec::new(),
        steps: Vec::new(),
        remarks,
    })
}

/// The entries of a list of tables that have a name each.
fn entries<'a>(tree: &'a Node, section: &str) -> Result<Vec<(&'a str, u32, &'a Node)>, Problem> {
    let mut found: Vec<(&str, u32, &Node)> = Vec::new();
    let Some(list) = tree.get(section) else { return Ok(found) };
    for item in list.expect_items(section)? {
        for (key, definition) in item.expect_entries(&format!("an entry of {section}"))? {
            let name = key.expect_text("a name")?;
            if found.iter().any(|(known, ..)| *known == name) {
                return Err(Problem::new(key.line, format!("{name} is defined twice in {section}")));
            }
            if found.len() == MOST_ENTRIES {
                return Err(Problem::new(
                    key.line,
                    format!("{section} has more than {MOST_ENTRIES} entries"),
                ));
            }
            found.push((name, key.line, definition));
        }
    }
    Ok(found)
}

fn named<T>(
    tree: &Node,
    section: &str,
    parse: impl Fn(&str, u32, &Node) -> Result<T, Problem>,
) -> Result<Vec<T>, Problem> {
    entries(tree, section)?
        .into_iter()
        .map(|(name, line, definition)| parse(name, line, definition))
        .collect()
}

const GROUP_KEYS: &[&str] = &[
    "template",
    "template_type",
    "vcpus",
    "ram_mb",
    "data_disks",
    "nodes",
    "count_per_cluster",
    "count_per_node",
    "exporter_ports",
];

fn group(name: &str, line: u32, definition: &Node) -> Result<Group, Problem> {
    if name.chars().count() > LONGEST_GROUP {
        return Err(Problem::new(
            line,
            format!("the name of the VM group {name} is longer than {LONGEST_GROUP} characters"),
        ));
    }
    for (key, _) in definition.expect_entries(name)? {
        let written = key.expect_text("a key")?;
        if !GROUP_KEYS.contains(&written) {
            let hint = hint(written, GROUP_KEYS.iter().copied());
            return Err(Problem::new(key.line, format!("a VM group has no key {written}{hint}")));
        }
    }
    let count = |key: &str| definition.get(key).map(|node| node.expect_count(key)).transpose();
    let (per_node, per_cluster) = (count("count_per_node")?, count("count_per_cluster")?);
    if per_node.is_some() && per_cluster.is_some() {
        return Err(Problem::new(line, format!("{name} has both count_per_node and count_per_cluster")));
    }
    let disks = match definition.get("data_disks") {
        None => 0,
        Some(disks) => match disks.get("count") {
            Some(count) => count.expect_count("count")?,
            None => disks.expect_items("data_disks")?.len() as u32,
        },
    };
    let nodes = definition.get("nodes");
    Ok(Group {
        name: name.to_owned(),
        line,
        vcpus: count("vcpus")?.unwrap_or(VCPUS),
        ram_mib: count("ram_mb")?.unwrap_or(RAM_MIB),
        disks,
        nodes: nodes.map_or(Ok(":"), |node| node.expect_text("nodes"))?.to_owned(),
        nodes_line: nodes.map_or(line, |node| node.line),
        per_node,
        per_cluster,
    })
}

const WORKLOAD_KEYS: &[&str] = &["vm_group", "config_file", "generator", "iogen_params"];

fn workload(
    name: &str,
    line: u32,
    definition: &Node,
    groups: &[Group],
    remarks: &mut Vec<Fault>,
    file: &Path,
) -> Result<Workload, Problem> {
    for (key, _) in definition.expect_entries(name)? {
        let written = key.expect_text("a key")?;
        if !WORKLOAD_KEYS.contains(&written) {
            let hint = hint(written, WORKLOAD_KEYS.iter().copied());
            let message = format!("the key {written} of a workload is not used{hint}");
            remarks.push(Problem::new(key.line, message).in_file(file));
        }
    }
    let required = |key: &str| match definition.get(key) {
        Some(node) => Ok((node.expect_text(key)?, node.line)),
        None => Err(Problem::new(line, format!("the workload {name} needs {key}"))),
    };
    let (group, group_line) = required("vm_group")?;
    if !groups.iter().any(|known| known.name == group) {
        let hint = hint(group, groups.iter().map(|known| known.name.as_str()));
        return Err(Problem::new(group_line, format!("there is no VM group {group:?}{hint}")));
    }
    if let Some(generator) = definition.get("generator") {
        let text = generator.expect_text("generator")?;
        if text != "fio" {
            return Err(Problem::new(
                generator.line,
                format!("the generator {text} is not supported: only fio is"),
            ));
        }
    }
    let interval = definition.get("iogen_params").and_then(|node| node.get("reporting_interval"));
    Ok(Workload {
        name: name.to_owned(),
        line,
        group: group.to_owned(),
        file: required("config_file")?.0.to_owned(),
        reporting_interval: match interval {
            None => REPORTING_INTERVAL,
            Some(node) => f64::from(node.expect_count("reporting_interval")?.max(1)),
        },
        job: JobFile::default(),
    })
}

//! Tests of the files in `contrib` that place agents on hosts: Kubernetes objects conform to the published schemas, and the
//! agent accepts every command line.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Parser as _;
use saphyr_parser::{Event, Parser};

use super::Cli;

const CONTRIB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib");

/// Must be those of xtask/src/kubernetes.rs.
const KUBERNETES: &str = "1.37.0";
const VALIDATOR: &str = "kubernetes-validate/1.37.0";

/// The file that marks the validator as unavailable, where `cargo xtask test` could not fetch it.
const UNAVAILABLE: &str = "kubernetes-validate/unavailable";

/// Directives of systemd.unit(5), systemd.service(5), systemd.exec(5) and systemd.resource-control(5) that units here may use.
const DIRECTIVES: [(&str, &[&str]); 3] = [
    (
        "[Unit]",
        &["After", "Description", "Documentation", "StartLimitBurst", "StartLimitIntervalSec", "Wants"],
    ),
    (
        "[Service]",
        &[
            "CPUAffinity",
            "EnvironmentFile",
            "ExecStart",
            "LimitNOFILE",
            "LockPersonality",
            "MemoryMax",
            "NoNewPrivileges",
            "PrivateTmp",
            "ProtectHome",
            "ProtectSystem",
            "ReadWritePaths",
            "Restart",
            "RestartSec",
            "RestrictAddressFamilies",
            "Type",
            "User",
        ],
    ),
    ("[Install]", &["Alias", "RequiredBy", "WantedBy"]),
];

/// Options of sbatch(1).
const SBATCH: [&str; 10] = [
    "--account",
    "--cpus-per-task",
    "--exclusive",
    "--job-name",
    "--nodes",
    "--ntasks-per-node",
    "--partition",
    "--signal",
    "--time",
    "--output",
];

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Text(String),
    List(Vec<Node>),
    Map(BTreeMap<String, Node>),
}

/// The documents of a file of YAML without anchors.
fn documents(text: &str) -> Vec<Node> {
    let mut events = Parser::new_from_str(text).map(|event| event.unwrap().0);
    let mut documents = Vec::new();
    while let Some(event) = events.next() {
        if matches!(event, Event::DocumentStart(..)) {
            let first = events.next().unwrap();
            documents.push(node(first, &mut events).unwrap());
        }
    }
    documents
}

/// The node that an event begins; none at the end of a list or a map.
fn node<'a>(event: Event<'a>, events: &mut impl Iterator<Item = Event<'a>>) -> Option<Node> {
    match event {
        Event::Scalar(text, ..) => Some(Node::Text(text.into_owned())),
        Event::SequenceStart(..) => {
            let mut list = Vec::new();
            while let Some(one) = next(events) {
                list.push(one);
            }
            Some(Node::List(list))
        }
        Event::MappingStart(..) => {
            let mut map = BTreeMap::new();
            while let Some(key) = next(events) {
                let Node::Text(key) = key else { panic!("{key:?} is no key") };
                assert!(map.insert(key.clone(), next(events).unwrap()).is_none(), "{key} is there twice");
            }
            Some(Node::Map(map))
        }
        _ => None,
    }
}

fn next<'a>(events: &mut impl Iterator<Item = Event<'a>>) -> Option<Node> {
    let event = events.next()?;
    node(event, events)
}

/// The directory of kubernetes-validate, as `cargo xtask test` fetches it; none where that failed.
fn validator() -> Option<PathBuf> {
    // The test binary is in target/PROFILE/deps.
    let test = std::env::current_exe().unwrap();
    let find = |name| test.ancestors().map(|directory| directory.join(name)).find(|path| path.exists());
    match (find(VALIDATOR), find(UNAVAILABLE)) {
        (Some(directory), _) => Some(directory),
        (None, Some(_)) => None,
        (None, None) => panic!("no {VALIDATOR}: cargo xtask kubernetes fetches it (PyPI)"),
    }
}

/// Compares a manifest with the schemas of Kubernetes. Returns the output, a line for each object, and whether all are
/// valid.
fn validate(validator: &Path, text: &str) -> (String, bool) {
    let words = ["-m", "kubernetes_validate", "--strict", "-k", KUBERNETES, "-"];
    let mut python = Command::new("python3");
    python.args(words).env("PYTHONPATH", validator).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut child =
        python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // The validator only warns about an object without a schema.
    let right = said.lines().filter(|line| line.starts_with("INFO ") && line.contains(" passed ")).count();
    let all = output.status.success() && right == documents(text).len() && right == said.lines().count();
    (said, all)
}

/// The manifests below `contrib`.
fn manifests(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| {
        if path.is_dir() {
            return manifests(&path);
        }
        let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if is_yaml { vec![path] } else { Vec::new() }
    };
    entries.flat_map(of).collect()
}

/// The text at a path of keys and indexes.
fn at(node: &Node, path: &str) -> Option<String> {
    match find(node, path)? {
        Node::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn find<'a>(node: &'a Node, path: &str) -> Option<&'a Node> {
    path.split('.').try_fold(node, |node, key| match node {
        Node::Map(map) => map.get(key),
        Node::List(list) => list.get(key.parse::<usize>().ok()?),
        Node::Text(_) => None,
    })
}

fn list<'a>(node: &'a Node, path: &str) -> &'a [Node] {
    match find(node, path) {
        Some(Node::List(list)) => list,
        other => panic!("{path}: {other:?}"),
    }
}

fn contrib(name: &str) -> String {
    let path = Path::new(CONTRIB).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lab of the fleet that a file's comments start and run on.
fn lab_in_comments(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let after = |sought: &[&str]| {
        let at = words.windows(sought.len()).position(|window| window == sought)?;
        words.get(at + sought.len()).copied()
    };
    let lab = after(&["kelvin", "fleet", "up"]).unwrap();
    assert!(after(&["--fleet"]).is_none_or(|run| run == lab), "the run is on the fleet that was started");
    lab.to_owned()
}

/// Parses an agent's command line, whose variables have these values; it is one of this lab.
fn agent_of(lab: &str, words: impl Iterator<Item = String>, values: &[(&str, &str)]) {
    let words: Vec<String> = words.collect();
    let at = words.iter().position(|word| word == "--lab").unwrap();
    assert_eq!(words[at + 1], lab, "the agent is in the lab of the fleet that was started");
    agent(words.into_iter(), values);
}

/// Parses an agent's command line, whose variables have these values.
fn agent(words: impl Iterator<Item = String>, values: &[(&str, &str)]) {
    let filled = words.map(|word| values.iter().fold(word, |word, (name, value)| word.replace(name, value)));
    let words: Vec<String> = filled.collect();
    assert_eq!(words.first().map(String::as_str), Some("agent"), "{words:?}");
    assert!(words.iter().all(|word| !word.contains(['$', '%'])), "every variable has a value: {words:?}");
    if let Err(error) = Cli::try_parse_from(std::iter::once("kelvin".to_owned()).chain(words)) {
        panic!("{error}");
    }
}

#[test]
fn every_manifest_is_valid_by_the_published_schemas() {
    let manifests = manifests(Path::new(CONTRIB));
    assert!(manifests.iter().any(|path| path.ends_with("fleet/kubernetes.yaml")), "{manifests:?}");
    let Some(validator) = validator() else { return };
    for path in manifests {
        let (said, right) = validate(&validator, &std::fs::read_to_string(&path).unwrap());
        assert!(right, "{}: {said}", path.display());
    }
}

#[test]
fn the_kubernetes_manifest_starts_agents_of_its_fleet_together() {
    let text = contrib("fleet/kubernetes.yaml");
    let [map, job] = &documents(&text)[..] else { panic!("a ConfigMap and a Job") };
    let spec = |path: &str| at(job, &format!("spec.{path}"));
    // An Indexed Job has completions; its pods are not restarted, and a failed pod is not replaced.
    assert_eq!(spec("completionMode").as_deref(), Some("Indexed"));
    assert_eq!(spec("completions"), spec("parallelism"), "all agents are there at once");
    assert_eq!(
        (spec("backoffLimit").as_deref(), spec("template.spec.restartPolicy").as_deref()),
        (Some("0"), Some("Never"))
    );
    let label = |path: &str| find(job, path).cloned();
    assert_eq!(label("spec.template.metadata.labels"), label("metadata.labels"));
    let container = "spec.template.spec.containers.0";
    let (of, volumes) = (find(job, container).unwrap(), list(job, "spec.template.spec.volumes"));
    for mount in list(of, "volumeMounts") {
        assert!(volumes.iter().any(|volume| at(volume, "name") == at(mount, "name")), "{mount:?}");
        assert!(at(mount, "subPath").is_none() || at(mount, "subPathExpr").is_none());
    }
    assert_eq!(find(of, "resources.requests"), find(of, "resources.limits"), "a guaranteed class of service");
    let from_map = list(of, "env").iter().filter_map(|env| at(env, "valueFrom.configMapKeyRef.key"));
    let data: Vec<String> = from_map.map(|key| at(map, &format!("data.{key}")).unwrap()).collect();
    let args = list(of, "args").iter().map(|arg| match arg {
        Node::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    });
    let address = data[0].trim_start_matches("tls://").split(':').next().unwrap();
    assert!(
        text.contains(&format!("--listen {address} ")),
        "the server listens where the agents look for it"
    );
    agent_of(
        &lab_in_comments(&text),
        args,
        &[("$(JOB_COMPLETION_INDEX)", "0"), ("$(KELVIN_NATS)", &data[0]), ("$(KELVIN_TARGET)", &data[1])],
    );
}

#[test]
fn a_manifest_that_is_not_valid_is_noticed() {
    let Some(validator) = validator() else { return };
    let text = contrib("fleet/kubernetes.yaml");
    for (right, wrong, expected) in [
        ("completions: 4", "completions: \"4\"", "spec.completions: '4' is not of type"),
        ("  backoffLimit: 0", "  backofLimit: 0", "'backofLimit' was unexpected"),
        (
            "        - name: agent\n          #",
            "        - workingDir: agent\n          #",
            "'name' is a required",
        ),
        ("readOnly: true", "readOnly: maybe", "'maybe' is not of type"),
        ("value: /data", "value: 1", "1 is not of type"),
        ("kind: Job", "kind: Jobs", "find schema for kind Jobs"),
    ] {
        assert!(text.contains(right), "{right}");
        let (said, is_right) = validate(&validator, &text.replacen(right, wrong, 1));
        assert!(!is_right && said.contains(expected), "{wrong}: {said}");
    }
}

#[test]
fn the_units_and_the_batch_file_start_agents_that_understand_their_flags() {
    for name in ["systemd/kelvin-agent@.service", "systemd/kelvin-serve.service"] {
        let mut section = "";
        let text = contrib(name);
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with('[') {
                section = line;
                continue;
            }
            let known = DIRECTIVES.iter().find(|(one, _)| *one == section).unwrap().1;
            let key = line.split('=').next().unwrap_or_default();
            assert!(known.contains(&key), "{name}: {section} {key}");
        }
    }
    let values = [
        ("%i", "g1"),
        ("${KELVIN_NATS}", "tls://10.0.0.1:4222"),
        ("$KELVIN_NATS", "tls://10.0.0.1:4222"),
        ("${KELVIN_KEY}", "/keys/g1.nk"),
        ("${KELVIN_CA}", "/keys/ca.pem"),
        ("$KELVIN_KEYS", "/keys"),
        ("$SLURM_PROCID", "1"),
        ("${KELVIN_TARGET}", "postgres://bench@db/tpcc"),
        ("$KELVIN_TARGET", "postgres://bench@db/tpcc"),
    ];
    let unit = contrib("systemd/kelvin-agent@.service");
    let of_unit = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/env kelvin ")).unwrap();
    agent_of(&lab_in_comments(&unit), of_unit.split_whitespace().map(str::to_owned), &values);
    let batch = contrib("fleet/slurm.sh").replace("\\\n", " ");
    let of_batch = batch.lines().find_map(|line| line.trim().strip_prefix("exec kelvin ")).unwrap();
    let words = of_batch.split_whitespace().map(|word| word.replace('"', ""));
    agent_of(&lab_in_comments(&batch), words, &values);
    let options = batch.lines().filter_map(|line| line.strip_prefix("#SBATCH "));
    for option in options {
        assert!(SBATCH.contains(&option.split('=').next().unwrap_or_default()), "{option}");
    }
    let checked = Command::new("bash").arg("-n").arg("-c").arg(&batch).status().unwrap();
    assert!(checked.success(), "bash reads it");
}

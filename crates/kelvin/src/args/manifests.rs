//! The files that place agents on hosts (`contrib`): the objects of Kubernetes have the shapes of its published API, and the
//! agent understands every command line.

use std::collections::BTreeMap;

use clap::Parser as _;
use saphyr_parser::{Event, Parser, ScalarStyle};

use super::Cli;

/// The objects of Kubernetes 1.31 that the manifest uses, with all their fields: API reference, batch/v1 and v1. `!` is
/// required, `[T]` a list, `{T}` a map, `a|b` one of these words; the type of a field that no manifest here may use is `-`.
const SHAPES: &str = "
ConfigMap apiVersion=v1! kind=ConfigMap! metadata=ObjectMeta! data={string} binaryData=- immutable=bool
Job apiVersion=batch/v1! kind=Job! metadata=ObjectMeta! spec=JobSpec!
ObjectMeta name=string! namespace=string labels={string} annotations={string} generateName=- finalizers=- ownerReferences=-
JobSpec activeDeadlineSeconds=int backoffLimit=int backoffLimitPerIndex=int completionMode=NonIndexed|Indexed
  completions=int managedBy=- manualSelector=bool maxFailedIndexes=int parallelism=int podFailurePolicy=-
  podReplacementPolicy=TerminatingOrFailed|Failed selector=- successPolicy=- suspend=bool template=PodTemplateSpec!
  ttlSecondsAfterFinished=int
PodTemplateSpec metadata=TemplateMeta spec=PodSpec!
TemplateMeta name=string labels={string} annotations={string}
PodSpec activeDeadlineSeconds=int affinity=Affinity automountServiceAccountToken=bool containers=[Container]! dnsConfig=-
  dnsPolicy=ClusterFirst|ClusterFirstWithHostNet|Default|None enableServiceLinks=bool ephemeralContainers=- hostAliases=-
  hostIPC=bool hostNetwork=bool hostPID=bool hostUsers=bool hostname=string imagePullSecrets=- initContainers=[Container]
  nodeName=string nodeSelector={string} os=- overhead={quantity} preemptionPolicy=Never|PreemptLowerPriority priority=int
  priorityClassName=string readinessGates=- resourceClaims=- restartPolicy=Always|OnFailure|Never runtimeClassName=string
  schedulerName=string schedulingGates=- securityContext=- serviceAccount=- serviceAccountName=string
  setHostnameAsFQDN=bool shareProcessNamespace=bool subdomain=string terminationGracePeriodSeconds=int tolerations=-
  topologySpreadConstraints=- volumes=[Volume]
Affinity nodeAffinity=- podAffinity=- podAntiAffinity=PodAntiAffinity
PodAntiAffinity preferredDuringSchedulingIgnoredDuringExecution=-
  requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
PodAffinityTerm topologyKey=string! labelSelector=LabelSelector matchLabelKeys=[string] mismatchLabelKeys=[string]
  namespaceSelector=LabelSelector namespaces=[string]
LabelSelector matchLabels={string} matchExpressions=-
Container name=string! args=[string] command=[string] env=[EnvVar] envFrom=- image=string imagePullPolicy=Always|Never|IfNotPresent
  lifecycle=- livenessProbe=- ports=- readinessProbe=- resizePolicy=- resources=ResourceRequirements restartPolicy=-
  securityContext=SecurityContext startupProbe=- stdin=bool stdinOnce=bool terminationMessagePath=string
  terminationMessagePolicy=File|FallbackToLogsOnError tty=bool volumeDevices=- volumeMounts=[VolumeMount] workingDir=string
EnvVar name=string! value=string valueFrom=EnvVarSource
EnvVarSource configMapKeyRef=KeySelector secretKeyRef=KeySelector fieldRef=FieldSelector resourceFieldRef=-
KeySelector name=string key=string! optional=bool
FieldSelector apiVersion=string fieldPath=string!
ResourceRequirements claims=- limits={quantity} requests={quantity}
SecurityContext allowPrivilegeEscalation=bool appArmorProfile=- capabilities=Capabilities privileged=bool procMount=string
  readOnlyRootFilesystem=bool runAsGroup=int runAsNonRoot=bool runAsUser=int seLinuxOptions=- seccompProfile=SeccompProfile
  windowsOptions=-
Capabilities add=[string] drop=[string]
SeccompProfile type=Localhost|RuntimeDefault|Unconfined! localhostProfile=string
VolumeMount name=string! mountPath=string! mountPropagation=string readOnly=bool recursiveReadOnly=string subPath=string
  subPathExpr=string
Volume name=string! emptyDir=EmptyDir secret=SecretVolume configMap=- csi=- downwardAPI=- ephemeral=- hostPath=- image=- iscsi=-
  nfs=- persistentVolumeClaim=- projected=-
EmptyDir medium=string sizeLimit=quantity
SecretVolume secretName=string defaultMode=int items=- optional=bool
";

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
    /// A text, and whether it stands without quotes.
    Text(String, bool),
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
        Event::Scalar(text, style, ..) => Some(Node::Text(text.into_owned(), style == ScalarStyle::Plain)),
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
                let Node::Text(key, _) = key else { panic!("{key:?} is no key") };
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

/// The fields of every object: their types.
fn shapes() -> BTreeMap<&'static str, BTreeMap<&'static str, &'static str>> {
    let mut shapes: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut object = "";
    for line in SHAPES.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        if !line.starts_with(' ') {
            object = words.next().unwrap();
        }
        let fields = words.map(|word| word.split_once('=').unwrap());
        shapes.entry(object).or_default().extend(fields);
    }
    shapes
}

/// What is wrong with a value of this type; nothing where it is right.
fn wrong(value: &Node, of: &str, path: &str, found: &mut Vec<String>) {
    let of = of.trim_end_matches('!');
    let inner = |open, close| of.strip_prefix(open).and_then(|rest: &str| rest.strip_suffix(close));
    let quantity = |text: &str| {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = &text[digits.len()..];
        digits.parse::<f64>().is_ok() && ["", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"].contains(&unit)
    };
    let not_text =
        |text: &str| text.parse::<f64>().is_ok() || ["true", "false", "null", "~", ""].contains(&text);
    let right = match (value, of) {
        (_, "-") => false,
        (Node::Text(text, plain), "string") => !(*plain && not_text(text)),
        (Node::Text(text, plain), "int") => {
            *plain && text.parse::<i64>().is_ok_and(|number| number.to_string() == *text)
        }
        (Node::Text(text, plain), "bool") => *plain && (text == "true" || text == "false"),
        (Node::Text(text, _), "quantity") => quantity(text),
        (Node::List(list), _) if inner('[', ']').is_some() => {
            let of = inner('[', ']').unwrap_or_default();
            for (i, one) in list.iter().enumerate() {
                wrong(one, of, &format!("{path}[{i}]"), found);
            }
            !list.is_empty()
        }
        (Node::Map(map), _) if inner('{', '}').is_some() => {
            let of = inner('{', '}').unwrap_or_default();
            for (key, one) in map {
                wrong(one, of, &format!("{path}.{key}"), found);
            }
            true
        }
        (Node::Map(map), object) => match shapes().get(object) {
            Some(fields) => {
                for (field, value) in map {
                    match fields.get(field.as_str()) {
                        Some(of) => wrong(value, of, &format!("{path}.{field}"), found),
                        None => found.push(format!("{path}: {object} has no field {field}")),
                    }
                }
                let required = fields.iter().filter(|(_, of)| of.ends_with('!'));
                let missing = required.filter(|(field, _)| !map.contains_key(**field));
                found.extend(missing.map(|(field, _)| format!("{path}: {field} is missing")));
                true
            }
            None => false,
        },
        (Node::Text(text, _), words) => words.split('|').any(|word| word == text),
        _ => false,
    };
    if !right {
        found.push(format!("{path}: {value:?} is not of the type {of}"));
    }
}

/// What is wrong with the objects of a manifest.
fn faults(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for document in documents(text) {
        let kind = at(&document, "kind").unwrap_or_default();
        wrong(&document, &kind, &kind, &mut found);
    }
    found
}

/// The text at a path of keys and indexes.
fn at(node: &Node, path: &str) -> Option<String> {
    match find(node, path)? {
        Node::Text(text, _) => Some(text.clone()),
        _ => None,
    }
}

fn find<'a>(node: &'a Node, path: &str) -> Option<&'a Node> {
    path.split('.').try_fold(node, |node, key| match node {
        Node::Map(map) => map.get(key),
        Node::List(list) => list.get(key.parse::<usize>().ok()?),
        Node::Text(..) => None,
    })
}

fn list<'a>(node: &'a Node, path: &str) -> &'a [Node] {
    match find(node, path) {
        Some(Node::List(list)) => list,
        other => panic!("{path}: {other:?}"),
    }
}

fn contrib(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name);
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
fn the_kubernetes_manifest_has_the_shapes_of_the_api() {
    let text = contrib("fleet/kubernetes.yaml");
    assert_eq!(faults(&text), [""; 0]);
    let [map, job] = &documents(&text)[..] else { panic!("a ConfigMap and a Job") };
    let spec = |path: &str| at(job, &format!("spec.{path}"));
    // An Indexed Job has completions, its pods do not restart, and one that failed is not replaced.
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
        Node::Text(text, _) => text.clone(),
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
fn a_manifest_of_another_shape_is_noticed() {
    let text = contrib("fleet/kubernetes.yaml");
    for (right, wrong, expected) in [
        ("completionMode: Indexed", "completionMode: indexed", "NonIndexed|Indexed"),
        ("completions: 4", "completions: \"4\"", "is not of the type int"),
        ("  backoffLimit: 0", "  backofLimit: 0", "JobSpec has no field backofLimit"),
        ("        - name: agent\n          #", "        - workingDir: agent\n          #", "name is missing"),
        ("readOnly: true", "readOnly: yes", "is not of the type bool"),
        ("value: /data", "value: 1", "is not of the type string"),
        ("memory: 2Gi", "memory: 2GiB", "is not of the type quantity"),
        ("          secret:\n", "          hostPath:\n", "is not of the type -"),
        ("kind: Job", "kind: Jobs", "is not of the type Jobs"),
    ] {
        assert!(text.contains(right), "{right}");
        let found = faults(&text.replacen(right, wrong, 1)).join("\n");
        assert!(found.contains(expected), "{wrong}: {found}");
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
    let checked = std::process::Command::new("bash").arg("-n").arg("-c").arg(&batch).status().unwrap();
    assert!(checked.success(), "bash reads it");
}

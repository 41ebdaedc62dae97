use proptest::prelude::*;

use super::*;

/// The files of a host: the mounts of control groups, and the group of process 7.
fn host(mountinfo: &str, groups: &str) -> (tempfile::TempDir, SystemTree) {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in [("proc/self/mountinfo", mountinfo), ("proc/7/cgroup", groups)] {
        let file = root.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let tree = SystemTree::at(root.path());
    (root, tree)
}

#[test]
fn groups_are_found_in_version_1() {
    let (_root, tree) = host("1 0 0:1 / /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n", "");
    let found = find(&tree, Controller::Cpu).unwrap();
    assert_eq!((found.mount, found.version), (tree.path("/sys/fs/cgroup/cpu"), Version::One));
    assert!(find(&tree, Controller::Io).is_err());
}

#[test]
fn a_group_of_version_2_is_made_limited_and_put_back() {
    let (_root, tree) = host("1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/user.slice\n");
    let top = tree.path("/sys/fs/cgroup");
    fs::create_dir_all(top.join("user.slice")).unwrap();
    fs::write(top.join("cgroup.controllers"), "cpuset cpu io memory pids\n").unwrap();
    fs::write(top.join("cgroup.subtree_control"), "memory\n").unwrap();
    let mut changes = Vec::new();
    let mut about = |change| {
        changes.push(change);
        Ok(())
    };
    let wanted = [Controller::Memory, Controller::Io];
    let mut group = Group::journalled(&tree, "kelvin-x", 7, &wanted, &mut about).unwrap();
    let own = top.join("kelvin-x");
    assert_eq!(
        changes,
        [
            ReversibleChange::ControlGroup { group: own.clone(), from: top.join("user.slice") },
            ReversibleChange::Controller { file: top.join("cgroup.subtree_control"), name: "io".into() },
        ]
    );
    group.take(&[7]).unwrap();
    fs::write(own.join("memory.swap.max"), "max\n").unwrap();
    group.bound_memory(1 << 29).unwrap();
    let flow = Flow { reads: 0.0, read_bytes: 2e7, writes: 100.0, written_bytes: 0.0 };
    group.bound_io("7:0", Some(flow)).unwrap();
    let read = |name: &str| fs::read_to_string(own.join(name)).unwrap();
    assert_eq!(["cgroup.procs", "memory.max", "memory.swap.max"].map(read), ["7", "536870912", "0"]);
    assert_eq!(read("io.max"), "7:0 rbps=20000000 wbps=max riops=max wiops=100");
    fs::write(own.join("memory.events"), "low 0\noom 3\noom_kill 2\n").unwrap();
    assert_eq!((group.killed_for_memory(), group.version()), (Some(2), Some(2)));
    // The kernel removes a group's files together with its directory.
    for file in ["cgroup.procs", "memory.max", "memory.swap.max", "memory.events", "io.max"] {
        fs::rename(own.join(file), top.join(format!("{file}.was"))).unwrap();
    }
    fs::write(top.join("cgroup.subtree_control"), "memory io\n").unwrap();
    drop(group);
    assert!(!own.exists());
    assert_eq!(fs::read_to_string(top.join("cgroup.subtree_control")).unwrap(), "-io");
}

#[test]
fn in_a_container_a_group_of_the_host_is_mounted() {
    let line = "1 0 0:1 /box/a /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n";
    let (_root, tree) = host(line, "3:cpu,cpuacct:/box/a/db\n");
    let found = find(&tree, Controller::Cpu).unwrap();
    assert_eq!(home(&tree, 7, &found, "cpu"), Ok(tree.path("/sys/fs/cgroup/cpu/db")));
}

#[test]
fn a_process_whose_group_is_unknown_is_left_out_only_when_it_has_ended() {
    let (_root, tree) = host("1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/\n");
    let top = tree.path("/sys/fs/cgroup");
    fs::create_dir_all(tree.path("/proc/8")).unwrap();
    fs::create_dir_all(&top).unwrap();
    fs::write(top.join("cgroup.controllers"), "cpu\n").unwrap();
    fs::write(top.join("cgroup.subtree_control"), "cpu\n").unwrap();
    let mut group = Group::journalled(&tree, "kelvin-x", 7, &[Controller::Cpu], &mut |_| Ok(())).unwrap();
    assert_eq!(group.take(&[9]), Ok(()));
    let why = group.take(&[8]).unwrap_err();
    assert!(why.contains("process 8 cannot be moved: /proc/8/cgroup cannot be read"), "{why}");
}

#[test]
fn flows_are_read_in_both_versions() {
    let text = "7:0 Read 1\n254:0 Read 3\n254:0 Write 395\n254:0 Total 398\nTotal 398\n";
    assert_eq!((flow_one(text, "254:0"), flow_one(text, "8:0")), ((3.0, 395.0), (0.0, 0.0)));
    let flow = flow_two("8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n", "8:0");
    assert_eq!(flow, Flow { reads: 3.0, read_bytes: 1.0, writes: 4.0, written_bytes: 2.0 });
}

#[test]
fn what_we_switched_on_is_switched_off_again_where_there_is_no_other_group() {
    let top = tempfile::tempdir().unwrap();
    let file = top.path().join("cgroup.subtree_control");
    let left = |backstop: bool| {
        fs::write(&file, "cpu memory\n").unwrap();
        let mut group = Group::none();
        group.switched_on.push((file.clone(), "cpu"));
        if backstop {
            // As after a kill: only the shell can restore it.
            group.backstop = group.wait_for_our_end();
            group.switched_on.clear();
        }
        drop(group);
        fs::read_to_string(&file).unwrap().trim().to_owned()
    };
    assert_eq!((left(false), left(true)), ("-cpu".to_owned(), "-cpu".to_owned()));
    fs::write(&file, "cpu memory\n").unwrap();
    assert!(!is_off(&file, "cpu") && is_off(&file, "io"));
    switch_off(&file, "io");
    assert_eq!(fs::read_to_string(&file).unwrap(), "cpu memory\n");
    // The kernel would remove the limits of the other group.
    fs::create_dir(top.path().join("other")).unwrap();
    fs::write(top.path().join("other/cgroup.procs"), "").unwrap();
    assert_eq!((left(false), left(true)), ("cpu memory".to_owned(), "cpu memory".to_owned()));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "([0-9]{0,2}:?[a-z,]{0,8}:?[/a-z]{0,9}\n?){0,5}\\PC{0,9}") {
        let _ = (flow_one(&text, "8:0"), flow_two(&text, "8:0"));
        let _ = group_of(&text, Some("cpu"));
    }
}

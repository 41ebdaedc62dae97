use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize, Serialize, PartialEq)]
struct File {
    factor: Vec<Factor>,
}

fn read(text: &str) -> Result<Vec<Factor>, String> {
    toml::from_str::<File>(text).map(|file| file.factor).map_err(|error| error.to_string())
}

/// A factor with these lines.
fn one(lines: &str) -> Result<Factor, String> {
    read(&format!("[[factor]]\nname = \"f\"\n{lines}\n")).map(|mut found| found.remove(0))
}

const ALL: &str = r#"
[[factor]]
name = "synchronous commit"
levels = ["on", "off"]
setting = "synchronous_commit"
[[factor]]
name = "cpus"
levels = { "zwei" = "0-1", "one" = "0" }
bind = "server.cpus"
[[factor]]
name = "pages"
levels = ["off", "2M", "1G"]
huge-pages = true
[[factor]]
name = "swappiness"
levels = [60, 0]
kernel = "vm.swappiness"
[[factor]]
name = "users"
levels = [4, 16]
spec = "load.users"
[[factor]]
name = "mount"
levels = ["noatime", "relatime"]
mount = "/mnt/pg"
[[factor]]
name = "noise"
levels = { "none" = {}, "hog" = { apply = "touch /tmp/x", undo = "rm -f /tmp/x" } }
command = true
"#;

#[test]
fn every_kind_is_read_in_the_files_order_and_written_as_it_was() {
    let factors = read(ALL).unwrap();
    check(&factors).unwrap();
    assert_eq!(factors[1].levels(), ["zwei", "one"], "the order of the file, not of the alphabet");
    assert_eq!(factors[1].level("one").unwrap().value, LevelValue::Text("0".into()));
    assert_eq!(factors[3].levels(), ["60", "0"]);
    assert_eq!(factors[0].applied_by(), "server setting synchronous_commit");
    assert!(factors[6].runs_commands() && !factors[0].runs_commands());
    let file = File { factor: factors };
    let written = toml::to_string(&file).unwrap();
    assert_eq!(toml::from_str::<File>(&written).unwrap(), file, "{written}");
    // The lock of a study may store them as JSON.
    let json = serde_json::to_string(&file).unwrap();
    assert_eq!(serde_json::from_str::<File>(&json).unwrap(), file);
}

#[test]
fn what_cannot_be_applied_is_refused_with_its_reason() {
    for (lines, expected) in [
        ("levels = [1, 2]", "no key defines what it changes"),
        ("levels = [1, 2]\nkernel = \"vm.x\"\nspec = \"load.users\"", "several keys define"),
        ("levels = [1, 2]\nsettings = \"x\"", "unknown field `settings`"),
        ("levels = [1]\nkernel = \"vm.x\"", "at least two levels"),
        ("levels = [1, 1]\nkernel = \"vm.x\"", "are the same"),
        ("levels = { a = 1, b = 1 }\nkernel = \"vm.x\"", "\"a\" and \"b\" are the same"),
        ("levels = [\"a=b\", \"c\"]\nkernel = \"vm.x\"", "contains '='"),
        ("levels = [1, 2]\nkernel = \"../../etc/passwd\"", "not a valid name of a kernel setting"),
        ("levels = [1, 2]\nkernel = \"vm/../../x\"", "not a valid name of a kernel setting"),
        ("levels = [1, 2]\nkernel = \"/sys/block/../queue/scheduler\"", "not a file that a factor may write"),
        ("levels = [1, 2]\nkernel = \"swappiness\"", "not a valid name of a kernel setting"),
        ("levels = [\"a\", \"|/tmp/x\"]\nkernel = \"kernel.core_pattern\"", "runs as root"),
        ("levels = [1, 2]\nkernel = \"fs/binfmt_misc/register\"", "runs as root"),
        (
            "levels = [1, 2]\nkernel = \"/sys/block/vda/queue/write_cache\"",
            "not a file that a factor may write",
        ),
        ("levels = [1, \"2\\n3\"]\nkernel = \"vm.x\"", "control character"),
        ("levels = [1, 2]\nsetting = \"a; b\"", "not the name of a PostgreSQL setting"),
        ("levels = [1, 2]\nsetting = \"data_directory\"", "data_directory"),
        ("levels = [\"0\", \"1-0\"]\nbind = \"server.cpus\"", "not a valid list of CPUs"),
        ("levels = [\"0\", \"1\"]\nbind = \"server.disks\"", "cannot be bound"),
        ("levels = [\"on\", \"off\"]\nhuge-pages = true", "not a valid huge page size"),
        ("levels = [1, 2]\nspec = \"load..users\"", "not a valid path"),
        ("levels = [\"noatime\", \"-o x\"]\nmount = \"/mnt\"", "are not valid mount options"),
        ("levels = [\"noatime\", \"sync\"]\nmount = \"/mnt/../etc\"", "not an absolute path"),
        ("levels = { a = {}, b = { apply = \"x\" } }\ncommand = true", "has no undo"),
        ("levels = { a = {}, b = { undo = \"x\" } }\ncommand = true", "the undo has no command"),
        ("levels = [1, 2]\ncommand = true", "a level of a factor with command or sql is a table"),
        (
            "levels = { a = {}, b = { apply = \"x\", undo = \"y\" } }\nsetting = \"x\"",
            "needs a factor with command",
        ),
        ("levels = { a = {}, b = { aply = \"x\" } }\ncommand = true", "did not match"),
    ] {
        let error = one(lines).unwrap_err();
        assert!(error.contains(expected), "{lines}: {error}");
        assert!(error.contains("line "), "{error}");
    }
}

#[test]
fn two_factors_cannot_change_the_same_thing() {
    let two = |a: &str, b: &str| {
        let text = format!("[[factor]]\nname = \"a\"\n{a}\n[[factor]]\nname = \"b\"\n{b}\n");
        check(&read(&text).unwrap())
    };
    let setting = "levels = [1, 2]\nsetting = \"work_mem\"";
    let error = two(setting, &setting.replace("work_mem", "WORK_MEM")).unwrap_err().to_string();
    assert!(error.contains("both change the setting work_mem"), "{error}");
    let pages = "levels = [\"off\", \"2M\"]\nhuge-pages = true";
    assert!(two(pages, "levels = [\"on\", \"off\"]\nsetting = \"huge_pages\"").is_err());
    two(setting, pages).unwrap();
    let governor = |policy: &str| {
        format!(
            "levels = [\"powersave\", \"performance\"]\nkernel = \"/sys/devices/system/cpu/cpufreq/{policy}/scaling_governor\""
        )
    };
    assert!(two(&governor("policy*"), &governor("policy3")).is_err());
}

#[test]
fn lists_of_cpus_are_the_kernels() {
    assert_eq!(level::numbers("0-2, 8,1").unwrap(), [0, 1, 2, 8]);
    for wrong in ["", "a", "0-", "-1", "3-2", "0,,1", "99999"] {
        assert!(level::numbers(wrong).is_err(), "{wrong:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,60}", key in "\\PC{0,40}") {
        let _ = level::numbers(&text);
        let _ = level::mount_options(&text);
        if let Ok(path) = level::kernel_path(&key) {
            let known = path.starts_with("/proc/sys") || kernel::is_of_sysfs(&path.to_string_lossy());
            prop_assert!(known && !path.to_string_lossy().contains("/.."));
        }
        let quoted = toml::Value::String(text.clone()).to_string();
        let _ = one(&format!("levels = [{quoted}, 1]\nkernel = \"vm.x\""));
        let _ = one(&text);
    }
}

//! Scripts in Python, run by the installed python3.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use kelvin_hammerdb::tcl::{Host, Interpreter};
use kelvin_hammerdb::{Fault, HostError, Position, run_python};

/// Records commands and output; `checkschema` fails.
#[derive(Default)]
struct Recorder(Vec<String>);

impl Host for Recorder {
    fn call(&mut self, name: &str, arguments: &[String], at: &Position) -> Option<Result<String, HostError>> {
        self.0.push(format!("{}: {}", at.line, [&[name.to_owned()], arguments].concat().join("|")));
        Some(match name {
            "numberOfCPUs" => Ok("6".into()),
            "vurun" => Ok("Benchmark Run jobid=A1".into()),
            "checkschema" => Err("there is no schema".to_owned().into()),
            _ => Ok(String::new()),
        })
    }

    fn print(&mut self, text: &str) {
        self.0.push(format!("prints {text:?}"));
    }

    fn knows(&self, _: &str) -> bool {
        true
    }

    fn replacement(&self, _: &str) -> Option<&'static str> {
        None
    }

    fn wait(&mut self, _: u64) -> Result<(), HostError> {
        Ok(())
    }

    fn interrupted(&self) -> bool {
        self.0.iter().any(|line| line.ends_with("vudestroy"))
    }
}

fn run(directory: &Path, script: &str) -> (Result<i32, Fault>, Vec<String>) {
    let (mut host, file) = (Recorder::default(), directory.join("script.py"));
    std::fs::write(&file, script).unwrap();
    let mut interpreter = Interpreter::new(&mut host, &[directory.to_owned()], []);
    let ended = run_python(&mut interpreter, &file);
    drop(interpreter);
    (ended, host.0)
}

#[test]
fn a_script_calls_prints_and_reads_answers() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("job");
    let script = r#"#!/bin/tclsh
import os, sys
tmp = sys.path[0]
print("SETTING", 1)
dbset('db', 'pg')
diset("connection", "driver", "{ODBC Driver 18 [x] $y \"z\"}")
for users in range(4, 9, 4):
    vuset('vu', users)
giset('commandline', 'keepalive', True)
assert int(tclpy.eval('numberOfCPUs')) + 1 == 7 and numberOfCPUs() == "6"
os.system("echo this is not for Kelvin")
try:
    checkschema()
except Exception as e:
    print(f"caught: {e}", end="")
jobid = vurun()
left_open = open(os.path.join(tmp, "job"), "w")
left_open.write(jobid)
outputfile = left_open.name
left_open.flush()
exec(open('./scripts/python/generic/generic_tprocc_result.py').read())
exit()
"#;
    let (ended, seen) = run(directory.path(), script);
    assert_eq!(ended.unwrap(), 0, "{seen:#?}");
    assert_eq!(
        seen,
        [
            "prints \"SETTING 1\\n\"",
            "5: dbset|db|pg",
            "6: diset|connection|driver|{ODBC Driver 18 [x] $y \"z\"}",
            "8: vuset|vu|4",
            "8: vuset|vu|8",
            "9: giset|commandline|keepalive|true",
            "10: numberOfCPUs",
            "10: numberOfCPUs",
            "13: checkschema",
            "prints \"caught: there is no schema\"",
            "16: vurun",
            "21: job|A1|result",
            "21: job|A1|timing",
            "21: job|A1|tcount",
        ]
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), "Benchmark Run jobid=A1");
}

#[test]
fn what_ends_a_script_has_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let ended = |script: &str| run(directory.path(), script).0;
    assert_eq!(ended("import sys\nsys.exit(3)\n").unwrap(), 3);
    for (script, line, message) in [
        ("def check():\n    checkschema()\ncheck()\n", 2, "there is no schema"),
        ("dbset('db', 'pg')\niset('tpcc', 'a', 'b')\n", 2, "NameError: name 'iset' is not defined"),
        ("x = 1\nif x\n", 2, "SyntaxError"),
        ("\nexec('y = 1\\nfail')\n", 2, "NameError: name 'fail'"),
        ("\n\nexit('no licence')\n", 3, "no licence"),
        ("import os\nos._exit(1)\n", 0, "python3 ended before the script did"),
    ] {
        let fault = ended(script).unwrap_err();
        let place = (fault.position.line, fault.position.file.unwrap());
        assert_eq!(place, (line, directory.path().join("script.py")), "{script}: {}", fault.message);
        assert!(fault.message.contains(message), "{script}: {}", fault.message);
    }
}

/// An interrupt ends a script that sends nothing and does not end, even if the script catches every
/// exception.
#[test]
fn whoever_asks_for_the_end_gets_it() {
    let directory = tempfile::tempdir().unwrap();
    let began = std::time::Instant::now();
    let script = "import time\nvudestroy()\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException:\n        pass\n";
    let fault = run(directory.path(), script).0.unwrap_err();
    assert!(fault.fatal && fault.message == "interrupted", "{fault}");
    assert!(began.elapsed().as_secs() < 30);
    // After an interrupt no further command of the script is executed.
    let (ended, seen) = run(directory.path(), "vudestroy()\nvurun()\n");
    assert!(ended.unwrap_err().fatal && !seen.iter().any(|line| line.contains("vurun")), "{seen:?}");
}

#[test]
fn odd_text_status_and_threads() {
    let directory = tempfile::tempdir().unwrap();
    let script = r#"
import threading
print("not \udcff text")
def call(number):
    for _ in range(20):
        assert tclpy.eval(f"expr {number} + 1") == str(number + 1)
threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
tclpy.eval("exit 7")
"#;
    let (ended, seen) = run(directory.path(), script);
    assert_eq!(ended.unwrap(), 7, "{seen:?}");
    assert_eq!(seen, ["prints \"not ? text\\n\""]);
}

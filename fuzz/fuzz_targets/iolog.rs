//! A trace in fio's text form: any bytes are refused with a line, or read; what was read and is written again reads the
//! same.

#![no_main]

use std::io::Cursor;
use std::path::{Path, PathBuf};

use kelvin_storage::stream::replay::{Action, IologWriter, Trace, TraceFile};
use kelvin_storage::{Io, SyncCall};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The first line is no riddle: it is found at once.
    for head in ["", "fio version 2 iolog\n/a add\n", "fio version 3 iolog\n0 /a add\n"] {
        let mut all = head.as_bytes().to_vec();
        all.extend(bytes);
        let trace = match Trace::read(Cursor::new(all), Path::new("trace")) {
            Ok(trace) => trace,
            Err(error) => {
                assert!(error.to_string().starts_with("trace:"), "{error}");
                continue;
            }
        };
        // blktrace's traces have devices, which no iolog names.
        let path = |name: &TraceFile| if let TraceFile::Path(path) = name { Some(path.clone()) } else { None };
        let names: Option<Vec<PathBuf>> = trace.names.iter().map(path).collect();
        let Some(names) = names else { continue };
        let mut writer = IologWriter::new(Vec::new(), names).expect("names of a trace have no blanks");
        for event in &trace.events {
            match event.action {
                Action::Io { direction, offset, length } => {
                    writer.issued(event.at, &Io { direction, target: event.name, offset, length })
                }
                Action::Sync(how) => writer.synced(event.at, event.name, how),
            }
            .expect("memory can be written");
            assert!(!matches!(event.action, Action::Sync(SyncCall::Range(_))));
        }
        let text = writer.finish(0).expect("memory can be written");
        let again = Trace::read(Cursor::new(text), Path::new("again")).expect("what was written is read");
        assert_eq!(again, trace);
    }
});

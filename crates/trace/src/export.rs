//! A trace as csv, which [`crate::import`] reads again.

use std::io::{self, Write};

use crate::{Process, Request, Trace};

/// The columns: seconds since the first request, bytes, and seconds.
const COLUMNS: &str = "time,device,op,offset,size,response,process,class,object";

/// Writes a line for each request. Unknown values are empty.
///
/// # Errors
/// When it cannot be written.
pub fn write_csv(trace: &Trace, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "{COLUMNS}")?;
    let devices: Vec<String> = trace.devices.iter().map(|device| plain(&device.name)).collect();
    let processes: Vec<String> =
        trace.processes.iter().map(Process::label).map(|name| plain(&name)).collect();
    let files: Vec<(String, String)> =
        trace.files.iter().map(|file| (plain(&file.class_label()), plain(&file.object))).collect();
    let seconds = |nanos: u64| format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    for request in &trace.requests {
        let Request { at, offset, length, device, process, file, operation, .. } = request;
        let (class, object) = files.get(*file as usize).map_or(("", ""), |(class, object)| (class, object));
        writeln!(
            out,
            "{},{},{},{offset},{length},{},{},{class},{object}",
            seconds(*at),
            devices.get(usize::from(*device)).map_or("", String::as_str),
            operation.name(),
            request.response().map(seconds).unwrap_or_default(),
            processes.get(*process as usize).map_or("", String::as_str),
        )?;
    }
    out.flush()
}

/// A name without what separates values.
fn plain(name: &str) -> String {
    name.chars().map(|one| if one == ',' || one == '"' || one.is_control() { '_' } else { one }).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::path::Path;

    use super::*;
    use crate::import;

    #[test]
    fn what_is_written_is_read_again() {
        let text = "254,0 0 1 0.000001000 7 D WS 8 + 8 [a,b]\n254,0 0 2 0.000101000 0 C WS 8 + 8 [0]\n\
                    254,0 0 3 1.500000000 7 D R 16 + 16 [a,b]\n";
        let read = |text: &str| {
            import::read(Cursor::new(text.to_owned().into_bytes()), Path::new("trace"), 10).unwrap()
        };
        let trace = read(text);
        let mut out = Vec::new();
        write_csv(&trace, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text.lines().nth(1),
            Some("0.000000000,254:0,write,4096,4096,0.000100000,a_b 7,,"),
            "{text}"
        );
        let again = read(&text);
        let short = |trace: &Trace| -> Vec<_> {
            trace
                .requests
                .iter()
                .map(|one| (one.at, one.offset, one.length, one.operation, one.response()))
                .collect()
        };
        assert_eq!(short(&again), short(&trace));
    }
}

//! How much of a trace belongs to which object, and how much to none.

use std::collections::HashMap;

use serde::Serialize;

use crate::file_class::FileClass;
use crate::{Operation, Request, Trace};

/// Senders that are listed of what could not be attributed.
const SENDERS: usize = 4;

/// The parts of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attribution {
    /// Bytes read and written.
    pub bytes: u64,
    /// Those that belong to a file, an object of a database or a filesystem, as a share.
    pub attributed: f64,
    /// By class, those with the most bytes first.
    pub classes: Vec<ObjectShare>,
    /// By object, those with the most bytes first.
    pub objects: Vec<ObjectShare>,
    /// Who sent what belongs to none, with the share of all bytes.
    pub unattributed: Vec<(String, f64)>,
}

/// The requests of an object.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ObjectShare {
    /// What it belongs to.
    pub class: FileClass,
    /// The object; of a class its name.
    pub name: String,
    /// Requests that move data.
    pub requests: u64,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Bytes of both, as a share of all.
    pub share: f64,
}

/// The parts of a trace; none if it has no files.
pub fn attribution(trace: &Trace) -> Option<Attribution> {
    if trace.files.is_empty() {
        return None;
    }
    let mut all = 0_u64;
    let mut of_files: HashMap<u32, ObjectShare> = HashMap::new();
    let mut of_senders: HashMap<&str, u64> = HashMap::new();
    for request in trace.requests.iter().filter(|request| request.moves_data() && trace.is_own(request)) {
        let bytes = u64::from(request.length);
        all += bytes;
        if request.file == Request::NO_FILE {
            let sender = trace.processes.get(request.process as usize);
            // A kernel worker's name ends in its work of the moment.
            let name = sender.map_or("unknown", |sender| {
                sender.command.split('/').next().filter(|name| !name.is_empty()).unwrap_or("unknown")
            });
            *of_senders.entry(name).or_insert(0) += bytes;
            continue;
        }
        let sum = of_files.entry(request.file).or_default();
        sum.requests += 1;
        match request.operation {
            Operation::Read => sum.read += bytes,
            _ => sum.written += bytes,
        }
    }
    let mut classes: HashMap<(FileClass, Option<&str>), ObjectShare> = HashMap::new();
    let mut objects: HashMap<(FileClass, &str), ObjectShare> = HashMap::new();
    for (number, sum) in of_files {
        let Some(file) = trace.files.get(number as usize) else { continue };
        let named =
            |name: &str| ObjectShare { class: file.class, name: name.to_owned(), ..ObjectShare::default() };
        let class = (file.class, file.server.as_deref());
        classes.entry(class).or_insert_with(|| named(&file.class_label())).add(&sum);
        objects.entry((file.class, &file.object)).or_insert_with(|| named(&file.object)).add(&sum);
    }
    let share = |bytes: u64| bytes as f64 / all.max(1) as f64;
    let sorted = |parts: Vec<ObjectShare>| {
        let mut parts: Vec<ObjectShare> = parts
            .into_iter()
            .map(|part| ObjectShare { share: share(part.read + part.written), ..part })
            .collect();
        parts.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.name.cmp(&b.name)));
        parts
    };
    let lost: u64 = of_senders.values().sum();
    let mut senders: Vec<(String, f64)> =
        of_senders.into_iter().map(|(name, bytes)| (name.to_owned(), share(bytes))).collect();
    senders.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    senders.truncate(SENDERS);
    Some(Attribution {
        bytes: all,
        attributed: share(all - lost),
        classes: sorted(classes.into_values().collect()),
        objects: sorted(objects.into_values().collect()),
        unattributed: senders,
    })
}

impl ObjectShare {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.read += other.read;
        self.written += other.written;
    }
}

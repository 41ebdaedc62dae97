//! Files of several servers on one host, whose objects have equal names.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::file_class::relation_object;
use crate::recording::TracedFile;

/// An object of one of several servers.
fn of_server(object: &str, server: &str) -> String {
    format!("{object} ({server})")
}

impl TracedFile {
    /// What it belongs to, and to which server if there are several.
    pub fn class_label(&self) -> String {
        let class = self.class.name();
        self.server.as_ref().map_or_else(|| class.to_owned(), |server| of_server(class, server))
    }
}

/// What a catalogue calls files (the database's number, the file's, the name), by objects as recordings have them: with the
/// server's data directory, where it is known, and without.
pub fn catalogue_names(
    directory: Option<&Path>,
    names: Vec<(String, String, String)>,
) -> Vec<(String, String)> {
    let directory = directory.and_then(|path| path.canonicalize().ok());
    let server = directory.map(|path| path.to_string_lossy().into_owned());
    let named = |(database, node, name): (String, String, String)| {
        let object = relation_object(&database, &node);
        let with_server = server.as_ref().map(|server| (of_server(&object, server), name.clone()));
        with_server.into_iter().chain([(object, name)])
    };
    names.into_iter().flat_map(named).collect()
}

/// Gives objects the names of a catalogue, and those of several servers of one kind the name of their server. Without
/// the server a name is only that of the only server's file.
pub(crate) fn name_objects(files: &mut [TracedFile], names: &HashMap<String, String>) {
    let mut servers: [HashSet<String>; 2] = Default::default();
    for file in &*files {
        servers[usize::from(file.class.is_postgres())].extend(file.server.clone());
    }
    for file in files {
        let is_only = servers[usize::from(file.class.is_postgres())].len() < 2;
        let server = file.server.take();
        let with_server = server.as_ref().and_then(|server| names.get(&of_server(&file.object, server)));
        let known = with_server.or_else(|| names.get(&file.object).filter(|_| is_only));
        if let Some(name) = known {
            file.object.clone_from(name);
        }
        if let Some(server) = server.filter(|_| !is_only) {
            file.object = of_server(&file.object, &server);
            file.server = Some(server);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_class::FileClass;

    fn file(class: FileClass, object: &str, server: &str) -> TracedFile {
        let server = (!server.is_empty()).then(|| server.to_owned());
        TracedFile { class, object: object.into(), server, ..TracedFile::default() }
    }

    #[test]
    fn objects_of_two_servers_are_two() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().canonicalize().unwrap();
        let own = own.to_str().unwrap();
        let catalogue = vec![("5".into(), "7".into(), "public.t".into())];
        let names: HashMap<String, String> =
            catalogue_names(Some(place.path()), catalogue).into_iter().collect();
        let named = |mut files: Vec<TracedFile>| {
            name_objects(&mut files, &names);
            let labels = files.iter().map(|file| (file.object.clone(), file.class_label()));
            labels.collect::<Vec<_>>()
        };
        let pair = |object: String, class: String| (object, class);
        let (data, redo) = (FileClass::PostgresData, FileClass::InnodbRedo);
        assert_eq!(
            named(vec![
                file(data, "relation 5/7", own),
                file(data, "relation 5/7", "/b"),
                file(redo, "redo log", "/m"),
                file(FileClass::Other, "/x", ""),
            ]),
            [
                pair(format!("public.t ({own})"), format!("PostgreSQL data ({own})")),
                pair("relation 5/7 (/b)".into(), "PostgreSQL data (/b)".into()),
                pair("redo log".into(), "InnoDB redo log".into()),
                pair("/x".into(), "other files".into()),
            ]
        );
        // The only one, in a container: its directory has another name there. And one of an older recording.
        for server in ["/var/lib/containers/x", ""] {
            let only = named(vec![file(data, "relation 5/7", server)]);
            assert_eq!(only, [pair("public.t".into(), "PostgreSQL data".into())]);
        }
    }
}

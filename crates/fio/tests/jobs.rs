//! The corpus of job files: what each resolves to, what is wrong with those that are refused, and whether fio reads the
//! good ones too.

#![allow(clippy::unwrap_used, reason = "a test's helpers fail like the test")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use kelvin_fio::job::{Job, Jobs};
use kelvin_fio::jobfile;

/// The files of a directory of the corpus, by name.
fn corpus(directory: &str) -> Vec<(String, PathBuf)> {
    let path = if directory.is_empty() { root() } else { root().join(directory) };
    let entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<(String, PathBuf)> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "fio"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    files.sort();
    files
}

/// The fields of a job's parts, each in one line, from what `Debug` writes.
fn fields(job: &Job) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut part = String::new();
    let mut add = |name: String, value: &str| out.push((name, value.trim_end_matches(',').to_owned()));
    let mut open: Option<(String, String)> = None;
    for line in format!("{job:#?}").lines() {
        let depth = (line.len() - line.trim_start().len()) / 4;
        let text = line.trim();
        let is_end = text.starts_with(['}', ')', ']']);
        match depth {
            0 => {}
            // The end of a part, which was said to begin with its first field.
            1 if is_end => {}
            1 | 2 if !is_end => {
                if let Some((name, value)) = open.take() {
                    add(name, &value);
                }
                let (name, value) = text.split_once(": ").unwrap_or(("", text));
                if depth == 1 {
                    name.clone_into(&mut part);
                }
                let name =
                    if depth == 1 || name.is_empty() { part.clone() } else { format!("{part}.{name}") };
                open = Some((name, value.to_owned()));
            }
            _ => {
                if let Some((_, value)) = &mut open {
                    let tight = is_end && !text.starts_with('}') || value.ends_with(['(', '[']);
                    let kept = if is_end { value.trim_end_matches(',').len() } else { value.len() };
                    value.truncate(kept);
                    value.push_str(if tight { "" } else { " " });
                    value.push_str(text);
                }
            }
        }
    }
    if let Some((name, value)) = open {
        add(name, &value);
    }
    out.retain(|(_, value)| !value.ends_with(" {") && value != "Some(");
    out
}

/// What of the jobs is not as it is when nothing is said.
fn summary(jobs: &Jobs, root: &Path) -> String {
    let plain = jobfile::parse_text("[x]\n", None, &[]).unwrap();
    let plain = fields(&plain.jobs[0]);
    let mut out = String::new();
    for job in &jobs.jobs {
        out.push_str(&format!("  [{}]\n", job.name));
        for (name, value) in fields(job) {
            let skipped = name == "name" || name.starts_with("place") || name.starts_with("given");
            if !skipped && !plain.contains(&(name.clone(), value.clone())) {
                out.push_str(&format!("    {name} = {value}\n"));
            }
        }
    }
    for note in &jobs.notes {
        out.push_str(&format!("  note: {}\n", without(root, note)));
    }
    out
}

fn without(root: &Path, text: &str) -> String {
    text.replace(&format!("{}/", root.display()), "")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jobs")
}

#[test]
fn good_files_resolve_to_what_they_say() {
    let files = corpus("");
    assert!(files.len() >= 60, "{}", files.len());
    let mut out = String::new();
    for (name, path) in files {
        // The page's size, the files there, and the directory are this machine's.
        if name == "machine" || name == "layout-only" {
            continue;
        }
        let jobs = jobfile::parse_file(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        out.push_str(&format!("{name}:\n{}", summary(&jobs, &root())));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn files_about_this_machine_are_read() {
    let jobs = jobfile::parse_file(&root().join("machine.fio"), &[]).unwrap();
    let page = rustix::param::page_size() as u64;
    assert_eq!(u64::from(jobs.jobs[0].blocks.sizes.0[0].largest()), page);
    assert_eq!(jobs.jobs[0].targets.size, Some(kelvin_fio::job::Amount::Bytes(64 * page)));
    // Tests run in the crate's directory.
    let jobs = jobfile::parse_file(&root().join("layout-only.fio"), &[]).unwrap();
    let names = &jobs.jobs[2].targets.filenames;
    assert!(names.contains(&PathBuf::from("./tests/jobs.rs")), "{names:?}");
    assert_eq!(jobs.jobs[2].targets.files as usize, names.len());
}

#[test]
fn bad_files_are_refused_with_their_place() {
    let files = corpus("bad");
    assert!(files.len() >= 40, "{}", files.len());
    let mut out = String::new();
    for (name, path) in files {
        let error = match jobfile::parse_file(&path, &[]) {
            Ok(jobs) => panic!("{name} was read: {:?}", jobs.jobs),
            Err(error) => error.to_string(),
        };
        out.push_str(&format!("{}\n", without(&root().join("bad"), &error)));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn the_corpus_has_every_option_that_is_supported() {
    let mut written = BTreeSet::new();
    for (_, path) in corpus("") {
        let jobs = jobfile::parse_file(&path, &[]).unwrap();
        let given = jobs.jobs.iter().flat_map(|job| job.given.iter());
        written.extend(jobs.global.iter().chain(given).map(|(name, _)| name.clone()));
    }
    let help = jobfile::command_help(None);
    let supported = help.lines().filter(|line| line.starts_with("  ") && !line.ends_with("(not supported)"));
    for name in supported.filter_map(|line| line.split_whitespace().next()) {
        if name.starts_with('$') || name == "name" {
            continue;
        }
        let page = jobfile::command_help(Some(name));
        let aliases = page.lines().find_map(|line| line.trim().strip_prefix("aliases:")).unwrap_or_default();
        let mut names = aliases.split(',').map(str::trim).chain([name]);
        assert!(names.any(|name| written.contains(name)), "{name} is in no file of the corpus");
    }
}

#[test]
fn what_is_shown_as_a_command_line_is_read_as_the_same_jobs() {
    for (name, path) in corpus("") {
        let jobs = jobfile::parse_file(&path, &[]).unwrap();
        let again = jobfile::parse_arguments(&jobfile::shown_words(&jobs))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(unplaced(again.jobs), unplaced(jobs), "{name}");
    }
}

/// Without what differs between a file and a command line.
fn unplaced(mut jobs: Jobs) -> Jobs {
    for job in &mut jobs.jobs {
        job.place = kelvin_fio::error::Location::default();
        // A file names its jobs in their headings, a command line by an option.
        job.given.retain(|(name, _)| name != "name");
    }
    jobs.notes.clear();
    jobs
}

#[test]
fn help_looks_as_it_should() {
    let mut out = jobfile::command_help(None);
    for option in ["rw", "bs", "hipri", "thread", "cgroup", "log_sum", "iodepth_batch_submit", "bsz"] {
        out.push_str(&jobfile::command_help(Some(option)));
        out.push('\n');
    }
    for engine in
        [None, Some("io_uring"), Some("posixaio"), Some("rbd"), Some("io_uring,hipri"), Some("libaoi")]
    {
        out.push_str(&jobfile::engine_help(engine));
        out.push('\n');
    }
    out.push_str(&jobfile::flags_help());
    let jobs = jobfile::parse_file(&root().join("globals-repeated.fio"), &[]).unwrap();
    out.push_str(&jobfile::render_command_line(&jobs));
    let jobs = jobfile::parse_file(&root().join("names.fio"), &[]).unwrap();
    out.push_str(&format!("\n{}\n", jobfile::render_command_line(&jobs)));
    insta::assert_snapshot!(out);
}

#[test]
fn sections_can_be_chosen() {
    let path = root().join("globals.fio");
    let jobs = jobfile::parse_file(&path, &["writer".into()]).unwrap();
    assert_eq!(jobs.jobs.len(), 1);
    assert_eq!(jobs.jobs[0].name, "writer");
    let error = jobfile::parse_file(&path, &["nobody".into()]).unwrap_err().to_string();
    assert!(error.contains("no job named nobody"), "{error}");
}

#[test]
fn files_on_a_command_line_follow_each_other() {
    let words = |names: &[&str]| -> Vec<String> {
        let files = names.iter().map(|name| root().join(name).display().to_string());
        std::iter::once("--thinktime=5".to_owned()).chain(files).collect()
    };
    let parsed = jobfile::parse_arguments(&words(&["globals.fio", "mixed.fio"])).unwrap();
    let jobs = &parsed.jobs.jobs;
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["reader", "writer", "mixed"]);
    // As fio: the words before hold for the first file, and the second waits for it.
    assert_eq!(jobs.iter().map(|job| job.thinking.is_some()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(jobs.iter().map(|job| job.course.stonewall).collect::<Vec<_>>(), [false, false, true]);
    let again = jobfile::parse_arguments(&jobfile::shown_words(&parsed.jobs)).unwrap();
    assert_eq!(unplaced(again.jobs), unplaced(parsed.jobs));
}

/// fio on this machine, from `PATH`.
fn fio() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|part| part.join("fio")).find(|file| file.is_file())
}

#[test]
fn fio_reads_the_good_files_too() {
    let fio = fio().expect("fio is not installed: apt-get install fio");
    let empty = tempfile::tempdir().unwrap();
    // Those with a mark cannot be read by Debian's fio, and say why.
    let marked = |path: &Path| std::fs::read_to_string(path).unwrap().starts_with(";; fio:");
    let files: Vec<PathBuf> =
        corpus("").into_iter().map(|(_, path)| path).filter(|path| !marked(path)).collect();
    assert!(files.len() >= 60, "{}", files.len());
    // All at once: fio takes a fifth of a second to begin.
    let run = Command::new(&fio)
        .arg("--parse-only")
        .args(&files)
        .env("CARGO_PKG_NAME", "x")
        .current_dir(empty.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stdout));
    for wrong in ["failed parsing", "dropped", "Bad option", "Error"] {
        assert!(!said.contains(wrong), "{said}");
    }
}

#[test]
fn every_option_of_fio_is_in_the_table() {
    let fio = fio().expect("fio is not installed: apt-get install fio");
    let run = Command::new(fio).arg("--cmdhelp=all").output().unwrap();
    let listed = String::from_utf8(run.stdout).unwrap();
    let names = listed.lines().filter_map(|line| line.split([':', ' ']).find(|word| !word.is_empty()));
    let names: Vec<&str> = names.collect();
    assert!(names.len() > 200, "{names:?}");
    for name in names {
        let page = jobfile::command_help(Some(name));
        assert!(!page.starts_with("there is no option"), "{name}");
    }
}

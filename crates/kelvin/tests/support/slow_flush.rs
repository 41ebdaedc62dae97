//! A library between a server and the kernel's calls that delays every flush of its files.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

const SOURCE: &str = r"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static void wait_a_while(void) {
    struct timespec length = { 0, LENGTH };
    nanosleep(&length, 0);
}
int fdatasync(int file) { wait_a_while(); return syscall(SYS_fdatasync, file); }
int fsync(int file) { wait_a_while(); return syscall(SYS_fsync, file); }
";

/// Compiles the library.
pub(crate) fn build(library: &Path, length: Duration) {
    let source = library.with_extension("c");
    std::fs::write(&source, SOURCE.replace("LENGTH", &length.as_nanos().to_string())).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(library).arg(&source).status();
    assert!(built.unwrap().success(), "a C compiler is there wherever this was linked");
}

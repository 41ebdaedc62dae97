//! The limit on open files. Each connection is an open file, and by default a process may have 1024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::RunError;

/// Open files other than the users' connections: results, event loops, the monitor's connection, the
/// terminal.
const OTHERS: u64 = 100;

/// Raises the limit for `users` connections, up to what the system allows this process.
pub(super) fn allow(users: u32) -> Result<(), RunError> {
    let needed = u64::from(users) + OTHERS;
    // A user that reconnects holds the lost connection until the new one is established.
    let wanted = needed + u64::from(users);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let refused = |why: &str| {
        RunError::Start(format!(
            "{users} users need {needed} open files, but this process may open only {}{why}; raise the limit \
             with \"ulimit -n {needed}\", or LimitNOFILE= in its service unit",
            maximum.or(current).unwrap_or(0)
        ))
    };
    if maximum.is_some_and(|maximum| maximum < needed) {
        return Err(refused(""));
    }
    let raised = Rlimit { current: Some(maximum.map_or(wanted, |most| most.min(wanted))), maximum };
    setrlimit(Resource::Nofile, raised).map_err(|error| refused(&format!(" ({error})")))
}

//! The activity of a session, from the state texts of the server and of the kernel.

use kelvin_measure::observation::WaitKind;

use super::thread::{Doing, File};

/// The observed activity of a session: class and event as displayed, and their meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State<'a> {
    pub(super) class: &'a str,
    pub(super) event: &'a str,
    pub(super) kind: WaitKind,
}

/// One row of the list of sessions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen<'a> {
    pub(super) command: &'a str,
    pub(super) state: &'a str,
    /// "RUNNING", "LOCK WAIT", "ROLLING BACK", "COMMITTING"; empty without a transaction.
    pub(super) transaction: &'a str,
    /// Its wait according to `performance_schema`.
    pub(super) wait: Option<&'a str>,
    /// The activity of its thread, where it may be read.
    pub(super) thread: Option<Doing>,
}

/// States in which a session works, in lower case: its waits have no names of their own.
const WORKING: &[&str] = &[
    "",
    "after create",
    "altering table",
    "checking permissions",
    "checking table",
    "cleaning up",
    "closing tables",
    "converting heap to ondisk",
    "copying to tmp table",
    "copying to tmp table on disk",
    "creating index",
    "creating sort index",
    "creating table",
    "creating tmp table",
    "deleting from main table",
    "deleting from reference tables",
    "discard_or_import_tablespace",
    "end",
    "end of update loop",
    "executing",
    "explaining",
    "filling schema table",
    "freeing items",
    "init",
    "init for update",
    "manage keys",
    "opening tables",
    "optimizing",
    "preparing",
    "query end",
    "removing duplicates",
    "removing tmp table",
    "reset for next command",
    "rollback",
    "rolling back",
    "searching rows for update",
    "sending data",
    "sorting for group",
    "sorting for order",
    "sorting result",
    "starting",
    "starting cleanup",
    "statistics",
    "storing result in query cache",
    "system lock",
    "unlocking tables",
    "update",
    "updating",
    "updating main table",
    "updating reference tables",
];

/// States in which a session ends its transaction. It waits for the redo log or the binary log, whichever session
/// writes it. "Updating status" is where MariaDB since 10.6 waits until another session has flushed the log for it:
/// observed on 10.11.19, where no session is in it with `innodb_flush_log_at_trx_commit` 0.
const COMMITTING: &[&str] = &[
    "commit",
    "commit implicit",
    "starting commit",
    "waiting for handler commit",
    "waiting for prior transaction to commit",
    "waiting for prior transaction to start commit",
    "waiting for gtid to be committed",
    "waiting for binlog group commit ticket",
    "waiting for binlog acks from followers",
    "updating status",
];

/// The state of a session that runs a statement or holds a transaction open.
///
/// Row locks come first: InnoDB reports them. Next comes the wait from `performance_schema` or the kernel; the thread's
/// state is ignored if it has returned to its client meanwhile (the list is a millisecond older). Then the state text
/// of the session; an unknown one is [`WaitKind::Other`] and never the CPU.
pub(super) fn state<'a>(seen: &Seen<'a>) -> State<'a> {
    let of = |class, event, kind| State { class, event, kind };
    if seen.command == "Sleep" {
        // Its client has sent the next statement, and it has no CPU to begin with it.
        if seen.thread == Some(Doing::Running) {
            return of("CPU", "", WaitKind::Cpu);
        }
        return of("Idle in transaction", "", WaitKind::IdleInTransaction);
    }
    if seen.transaction == "LOCK WAIT" {
        return of("Lock", "row", WaitKind::RowLock);
    }
    let words = seen.state.to_lowercase();
    let named = by_words(seen.state, &words);
    if matches!(named.kind, WaitKind::Lock | WaitKind::Replication) {
        return named;
    }
    if let Some(event) = seen.wait {
        return of("Wait", event, wait_kind(event));
    }
    let commits = matches!(named.kind, WaitKind::Log);
    match seen.thread {
        Some(Doing::Running) => of("CPU", "", WaitKind::Cpu),
        Some(Doing::Sync(File::Redo)) => of("IO", "redo sync", WaitKind::LogFlush),
        Some(Doing::Sync(File::Binlog)) => of("IO", "binlog sync", WaitKind::LogFlush),
        Some(Doing::Write(File::Redo)) => of("IO", "redo write", WaitKind::Log),
        Some(Doing::Write(File::Binlog)) => of("IO", "binlog write", WaitKind::Log),
        Some(Doing::Read(File::Data)) => of("IO", "data read", WaitKind::DataRead),
        Some(Doing::Write(File::Data)) => of("IO", "data write", WaitKind::DataWrite),
        Some(Doing::Sync(File::Data)) => of("IO", "data sync", WaitKind::DataWrite),
        Some(Doing::Read(_)) => of("IO", "other read", WaitKind::Other),
        Some(Doing::Write(_) | Doing::Sync(_)) => of("IO", "other write", WaitKind::Other),
        // A futex within a commit is that of the group commit, whose leader writes the log for all.
        Some(Doing::Futex) if !commits && named.kind == WaitKind::Cpu => {
            of("Latch", "futex", WaitKind::Latch)
        }
        Some(Doing::Other) if !commits => of("Other", "system call", WaitKind::Other),
        _ => named,
    }
}

fn by_words<'a>(state: &'a str, words: &str) -> State<'a> {
    let of = |class, kind| State { class, event: state, kind };
    if WORKING.contains(&words) {
        return State { class: "CPU", event: "", kind: WaitKind::Cpu };
    }
    if COMMITTING.contains(&words) {
        return of("Commit", WaitKind::Log);
    }
    if words.contains("semi-sync") || words.starts_with("wsrep") {
        return of("Replication", WaitKind::Replication);
    }
    if words.starts_with("waiting for") && words.ends_with("lock") || words == "user lock" {
        return of("Lock", WaitKind::Lock);
    }
    if words.ends_with("to client") || words.ends_with("from client") || words.ends_with(" net") {
        return of("Client", WaitKind::Client);
    }
    of("Other", WaitKind::Other)
}

/// The kind of a `performance_schema` wait.
fn wait_kind(event: &str) -> WaitKind {
    let parts: Vec<&str> = event.split('/').collect();
    match parts.as_slice() {
        ["wait", "io", "file", "innodb", "innodb_log_file"] => WaitKind::Log,
        ["wait", "io", "file", "sql", name] if name.starts_with("binlog") || *name == "relaylog" => {
            WaitKind::Log
        }
        ["wait", "io", "file", "aria", name] if name.starts_with("translog") => WaitKind::Log,
        ["wait", "io", "file", "innodb", "innodb_dblwr_file"] => WaitKind::DataWrite,
        ["wait", "io", "file", "innodb" | "aria" | "myisam", ..] => WaitKind::DataRead,
        ["wait", "io", "socket", ..] => WaitKind::Client,
        ["wait", "lock", ..] => WaitKind::Lock,
        // Commits in a group, and the writers of the redo log.
        ["wait", "synch", "cond", "sql", name] if is_of_commit(name) => WaitKind::Log,
        ["wait", "synch", "mutex", "sql", name] if is_of_commit(name) || name.starts_with("LOCK_log") => {
            WaitKind::Log
        }
        ["wait", "synch", _, "innodb", name] if name.starts_with("log_") => WaitKind::Log,
        ["wait", "synch", _, "semisync", ..] => WaitKind::Replication,
        ["wait", "synch", "mutex" | "rwlock" | "prlock" | "sxlock", ..] => WaitKind::Latch,
        _ => WaitKind::Other,
    }
}

/// The kind of a wait counted by `performance_schema`, over all threads; `None` for the waits of idle sessions and idle
/// background threads: sockets, and conditions other than those of commits.
pub(super) fn counted_kind(event: &str) -> Option<WaitKind> {
    match wait_kind(event) {
        WaitKind::Client => None,
        WaitKind::Other if event.starts_with("wait/synch/cond/") => None,
        kind => Some(kind),
    }
}

fn is_of_commit(name: &str) -> bool {
    [
        "MYSQL_BIN_LOG::",
        "COND_done",
        "COND_flush_queue",
        "COND_queue_state",
        "COND_wakeup_ready",
        "COND_prepare_ordered",
    ]
    .iter()
    .any(|known| name.starts_with(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(command: &str, state: &str, transaction: &str, thread: Option<Doing>) -> WaitKind {
        super::state(&Seen { command, state, transaction, wait: None, thread }).kind
    }

    #[test]
    fn a_state_that_is_not_known_is_never_the_cpu() {
        for state in ["Waiting for a miracle", "checking the weather", "Waiting on empty queue", "User sleep"]
        {
            assert_eq!(kind("Query", state, "RUNNING", None), WaitKind::Other, "{state}");
        }
        assert_eq!(kind("Execute", "Updating", "RUNNING", None), WaitKind::Cpu);
        assert_eq!(kind("Query", "", "", None), WaitKind::Cpu);
    }

    #[test]
    fn the_kernel_distinguishes_states_that_the_server_does_not() {
        for (state, thread, expected) in [
            ("Updating", Doing::Running, WaitKind::Cpu),
            ("Updating", Doing::Read(File::Data), WaitKind::DataRead),
            ("Updating", Doing::Futex, WaitKind::Latch),
            ("Updating", Doing::Sync(File::Redo), WaitKind::LogFlush),
            ("Updating", Doing::Client, WaitKind::Cpu),
            ("Updating", Doing::Other, WaitKind::Other),
            ("Sending data", Doing::Read(File::Unknown), WaitKind::Other),
            ("Commit", Doing::Running, WaitKind::Cpu),
            ("Commit", Doing::Futex, WaitKind::Log),
            ("Updating status", Doing::Futex, WaitKind::Log),
            ("Updating status", Doing::Running, WaitKind::Cpu),
            ("Writing to net", Doing::Running, WaitKind::Cpu),
            ("Commit", Doing::Sync(File::Redo), WaitKind::LogFlush),
            ("waiting for handler commit", Doing::Sync(File::Binlog), WaitKind::LogFlush),
            ("Commit", Doing::Client, WaitKind::Log),
            ("Waiting for table metadata lock", Doing::Futex, WaitKind::Lock),
            ("Waiting for semi-sync ACK from replica", Doing::Futex, WaitKind::Replication),
            ("Writing to net", Doing::Client, WaitKind::Client),
        ] {
            assert_eq!(kind("Query", state, "RUNNING", Some(thread)), expected, "{state} {thread:?}");
        }
    }

    #[test]
    fn row_locks_come_before_all_else_and_a_sleeping_session_waits_for_its_client() {
        assert_eq!(kind("Query", "Updating", "LOCK WAIT", Some(Doing::Futex)), WaitKind::RowLock);
        assert_eq!(kind("Query", "Updating", "LOCK WAIT", Some(Doing::Running)), WaitKind::RowLock);
        assert_eq!(kind("Sleep", "", "RUNNING", None), WaitKind::IdleInTransaction);
        assert_eq!(kind("Sleep", "", "RUNNING", Some(Doing::Running)), WaitKind::Cpu);
        assert_eq!(kind("Sleep", "", "LOCK WAIT", None), WaitKind::IdleInTransaction);
    }

    #[test]
    fn waits_of_performance_schema_have_their_kinds() {
        for (event, expected) in [
            ("wait/io/file/innodb/innodb_data_file", WaitKind::DataRead),
            ("wait/io/file/innodb/innodb_dblwr_file", WaitKind::DataWrite),
            ("wait/io/file/innodb/innodb_log_file", WaitKind::Log),
            ("wait/io/file/sql/binlog", WaitKind::Log),
            ("wait/synch/mutex/innodb/trx_sys_mutex", WaitKind::Latch),
            ("wait/synch/sxlock/innodb/index_tree_rw_lock", WaitKind::Latch),
            ("wait/synch/mutex/innodb/log_writer_mutex", WaitKind::Log),
            ("wait/synch/cond/sql/MYSQL_BIN_LOG::COND_done", WaitKind::Log),
            ("wait/lock/metadata/sql/mdl", WaitKind::Lock),
            ("wait/io/socket/sql/client_connection", WaitKind::Client),
            ("stage/sql/nothing known", WaitKind::Other),
        ] {
            assert_eq!(wait_kind(event), expected, "{event}");
        }
        assert_eq!(counted_kind("wait/synch/cond/sql/COND_server_started"), None);
        assert_eq!(counted_kind("wait/io/socket/sql/client_connection"), None);
        assert_eq!(counted_kind("wait/synch/cond/sql/MYSQL_BIN_LOG::COND_done"), Some(WaitKind::Log));
    }
}

//! What is asked, by product and version.

use super::link::Server;
use crate::server::link::Observers;

/// MySQL counts where its redo log stands since this version.
pub(super) const REDO_STATUS: u32 = 80_030;

/// Version, the server's time, our connection and account, whether `performance_schema` is on.
pub(super) const WHO: &str = "SELECT VERSION(), UNIX_TIMESTAMP(), CAST(CONNECTION_ID() AS SIGNED), USER(), \
     CAST(@@performance_schema AS SIGNED)";

/// Seconds since the start.
pub(super) const UPTIME: &str = "SHOW GLOBAL STATUS LIKE 'Uptime'";

/// Fails where the transactions of other sessions may not be seen.
pub(super) const TRANSACTIONS: &str = "SELECT CAST(COUNT(*) AS SIGNED) FROM information_schema.INNODB_TRX";

/// Whether waits are recorded: the consumer, and how many instruments of them.
pub(super) const WAITS: &str = "SELECT \
     CAST((SELECT COUNT(*) FROM performance_schema.setup_consumers WHERE NAME = 'events_waits_current' AND ENABLED = 'YES') AS SIGNED), \
     CAST((SELECT COUNT(*) FROM performance_schema.setup_instruments WHERE NAME LIKE 'wait/%' AND ENABLED = 'YES') AS SIGNED)";

/// A sampled statement's text is cut after so many characters; one that is cut cannot be explained.
pub(super) const LONGEST_SAMPLE: usize = 16_000;

/// Sessions that do something or hold a transaction open: connection, user, command, state, the kernel's number of its thread,
/// state of its transaction, statement, wait; with `texts` its text as the server normalised it, and as it was sent, cut.
///
/// `INNODB_TRX` is a copy that InnoDB renews only when nobody has read it for 0.1 s (`CACHE_MIN_IDLE_TIME`): who reads it more
/// often sees the same transactions for ever.
pub(super) fn sessions(server: &Server, observers: &Observers, texts: bool) -> String {
    let observers = observers.list();
    let (state, join) = if server.transactions {
        ("x.trx_state", "LEFT JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id =")
    } else {
        ("NULL", "")
    };
    let held = if server.transactions { " OR x.trx_id IS NOT NULL" } else { "" };
    if server.performance_schema && !server.mariadb {
        let join = if join.is_empty() { String::new() } else { format!("{join} t.PROCESSLIST_ID") };
        let (event, waits) = if server.waits { (EVENT, WAITING) } else { ("NULL", "") };
        let query = current(QUERY);
        let texts = if texts {
            format!(", {}, LEFT(t.PROCESSLIST_INFO, {LONGEST_SAMPLE})", current("s.DIGEST_TEXT"))
        } else {
            String::new()
        };
        return format!(
            "SELECT CAST(t.PROCESSLIST_ID AS SIGNED), t.PROCESSLIST_USER, t.PROCESSLIST_COMMAND, t.PROCESSLIST_STATE, \
             CAST(t.THREAD_OS_ID AS SIGNED), {state}, {query}, {event}{texts} \
             FROM performance_schema.threads t {waits} {join} \
             WHERE t.PROCESSLIST_ID NOT IN ({observers}) AND t.PROCESSLIST_COMMAND NOT IN ('Daemon', 'Connect') \
             AND (t.PROCESSLIST_COMMAND <> 'Sleep'{held})"
        );
    }
    let join = if join.is_empty() { String::new() } else { format!("{join} p.ID") };
    let thread = if server.mariadb { "CAST(p.TID AS SIGNED)" } else { "NULL" };
    let texts = if texts { format!(", NULL, LEFT(p.INFO, {LONGEST_SAMPLE})") } else { String::new() };
    // MariaDB has both off by default.
    let (query, event, waits) = if server.performance_schema && server.waits {
        let threads = "LEFT JOIN performance_schema.threads t ON t.PROCESSLIST_ID = p.ID";
        (current(QUERY), EVENT, format!("{threads} {WAITING}"))
    } else {
        ("NULL".to_owned(), "NULL", String::new())
    };
    format!(
        "SELECT CAST(p.ID AS SIGNED), p.USER, p.COMMAND, p.STATE, {thread}, {state}, {query}, {event}{texts} \
         FROM information_schema.PROCESSLIST p {waits} {join} \
         WHERE p.ID NOT IN ({observers}) AND p.COMMAND NOT IN ('Daemon', 'Connect') \
         AND (p.COMMAND <> 'Sleep'{held})"
    )
}

/// A column of the statement that the session of thread `t` runs.
fn current(column: &str) -> String {
    format!(
        "(SELECT {column} FROM performance_schema.events_statements_current s \
         WHERE s.THREAD_ID = t.THREAD_ID AND s.DIGEST IS NOT NULL ORDER BY s.EVENT_ID DESC LIMIT 1)"
    )
}

/// The first 64 bits of its digest.
const QUERY: &str = "CAST(CONV(LEFT(s.DIGEST, 16), 16, -10) AS SIGNED)";
/// The innermost wait that has not ended: that for a table's row contains those for its file and its latches.
const EVENT: &str = "w.EVENT_NAME";
const WAITING: &str = "LEFT JOIN (SELECT THREAD_ID, MAX(EVENT_ID) AS last FROM performance_schema.events_waits_current \
     WHERE END_EVENT_ID IS NULL AND EVENT_NAME NOT LIKE 'wait/io/table/%' AND EVENT_NAME <> 'idle' GROUP BY THREAD_ID) AS inner_most \
     ON inner_most.THREAD_ID = t.THREAD_ID \
     LEFT JOIN performance_schema.events_waits_current w ON w.THREAD_ID = t.THREAD_ID AND w.EVENT_ID = inner_most.last";

/// How many transactions wait for rows of which table.
pub(super) fn row_waiters(server: &Server) -> &'static str {
    if server.mariadb {
        "SELECT REPLACE(l.lock_table, '`', ''), CAST(COUNT(DISTINCT w.requesting_trx_id) AS SIGNED) \
         FROM information_schema.INNODB_LOCK_WAITS w \
         JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id GROUP BY 1"
    } else {
        "SELECT CONCAT(l.OBJECT_SCHEMA, '.', l.OBJECT_NAME), \
         CAST(COUNT(DISTINCT w.REQUESTING_ENGINE_TRANSACTION_ID) AS SIGNED) FROM performance_schema.data_lock_waits w \
         JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID GROUP BY 1"
    }
}

/// Who holds what others wait for: connection, user, milliseconds since its transaction began, command, state, statement, those
/// who wait, what for, the statement of the one who has waited longest, and for how many milliseconds. MySQL shows the lock table as it is now, where who waits in turn is among those; its `INNODB_TRX` would be of
/// a moment before, when other transactions ran. MariaDB has both of the same moment, and begins of transactions in whole
/// seconds: ages below two are not known. Both have waits in whole seconds.
pub(super) fn blockers(server: &Server) -> &'static str {
    if server.mariadb {
        "SELECT CAST(h.trx_mysql_thread_id AS SIGNED), MAX(p.USER), \
         MAX(CASE WHEN TIMESTAMPDIFF(SECOND, h.trx_started, NOW()) >= 2 THEN TIMESTAMPDIFF(SECOND, h.trx_started, NOW()) * 1e3 END), \
         MAX(p.COMMAND), MAX(p.STATE), LEFT(MAX(h.trx_query), 400), \
         GROUP_CONCAT(DISTINCT r.trx_mysql_thread_id ORDER BY r.trx_mysql_thread_id SEPARATOR ' '), \
         CONCAT('row of ', REPLACE(MIN(l.lock_table), '`', '')), \
         SUBSTRING_INDEX(GROUP_CONCAT(LEFT(r.trx_query, 400) ORDER BY r.trx_wait_started SEPARATOR '/*|*/'), '/*|*/', 1), \
         MAX(CASE WHEN TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) >= 2 THEN TIMESTAMPDIFF(SECOND, r.trx_wait_started, NOW()) * 1e3 END) \
         FROM information_schema.INNODB_LOCK_WAITS w JOIN information_schema.INNODB_TRX h ON h.trx_id = w.blocking_trx_id \
         JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id \
         LEFT JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id \
         LEFT JOIN information_schema.PROCESSLIST p ON p.ID = h.trx_mysql_thread_id \
         GROUP BY h.trx_mysql_thread_id ORDER BY COUNT(DISTINCT r.trx_mysql_thread_id) DESC, 1"
    } else {
        "SELECT CAST(h.PROCESSLIST_ID AS SIGNED), MAX(h.PROCESSLIST_USER), MAX(x.TIMER_WAIT) / 1e9, \
         MAX(h.PROCESSLIST_COMMAND), MAX(h.PROCESSLIST_STATE), LEFT(MAX(h.PROCESSLIST_INFO), 400), \
         GROUP_CONCAT(DISTINCT r.PROCESSLIST_ID ORDER BY r.PROCESSLIST_ID SEPARATOR ' '), \
         CONCAT('row of ', MIN(CONCAT(l.OBJECT_SCHEMA, '.', l.OBJECT_NAME))), \
         SUBSTRING_INDEX(GROUP_CONCAT(LEFT(r.PROCESSLIST_INFO, 400) ORDER BY r.PROCESSLIST_TIME DESC SEPARATOR '/*|*/'), '/*|*/', 1), \
         MAX(CASE WHEN r.PROCESSLIST_TIME >= 2 THEN r.PROCESSLIST_TIME * 1e3 END) \
         FROM performance_schema.data_lock_waits w JOIN performance_schema.threads h ON h.THREAD_ID = w.BLOCKING_THREAD_ID \
         JOIN performance_schema.threads r ON r.THREAD_ID = w.REQUESTING_THREAD_ID \
         LEFT JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID \
         LEFT JOIN performance_schema.events_transactions_current x ON x.THREAD_ID = w.BLOCKING_THREAD_ID AND x.STATE = 'ACTIVE' \
         GROUP BY h.PROCESSLIST_ID ORDER BY COUNT(DISTINCT r.PROCESSLIST_ID) DESC, 1"
    }
}

/// Sessions that wait for a lock, each with every session that it waits for: connection, user, what it waits for, milliseconds,
/// statement; connection, user, command, state, milliseconds since its transaction began, statement. Rows, and in MySQL tables (every
/// holder of a lock on the table, as `sys.schema_table_lock_waits` has them).
pub(super) fn blocked(server: &Server) -> &'static [&'static str] {
    if server.mariadb {
        &["SELECT CAST(r.trx_mysql_thread_id AS SIGNED), rp.USER, CONCAT('row of ', l.lock_table), \
          TIMESTAMPDIFF(MICROSECOND, r.trx_wait_started, NOW(6)) / 1e3, r.trx_query, \
          CAST(b.trx_mysql_thread_id AS SIGNED), bp.USER, bp.COMMAND, bp.STATE, \
          TIMESTAMPDIFF(MICROSECOND, b.trx_started, NOW(6)) / 1e3, b.trx_query \
          FROM information_schema.INNODB_LOCK_WAITS w \
          JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.requested_lock_id \
          JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id \
          JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id \
          LEFT JOIN information_schema.PROCESSLIST rp ON rp.ID = r.trx_mysql_thread_id \
          LEFT JOIN information_schema.PROCESSLIST bp ON bp.ID = b.trx_mysql_thread_id ORDER BY 4 DESC LIMIT 1000"]
    } else if server.performance_schema {
        &[
            "SELECT CAST(r.PROCESSLIST_ID AS SIGNED), r.PROCESSLIST_USER, \
             CONCAT('row of ', l.OBJECT_SCHEMA, '.', l.OBJECT_NAME), r.PROCESSLIST_TIME * 1e3, r.PROCESSLIST_INFO, \
             CAST(b.PROCESSLIST_ID AS SIGNED), b.PROCESSLIST_USER, b.PROCESSLIST_COMMAND, b.PROCESSLIST_STATE, \
             x.TIMER_WAIT / 1e9, b.PROCESSLIST_INFO FROM performance_schema.data_lock_waits w \
             JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.REQUESTING_ENGINE_LOCK_ID \
             JOIN performance_schema.threads r ON r.THREAD_ID = w.REQUESTING_THREAD_ID \
             JOIN performance_schema.threads b ON b.THREAD_ID = w.BLOCKING_THREAD_ID \
             LEFT JOIN performance_schema.events_transactions_current x ON x.THREAD_ID = b.THREAD_ID AND x.STATE = 'ACTIVE' \
             ORDER BY 4 DESC LIMIT 1000",
            "SELECT CAST(r.PROCESSLIST_ID AS SIGNED), r.PROCESSLIST_USER, \
             CONCAT('metadata of ', w.OBJECT_SCHEMA, '.', w.OBJECT_NAME), r.PROCESSLIST_TIME * 1e3, r.PROCESSLIST_INFO, \
             CAST(b.PROCESSLIST_ID AS SIGNED), b.PROCESSLIST_USER, b.PROCESSLIST_COMMAND, b.PROCESSLIST_STATE, \
             x.TIMER_WAIT / 1e9, b.PROCESSLIST_INFO FROM performance_schema.metadata_locks w \
             JOIN performance_schema.metadata_locks h ON h.OBJECT_TYPE = 'TABLE' AND h.OBJECT_SCHEMA = w.OBJECT_SCHEMA \
             AND h.OBJECT_NAME = w.OBJECT_NAME AND h.LOCK_STATUS = 'GRANTED' AND h.OWNER_THREAD_ID <> w.OWNER_THREAD_ID \
             JOIN performance_schema.threads r ON r.THREAD_ID = w.OWNER_THREAD_ID \
             JOIN performance_schema.threads b ON b.THREAD_ID = h.OWNER_THREAD_ID \
             LEFT JOIN performance_schema.events_transactions_current x ON x.THREAD_ID = b.THREAD_ID AND x.STATE = 'ACTIVE' \
             WHERE w.OBJECT_TYPE = 'TABLE' AND w.LOCK_STATUS = 'PENDING' ORDER BY 4 DESC LIMIT 1000",
        ]
    } else {
        &[]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_product_does_not_have_is_not_asked_of_it() {
        let server = |mariadb, performance_schema, waits| Server {
            mariadb,
            version: 0,
            started: 0,
            performance_schema,
            waits,
            transactions: true,
            connection: 0,
            user: String::new(),
        };
        let of = |server: &Server| sessions(server, &Observers::default(), true);
        let maria = of(&server(true, true, false));
        assert!(maria.contains("p.TID") && !maria.contains("performance_schema"), "{maria}");
        let deep = of(&server(true, true, true));
        assert!(deep.contains("p.TID") && deep.contains("events_waits_current"), "{deep}");
        let mysql = of(&server(false, true, false));
        assert!(mysql.contains("THREAD_OS_ID") && !mysql.contains("events_waits_current"), "{mysql}");
        assert!(of(&server(false, true, true)).contains("events_waits_current"));
        assert!(mysql.contains("DIGEST_TEXT") && maria.contains("p.INFO"));
        assert!(!sessions(&server(true, false, false), &Observers::default(), false).contains("INFO"));
        let without = of(&server(false, false, false));
        assert!(!without.contains("performance_schema") && !without.contains("TID"), "{without}");
        let blind = Server { transactions: false, ..server(true, false, false) };
        assert!(!of(&blind).contains("INNODB_TRX"));
        assert!(!row_waiters(&server(true, false, false)).contains("data_lock"));
        assert!(blockers(&server(false, true, false)).contains("data_lock_waits"));
    }
}

//! A call sleeps once: on a unix socket the server's reading of the request must not wake the client.
#![allow(clippy::unwrap_used)]

mod support;

use kelvin_database::Rows;
use support::Server;

/// How often this thread has slept.
fn sleeps() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

mod machine {
    use super::*;

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_call_over_a_unix_socket_sleeps_once() {
        const CALLS: u64 = 200;
        let server = Server::start();
        let mut session = server.session();
        // Large enough that the server takes the request in several steps while the client is asleep.
        let statement = session.prepare("select length($1), pg_sleep(0.001)").unwrap();
        let request = "x".repeat(100_000);
        let mut rows = Rows::new();
        session.execute(statement, &[request.as_str().into()], &mut rows).unwrap();
        let before = sleeps();
        for _ in 0..CALLS {
            session.execute(statement, &[request.as_str().into()], &mut rows).unwrap();
        }
        let taken = sleeps() - before;
        // A lock in the kernel may occasionally add one.
        assert!((CALLS * 9 / 10..=CALLS * 11 / 10).contains(&taken), "{taken} sleeps in {CALLS} calls");
    }
}

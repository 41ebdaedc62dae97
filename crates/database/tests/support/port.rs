//! Ports for the servers that tests start.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that is free now, below those that the system gives to outgoing connections and to listeners without a number: such a
/// one could be given away again before the server has bound it.
pub(crate) fn spare() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(16).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 10_000 + (number % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

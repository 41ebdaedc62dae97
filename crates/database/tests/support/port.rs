//! Ports for the servers that tests start.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::TcpListener;

/// A port that is free now, drawn from those below what the system gives to outgoing connections and to listeners without a
/// number: such a one could be given away again before the server has bound it.
pub(crate) fn spare() -> u16 {
    loop {
        let port = 10_000 + (RandomState::new().build_hasher().finish() % 20_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

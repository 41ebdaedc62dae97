//! The port of a named instance, as reported by the server's SQL Server Browser (UDP 1434).

use std::net::{ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use crate::{Error, Result};

const BROWSER: u16 = 1434;
const ONE_INSTANCE: u8 = 4;
const ANSWER: u8 = 5;

/// Queries the port of `instance` in a separate thread: waiting for the answer must not block other fibers.
pub(crate) fn find_port(host: &str, instance: &str, deadline: Instant) -> Result<u16> {
    let (owned_host, owned_instance) = (host.to_owned(), instance.to_owned());
    let asking = std::thread::Builder::new()
        .name("browser".into())
        .spawn(move || ask(&owned_host, &owned_instance, deadline))
        .map_err(|e| Error::connection_lost(e.to_string()))?;
    while !asking.is_finished() {
        kelvin_fiber::sleep(Duration::from_millis(1));
    }
    let found = asking.join().unwrap_or_else(|_| Err(Error::connection_lost("the look-up failed")));
    found.map_err(|e| {
        e.context(&format!("cannot find the port of the instance {instance} on {host}")).with_help(
            "check that SQL Server Browser runs there and that UDP port 1434 is open, or give the port in \
             the URL (host:port)",
        )
    })
}

fn ask(host: &str, instance: &str, deadline: Instant) -> Result<u16> {
    let lost = |e: std::io::Error| crate::stream::from_io(&e, "asking SQL Server Browser");
    let address = (host, BROWSER)
        .to_socket_addrs()
        .map_err(lost)?
        .next()
        .ok_or_else(|| Error::connection_lost("the host name has no address"))?;
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(lost)?;
    socket.connect(address).map_err(lost)?;
    let request = [&[ONE_INSTANCE], instance.as_bytes(), &[0]].concat();
    let mut space = vec![0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(crate::stream::timeout("asking SQL Server Browser"));
        }
        // A datagram may be lost, so the query is repeated every second.
        socket.set_read_timeout(Some(left.min(Duration::from_secs(1)))).map_err(lost)?;
        socket.send(&request).map_err(lost)?;
        match socket.recv(&mut space) {
            Ok(length) => return port_of(&space[..length], instance),
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(e) => return Err(lost(e)),
        }
    }
}

/// The port in an answer: names and values by turns, with semicolons between them.
pub(crate) fn port_of(answer: &[u8], instance: &str) -> Result<u16> {
    let broken = || Error::protocol("SQL Server Browser sent an invalid response");
    let &[ANSWER, low, high, ref text @ ..] = answer else { return Err(broken()) };
    let length = usize::from(u16::from_le_bytes([low, high])).min(text.len());
    let text = crate::stream::printable(&text[..length]);
    let words: Vec<&str> = text.split(';').collect();
    let value = |name: &str| {
        let mut pairs = words.chunks_exact(2);
        pairs.find(|pair| pair[0].eq_ignore_ascii_case(name)).map(|pair| pair[1])
    };
    if value("InstanceName").is_none_or(|found| !found.eq_ignore_ascii_case(instance)) {
        return Err(broken());
    }
    let port = value("tcp").ok_or_else(|| Error::usage("the instance does not listen on TCP"))?;
    port.parse().map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_among_the_words() {
        let text = "ServerName;ILSUNG1;InstanceName;YUKONSTD;IsClustered;No;Version;9.00.1399.06;tcp;57137;;";
        let answer = [&[ANSWER, text.len() as u8, 0], text.as_bytes()].concat();
        assert_eq!(port_of(&answer, "yukonstd").unwrap(), 57_137);
        assert!(port_of(&answer, "other").is_err());
        for length in 0..answer.len() {
            let _ = port_of(&answer[..length], "yukonstd");
        }
        let without = text.replace("tcp", "np");
        let answer = [&[ANSWER, without.len() as u8, 0], without.as_bytes()].concat();
        assert!(port_of(&answer, "YUKONSTD").unwrap_err().message().contains("TCP"));
    }
}

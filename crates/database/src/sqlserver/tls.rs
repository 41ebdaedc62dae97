//! TLS within the protocol: its handshake goes in prelogin packets, the records that follow are sent as they are (TDS
//! 7.4); or around the protocol (TDS 8.0).

use std::io::Read;

use rustls::ClientConnection;

use super::inbox::Inbox;
use super::link::Link;
use super::packet::{self, FIRST_SIZE};
use super::prelogin::Agreed;
use super::{Config, Encrypt};
use crate::stream::tls::{SslMode, connection_of, failure};
use crate::{Error, Result};

const HELP: &str = "name the certificate authority's PEM file with sslrootcert=FILE, or the certificate's own name with \
                    hostNameInCertificate=NAME; trustServerCertificate=true accepts any certificate";
/// The ALPN protocol name, where TLS comes first.
const PROTOCOL: &[u8] = b"tds/8.0";

/// A TLS connection before its handshake. Where only the login is encrypted, nothing is verified, as in other clients.
fn connection(config: &Config, host: &str, agreed: Agreed) -> Result<ClientConnection> {
    let verifies = !config.trust_server_certificate && agreed == Agreed::All;
    let mode = if verifies { SslMode::VerifyFull } else { SslMode::Require };
    let root = config.root_certificate.as_deref().filter(|_| verifies);
    let name = config.host_name_in_certificate.as_deref().unwrap_or(host);
    if config.encrypt == Encrypt::Strict {
        return connection_of(name, mode, root, rustls::ALL_VERSIONS, Some(PROTOCOL));
    }
    // TLS 1.3 sends messages after its handshake, which would come outside of the prelogin packets; no server offers it
    // here.
    connection_of(name, mode, root, &[&rustls::version::TLS12], None)
}

/// The same failure with the remedy for this engine.
fn in_our_words(error: Error) -> Error {
    if error.message().contains("TLS failed") { error.with_help(HELP) } else { error }
}

/// Encrypts the connection before its first message.
pub(crate) fn start_first(link: &mut Link, config: &Config, host: &str) -> Result<()> {
    link.stream.start_tls(connection(config, host, Agreed::All)?).map_err(in_our_words)
}

/// Encrypts the connection after the prelogin.
pub(crate) fn start_within(
    inbox: &mut Inbox<Link>,
    config: &Config,
    host: &str,
    agreed: Agreed,
) -> Result<()> {
    let mut tls = connection(config, host, agreed)?;
    let mut out = Vec::new();
    while tls.is_handshaking() || tls.wants_write() {
        if tls.wants_write() {
            packet::open(&mut out, packet::kind::PRELOGIN);
            while tls.wants_write() {
                tls.write_tls(&mut out).map_err(|e| Error::protocol(format!("TLS failed: {e}")))?;
            }
            packet::close(&mut out, FIRST_SIZE);
            inbox.source.stream.send(&out, &mut inbox.buffer)?;
            continue;
        }
        inbox.expect(packet::kind::PRELOGIN);
        while inbox.more()? {
            let mut records = inbox.rest_of_packet()?;
            while !records.is_empty() {
                // From memory: it takes as much as it has space for.
                tls.read_tls(records.by_ref()).map_err(|e| Error::protocol(format!("TLS failed: {e}")))?;
                tls.process_new_packets().map_err(|e| in_our_words(failure(&e)))?;
            }
        }
    }
    if !inbox.buffer.unread().is_empty() {
        return Err(Error::protocol("the server sent more than the TLS handshake"));
    }
    inbox.source.stream.set_tls(Some(tls));
    Ok(())
}

//! TLS with libpq's degrees of trust, and the channel binding that ties a SCRAM login to it.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::{Config, Host, SslMode};
use crate::{Error, Result};

/// Refuses a verification that would verify nothing of use: with public roots and without the name, anyone's
/// certificate passes.
pub(crate) fn check_trust(config: &Config) -> Result<()> {
    if config.ssl_mode == SslMode::VerifyCa && config.ssl_root_certificate.is_none() {
        return Err(Error::usage("sslmode=verify-ca needs to know which certificate authority to trust")
            .with_help("name its PEM file with sslrootcert=FILE, or use sslmode=verify-full"));
    }
    Ok(())
}

/// A TLS connection for `config`, before its handshake.
pub(crate) fn connection(config: &Config) -> Result<ClientConnection> {
    check_trust(config)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust = match (config.ssl_mode, &config.ssl_root_certificate) {
        // As in libpq a root certificate turns verification on in the modes below verify-ca too.
        (SslMode::VerifyFull, root) => Trust { roots: Some(roots(root.as_deref())?), name: true },
        (SslMode::VerifyCa, root) => Trust { roots: Some(roots(root.as_deref())?), name: false },
        (_, Some(root)) => Trust { roots: Some(roots(Some(root))?), name: false },
        (_, None) => Trust { roots: None, name: false },
    };
    let verifier = Verifier { trust, provider: Arc::clone(&provider) };
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| failure(&e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    client.resumption = rustls::client::Resumption::disabled();
    let Host::Tcp(host) = &config.host else { return Err(Error::protocol("TLS was begun on a unix socket")) };
    let name = match ServerName::try_from(host.clone()) {
        Ok(name) => name,
        Err(_) if config.ssl_mode == SslMode::VerifyFull => {
            return Err(Error::usage(format!("{host:?} is not a name that a certificate can hold")));
        }
        // A name such as "my_server" is no DNS name; nothing compares it here.
        Err(_) => {
            client.enable_sni = false;
            ServerName::try_from("localhost").map_err(|_| Error::protocol("no server name for TLS"))?
        }
    };
    ClientConnection::new(Arc::new(client), name).map_err(|e| failure(&e))
}

fn roots(file: Option<&Path>) -> Result<RootCertStoreAndDer> {
    let certificates: Vec<CertificateDer<'static>> = if let Some(path) = file {
        let unusable = |e: &dyn std::fmt::Display| {
            Error::usage(format!("the root certificate {} cannot be used: {e}", path.display()))
        };
        CertificateDer::pem_file_iter(path)
            .map_err(|e| unusable(&e))?
            .collect::<std::result::Result<_, _>>()
            .map_err(|e| unusable(&e))?
    } else {
        rustls_native_certs::load_native_certs().certs
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(certificates.iter().cloned());
    if added == 0 {
        let place = file.map_or_else(|| "this system".to_owned(), |path| path.display().to_string());
        return Err(Error::usage(format!("no root certificate was found in {place}"))
            .with_help("name a PEM file with sslrootcert="));
    }
    Ok(RootCertStoreAndDer { store, certificates })
}

#[derive(Debug)]
struct RootCertStoreAndDer {
    store: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
}

/// What has to be true of the server's certificate.
#[derive(Debug)]
struct Trust {
    roots: Option<RootCertStoreAndDer>,
    name: bool,
}

#[derive(Debug)]
struct Verifier {
    trust: Trust,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        let Some(roots) = &self.trust.roots else { return Ok(ServerCertVerified::assertion()) };
        let parsed = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        let chain =
            verify_server_cert_signed_by_trust_anchor(&parsed, &roots.store, intermediates, now, algorithms);
        if let Err(error) = chain {
            // The PostgreSQL manual's self-signed certificate is its own root, with the CA flag set, which
            // OpenSSL accepts. Its dates were checked before that flag.
            let own_root = roots.certificates.iter().any(|root| root == certificate);
            if !(own_root && is_ca_used_as_server(&error)) {
                return Err(error);
            }
        }
        if self.trust.name {
            verify_server_name(&parsed, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// webpki's own error type is not part of rustls' interface; its name is.
fn is_ca_used_as_server(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(CertificateError::Other(other))
        if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

/// A failure of TLS, with what to do about the usual ones.
pub(crate) fn failure(error: &rustls::Error) -> Error {
    let result = Error::protocol(format!("TLS failed: {error}"));
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => result.with_help(
            "the certificate does not name this host as a subject alternative name; connect by a name it holds, \
             or use sslmode=verify-ca",
        ),
        rustls::Error::InvalidCertificate(_) => {
            result.with_help("name the certificate authority's PEM file with sslrootcert=")
        }
        _ => result,
    }
}

/// The hash of the server's certificate for `tls-server-end-point` (RFC 5929): by the hash of the certificate's
/// signature, or SHA-256 where that is MD5 or SHA-1. `None` for signatures without a hash of their own.
pub(crate) fn end_point(connection: &ClientConnection) -> Option<Vec<u8>> {
    let certificate = connection.peer_certificates()?.first()?;
    hash_by_signature(certificate)
}

fn hash_by_signature(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
    let (_, content, _) = element(certificate)?;
    let (_, _to_be_signed, rest) = element(content)?;
    let (_, algorithm, _) = element(rest)?;
    let (tag, oid, parameters) = element(algorithm)?;
    if tag != 6 {
        return None;
    }
    let digest: fn(&[u8]) -> Vec<u8> = match oid.split_last()? {
        (4 | 5 | 11, RSA) | (2, ECDSA_SHA2) => |data| Sha256::digest(data).to_vec(),
        (12, RSA) | (3, ECDSA_SHA2) => |data| Sha384::digest(data).to_vec(),
        (13, RSA) | (4, ECDSA_SHA2) => |data| Sha512::digest(data).to_vec(),
        // RSA-PSS names its hash in the parameters: [0] { SEQUENCE { OID 2.16.840.1.101.3.4.2.n } }.
        (10, RSA) => {
            let (_, sequence, _) = element(parameters)?;
            let (0xa0, hash, _) = element(sequence)? else { return None };
            let (_, hash, _) = element(hash)?;
            let (_, hash, _) = element(hash)?;
            match hash {
                [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 1] => |data| Sha256::digest(data).to_vec(),
                [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 2] => |data| Sha384::digest(data).to_vec(),
                [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 3] => |data| Sha512::digest(data).to_vec(),
                _ => return None,
            }
        }
        _ if oid == ECDSA_SHA1 => |data| Sha256::digest(data).to_vec(),
        _ => return None,
    };
    Some(digest(certificate))
}

/// The DER element at the front: tag, content, and what follows.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let (bytes, after) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(b, _)| b.len() <= 4)?;
        length = bytes.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
        rest = after;
    }
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn der_that_is_cut_gives_nothing() {
        for bytes in
            [&[][..], &[0x30], &[0x30, 5, 1], &[0x30, 0x84, 255, 255, 255, 255], &[0x30, 0xff], &[0x30, 0]]
        {
            assert!(hash_by_signature(bytes).is_none());
        }
    }
}

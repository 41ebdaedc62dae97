//! TLS with libpq's degrees of trust, for every client.

use std::path::{Path, PathBuf};
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

use crate::{Error, Result};

/// The TLS mode of a connection, with libpq's meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SslMode {
    /// Never.
    Disable,
    /// When the server offers it; plain otherwise. Verifies nothing unless a root certificate is given.
    #[default]
    Prefer,
    /// Always. Verifies the chain when a root certificate is given.
    Require,
    /// Always; the chain must lead to a trusted root.
    VerifyCa,
    /// Always; the chain must lead to a trusted root and the certificate must name the host.
    VerifyFull,
}

impl SslMode {
    /// The mode of this name, as `sslmode=` writes it.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return None,
        })
    }

    /// The name as `sslmode=` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// The TLS mode and the trusted roots, from the user's `sslmode` and `sslrootcert`.
pub(crate) fn trust(mode: Option<String>, root: Option<String>) -> Result<(SslMode, Option<PathBuf>)> {
    let system = root.as_deref() == Some("system");
    let mode = match mode {
        // As libpq: who names the system's roots means to verify, and any name would do without the name.
        None if system => SslMode::VerifyFull,
        None => SslMode::default(),
        Some(name) => SslMode::from_name(&name).ok_or_else(|| {
            Error::usage(format!("unknown sslmode {name:?}"))
                .with_help("known values are disable, prefer, require, verify-ca and verify-full")
        })?,
    };
    if system && mode != SslMode::VerifyFull {
        return Err(Error::usage(format!(
            "sslmode={} is too weak for sslrootcert=system: anyone can get a certificate from those \
            authorities",
            mode.name()
        ))
        .with_help(
            "use sslmode=verify-full, or name the certificate authority's PEM file with sslrootcert=",
        ));
    }
    Ok((mode, root.filter(|_| !system).map(PathBuf::from)))
}

/// Refuses a verification that would be useless: with public roots and without the name, any certificate passes.
pub(crate) fn check_trust(mode: SslMode, root: Option<&Path>) -> Result<()> {
    if mode == SslMode::VerifyCa && root.is_none() {
        return Err(Error::usage("sslmode=verify-ca needs a certificate authority to trust")
            .with_help("name its PEM file with sslrootcert=FILE, or use sslmode=verify-full"));
    }
    Ok(())
}

/// A TLS connection to `host`, before its handshake.
pub(crate) fn connection(host: &str, mode: SslMode, root: Option<&Path>) -> Result<ClientConnection> {
    connection_of(host, mode, root, rustls::ALL_VERSIONS, None)
}

/// The same by these versions of TLS only, and for this protocol.
pub(crate) fn connection_of(
    host: &str,
    mode: SslMode,
    root: Option<&Path>,
    versions: &[&'static rustls::SupportedProtocolVersion],
    protocol: Option<&[u8]>,
) -> Result<ClientConnection> {
    check_trust(mode, root)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust = match (mode, root) {
        // As in libpq a root certificate turns verification on in the modes below verify-ca too.
        (SslMode::VerifyFull, root) => Trust { roots: Some(roots(root)?), name: true },
        (SslMode::VerifyCa, root) => Trust { roots: Some(roots(root)?), name: false },
        (_, Some(root)) => Trust { roots: Some(roots(Some(root))?), name: false },
        (_, None) => Trust { roots: None, name: false },
    };
    let verifier = Verifier { trust, provider: Arc::clone(&provider) };
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|e| failure(&e))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    client.resumption = rustls::client::Resumption::disabled();
    client.alpn_protocols.extend(protocol.map(<[u8]>::to_vec));
    let name = match ServerName::try_from(host.to_owned()) {
        Ok(name) => name,
        Err(_) if mode == SslMode::VerifyFull => {
            return Err(Error::usage(format!("{host:?} is not a valid host name for a certificate")));
        }
        // A name such as "my_server" is not a DNS name; it is not compared here.
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

/// Requirements for the server's certificate.
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

/// A TLS failure, with a remedy for the common ones.
pub(crate) fn failure(error: &rustls::Error) -> Error {
    let result = Error::protocol(format!("TLS failed: {error}"));
    match error {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => result.with_help(
            "the certificate does not list this host as a subject alternative name; connect by a listed \
             name, or use sslmode=verify-ca",
        ),
        rustls::Error::InvalidCertificate(_) => {
            result.with_help("name the certificate authority's PEM file with sslrootcert=")
        }
        _ => result,
    }
}

/// The DER element at the front: tag, content, and what follows.
pub(crate) fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
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

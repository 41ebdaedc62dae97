//! The hash that ties a SCRAM login to the TLS connection that carries it.

use rustls::ClientConnection;
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::stream::tls::element;

/// The hash of the server's certificate for `tls-server-end-point` (RFC 5929): by the hash of the certificate's
/// signature, or SHA-256 where that is MD5 or SHA-1. `None` for signatures without a separate hash.
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

//! A password encrypted for the server's public key: RSA with OAEP padding (RFC 8017, 7.1.1), SHA-1 and MGF1 as
//! caching_sha2_password has it.

use num_bigint::BigUint;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use sha1::{Digest, Sha1};

use crate::stream::tls::element;
use crate::{Error, Result};

const HASH: usize = 20;

/// The server's public key.
pub(crate) struct PublicKey {
    modulus: BigUint,
    exponent: BigUint,
    /// Bytes of the modulus.
    size: usize,
}

impl PublicKey {
    /// From a PEM text with a SubjectPublicKeyInfo ("PUBLIC KEY").
    pub(crate) fn parse(pem: &[u8]) -> Result<Self> {
        let info = SubjectPublicKeyInfoDer::from_pem_slice(pem).map_err(|_| not_a_key())?;
        let (modulus, exponent) = components(&info).ok_or_else(not_a_key)?;
        let modulus: &[u8] = match modulus {
            [0, rest @ ..] => rest,
            all => all,
        };
        // 1024 to 16384 bits; an exponent of any more bits would only take time.
        if !(128..=2048).contains(&modulus.len()) || !(1..=8).contains(&exponent.len()) {
            return Err(not_a_key());
        }
        Ok(Self {
            size: modulus.len(),
            modulus: BigUint::from_bytes_be(modulus),
            exponent: BigUint::from_bytes_be(exponent),
        })
    }

    /// Encrypts a message with random bytes of the caller's; `None` when it is too long for the key.
    pub(crate) fn encrypt(&self, message: &[u8], seed: [u8; HASH]) -> Option<Vec<u8>> {
        let room = self.size.checked_sub(2 * HASH + 2)?;
        let zeros = room.checked_sub(message.len())?;
        let mut block = Sha1::digest(b"").to_vec();
        block.resize(HASH + zeros, 0);
        block.push(1);
        block.extend_from_slice(message);
        mask(&mut block, &seed);
        let mut masked_seed = seed;
        mask(&mut masked_seed, &block);
        let padded = [&[0], &masked_seed[..], &block].concat();
        let encrypted = BigUint::from_bytes_be(&padded).modpow(&self.exponent, &self.modulus).to_bytes_be();
        let mut out = vec![0; self.size - encrypted.len()];
        out.extend_from_slice(&encrypted);
        Some(out)
    }
}

/// Modulus and exponent: SEQUENCE { algorithm, BIT STRING { SEQUENCE { INTEGER, INTEGER } } }.
fn components(info: &[u8]) -> Option<(&[u8], &[u8])> {
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
    let (0x30, content, _) = element(info)? else { return None };
    let (0x30, algorithm, rest) = element(content)? else { return None };
    let (6, RSA, _) = element(algorithm)? else { return None };
    let (3, [0, key @ ..], _) = element(rest)? else { return None };
    let (0x30, numbers, _) = element(key)? else { return None };
    let (2, modulus, rest) = element(numbers)? else { return None };
    let (2, exponent, _) = element(rest)? else { return None };
    Some((modulus, exponent))
}

/// XORs what MGF1 makes of the seed onto the data.
fn mask(data: &mut [u8], seed: &[u8]) {
    for (counter, part) in data.chunks_mut(HASH).enumerate() {
        let hash = Sha1::new().chain_update(seed).chain_update((counter as u32).to_be_bytes()).finalize();
        for (byte, mask) in part.iter_mut().zip(hash) {
            *byte ^= mask;
        }
    }
}

#[cold]
fn not_a_key() -> Error {
    Error::protocol("not an RSA public key in PEM format")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// OpenSSL decrypts it: as the server does.
    #[test]
    fn openssl_reads_what_is_encrypted() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let openssl = |arguments: &[&str]| {
            let output =
                Command::new("openssl").args(arguments).current_dir(directory.path()).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        openssl(&["genrsa", "-out", "private.pem", "2048"]);
        openssl(&["rsa", "-in", "private.pem", "-pubout", "-out", "public.pem"]);
        let key = PublicKey::parse(&std::fs::read(file("public.pem")).unwrap()).unwrap();
        for length in [0, 1, 32, 214] {
            let message: Vec<u8> = (0..length).collect();
            let encrypted = key.encrypt(&message, [7; HASH]).unwrap();
            assert_eq!(encrypted.len(), 256);
            let mut child = Command::new("openssl")
                .args(["pkeyutl", "-decrypt", "-inkey", "private.pem", "-pkeyopt", "rsa_padding_mode:oaep"])
                .current_dir(directory.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(&encrypted).unwrap();
            assert_eq!(child.wait_with_output().unwrap().stdout, message, "{length}");
        }
        assert!(key.encrypt(&[0; 215], [7; HASH]).is_none());
        for bad in [&b""[..], b"x", b"-----BEGIN PUBLIC KEY-----\nMDA=\n-----END PUBLIC KEY-----\n"] {
            assert!(PublicKey::parse(bad).is_err());
        }
    }
}

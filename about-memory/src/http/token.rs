//! The token, a secret that each page sends.

use core::fmt;
use std::io;

/// 32 random bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(String);

impl fmt::Debug for AccessToken {
    /// The token must never appear in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl AccessToken {
    /// Takes random bytes of the system.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no random bytes.
    pub fn new() -> io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token as 64 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the bytes are the token. The comparison takes the same time wherever the bytes differ.
    pub fn is(&self, other: &[u8]) -> bool {
        let own = self.0.as_bytes();
        let differences = own.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
        own.len() == other.len() && std::hint::black_box(differences) == 0
    }
}

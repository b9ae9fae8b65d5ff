//! The one-time code, which a page exchanges for the token. The file that opens the browser contains the code, so
//! neither this file nor the browser's history contains the token.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::http::AccessToken;

/// The code that is valid now. Each use replaces it.
#[derive(Debug)]
pub(super) struct OneTimeCode(Mutex<AccessToken>);

impl OneTimeCode {
    pub(super) fn new() -> io::Result<Self> {
        AccessToken::new().map(|code| Self(Mutex::new(code)))
    }

    fn valid(&self) -> MutexGuard<'_, AccessToken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the code that is valid now.
    pub(super) fn text(&self) -> String {
        self.valid().as_str().to_owned()
    }

    /// Whether the bytes are the valid code. If so, another code becomes valid.
    pub(super) fn redeem(&self, code: &[u8]) -> bool {
        let mut valid = self.valid();
        if !valid.is(code) {
            return false;
        }
        // Without random bytes there is no next code, so the page must not get the token.
        AccessToken::new().map(|next| *valid = next).is_ok()
    }
}

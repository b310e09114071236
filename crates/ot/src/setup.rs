//! What both parties agree on before an extension is set up.

use crate::base::BaseOt;
use crate::variant::Variant;

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;
/// Random bytes that a party contributes to the constants of base transfers.
pub type Nonce = [u8; NONCE_BYTES];

/// The terms of a set-up: the same for both parties.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// How transfers are extended.
    pub variant: Variant,
    /// How the first 128 are made.
    pub base: BaseOt,
    /// Fresh randomness of the extension's receiver, which its sender learned before the set-up.
    /// The sender's own travels with its keys. The constants of base transfers are drawn from both,
    /// so neither party chooses them, and none can be prepared ahead of a session.
    pub nonce: Nonce,
}

impl Setup {
    /// Makes terms without a nonce of the receiver: for parties that follow the protocol.
    pub const fn new(variant: Variant, base: BaseOt) -> Self {
        Self {
            variant,
            base,
            nonce: [0; NONCE_BYTES],
        }
    }

    /// Returns the same terms with a nonce of the receiver.
    #[must_use]
    pub const fn with_nonce(self, nonce: Nonce) -> Self {
        Self { nonce, ..self }
    }
}

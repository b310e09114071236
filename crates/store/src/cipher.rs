//! The two ciphers that seal chunks: AES-256-GCM of aws-lc, which is in a native program anyway and
//! the fastest there, and ChaCha20-Poly1305 in plain Rust where neither C nor instructions for AES
//! are at hand, as in a browser. A store uses one of them.

#[cfg(feature = "files")]
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
#[cfg(feature = "slots")]
use chacha20poly1305::{
    ChaCha20Poly1305, Tag,
    aead::{AeadInOut, KeyInit},
};

/// What authentication adds to a chunk.
pub const TAG_BYTES: usize = 16;

/// A cipher with its key. Wiped when dropped, by its library.
pub(crate) enum Cipher {
    #[cfg(feature = "files")]
    Aes(LessSafeKey),
    #[cfg(feature = "slots")]
    ChaCha(Box<ChaCha20Poly1305>),
}

impl Cipher {
    #[cfg(feature = "files")]
    pub(crate) fn aes(key: &[u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, key).expect("the key has 32 bytes");
        Self::Aes(LessSafeKey::new(key))
    }

    #[cfg(feature = "slots")]
    pub(crate) fn chacha(key: &[u8; 32]) -> Self {
        Self::ChaCha(Box::new(ChaCha20Poly1305::new(key.into())))
    }

    /// Encrypts a chunk in place and appends its tag; false if that fails. A nonce must not come
    /// twice.
    pub(crate) fn seal(&self, nonce: [u8; 12], chunk: &mut Vec<u8>) -> bool {
        match self {
            #[cfg(feature = "files")]
            Self::Aes(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let sealed = key.seal_in_place_append_tag(nonce, Aad::empty(), chunk);
                sealed.is_ok()
            }
            #[cfg(feature = "slots")]
            Self::ChaCha(key) => {
                let text = chunk.as_mut_slice().into();
                let tag = key.encrypt_inout_detached(&nonce.into(), &[], text);
                tag.map(|tag| chunk.extend_from_slice(&tag)).is_ok()
            }
        }
    }

    /// Decrypts a chunk in place and removes its tag; false if it is not what was sealed.
    pub(crate) fn open(&self, nonce: [u8; 12], chunk: &mut Vec<u8>) -> bool {
        let Some(length) = chunk.len().checked_sub(TAG_BYTES) else {
            return false;
        };
        let opened = match self {
            #[cfg(feature = "files")]
            Self::Aes(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place(nonce, Aad::empty(), chunk).is_ok()
            }
            #[cfg(feature = "slots")]
            Self::ChaCha(key) => {
                let split = chunk.split_last_chunk_mut::<TAG_BYTES>();
                split.is_some_and(|(text, tag)| {
                    let tag = Tag::from(*tag);
                    let text = text.into();
                    key.decrypt_inout_detached(&nonce.into(), &[], text, &tag)
                        .is_ok()
                })
            }
        };
        chunk.truncate(length);
        opened
    }
}

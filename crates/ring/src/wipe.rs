//! Secret bytes that are wiped when they are dropped, sixteen at a time.
//!
//! A bundle is hundreds of megabytes, read through several buffers. `zeroize` writes the elements
//! of a vector one after the other, and for bytes that takes as long as all other work on them. So
//! vectors of bytes have a type of their own; for wider elements `Zeroizing` is as good.

use std::ops::{Deref, DerefMut};
use zeroize::Zeroize;

/// A vector of bytes, wiped when dropped, spare capacity included.
#[derive(Default)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Makes a vector of `length` zeros.
    pub fn zeros(length: usize) -> Self {
        Self(vec![0; length])
    }

    /// Makes an empty vector with room for `capacity` bytes. One that grew beyond it would leave a
    /// copy behind.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }
}

impl From<Vec<u8>> for SecretBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Deref for SecretBytes {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for SecretBytes {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

impl Zeroize for SecretBytes {
    fn zeroize(&mut self) {
        wipe_all(&mut self.0);
        self.0.clear();
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        wipe_all(&mut self.0);
    }
}

/// Wipes a vector up to its capacity, which is its length then.
fn wipe_all(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.capacity(), 0);
    wipe(bytes);
}

/// Sets all bytes to zero, also where they are not read again.
pub fn wipe(bytes: &mut [u8]) {
    let (front, blocks, back) = bytemuck::pod_align_to_mut::<u8, u128>(bytes);
    front.zeroize();
    blocks.zeroize();
    back.zeroize();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_wiped_wherever_they_begin_and_end() {
        for (from, to) in [(0, 0), (0, 64), (1, 2), (3, 61), (15, 33), (16, 48)] {
            let mut bytes = [7; 64];
            wipe(&mut bytes[from..to]);
            for (at, byte) in bytes.into_iter().enumerate() {
                assert_eq!(byte == 0, (from..to).contains(&at), "{from} {to} {at}");
            }
        }
    }

    #[test]
    fn spare_room_is_wiped_too() {
        let mut bytes = vec![7; 100];
        let room = bytes.as_ptr();
        bytes.truncate(40);
        wipe_all(&mut bytes);
        assert_eq!(
            bytes.as_ptr(),
            room,
            "another vector would leave the first one behind"
        );
        assert!(bytes.len() >= 100 && bytes.iter().all(|byte| *byte == 0));
    }
}

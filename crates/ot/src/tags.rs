//! Proof that the trees of an extension are whole: a tag of every leaf.
//!
//! The messages from which the sender grows its trees ([`crate::leaves`]) come from the receiver,
//! and so do the base transfers below them. A receiver that deviates can spoil what the sender
//! gets for *some* values of its secret bits only, and see from what follows which of them it has.
//! So it commits to all leaves of all trees, including those that the sender lacks:
//!
//! ```text
//! receiver   t_x = hash(session, tree, s_x), 32 bytes each, for all leaves
//!            sends the sum of t_x of each tree, and a digest of all t_x of all trees
//! sender     has t_x for all leaves but one of each tree; the sum gives the last one
//!            compares the digest
//! ```
//!
//! *What it gives.* The receiver's messages determine, for each value `α` of the sender's block of
//! Δ, the leaves that a sender with it would have, and so its tags. The digest is one string, and
//! the hash does not collide, so all `α` that pass have the same tags and the same leaves where
//! they have any: there is one tree, and the sender's leaves are those of it. If some `α` do not
//! pass, the receiver has guessed that Δ is not among them: with probability `2^-g` for `g` bits it
//! is right, as any guess would be, and otherwise the session ends.
//!
//! In the proof both keys of a base transfer have a secret: `C_i` is programmed to `pk₀ + pk₁`,
//! which module-LWE and the random oracle allow, as the server's nonce is fresh. So both seeds are
//! defined no matter what the receiver encapsulates, and passing is a function of Δ that is fixed
//! before Δ matters. With `A_b` the set of values of block `b` that pass, a pass tells the receiver
//! that Δ is in the product of these sets and nothing else, and has the probability of that: the
//! product of `|A_b|` over 2¹²⁷. The message of the trees goes into the name of the session, from
//! which the challenges of [`crate::check`] are drawn, so leaves cannot be chosen after these are
//! known. (Otherwise the two children of a node that is unknown for every guessed value would be
//! free, and a birthday search of `2⁶⁴` would make other choices pass.)
//!
//! *What it costs the receiver's privacy*: the sender learns a hash of the leaf that it lacks,
//! 128 random bits that the hash, a random oracle, does not give back. The streams that mask
//! choices are made of the leaf by AES, which in the same model tells nothing about the hash.

use crate::base::Session;
use crate::error::{OtError, Result};
use crate::variant::Variant;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of a tag: twice those of a leaf, so that two leaves with one tag are hard to find.
const TAG_BYTES: usize = 32;
/// Bytes of the digest.
const DIGEST_BYTES: usize = 32;

type Tag = [u8; TAG_BYTES];

/// Returns the number of bytes of the proof: a sum for each tree and a digest; none for a variant
/// that is not checked.
pub(crate) const fn payload(variant: Variant) -> usize {
    match variant.is_checked() {
        true => TAG_BYTES * variant.trees() + DIGEST_BYTES,
        false => 0,
    }
}

fn tag(session: &Session, tree: usize, leaf: u128) -> Tag {
    let mut hasher = blake3::Hasher::new_derive_key("primer ot leaf tag v1");
    hasher.update(session);
    hasher.update(&(tree as u64).to_le_bytes());
    hasher.update(&*Zeroizing::new(leaf.to_le_bytes()));
    let tag = *hasher.finalize().as_bytes();
    hasher.zeroize();
    tag
}

fn add(sum: &mut Tag, tag: &Tag) {
    sum.iter_mut().zip(tag).for_each(|(a, b)| *a ^= b);
}

fn digest() -> blake3::Hasher {
    blake3::Hasher::new_derive_key("primer ot leaf digest v1")
}

/// Appends the receiver's proof for all leaves, tree by tree.
pub(crate) fn prove(variant: Variant, session: &Session, leaves: &[u128], message: &mut Vec<u8>) {
    let mut digest = digest();
    for (tree, leaves) in leaves.chunks_exact(variant.leaves()).enumerate() {
        let mut sum = Tag::default();
        for &leaf in leaves {
            let tag = tag(session, tree, leaf);
            digest.update(&tag);
            add(&mut sum, &tag);
        }
        message.extend_from_slice(&sum);
    }
    message.extend_from_slice(digest.finalize().as_bytes());
}

/// Checks the proof, given the sender's leaves: in each tree that of `x` at place `x XOR Δ_b`, and
/// anything at place 0.
pub(crate) fn verify(
    variant: Variant,
    session: &Session,
    leaves: &[u128],
    delta: u128,
    proof: &[u8],
) -> Result<()> {
    let (sums, expected) = proof.split_at(TAG_BYTES * variant.trees());
    let (sums, _) = sums.as_chunks::<TAG_BYTES>();
    let mut digest = digest();
    let trees = leaves.chunks_exact(variant.leaves()).zip(sums).enumerate();
    for (tree, (leaves, sum)) in trees {
        let mut tags: Vec<Tag> = leaves
            .iter()
            .map(|&leaf| tag(session, tree, leaf))
            .collect();
        let others = tags[1..].iter().fold(*sum, |mut left, tag| {
            add(&mut left, tag);
            left
        });
        tags[0] = others;
        unpermute(&mut tags, delta >> (variant.bits() * tree));
        for tag in &tags {
            digest.update(tag);
        }
    }
    // Compared in constant time.
    let expected: [u8; DIGEST_BYTES] = expected.try_into().expect("the length of a digest");
    match digest.finalize() == expected {
        true => Ok(()),
        false => Err(OtError::Inconsistent),
    }
}

/// Moves what is at place `x XOR secret` to place `x`, without an address that depends on the
/// secret: a swap for each bit of it, made or not by a mask.
fn unpermute(tags: &mut [Tag], secret: u128) {
    for bit in 0..tags.len().ilog2() {
        let mask = ((secret >> bit & 1) as u8).wrapping_neg();
        for pair in tags.chunks_exact_mut(2 << bit) {
            let (low, high) = pair.split_at_mut(1 << bit);
            let bytes = low.as_flattened_mut().iter_mut();
            for (a, b) in bytes.zip(high.as_flattened_mut()) {
                let change = (*a ^ *b) & mask;
                *a ^= change;
                *b ^= change;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_ring::prg::Prg;

    const SESSION: Session = [4; 32];

    #[test]
    fn places_are_undone() {
        for secret in 0..16 {
            let mut tags: Vec<Tag> = (0..16).map(|place| [place ^ secret; 32]).collect();
            unpermute(&mut tags, 0xabc0 | u128::from(secret));
            assert!((0..16).all(|x| tags[usize::from(x)] == [x; 32]), "{secret}");
        }
    }

    /// Returns what a sender with this Δ has of a receiver's leaves.
    fn known(variant: Variant, all: &[u128], delta: u128) -> Vec<u128> {
        let n = variant.leaves();
        let mut known = vec![0; all.len()];
        for (i, leaf) in all.iter().enumerate() {
            let secret = (delta >> (variant.bits() * (i / n))) as usize % n;
            let place = (i % n) ^ secret;
            if place != 0 {
                known[i / n * n + place] = *leaf;
            }
        }
        known
    }

    /// Checks that a leaf that is wrong for the sender is found unless the sender lacks it.
    #[test]
    fn a_spoiled_leaf_passes_only_if_it_is_the_missing_one() {
        let mut rng = Prg::new(&[3; 16]);
        for variant in [Variant::IKNP, Variant::SOFT_2, Variant::SOFT_4] {
            let variant = variant.checked();
            let n = variant.leaves();
            let all: Vec<u128> = (0..n * variant.trees())
                .map(|_| u128::from_le_bytes(rng.seed()))
                .collect();
            let mut proof = Vec::new();
            prove(variant, &SESSION, &all, &mut proof);
            assert_eq!(proof.len(), payload(variant));
            let tree = variant.trees() - 2;
            for block in 0..n {
                let at = variant.bits() * tree;
                let delta = !((n as u128 - 1) << at) | (block as u128) << at;
                let verdict = |all: &[u128], proof: &[u8]| {
                    let known = known(variant, all, delta);
                    verify(variant, &SESSION, &known, delta, proof).is_ok()
                };
                assert!(verdict(&all, &proof));
                for spoiled in 0..n {
                    let mut leaves = all.clone();
                    leaves[tree * n + spoiled] ^= 1;
                    assert_eq!(verdict(&leaves, &proof), spoiled == block);
                }
                let mut other = proof.clone();
                other[tree * TAG_BYTES] ^= 1;
                assert!(!verdict(&all, &other));
                other = proof.clone();
                *other.last_mut().unwrap() ^= 1;
                assert!(!verdict(&all, &other));
            }
        }
    }
}

//! The seeds of an extension: from pairs of base transfers to small trees with one leaf missing.
//!
//! [`crate::cot`] treats `k` bits of Δ together. For the bits `Δ_b` of block `b` the receiver needs
//! seeds `s_x` for all `x` of `k` bits, and the sender all but `s_{Δ_b}`. They are the leaves of a
//! binary tree of depth `k` (Goldreich, Goldwasser, Micali), made with the `k` base transfers of
//! these bits, in which the sender chose with `Δ_b` among the receiver's pairs `(m_0, m_1)`:
//!
//! ```text
//! top level      the node of bit v is m_{1-v}: the sender has the one off its path
//! level below    F_v = m_{1-v} ⊕ (sum of the nodes whose last bit is v)    sent for v = 0 and 1
//!                the sender opens the one for v = 1 - (its bit), knows all its nodes but one
//! ```
//!
//! A base seed serves as a node or as a one-time pad, once; a node is expanded into its children,
//! once. The sender sees one child of a node that it lacks, a block that AES makes of that node: if
//! the counter of this block were the same everywhere, one table of guessed nodes would serve
//! against all sessions at once. So each level of each tree of a session has a counter of its own,
//! its *salt* (`salts`). For `k = 1` there is no level below. In a checked variant the receiver
//! also proves that its trees are whole ([`crate::tags`]), in the same message. The sender numbers
//! nodes by `x XOR Δ_b`, so that what it lacks is at place 0 and only masks depend on Δ; that is
//! also the order in which it needs the leaves.

use crate::base::{Chosen, Pairs, Session};
use crate::error::Result;
use crate::tags;
use crate::variant::Variant;
use primer_ring::prg::{Prg, SEED_BYTES, SecretSeed};
use primer_wire::Channel;
use primer_wire::kind::transfer::TREES;
use zeroize::{Zeroize, Zeroizing};

/// The leaves of all trees, tree by tree.
pub(crate) type Leaves = Zeroizing<Vec<u128>>;

/// Returns the number of bytes of the sums: two for each level below the top one.
fn sums_bytes(variant: Variant) -> usize {
    32 * variant.trees() * (variant.bits() - 1)
}

/// Returns the payload bytes of the message: sums, and the proof of a checked variant.
pub(crate) fn payload(variant: Variant) -> usize {
    sums_bytes(variant) + tags::payload(variant)
}

/// Returns the public salts of a session's trees: tree by tree, one for each level below the top.
fn salts(variant: Variant, session: &Session) -> Vec<[u8; SEED_BYTES]> {
    let mut hasher = blake3::Hasher::new_derive_key("primer ot tree salts v1");
    let mut stream = hasher.update(session).finalize_xof();
    let salt = |_| {
        let mut salt = [0; SEED_BYTES];
        stream.fill(&mut salt);
        salt
    };
    (0..variant.trees() * (variant.bits() - 1))
        .map(salt)
        .collect()
}

/// Returns the two children of a node on a level with this salt.
fn children(node: u128, salt: &[u8; SEED_BYTES]) -> Zeroizing<[u128; 2]> {
    let mut seed = Zeroizing::new(SecretSeed::default());
    let (key, counter) = seed.split_at_mut(SEED_BYTES);
    key.copy_from_slice(&node.to_le_bytes());
    counter.copy_from_slice(salt);
    let mut prg = Prg::secret(&seed);
    Zeroizing::new([(); 2].map(|()| {
        let mut child = prg.seed();
        let number = u128::from_le_bytes(child);
        child.zeroize();
        number
    }))
}

/// Hashes the message of the trees into the name of the session. Challenges of the check are drawn
/// from that name, so no leaf can be chosen after they are known.
fn bind(session: &Session, message: &[u8]) -> Session {
    let mut hasher = blake3::Hasher::new_derive_key("primer ot trees v1");
    hasher.update(session);
    hasher.update(message);
    *hasher.finalize().as_bytes()
}

/// Sends the message of the trees as the extension's receiver. Returns all leaves, from both seeds
/// of each base transfer, and the name of the session with its trees.
pub(crate) fn send(
    channel: &mut Channel,
    variant: Variant,
    session: &Session,
    pairs: &Pairs,
) -> Result<(Leaves, Session)> {
    let mut leaves = Zeroizing::new(Vec::with_capacity(variant.trees() * variant.leaves()));
    let mut message = Vec::with_capacity(payload(variant));
    let salts = salts(variant, session);
    let mut salts = salts.iter();
    for pairs in pairs.chunks_exact(variant.bits()) {
        // The highest bit is the top level.
        let mut levels = pairs.iter().rev().map(|pair| pair.map(u128::from_le_bytes));
        let [zero, one] = levels.next().expect("a tree has a level");
        let mut nodes = Zeroizing::new(vec![one, zero]);
        for [zero, one] in levels {
            let salt = salts.next().expect("one for each level of each tree");
            let mut sums = Zeroizing::new([0, 0]);
            let mut next = Zeroizing::new(Vec::with_capacity(2 * nodes.len()));
            for node in nodes.iter() {
                for (sum, child) in sums.iter_mut().zip(*children(*node, salt)) {
                    *sum ^= child;
                    next.push(child);
                }
            }
            message.extend_from_slice(&(sums[0] ^ one).to_le_bytes());
            message.extend_from_slice(&(sums[1] ^ zero).to_le_bytes());
            nodes = next;
        }
        leaves.extend_from_slice(&nodes);
    }
    if variant.is_checked() {
        tags::prove(variant, session, &leaves, &mut message);
    }
    if !message.is_empty() {
        channel.send(TREES, &message)?;
        channel.flush()?;
    }
    Ok((leaves, bind(session, &message)))
}

/// Receives the message of the trees as the extension's sender. Returns the leaf of `x` at place
/// `x XOR Δ_b`, with zero at place 0, whose leaf is not known; and the name of the session with its
/// trees.
///
/// # Errors
/// [`crate::OtError::Inconsistent`] if the trees of a checked variant are not whole.
pub(crate) fn receive(
    channel: &mut Channel,
    variant: Variant,
    session: &Session,
    chosen: &Chosen,
    delta: u128,
) -> Result<(Leaves, Session)> {
    let mut message = vec![0; payload(variant)];
    if !message.is_empty() {
        channel.recv_exact(TREES, &mut message)?;
    }
    let (sums, proof) = message.split_at(sums_bytes(variant));
    let (sums, _) = sums.as_chunks::<16>();
    let salts = salts(variant, session);
    let mut levels_below = sums.chunks_exact(2).zip(&salts);
    let mut leaves = Zeroizing::new(Vec::with_capacity(variant.trees() * variant.leaves()));
    for (tree, seeds) in chosen.chunks_exact(variant.bits()).enumerate() {
        let seeds = seeds.iter().enumerate().rev();
        let mut levels = seeds.map(|(bit, seed)| {
            let chosen = delta >> (variant.bits() * tree + bit) & 1;
            (u128::from_le_bytes(*seed), chosen.wrapping_neg())
        });
        let (top, _) = levels.next().expect("a tree has a level");
        let mut nodes = Zeroizing::new(vec![0, top]);
        for (pad, chosen) in levels {
            let (sums, salt) = levels_below.next().expect("as many as were received");
            let mut others = Zeroizing::new(0);
            let mut next = Zeroizing::new(Vec::with_capacity(2 * nodes.len()));
            for node in nodes.iter() {
                let both = children(*node, salt);
                let change = (both[0] ^ both[1]) & chosen;
                next.extend([both[0] ^ change, both[1] ^ change]);
            }
            for odd in next.iter().skip(3).step_by(2) {
                *others ^= odd;
            }
            let [zero, one] = [sums[0], sums[1]].map(u128::from_le_bytes);
            // Masked by the seed that was chosen is the sum for the other bit.
            let other = one ^ ((zero ^ one) & chosen);
            next[1] = other ^ pad ^ *others;
            next[0] = 0;
            nodes = next;
        }
        leaves.extend_from_slice(&nodes);
    }
    if variant.is_checked() {
        tags::verify(variant, session, &leaves, delta, proof)?;
    }
    Ok((leaves, bind(session, &message)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_wire::run_pair;

    /// Checks that what a sender sees of nodes that it lacks is made under other counters in each
    /// tree and in each session.
    #[test]
    fn nodes_are_expanded_under_salts_of_their_own() {
        let variant = Variant::SOFT_4;
        let [first, second] = [[1; 32], [2; 32]].map(|session| salts(variant, &session));
        let mut all: Vec<_> = first.iter().chain(&second).collect();
        assert_eq!(all.len(), 2 * 32 * 3);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 2 * 32 * 3);
        assert_ne!(*children(5, &first[0]), *children(5, &second[0]));
        // The same pairs make other leaves in another session, behind the top level.
        let mut rng = Prg::new(&[9; 16]);
        let pairs: Pairs = Zeroizing::new((0..128).map(|_| [rng.seed(), rng.seed()]).collect());
        let grow = |session: [u8; 32]| {
            let chosen: Chosen = Zeroizing::new(pairs.iter().map(|pair| pair[0]).collect());
            let ((leaves, _), _) = run_pair(
                |channel| send(channel, variant, &session, &pairs),
                |channel| receive(channel, variant, &session, &chosen, 0),
            )
            .unwrap();
            leaves
        };
        let [ours, theirs] = [grow([1; 32]), grow([2; 32])];
        assert!(ours.iter().zip(theirs.iter()).all(|(a, b)| a != b));
    }

    /// Checks that the sender has every leaf but its own, each at its place.
    #[test]
    fn all_leaves_but_one() {
        let mut rng = Prg::new(&[8; 16]);
        for variant in Variant::ALL {
            for _ in 0..10 {
                let delta = u128::from_le_bytes(rng.seed());
                let pairs: Pairs =
                    Zeroizing::new((0..128).map(|_| [rng.seed(), rng.seed()]).collect());
                let chosen: Chosen = Zeroizing::new(
                    (0..128)
                        .map(|i| pairs[i][(delta >> i & 1) as usize])
                        .collect(),
                );
                let ((all, ours), (known, theirs)) = run_pair(
                    |channel| send(channel, variant, &[1; 32], &pairs),
                    |channel| receive(channel, variant, &[1; 32], &chosen, delta),
                )
                .unwrap();
                assert!(ours == theirs && ours != [1; 32]);
                assert_eq!(all.len(), variant.trees() * variant.leaves());
                let mut distinct = all.to_vec();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(distinct.len(), all.len());
                for tree in 0..variant.trees() {
                    let secret = (delta >> (variant.bits() * tree)) as usize;
                    for x in 0..variant.leaves() {
                        let place = (x ^ secret) % variant.leaves();
                        let leaf = known[tree * variant.leaves() + place];
                        let right = leaf == all[tree * variant.leaves() + x];
                        assert_eq!(right, place != 0, "tree {tree}, leaf {x}");
                    }
                }
            }
        }
    }

    /// Checks that the name covers what a receiver could vary: without a new name, it could choose
    /// that after it knows the challenges.
    #[test]
    fn the_name_of_a_session_covers_its_trees() {
        let message = [5; 100];
        let name = bind(&[1; 32], &message);
        assert_ne!(bind(&[2; 32], &message), name);
        for at in [0, 50, 99] {
            let mut other = message;
            other[at] ^= 1;
            assert_ne!(bind(&[1; 32], &other), name);
        }
    }
}

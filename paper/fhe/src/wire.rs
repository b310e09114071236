//! Messages: every length follows from the set-up, every residue is checked against its prime.
//!
//! | message | direction | bytes, `l = 30·N/8` a limb |
//! |---|---|---|
//! | key, for the products and for each rotation | up | `16 + digits·primes·l` |
//! | ciphertext, one-hot rows and mask | up | `16 + (levels + 2)·l` |
//! | answer | down | `4·l` |

use crate::ckks::ciphertext::{Ciphertext, Fresh};
use crate::ckks::keys::SwitchKey;
use crate::ckks::params::{BASE, Params};
use crate::error::FheError;
use primer_ring::pack;
use primer_ring::prg::{SEED_BYTES, Seed};
use primer_wire::kind::fhe::{ANSWER, CIPHERTEXT, KEY};
use primer_wire::{Channel, RecvStream, SendStream};

/// Bits of a residue.
const WIDTH: u32 = 30;

fn limb_bytes(params: &Params) -> usize {
    params.degree() * WIDTH as usize / 8
}

/// Returns the bytes of a key.
pub fn key_bytes(params: &Params) -> usize {
    SEED_BYTES + params.digits() * params.all() * limb_bytes(params)
}

/// Returns the bytes of a fresh ciphertext.
pub fn ciphertext_bytes(params: &Params) -> usize {
    SEED_BYTES + params.data() * limb_bytes(params)
}

/// Returns the bytes of an answer.
pub fn answer_bytes(params: &Params) -> usize {
    2 * BASE * limb_bytes(params)
}

fn put(stream: &mut SendStream<'_>, limb: &[u32]) -> Result<(), FheError> {
    let mut bytes = Vec::new();
    pack::pack(limb.iter().map(|&x| x.into()), WIDTH, &mut bytes);
    Ok(stream.put(&bytes)?)
}

fn get(
    stream: &mut RecvStream<'_>,
    params: &Params,
    primes: impl ExactSizeIterator<Item = usize>,
) -> Result<Vec<u32>, FheError> {
    let n = params.degree();
    let mut out = vec![0; primes.len() * n];
    let mut bytes = vec![0; limb_bytes(params)];
    for (prime, limb) in primes.zip(out.chunks_exact_mut(n)) {
        stream.get(&mut bytes)?;
        pack::unpack_u32(&bytes, WIDTH, params.prime(prime).value(), limb)?;
    }
    Ok(out)
}

fn get_seed(stream: &mut RecvStream<'_>) -> Result<Seed, FheError> {
    let mut seed = [0; SEED_BYTES];
    stream.get(&mut seed)?;
    Ok(seed)
}

pub(crate) fn send_key(
    channel: &mut Channel,
    params: &Params,
    key: &SwitchKey,
) -> Result<(), FheError> {
    let mut stream = channel.send_stream(KEY, key_bytes(params) as u64)?;
    stream.put(key.seed())?;
    for limb in key.sent(params) {
        put(&mut stream, &limb)?;
    }
    Ok(stream.finish()?)
}

pub(crate) fn receive_key(channel: &mut Channel, params: &Params) -> Result<SwitchKey, FheError> {
    let mut stream = channel.recv_stream(KEY, key_bytes(params) as u64)?;
    let seed = get_seed(&mut stream)?;
    let limbs = 0..params.all() * params.digits();
    let half = get(&mut stream, params, limbs.map(|i| i / params.digits()))?;
    stream.finish()?;
    Ok(SwitchKey::receive(params, seed, &half))
}

pub(crate) fn send_ciphertext(
    channel: &mut Channel,
    params: &Params,
    fresh: &Fresh,
) -> Result<(), FheError> {
    let mut stream = channel.send_stream(CIPHERTEXT, ciphertext_bytes(params) as u64)?;
    stream.put(fresh.seed())?;
    for limb in fresh.half().chunks_exact(params.degree()) {
        put(&mut stream, limb)?;
    }
    Ok(stream.finish()?)
}

pub(crate) fn receive_ciphertext(
    channel: &mut Channel,
    params: &Params,
) -> Result<Ciphertext, FheError> {
    let mut stream = channel.recv_stream(CIPHERTEXT, ciphertext_bytes(params) as u64)?;
    let seed = get_seed(&mut stream)?;
    let half = get(&mut stream, params, 0..params.data())?;
    stream.finish()?;
    Ok(Fresh::receive(params, params.levels(), seed, half).expand(params))
}

pub(crate) fn send_answer(
    channel: &mut Channel,
    params: &Params,
    answer: &Ciphertext,
) -> Result<(), FheError> {
    let mut stream = channel.send_stream(ANSWER, answer_bytes(params) as u64)?;
    for half in answer.answer(params) {
        for limb in half.chunks_exact(params.degree()) {
            put(&mut stream, limb)?;
        }
    }
    stream.finish()?;
    Ok(channel.flush()?)
}

pub(crate) fn receive_answer(
    channel: &mut Channel,
    params: &Params,
) -> Result<Ciphertext, FheError> {
    let mut stream = channel.recv_stream(ANSWER, answer_bytes(params) as u64)?;
    let halves = [
        get(&mut stream, params, 0..BASE)?,
        get(&mut stream, params, 0..BASE)?,
    ];
    stream.finish()?;
    Ok(Ciphertext::from_answer(params, halves))
}

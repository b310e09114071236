//! The client: keys and encrypted rows up, logits down.

use crate::ckks::ciphertext::Fresh;
use crate::ckks::keys::SecretKey;
use crate::error::FheError;
use crate::packing::capacity;
use crate::setup::Setup;
use crate::walk::input_width;
use crate::wire;
use primer_plan::shape::Head;
use primer_text::Input;
use primer_wire::Channel;
use rand_core::CryptoRng;
use std::time::Instant;
use zeroize::Zeroizing;

/// What the client got, and what that took.
pub struct Outcome {
    /// One number for each label.
    pub logits: Vec<f64>,
    /// Seconds to make and send the keys, once for a session.
    pub keys: f64,
    /// Seconds from the text to the logits, the server's work included.
    pub online: f64,
    /// Of these, the client's own: encrypting and decrypting.
    pub own: f64,
}

/// Runs the client's side of one inference, keys included.
///
/// # Errors
/// [`FheError`] if the input does not fit the set-up or the connection fails.
pub fn run(
    channel: &mut Channel,
    setup: &Setup,
    input: &Input,
    rng: &mut impl CryptoRng,
) -> Result<Outcome, FheError> {
    let (params, tokens) = (&*setup.params, setup.graph.tokens);
    if input.tokens() != tokens {
        return Err(FheError::Tokens {
            found: input.tokens(),
            expected: tokens,
        });
    }
    let started = Instant::now();
    let secret = SecretKey::generate(&setup.params, rng);
    wire::send_key(channel, params, &secret.product_key(rng))?;
    for &steps in &setup.counted.rotations {
        wire::send_key(channel, params, &secret.rotation_key(steps, rng))?;
    }
    channel.flush()?;
    let keys = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let shape = &setup.graph.shape;
    let (width, most) = (
        input_width(shape),
        capacity(params.slots(), setup.graph.tokens),
    );
    let one_hot = |part: usize, s: usize| {
        let (t, j) = (s % tokens, part * most + s / tokens % width.min(most));
        let word = j == input.ids[t] as usize;
        let kind = j == shape.vocab + input.types[t] as usize;
        f64::from(u8::from(word || kind))
    };
    let mut encrypt = |slot: &dyn Fn(usize) -> f64| {
        let values = Zeroizing::new((0..params.slots()).map(slot).collect::<Vec<_>>());
        Fresh::encrypt(&secret, &values, params.levels(), rng)
    };
    let mut fresh: Vec<Fresh> = (0..width.div_ceil(most))
        .map(|part| encrypt(&|s| one_hot(part, s)))
        .collect();
    fresh.push(encrypt(&|s| f64::from(u8::from(s % tokens < input.length))));
    let mut own = started.elapsed().as_secs_f64();
    for ciphertext in &fresh {
        wire::send_ciphertext(channel, params, ciphertext)?;
    }
    let answer = wire::receive_answer(channel, params)?;
    let decrypting = Instant::now();
    let slots = answer.decrypt(&secret);
    let labels = match &shape.head {
        Head::Classify { labels, .. } => labels.len(),
        _ => return Err(FheError::Head),
    };
    let logits = (0..labels).map(|j| slots[j * tokens]).collect();
    own += decrypting.elapsed().as_secs_f64();
    Ok(Outcome {
        logits,
        keys,
        online: started.elapsed().as_secs_f64(),
        own,
    })
}

//! Layer 3 of Primer: oblivious transfer over a channel, semi-honest.
//!
//! In an oblivious transfer the *sender* has two messages, the *receiver* a choice bit; the
//! receiver learns the message of its choice and nothing about the other, and the sender learns
//! nothing. Primer needs hundreds of millions of them: one per input bit of the client into a
//! garbled circuit, one per element that is requantised, ten per look-up. They are made in steps,
//! each a module with documentation of its own:
//!
//! 1. [`base`]: 128 transfers with public-key cryptography, once per session and direction. ML-KEM
//!    by default, so that what is recorded today stays secure against a quantum computer.
//! 2. [`cot`]: from these, any number of *correlated* transfers with symmetric cryptography: IKNP,
//!    or SoftSpokenOT at a quarter of the bytes ([`Variant`]), whose seeds are grown in [`leaves`]
//!    and summed in [`streams`], with an optional [`check`] (and [`tags`] of leaves) that protects
//!    against a receiver that deviates. Their common difference Δ is the free-XOR offset of the
//!    garbler, so their rows *are* wire labels.
//! 3. The uses of these rows besides garbling: [`product`], transfers that are prepared offline
//!    with random choices and corrected online, when the real choice is known, at a bit up and a
//!    few bytes down, [`pads`], whose choices are known offline, and [`bit_products`], of two bits
//!    that are both known online, all by hashing ([`hash`]); [`onehot`], shares of a unit vector at
//!    a sum of two secrets, by transfers in both directions.
//!
//! 4. [`renewal`]: transfers in both directions make new ones, with offsets of their own, for each
//!    thing that is stored on its own.
//!
//! Roles are separate from parties: each extension has a sender and a receiver, and one connection
//! can carry one in each direction. Costs are in [`cost`] and tested against the meter; security
//! notes and sources are in `docs/protocol/ot.md`.

pub mod base;
pub mod bit_products;
pub mod bits;
mod block;
pub mod check;
mod clmul;
pub mod cost;
pub mod cot;
mod engine;
pub mod error;
pub mod hash;
pub mod leaves;
pub mod measure;
mod offline;
pub mod onehot;
pub mod pads;
pub mod product;
pub mod renewal;
mod setup;
mod stored;
pub mod streams;
pub mod tags;
pub mod transpose;
mod transpose_avx2;
mod variant;

pub use base::BaseOt;
pub use bit_products::{BitAnswering, BitReceiver, BitSender, BitWaiting};
pub use bits::Bits;
pub use cot::{CotReceiver, CotSender, Delta};
pub use error::{OtError, Result};
pub use measure::{Measurement, OneHotMeasurement, measure, measure_onehot};
pub use pads::{PadReceiver, PadSender};
pub use product::{ProductAnswering, ProductReceiver, ProductSender, ProductWaiting};
pub use renewal::{Drawn, Met};
pub use setup::{NONCE_BYTES, Nonce, Setup};
pub use variant::Variant;

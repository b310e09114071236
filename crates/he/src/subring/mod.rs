//! Products without rotations: weights in a subring, tokens in the low coefficients.
//!
//! # The idea
//! In `Z[X]/(X^N + 1)` let `T` be a power of two, `F = N/T` and `Y = X^T`. A polynomial is `T`
//! polynomials in `Y` side by side, one for each power `X^t` with `t < T`, and a polynomial that
//! has powers of `Y` only multiplies each of them alone. So row `t` of the client's matrix (a
//! token, of one bundle or another) lives at `X^t`, weights are polynomials in `Y`, and one product
//! serves `T` rows. By values, a weight has `F` numbers, each of which meets `T` consecutive values
//! of a ciphertext: for each of the `F` points the sum over ciphertexts is a plain matrix product
//! modulo a small prime ([`primer_lattice::kernel::points`]). Nothing is rotated, so there are no
//! keys but the public one.
//!
//! # Three ways to use it
//! * [`dense`], coefficients: input `i` of a block of `k` at `Y^i`, weight `w[i][o]` at `Y^(ok -
//!   i)`; the product has `Σ_i x_i·w[i][o]` at `Y^(ok)`. With `km ≤ F` what wraps around lands
//!   between the results, where nobody reads. Weights stay as small as they are, and noise grows
//!   with them alone.
//! * [`heads`], slots of the subring: modulo p, polynomials in `Y` are `F` numbers that multiply
//!   one by one. Head, replica and lane make a slot; sums over ciphertexts are taken by the server,
//!   sums over lanes by each party. Weights are 41-bit numbers anyway where this is used.
//! * [`slots`], slots of the whole ring: the server's factor differs from row to row.
//!
//! # An answer
//! To each, [`finish`] adds a fresh encryption of zero. Products of two secrets, in slots, are then
//! [`split`]: `c0` stays with the server, `c1` goes to the client, and each rounds its half to a
//! share. Products with a model's weights, by coefficients, get the mask and flooding noise; `c1`
//! is sent whole and of `c0` the coefficients that carry results, both rounded to as few bits as
//! decryption ([`open`]) needs. [`noise`] has the bounds, `docs/he-lean.md` their proofs, [`shape`]
//! and [`cost`] the choice of `k` and `m`.

mod answers;
pub(crate) mod cost;
pub(crate) mod dense;
pub(crate) mod finish;
pub(crate) mod heads;
pub(crate) mod noise;
pub(crate) mod open;
pub(crate) mod query;
pub(crate) mod residual;
pub(crate) mod shape;
pub(crate) mod slots;
pub(crate) mod split;
mod transform;
mod workspace;

pub(crate) use workspace::Workspace;

//! Layer 1 of Primer: products with weights for which nothing comes back.
//!
//! # The relation
//! For a linear step the client needs `r`, its mask of the input, and `y`; the server needs `z`,
//! with `y + z = r·W` modulo p. Nothing says that `r` must be drawn first and sent encrypted. Here
//! it comes out of a lattice function that is linear up to rounding, and the server publishes once,
//! for all clients and all answers, what turns that function's key into `y`: a *hint*. After that a
//! preparation is one message from the client, and there is no answer.
//!
//! # The ring
//! `R = Z[X]/(X^N + 1)`, `N = 2048`. A batch has [`LANES`](params::LANES) `T = 256` rows (tokens,
//! of several bundles), and a ring element carries [`BLOCK`](params::BLOCK) `F = N/T = 8` columns
//! of all of them: column `f` of row `t` is the coefficient of `X^(f + F·t)`. For a polynomial `v`
//! write `v^(f)` for its part at exponents `f` modulo `F`, a polynomial in `X^F`.
//!
//! ```text
//! public     A_i for each block i of input columns, modulo q = p·2^8;  a_fk, a_pk modulo q'
//! server     V_j = Σ_i w_ij·A_i,   w_ij = Σ_f W[i·F+f, j]·X^-f            for each output j
//! (once)     M_f = Σ_j X^j·V_j^(f)(X^F)  ≈  Σ_k g_k·D_fk                  for F outputs together
//!            G   = Σ_fk D_fk·a_fk + u·a_pk + e1                           the hint, published
//! client     s ternary, t short;  r_i = ⌊(A_i·s + τ)/2^8⌋                 its masks
//! (each)     b_fk = a_fk·t + e_fk + g_k·s'_f,   b_pk = a_pk·t + e         sent
//!            y = ⌊(-G·t + δ)·p/q'⌉                                        its share
//! server     z = ⌊(Σ_fk D_fk·b_fk + u·b_pk)·p/q'⌉                         its share
//! ```
//!
//! with `s'_0 = s^(0)` and `s'_f = X^F·s^(F-f)`, so that `Σ_f M_f·s'_f` has, at `X^(j + F·t)`, the
//! inner product of column `j` of W with row `t` of all `A_i·s`: `2^8·r·W` up to what rounding
//! leaves out. `y + z = r·W - ε·W + small + δ`, where `ε` is what each mask was rounded by and `δ`
//! is noise that keeps what the two shares tell together from telling about the secrets.
//!
//! # Who learns what
//! The server sees `b`: ring LWE samples under `t`, with `s` in them as a message. The client is
//! never answered; `G` hides `W` as a ring LWE sample under `u`. Masks are ring LWE samples under
//! `s` whose errors, the dither `τ`, are rounded away, so they look uniform to the server. The
//! parameters, the size of the errors, and what shares tell together: `docs/rlwe.md`.
//!
//! # Overview of the modules
//! [`params`]: sizes and moduli. [`public`]: elements that both parties expand. [`ring`]: products
//! modulo q and q', `room` sums of them. [`sample`]: secrets and errors. [`digits`]: numbers from
//! the top, of what `images` multiplies. [`server`] and [`client`]: the two parts. [`margin`]: how
//! much shares may tell. [`errors`]: how large errors are. [`contents`]: what a whole model's hint
//! is made of, [`published`] and [`multipliers`] its files, one for clients and one for the server,
//! [`storage`] where they lie, [`writing`] how they get there. [`measure`]: what the server's part
//! costs. [`error`]: what is refused.
#![forbid(unsafe_code)]

pub mod client;
pub mod contents;
pub mod digits;
pub mod error;
pub mod errors;
mod images;
pub mod margin;
pub mod measure;
pub mod multipliers;
pub mod params;
pub mod public;
pub mod published;
pub mod ring;
mod room;
pub mod sample;
pub mod server;
pub mod storage;
pub mod writing;

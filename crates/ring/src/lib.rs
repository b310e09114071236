//! Layer 0 of Primer: arithmetic, with no input or output.
//!
//! Secret shares live in `Z_p` ([`modulus`]), one prime for the whole system. Real numbers become
//! integers with a fixed number of fractional bits ([`fixed`]); after a product both parties drop
//! the low bits of their shares on their own ([`truncate`]) and carry on in a short ring `Z_2^m`.
//! [`matrix`] holds the row-major matrices that every layer above passes around and their exact
//! integer products (those modulo p on short limbs), [`prg`] expands short seeds, [`pack`] writes
//! residues without wasted bits, [`coarse`] has what truncation to an index leaves out, [`select`]
//! adds up what secret bits select from a table, [`rows`] what public bits select from a matrix,
//! [`measure`] tells how fast this machine multiplies, [`threads`] divides work, and [`wipe`] wipes
//! bytes.

pub mod coarse;
pub mod fixed;
pub mod gemm;
mod limbs;
pub mod matrix;
pub mod measure;
pub mod modulus;
pub mod pack;
pub mod prg;
pub mod rows;
pub mod select;
pub mod threads;
pub mod truncate;
pub mod wipe;

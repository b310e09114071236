//! Whether two strings of bits are equal, shown to the evaluator: one AND gate fewer than bits.

use super::SHARES;
use crate::circuit::{Builder, Circuit, Party};

pub(super) fn circuit(bits: u32) -> Circuit {
    let mut b = Builder::new(SHARES);
    let server = b.inputs(Party::Garbler, bits);
    let client = b.inputs(Party::Evaluator, bits);
    let both = server.iter().zip(&client);
    let differing: Vec<_> = both.map(|(&s, &c)| b.xor(s, c)).collect();
    let any = b.any(&differing);
    b.reveal(!any);
    b.finish()
}

//! What the targets share: edits of true messages, and whole sessions recorded to be edited.
//!
//! Most messages begin with fingerprints or follow from earlier ones, so that arbitrary bytes are
//! refused at once. The targets therefore take a true message or a true session, made at the start
//! from fixed seeds, and the fuzzer's bytes say how to change it: [`edited`].

pub mod sessions;
pub mod stops;

use primer_paper_plan::Form;
use primer_plan::design::{Design, LookedUp};

/// The designs of plans: the product's, and those of the paper's schemes.
pub const DESIGNS: [&dyn Design; 3] = [&LookedUp, &Form::Separate, &Form::Merged];

/// Reads the fuzzer's bytes; zeros follow the last one.
pub struct Script<'a>(pub &'a [u8]);

impl Script<'_> {
    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    /// Returns the next number below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        let bytes = [self.byte(), self.byte(), self.byte(), self.byte()];
        u32::from_le_bytes(bytes) as usize % end
    }

    /// Returns at most `count` of the next bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let (now, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        now.to_vec()
    }
}

/// Copies `whole` and changes it as the script says: bits flipped, bytes replaced, put in, taken
/// out or cut off. `marks` are places worth a visit, the beginnings of frames for instance.
pub fn edited(whole: &[u8], marks: &[usize], script: &mut Script<'_>) -> Vec<u8> {
    let mut out = whole.to_vec();
    while !script.0.is_empty() && !out.is_empty() {
        let op = script.byte();
        let at = match op & 0x80 {
            0 => script.below(out.len()),
            _ if marks.is_empty() => script.byte() as usize % out.len(),
            _ => (marks[script.byte() as usize % marks.len()] + script.byte() as usize % 64)
                .min(out.len() - 1),
        };
        let count = 1 + script.byte() as usize % 16;
        match op % 5 {
            0 => out[at] ^= 1 << (count % 8),
            1 => {
                let new = script.bytes(count);
                let end = out.len().min(at + new.len());
                out[at..end].copy_from_slice(&new[..end - at]);
            }
            2 => drop(out.splice(at..at, script.bytes(count))),
            3 => drop(out.drain(at..out.len().min(at + count * count))),
            _ => out.truncate(at),
        }
    }
    out
}

/// Lists where the frames of a well-framed stream of bytes begin.
pub fn frames(bytes: &[u8]) -> Vec<usize> {
    let mut frames = Vec::new();
    let mut at = 0;
    while at + 8 <= bytes.len() {
        frames.push(at);
        let header = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
        at += 8 + (header >> 8) as usize;
    }
    frames
}

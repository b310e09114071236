//! The table of a `Precompiled` normaliser: sentencepiece's rules, as they are stored in XLM-R's
//! files.
//!
//! A table is a number, a *trie* of that many bytes, and texts with a zero byte behind each. The
//! trie is a double array of 32-bit units. A search begins at the first unit's base and goes by the
//! bytes of a few letters: from base `b` byte `c` leads to unit `b ^ c`, if that has the label `c`;
//! its offset gives the next base, and if it says that a rule ends here, the unit at that base says
//! where the rule's text begins.
//!
//! The library that searches it (`spm_precompiled`) trusts all of it: the trie's length when it
//! reserves memory, and every base and every text when it reads there. A malformed table crashes
//! the program, and one rule may turn a letter into a megabyte. So every unit that a search can
//! reach is visited here first. Letters that stand together are looked up together if they have at
//! most [`LONGEST`] bytes, so a search has at most that many steps; what it finds stands for at
//! least the bytes that led there, which bounds the growth.

use super::parts::Checked;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Bytes of a table: twice as many as the rules of all of Unicode take (`nmt_nfkc`).
const MAX_TABLE: usize = 512 << 10;
/// Units are laid out in blocks of this many: a base and a byte stay within one block.
const BLOCK: usize = 256;
/// Steps of the longest search.
const LONGEST: usize = 5;
/// Bytes of the longest text of a rule: more would be beyond every growth that is accepted.
const MAX_TEXT: usize = 64 * LONGEST;

/// Checks a table in base 64; returns it written anew, and by how much its rules can make a text
/// longer.
pub(super) fn checked(encoded: &str) -> Checked<(String, f64)> {
    if encoded.len() > MAX_TABLE.div_ceil(3) * 4 {
        let bytes = encoded.len() / 4 * 3;
        return Err(wrong(&format!("{bytes} bytes, the limit is {MAX_TABLE}")));
    }
    let table = STANDARD.decode(encoded);
    let table = table.map_err(|e| wrong(&format!("no base 64 ({e})")))?;
    let growth = Table::read(&table)?.growth()?;
    Ok((STANDARD.encode(&table), growth))
}

fn wrong(what: &str) -> String {
    format!("a precompiled_charsmap with {what}")
}

struct Table<'a> {
    units: Vec<usize>,
    texts: &'a str,
}

impl<'a> Table<'a> {
    fn read(table: &'a [u8]) -> Checked<Self> {
        let (length, rest) = table.split_first_chunk().ok_or_else(|| wrong("no trie"))?;
        let length = u32::from_le_bytes(*length) as usize;
        if length == 0 || !length.is_multiple_of(4 * BLOCK) || length > rest.len() {
            let have = rest.len();
            return Err(wrong(&format!("a trie of {length} bytes in {have}")));
        }
        let (trie, texts) = rest.split_at(length);
        let units = trie.chunks_exact(4);
        let unit = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize;
        Ok(Self {
            units: units.map(unit).collect(),
            texts: std::str::from_utf8(texts).map_err(|_| wrong("texts that are no UTF-8"))?,
        })
    }

    /// Returns the largest factor by which a rule makes a text longer, at least 1. What can be
    /// reached is followed step by step, all of it at once: a trie of a stranger may lead back to
    /// itself.
    fn growth(&self) -> Checked<f64> {
        let mut growth: f64 = 1.0;
        let mut bases = vec![false; self.units.len()];
        bases[self.base(0)?] = true;
        for step in 1..=LONGEST {
            let mut next = vec![false; self.units.len()];
            for (at, &unit) in self.units.iter().enumerate() {
                // Units that hold the place of a text have the highest bit, and no label.
                let label = unit & (1 << 31 | 0xff);
                if !(1..BLOCK).contains(&label) || !bases[at ^ label] {
                    continue;
                }
                let base = self.base(at)?;
                next[base] = true;
                if unit >> 8 & 1 == 1 {
                    let text = self.text(self.units[base] & ((1 << 31) - 1))?;
                    growth = growth.max(text.len() as f64 / step as f64);
                }
            }
            bases = next;
        }
        Ok(growth)
    }

    /// Returns the base that a unit leads to.
    fn base(&self, at: usize) -> Checked<usize> {
        let unit = self.units[at];
        let offset = (unit >> 10) << ((unit & 1 << 9) >> 6);
        let base = at ^ offset;
        match base < self.units.len() {
            true => Ok(base),
            false => Err(wrong("a trie that leads out of itself")),
        }
    }

    /// Returns the text of a rule.
    fn text(&self, start: usize) -> Checked<&str> {
        let rest = self.texts.get(start..);
        let rest = rest.ok_or_else(|| wrong("a rule whose text is not there"))?;
        let mut bytes = rest.bytes().take(MAX_TEXT + 1);
        match bytes.position(|byte| byte == 0) {
            Some(end) => Ok(&rest[..end]),
            None if rest.len() <= MAX_TEXT => Ok(rest),
            None => Err(wrong(&format!("a text of more than {MAX_TEXT} bytes"))),
        }
    }
}

#[cfg(test)]
mod tests;

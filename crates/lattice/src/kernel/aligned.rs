//! Buffers that start on a cache line, so that blocks of sixteen numbers are whole lines.

use zeroize::optimization_barrier;

/// Numbers of a cache line.
const LINE: usize = 16;

/// A growing buffer of numbers, aligned to a cache line.
#[derive(Default)]
pub struct Aligned {
    data: Vec<u32>,
}

impl Aligned {
    /// Makes a buffer of zeros.
    pub fn zeros(len: usize) -> Self {
        let mut buffer = Self::default();
        buffer.sized(len);
        buffer
    }

    /// Returns the first `len` numbers, to be changed; they are unspecified unless they were
    /// written before at the same length or a larger one.
    pub fn sized(&mut self, len: usize) -> &mut [u32] {
        if self.data.len() < len + LINE {
            self.wipe();
            self.data = vec![0; len + LINE];
        }
        let start = self.start();
        &mut self.data[start..start + len]
    }

    /// Returns the first `len` numbers.
    ///
    /// # Panics
    /// If the buffer was never that long.
    pub fn get(&self, len: usize) -> &[u32] {
        &self.data[self.start()..][..len]
    }

    /// Overwrites everything with zeros, for secrets that are about to be dropped.
    pub fn wipe(&mut self) {
        self.data.fill(0);
        // Number by number, as `zeroize` does it, would take several times as long.
        optimization_barrier(self.data.as_slice());
    }

    fn start(&self) -> usize {
        // The contract of `align_offset` allows it to give up; then the data is used unaligned.
        match self.data.as_ptr().align_offset(4 * LINE) {
            offset if offset < LINE => offset,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_content_and_alignment() {
        let mut buffer = Aligned::zeros(100);
        buffer.sized(100).fill(7);
        assert_eq!(buffer.get(50), [7; 50]);
        assert_eq!(buffer.sized(100)[99], 7);
        assert_eq!(buffer.sized(1000).len(), 1000);
        assert_eq!(buffer.get(1000).as_ptr().align_offset(64), 0);
        buffer.sized(1000).fill(7);
        buffer.wipe();
        assert_eq!(buffer.get(1000), [0; 1000]);
    }
}

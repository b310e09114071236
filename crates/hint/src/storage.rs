//! Where the bytes of a hint or of its multipliers are kept, if not in memory.

use std::io;

/// Bytes that can be read from any place on: a file, or what a browser has stored.
pub trait ReadAt: Send + Sync {
    /// Fills `out` with the bytes from `at` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if there are fewer; else what the system says.
    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()>;
}

#[cfg(unix)]
impl ReadAt for std::fs::File {
    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, out, at)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Box<T> {
    fn read_exact_at(&self, out: &mut [u8], at: u64) -> io::Result<()> {
        (**self).read_exact_at(out, at)
    }
}

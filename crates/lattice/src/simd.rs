//! Which instruction set the kernels run on, decided once at run time.

/// An instruction set that this machine has. The only way to make one is detection, on which the
/// vector kernels' safety rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Simd {
    level: Level,
}

/// The instruction sets that kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    /// Plain Rust: any machine.
    Portable,
    /// 256-bit integer vectors of x86-64.
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Simd {
    /// Returns the best set that this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self { level: Level::Avx2 };
        }
        Self::portable()
    }

    /// Returns the set for plain Rust.
    pub const fn portable() -> Self {
        Self {
            level: Level::Portable,
        }
    }

    /// Returns every set that this machine has: what tests run the kernels on.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::portable()];
        if Self::detect() != Self::portable() {
            all.push(Self::detect());
        }
        all
    }

    pub(crate) const fn level(self) -> Level {
        self.level
    }
}

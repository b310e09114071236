//! Which instruction set the kernels run on, decided once at run time.

/// The instruction sets that kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simd {
    /// Plain Rust: any machine.
    Portable,
    /// 256-bit integer vectors of x86-64.
    Avx2,
}

impl Simd {
    /// The best set that this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return Self::Avx2;
        }
        Self::Portable
    }

    /// Every set that this machine has: what tests run the kernels on.
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::Portable];
        if Self::detect() != Self::Portable {
            all.push(Self::detect());
        }
        all
    }
}

//! Fixed point: real numbers as integers with a public number of fractional bits.
//!
//! A real `v` with `f` fractional bits is the integer nearest to `v·2^f`; `b` bits (with the
//! sign) hold integers in `[-2^(b-1), 2^(b-1))`. A [`Format`] is such a pair. Scales are powers of
//! two only: moving between them is a shift, and both parties can do it without talking.

/// How a tensor's real numbers are written as integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Bits with the sign.
    pub bits: u32,
    /// Fractional bits; negative when the unit is larger than one.
    pub fraction: i32,
}

impl Format {
    /// Returns the finest format of `bits` bits that holds every value up to `max_abs` in absolute
    /// value.
    ///
    /// Zero (a tensor of zeros) is treated as one, so that the scale stays finite.
    pub fn fitting(bits: u32, max_abs: f64) -> Self {
        let max_abs = if max_abs > 0.0 { max_abs } else { 1.0 };
        let mut fraction = bits as i32 - 1 - max_abs.log2().ceil() as i32;
        // log2 may round either way next to a power of two: settle it on the integers themselves.
        while (max_abs * exp2(fraction)).round() > Self::top(bits) {
            fraction -= 1;
        }
        while (max_abs * exp2(fraction + 1)).round() <= Self::top(bits) {
            fraction += 1;
        }
        Self { bits, fraction }
    }

    fn top(bits: u32) -> f64 {
        exp2(bits as i32 - 1) - 1.0
    }

    /// Returns the largest integer of the format.
    pub const fn max(self) -> i64 {
        (1 << (self.bits - 1)) - 1
    }

    /// Returns the smallest integer of the format.
    pub const fn min(self) -> i64 {
        -(1 << (self.bits - 1))
    }

    /// Returns the real value of the largest integer.
    pub fn max_real(self) -> f64 {
        self.to_real(self.max())
    }

    /// Tells whether an integer lies in the format.
    pub const fn holds(self, x: i64) -> bool {
        self.min() <= x && x <= self.max()
    }

    /// Returns the integer nearest to `v`, clamped to the format; NaN becomes zero.
    pub fn quantise(self, v: f64) -> i64 {
        let x = (v * exp2(self.fraction)).round();
        (x as i64).clamp(self.min(), self.max())
    }

    /// Returns the real number that an integer stands for.
    pub fn to_real(self, x: i64) -> f64 {
        x as f64 * exp2(-self.fraction)
    }
}

/// Returns `2^e` for a public exponent.
pub fn exp2(e: i32) -> f64 {
    f64::from(e).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fits_tightly() {
        assert_eq!(Format::fitting(15, 1.0).fraction, 13);
        assert_eq!(Format::fitting(15, 0.9999).fraction, 14);
        assert_eq!(Format::fitting(15, 16.0).fraction, 9);
        assert_eq!(Format::fitting(15, 0.0).fraction, 13);
        assert_eq!(Format::fitting(8, 220.0).fraction, -1);
    }

    proptest! {
        #[test]
        fn quantise_is_nearest(max in 1e-6f64..1e6, part in -1.0f64..1.0, bits in 2u32..24) {
            let format = Format::fitting(bits, max);
            let v = max * part;
            let q = format.quantise(v);
            prop_assert!(format.holds(q));
            let half = exp2(-format.fraction - 1) * (1.0 + 1e-9);
            prop_assert!((format.to_real(q) - v).abs() <= half);
            // One more fractional bit would not fit.
            prop_assert!((max * exp2(format.fraction + 1)).round() > format.max() as f64);
        }
    }
}

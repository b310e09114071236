//! What transfers and one-hot vectors take: `cargo run --release -p primer-ot --example figures`.

use primer_ot::onehot::{MAX_BITS, MIN_BITS, Shape};
use primer_ot::{OtError, Variant, measure, measure_onehot};

fn main() -> Result<(), OtError> {
    for variant in Variant::ALL {
        let found = measure(variant, 1 << 18, 60)?;
        println!(
            "{variant}: {:.1} M/s, {:.3} bytes",
            found.ot_m_per_s, found.bytes_per_ot
        );
    }
    for bits in MIN_BITS..=MAX_BITS {
        let shape = Shape::new(bits)?;
        let found = measure_onehot(Variant::SOFT_4, shape, 1 << 14, 5)?;
        println!("{} entries: {found:.3?}", shape.entries());
    }
    Ok(())
}

//! Figures of products without rotations.
use primer_he::measure;
use primer_he::product::{Method, WeightSize};
use primer_ring::prg::Prg;
fn main() {
    let mut rng = Prg::new(&[1; 16]);
    let lean = Method::subring(WeightSize::Columns(1 << 14));
    let reps = std::env::args().nth(1).unwrap().parse().unwrap();
    let t = std::time::Instant::now();
    let m = measure::product(
        &lean,
        (30, 768, 768),
        false,
        reps,
        || t.elapsed().as_secs_f64(),
        &mut rng,
    )
    .unwrap();
    println!("{m:?}");
}

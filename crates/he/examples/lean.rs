//! Figures of products without rotations.
use primer_he::measure;
use primer_he::product::{Method, WeightSize};
use primer_ring::prg::Prg;
fn processor() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|s| s.split(' ').next()?.parse::<f64>().ok())
        .unwrap()
        * 1e-9
}
fn main() {
    let mut rng = Prg::new(&[1; 16]);
    let lean = Method::subring(WeightSize::Columns(1 << 14));
    let reps: usize = std::env::args().nth(1).unwrap().parse().unwrap();
    let all = [(Method::tokens_first(), reps / 3), (lean, reps)];
    let skip = std::env::args().count() - 2;
    for (method, reps) in all.into_iter().skip(skip) {
        for rows in [30, 240] {
            let m = measure::product(
                &method,
                (rows, 768, 768),
                false,
                reps.max(1),
                processor,
                &mut rng,
            )
            .unwrap();
            println!("{rows} {m:?}");
        }
    }
}

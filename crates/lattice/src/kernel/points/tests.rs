//! The products against their definition.

use super::*;
use primer_ring::prg::Prg;
use proptest::prelude::*;
use rand_core::Rng;

/// The plain values of a whole product.
struct Case {
    prime: Prime,
    points: Points,
    rows: usize,
    terms: usize,
    /// `[row][term][point]`.
    weights: Vec<u32>,
    /// `[term][half][value]`.
    ciphertexts: Vec<u32>,
}

impl Case {
    fn new(points: Points, rows: usize, terms: usize, mut draw: impl FnMut(u32) -> u32) -> Self {
        let prime = Prime::largest(5)[terms % 5];
        let mut values = |len| (0..len).map(|_| draw(prime.value())).collect();
        Self {
            prime,
            points,
            rows,
            terms,
            weights: values(rows * terms * points.count()),
            ciphertexts: values(terms * 2 * points.degree()),
        }
    }

    fn random(points: Points, rows: usize, terms: usize, rng: &mut Prg) -> Self {
        Self::new(points, rows, terms, |q| rng.next_u32() % q)
    }

    fn prepare(&self, simd: Simd) -> (PointWeights, PointTerms) {
        let Self { prime, points, .. } = *self;
        let mut weights = PointWeights::zeros(prime, points, self.rows, self.terms);
        let row = self.terms * points.count();
        for block in 0..weights.blocks() {
            let rows = weights.block(block);
            weights.write(simd, block, &self.weights[rows.start * row..rows.end * row]);
        }
        let n = points.degree();
        let halves = self.ciphertexts.chunks_exact(2 * n);
        let halves: Vec<_> = halves.map(|c| [&c[..n], &c[n..]]).collect();
        let mut terms = PointTerms::zeros(prime, points, self.terms);
        for (mut place, halves) in terms.slots().zip(halves.chunks(TOGETHER)) {
            place.put(simd, halves);
        }
        (weights, terms)
    }

    /// Computes one value of the result by the definition.
    fn definition(&self, row: usize, half: usize, at: usize) -> u32 {
        let n = self.points.degree();
        let sum: u128 = (0..self.terms)
            .map(|k| {
                let point = at / self.points.run();
                let w = self.weights[(row * self.terms + k) * self.points.count() + point];
                u128::from(w) * u128::from(self.ciphertexts[(2 * k + half) * n + at])
            })
            .sum();
        (sum % u128::from(self.prime.value())) as u32
    }

    fn check(&self) {
        for simd in Simd::available() {
            let (weights, terms) = self.prepare(simd);
            let mut sums = PointSums::zeros(self.points, self.rows);
            multiply(simd, &weights, &terms, &mut sums);
            for (row, half) in (0..self.rows).flat_map(|r| [(r, 0), (r, 1)]) {
                for (at, &got) in sums.values(row, half).iter().enumerate() {
                    let want = self.definition(row, half, at);
                    assert_eq!(got, want, "{simd:?}, row {row}, half {half}, value {at}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn is_the_product_at_every_point(
        log_count in 0u32..6,
        log_run in 3u32..7,
        rows in 1usize..20,
        terms in 1usize..120,
        seed in any::<[u8; 16]>(),
    ) {
        let points = Points::new(1 << (log_count + log_run), 1 << log_run);
        Case::random(points, rows, terms, &mut Prg::new(&seed)).check();
    }
}

#[test]
fn extreme_residues_do_not_overflow() {
    // Every pair of signs, at their largest after balancing: the stored weight is w·2^32, so the
    // plain one is the extreme times 2^-32.
    let points = Points::new(32, 16);
    for terms in [
        1, 8, 23, 24, 25, 32, 33, 40, 41, 47, 48, 49, 56, 57, 64, 1000,
    ] {
        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let extreme = |q: u32, i: u32| q / 2 + i;
            let mut case = Case::new(points, 7, terms, |q| extreme(q, j));
            let q = case.prime;
            let stored = q.redc(u64::from(extreme(q.value(), i)));
            case.weights.fill(stored);
            case.check();
            // Signs that change between halvings: sums that come back from the far side.
            for (k, chunk) in case.ciphertexts.chunks_exact_mut(64).enumerate() {
                chunk.fill(extreme(q.value(), (k / TOGETHER % 2) as u32));
            }
            case.check();
        }
    }
}

#[test]
fn the_bound_is_what_the_documentation_says() {
    for prime in Prime::falling(crate::prime::TWO_ADICITY) {
        let q = i128::from(prime.value());
        let product = (q / 2).pow(2);
        let (first, halved, last) = (FIRST as i128, HALVED as i128, LAST as i128);
        // The largest products are below q²/4.
        assert!(4 * product < q * q && first * q * q / 4 < 1 << 63);
        let step = i128::from(step(prime));
        assert!(step % q == 0 && step * 4 == halved * q * q);
        assert!(first * q * q / 4 - step <= step);
        assert!(((last * q * q / 4) >> 32) + 1 + q / 2 < 2 * q && 4 * q <= 1 << 32);
    }
    // Halving makes room for terms that lie together, and for those that are left over.
    const { assert!(HALVED + TOGETHER <= FIRST && HALVED + TOGETHER <= LAST) };
}

#[test]
fn blocks_cover_all_rows() {
    for rows in 1..100 {
        let blocks = Blocks { rows };
        let mut next = 0;
        for block in 0..blocks.count() {
            let range = blocks.rows(block);
            assert!(range.start == next && (1..=HEIGHT).contains(&range.len()));
            next = range.end;
        }
        assert_eq!(next, rows);
    }
}

#[test]
fn buffers_serve_products_of_other_shapes() {
    let mut rng = Prg::new(&[5; 16]);
    let simd = Simd::detect();
    let large = Case::random(Points::new(256, 32), 9, 40, &mut rng);
    let small = Case::random(Points::new(128, 16), 4, 7, &mut rng);
    let mut sums = PointSums::zeros(large.points, large.rows);
    for case in [large, small] {
        sums.reuse(case.points, case.rows);
        let (weights, terms) = case.prepare(simd);
        multiply(simd, &weights, &terms, &mut sums);
        let values = sums.values(3, 1).iter().enumerate();
        assert!(
            values
                .clone()
                .all(|(at, &v)| v == case.definition(3, 1, at))
        );
    }
}

#[test]
fn weights_take_four_bytes_each() {
    let prime = Prime::largest(1)[0];
    let weights = PointWeights::zeros(prime, Points::new(8192, 32), 48, 48);
    assert_eq!(weights.memory(), 4 * 256 * 48 * 48);
    assert_eq!(weights.blocks(), 8);
    assert_eq!(weights.block(7), 42..48);
}

#[test]
#[should_panic(expected = "a weight for every term")]
fn other_numbers_of_terms_are_refused() {
    let (prime, points) = (Prime::largest(1)[0], Points::new(64, 16));
    let weights = PointWeights::zeros(prime, points, 2, 3);
    let terms = PointTerms::zeros(prime, points, 4);
    let mut sums = PointSums::zeros(points, 2);
    multiply(Simd::detect(), &weights, &terms, &mut sums);
}

#[test]
#[should_panic(expected = "limbs of one prime")]
fn other_primes_are_refused() {
    let (primes, points) = (Prime::largest(2), Points::new(64, 16));
    let weights = PointWeights::zeros(primes[0], points, 2, 3);
    let terms = PointTerms::zeros(primes[1], points, 3);
    let mut sums = PointSums::zeros(points, 2);
    multiply(Simd::detect(), &weights, &terms, &mut sums);
}

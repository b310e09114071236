//! Memory that is kept from one product to the next.

use super::finish::Finish;
use crate::ciphertext::SeededCiphertext;
use crate::params::Params;
use primer_lattice::kernel::points::{PointSums, PointTerms, PointWeights, Points, multiply};
use primer_lattice::sample;
use primer_ring::prg::Prg;
use zeroize::Zeroize;

/// Buffers of a server's products, for each of its threads.
pub(crate) struct Workspace {
    rooms: Vec<Room>,
}

impl Default for Workspace {
    fn default() -> Self {
        Self {
            rooms: vec![Room::default()],
        }
    }
}

impl Workspace {
    /// Makes room for some threads, one at least.
    pub(crate) fn set_threads(&mut self, threads: usize) {
        self.rooms.resize_with(threads.max(1), Room::default);
    }

    /// Returns the rooms: at least one.
    pub(super) fn rooms(&mut self) -> &mut [Room] {
        &mut self.rooms
    }
}

/// Buffers of one thread. What is in them depends on weights and is wiped.
#[derive(Default)]
pub(super) struct Room {
    pub(super) terms: Terms,
    pub(super) sums: Sums,
    pub(super) finish: Finish,
}

/// Ciphertexts of a query that lie together in the kernel's order.
const TOGETHER: usize = 8;

/// The ciphertexts of a query in the kernel's order, for each prime. They are public.
#[derive(Default)]
pub(super) struct Terms(Vec<PointTerms>);

impl Terms {
    /// Expands the seeds of a list and puts it in order.
    pub(super) fn fill(&mut self, params: &Params, points: Points, list: &[SeededCiphertext]) {
        let (n, primes) = (params.degree(), params.data_primes());
        let primes = (0..primes).map(|i| params.prime(i));
        if self.0.len() == primes.len() {
            let buffers = self.0.iter_mut().zip(primes);
            buffers.for_each(|(buffer, prime)| buffer.reuse(prime, points, list.len()));
        } else {
            let make = |prime| PointTerms::zeros(prime, points, list.len());
            self.0 = primes.map(make).collect();
        }
        let mut limbs: Vec<_> = self.0.iter_mut().map(PointTerms::slots).collect();
        let mut second = vec![0; TOGETHER * n];
        for list in list.chunks(TOGETHER) {
            let mut seeds: Vec<_> = list.iter().map(|ct| Prg::new(&ct.seed)).collect();
            for (limb, places) in limbs.iter_mut().enumerate() {
                for (prg, second) in seeds.iter_mut().zip(second.chunks_exact_mut(n)) {
                    sample::expand(params.prime(limb), prg, second);
                }
                let mut halves = [[&[][..]; 2]; TOGETHER];
                let all = list.iter().zip(second.chunks_exact(n));
                for (halves, (ct, second)) in halves.iter_mut().zip(all) {
                    *halves = [ct.c0.limb(limb), second];
                }
                let mut place = places.next().expect("a place for each eight");
                place.put(params.simd(), &halves[..list.len()]);
            }
        }
    }

    /// Returns those modulo one prime.
    pub(super) fn limb(&self, limb: usize) -> &PointTerms {
        &self.0[limb]
    }
}

/// Sums of products modulo one prime.
#[derive(Default)]
pub(super) struct Sums(Option<PointSums>);

impl Sums {
    /// Computes the sums of all rows of some weights.
    pub(super) fn multiply(
        &mut self,
        params: &Params,
        weights: &PointWeights,
        terms: &PointTerms,
    ) -> &PointSums {
        let (points, rows) = (weights.points(), weights.rows());
        let sums = self.0.get_or_insert_with(|| PointSums::zeros(points, rows));
        sums.reuse(points, rows);
        multiply(params.simd(), weights, terms, sums);
        sums
    }
}

/// Returns the first `len` numbers of a buffer, which grows if it has to.
pub(super) fn sized<T: Copy + Default + Zeroize>(buffer: &mut Vec<T>, len: usize) -> &mut [T] {
    if buffer.len() < len {
        buffer.zeroize();
        *buffer = vec![T::default(); len];
    }
    &mut buffer[..len]
}

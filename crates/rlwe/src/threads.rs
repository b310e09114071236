//! Work that is divided between threads.
//!
//! Ciphertexts do not depend on each other, so a message is divided into as many parts as there are
//! threads, each with memory and randomness of its own, and put together in order. Nothing that is
//! sent tells how many there were.

use primer_ring::prg::{Prg, SecretSeed};
pub(crate) use primer_ring::threads::each;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Runs jobs that draw: each gets a generator that is seeded from this one. A single job
/// draws from this one itself.
pub(crate) fn each_random<J: Send, R: Send>(
    jobs: Vec<J>,
    mut rng: &mut impl CryptoRng,
    run: impl Fn(J, &mut dyn CryptoRng) -> R + Sync,
) -> Vec<R> {
    if jobs.len() < 2 {
        return jobs.into_iter().map(|job| run(job, &mut rng)).collect();
    }
    let seeded = jobs.into_iter().map(|job| {
        let mut seed = Zeroizing::new(SecretSeed::default());
        rng.fill_bytes(&mut seed[..]);
        (job, Prg::secret(&seed))
    });
    each(seeded.collect(), |(job, mut prg)| run(job, &mut prg))
}

/// Counts the things that each of at most `threads` parts of `count` has, but for the last.
pub(crate) fn share(count: usize, threads: usize) -> usize {
    count.div_ceil(threads.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;

    #[test]
    fn jobs_draw_apart() {
        let mut rng = Prg::new(&[1; 16]);
        let mut drawn = each_random(vec![(); 4], &mut rng, |(), rng| rng.next_u64());
        drawn.push(rng.next_u64());
        drawn.sort_unstable();
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]));
        // One job has the generator itself.
        let [mut a, mut b] = [Prg::new(&[2; 16]), Prg::new(&[2; 16])];
        assert_eq!(
            each_random(vec![()], &mut a, |(), rng| rng.next_u64()),
            [b.next_u64()]
        );
        assert_eq!((share(7, 2), share(0, 3), share(5, 0)), (4, 1, 5));
    }
}

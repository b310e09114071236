//! Work that is divided between threads.
//!
//! Ciphertexts do not depend on each other, so a message is divided into as many parts as there are
//! threads, each with memory and randomness of its own, and put together in order. Nothing that is
//! sent tells how many there were.

use primer_ring::prg::{Prg, SEED_BYTES};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Does each job in a thread of its own, the last in this one; gives their results in order.
pub(crate) fn each<J: Send, R: Send>(jobs: Vec<J>, run: impl Fn(J) -> R + Sync) -> Vec<R> {
    let mut jobs = jobs;
    let Some(last) = jobs.pop() else {
        return Vec::new();
    };
    std::thread::scope(|scope| {
        let run = &run;
        let others: Vec<_> = jobs
            .into_iter()
            .map(|job| scope.spawn(move || run(job)))
            .collect();
        let last = run(last);
        let joined = others.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let mut results: Vec<_> = joined.collect();
        results.push(last);
        results
    })
}

/// The same for jobs that draw: each gets a generator that is seeded from this one. A single job
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
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        rng.fill_bytes(&mut seed[..]);
        (job, Prg::new(&seed))
    });
    each(seeded.collect(), |(job, mut prg)| run(job, &mut prg))
}

/// How many of `count` things each of at most `threads` parts has, but for the last.
pub(crate) fn share(count: usize, threads: usize) -> usize {
    count.div_ceil(threads.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;

    #[test]
    fn results_come_in_order_and_draw_apart() {
        let mut rng = Prg::new(&[1; 16]);
        assert_eq!(each(vec![3, 1, 2], |x| 2 * x), [6, 2, 4]);
        assert!(each(Vec::<u8>::new(), |x| x).is_empty());
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

    #[test]
    #[should_panic(expected = "one of them")]
    fn a_panic_is_passed_on() {
        each(vec![0, 1], |x| assert!(x != 0, "one of them"));
    }
}

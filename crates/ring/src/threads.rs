//! Work that is divided between threads.
//!
//! A system may refuse a thread: a server has many sessions, and each of them divides its work. Or
//! it has none at all, as `wasm32-unknown-unknown`. A job that gets no thread is done by the one
//! that asked for it, so a refusal costs time and nothing else. All threads of a client are started
//! here.

use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Drops a value in a thread of its own, or here if there is none: giving back gigabytes takes the
/// system most of a second.
pub fn drop_aside<T: Send + 'static>(value: T) {
    // A thread that cannot be started drops what it was given.
    let _ = Builder::new().spawn(move || drop(value));
}

/// Returns how many threads to work with: as many as were asked for, or as the machine has cores
/// for.
pub fn or_cores(asked: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.unwrap_or_else(cores).max(1)
}

/// Runs each job in a thread of its own, the last in this one, and returns their results in order.
///
/// # Panics
/// If a job panics.
pub fn each<J: Send, R: Send>(jobs: Vec<J>, run: impl Fn(J) -> R + Sync) -> Vec<R> {
    each_in(Builder::new, jobs, run)
}

/// Does the same as [`each`] in threads of a certain kind.
fn each_in<J: Send, R: Send>(
    kind: impl Fn() -> Builder,
    mut jobs: Vec<J>,
    run: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let Some(last) = jobs.pop() else {
        return Vec::new();
    };
    // A thread that cannot be started drops what it was given; so it is given the place of its job.
    let places: Vec<_> = jobs.into_iter().map(|job| Mutex::new(Some(job))).collect();
    let work = |place: &Mutex<Option<J>>| {
        let job = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        run(job.expect("a job is done once"))
    };
    std::thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = places
            .iter()
            .map(|place| kind().spawn_scoped(scope, move || work(place)))
            .collect();
        let last = run(last);
        let done = started.into_iter().zip(&places).map(|(thread, place)| {
            let Ok(thread) = thread else {
                return work(place);
            };
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let mut results: Vec<_> = done.collect();
        results.push(last);
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order() {
        assert_eq!(each(vec![3, 1, 2], |x| 2 * x), [6, 2, 4]);
        assert!(each(Vec::<u8>::new(), |x| x).is_empty());
    }

    #[test]
    fn what_gets_no_thread_is_done_here() {
        // No system has room for such a stack.
        let impossible = || Builder::new().stack_size(1 << 46);
        assert!(impossible().spawn(|| ()).is_err());
        let here = std::thread::current().id();
        let done = each_in(impossible, vec![3, 1, 2], |x| {
            (2 * x, std::thread::current().id() == here)
        });
        assert_eq!(done, [(6, true), (2, true), (4, true)]);
    }

    #[test]
    #[should_panic(expected = "one of them")]
    fn a_panic_is_passed_on() {
        each(vec![0, 1], |x| assert!(x != 0, "one of them"));
    }
}

//! The model, compiled for each length that is in use.
//!
//! All lengths multiply by what belongs to the hint, which they share. What is made for a length is
//! its program, once for all clients of the length, when the first one asks; others that ask
//! meanwhile wait for the same one.
//!
//! **Memory.** At most as many lengths as the operator allows are there *at any moment*. One that
//! is not in use makes room for another, the least recently used first. If all are in use, a client
//! that wants another waits a while ([`QUEUE`]) for one of them, and is told to try again later if
//! none gets free.

use primer_engine::server::ServerModel;
use primer_engine::{Program, ProtocolError, Reveal, cost, output_bits};
use primer_hint::multipliers::Multipliers;
use primer_model::quantise::IntModel;
use primer_service::ServiceError;
use primer_service::message::Refusal;
use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a client waits for one of the lengths in use to get free.
const QUEUE: Duration = Duration::from_secs(20);

/// The model compiled for one length.
pub(crate) struct Built {
    pub(crate) program: Program,
    /// What a stored bundle must have been made for: this program, these weights and this hint.
    pub(crate) binding: [u8; 32],
    /// Bytes of the server's half of a bundle.
    pub(crate) stored: u64,
    pub(crate) model: ServerModel,
}

/// What all users of a length use once it is made.
type Shelf = Arc<Mutex<Option<Arc<Built>>>>;

/// One length: how many use it, and what.
struct Slot {
    tokens: usize,
    users: usize,
    built: Shelf,
}

/// All lengths of a model.
pub(crate) struct Models {
    model: Arc<IntModel>,
    reveal: Reveal,
    /// What all lengths multiply with.
    multipliers: Arc<Multipliers>,
    keep: usize,
    queue: Duration,
    /// The most recently used length is the last.
    slots: Mutex<Vec<Slot>>,
    freed: Condvar,
}

impl Models {
    pub(crate) fn new(
        model: Arc<IntModel>,
        multipliers: Arc<Multipliers>,
        reveal: Reveal,
        keep: usize,
    ) -> Self {
        Self {
            model,
            reveal,
            multipliers,
            keep: keep.max(1),
            queue: QUEUE,
            slots: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    pub(crate) fn program(&self, tokens: usize) -> Result<Program, ServiceError> {
        let program = Program::of(&self.model, tokens, self.reveal)?;
        // Its fingerprint, and with it what bundles are bound to, covers the hint.
        Ok(program.with_hint(self.multipliers.identity())?)
    }

    /// Counts the bits that an answer can carry at each of some lengths, those of range flags
    /// included.
    pub(crate) fn answer_bits(
        &self,
        lengths: &[u32],
        flags: u64,
    ) -> Result<Vec<u32>, ServiceError> {
        let each = lengths.iter().map(|tokens| {
            let plan = self.model.plan(*tokens as usize);
            let plan = plan.map_err(ProtocolError::from)?;
            let bits = flags + output_bits(&plan, self.reveal);
            Ok(u32::try_from(bits).unwrap_or(u32::MAX))
        });
        each.collect()
    }

    /// Returns the model for a length, made if it is not there; it stays until the caller lets go
    /// of it.
    pub(crate) fn get(&self, tokens: usize) -> Result<InUse<'_>, ServiceError> {
        let (claim, slot) = self.claim(tokens)?;
        let mut built = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(built) = &*built {
            let built = Arc::clone(built);
            return Ok(InUse { built, claim });
        }
        let started = Instant::now();
        let program = self.program(tokens)?;
        let mut hasher = blake3::Hasher::new_derive_key("primer 2026 bundle binding");
        hasher.update(program.fingerprint());
        hasher.update(self.model.source());
        let made = Arc::new(Built {
            binding: *hasher.finalize().as_bytes(),
            stored: cost::stored(&program).server,
            model: ServerModel::new(
                Arc::clone(&self.model),
                &program,
                Some(Arc::clone(&self.multipliers)),
            )?,
            program,
        });
        tracing::info!(
            tokens,
            seconds = started.elapsed().as_secs_f64(),
            "compiled the model for a length"
        );
        *built = Some(Arc::clone(&made));
        Ok(InUse { built: made, claim })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place among the users of a length, once there is room for it.
    fn claim(&self, tokens: usize) -> Result<(LengthClaim<'_>, Shelf), Refusal> {
        let deadline = Instant::now() + self.queue;
        let mut slots = self.lock();
        let mut slot = loop {
            if let Some(index) = slots.iter().position(|slot| slot.tokens == tokens) {
                break slots.remove(index);
            }
            if slots.len() >= self.keep
                && let Some(index) = slots.iter().position(|slot| slot.users == 0)
            {
                let slot = slots.remove(index);
                let tokens = slot.tokens;
                tracing::info!(tokens, "unloaded the model for a length");
            }
            if slots.len() < self.keep {
                break Slot {
                    tokens,
                    users: 0,
                    built: Arc::default(),
                };
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Refusal::Lengths(self.keep as u32));
            }
            let woken = self.freed.wait_timeout(slots, left);
            slots = woken.unwrap_or_else(PoisonError::into_inner).0;
        };
        slot.users += 1;
        let built = Arc::clone(&slot.built);
        slots.push(slot);
        let models = self;
        Ok((LengthClaim { models, tokens }, built))
    }
}

/// The model for a length, kept in memory by its user.
pub(crate) struct InUse<'a> {
    built: Arc<Built>,
    #[expect(
        dead_code,
        reason = "it is there to be dropped, after what it holds a place for"
    )]
    claim: LengthClaim<'a>,
}

impl Deref for InUse<'_> {
    type Target = Built;

    fn deref(&self) -> &Built {
        &self.built
    }
}

/// A place among the users of a length.
struct LengthClaim<'a> {
    models: &'a Models,
    tokens: usize,
}

impl Drop for LengthClaim<'_> {
    fn drop(&mut self) {
        let mut slots = self.models.lock();
        if let Some(slot) = slots.iter_mut().find(|slot| slot.tokens == self.tokens) {
            slot.users -= 1;
        }
        drop(slots);
        self.models.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Model;
    use primer_engine::hints::contents_of;
    use primer_hint::published::Identity;
    use std::sync::Weak;

    fn models(keep: usize) -> Models {
        models_with(keep, 0)
    }

    /// Makes models whose hint has a root.
    fn models_with(keep: usize, root: u8) -> Models {
        let model = Model::load(None).unwrap();
        let model = model.prepare(None, None, |_, _| ());
        let model = Arc::new(model.unwrap());
        let identity = Identity {
            name: [7; 32],
            bytes: contents_of(&model).unwrap().bytes(),
            root: [root; 32],
        };
        let multipliers = Arc::new(Multipliers::in_memory(identity, Vec::new()));
        Models {
            queue: Duration::from_millis(50),
            ..Models::new(model, multipliers, Reveal::Outputs, keep)
        }
    }

    #[test]
    fn no_more_lengths_are_kept_than_may_be() {
        let models = models(2);
        let alive = |all: &[Weak<Built>]| all.iter().filter(|w| w.strong_count() > 0).count();
        let mut all: Vec<Weak<Built>> = Vec::new();
        let mut take = |tokens| {
            let taken = models.get(tokens)?;
            let this = Arc::downgrade(&taken.built);
            all.retain(|other| !other.ptr_eq(&this));
            all.push(this);
            assert!(alive(&all) <= 2, "{} lengths in memory", alive(&all));
            Ok(taken)
        };
        let first = take(8).unwrap();
        let second = take(16).unwrap();
        let again = take(8).unwrap();
        let refused: Result<_, ServiceError> = take(24);
        let refused = refused.err().expect("both lengths are in use");
        assert!(matches!(
            refused,
            ServiceError::Refused(Refusal::Lengths(2))
        ));
        // One of two users leaves: the length is still in use.
        drop(first);
        assert!(take(24).is_err());
        drop(second);
        let third = take(24).unwrap();
        assert_eq!(third.program.plan().graph().tokens, 24);
        // A length that is there is found again, in use or not.
        drop(third);
        drop(again);
        take(24).unwrap();
        take(8).unwrap();
        assert_eq!(models.lock().len(), 2);
    }

    /// Binds bundles to the hint: one that another secret makes of these weights is another one.
    #[test]
    fn bundles_are_bound_to_the_hint() {
        let with = |root: u8| {
            let models = models_with(1, root);
            let built = models.get(8).unwrap();
            assert_eq!(built.program.hint(), Some(models.multipliers.identity()));
            built.binding
        };
        let one = with(1);
        assert_eq!(one, with(1));
        assert!(one != with(2));
    }

    #[test]
    fn who_waits_gets_the_place_that_gets_free() {
        let models = Models {
            queue: Duration::from_secs(60),
            ..models(1)
        };
        let first = models.get(8).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| models.get(16).map(|taken| taken.stored));
            std::thread::sleep(Duration::from_millis(50));
            assert!(!waiting.is_finished());
            drop(first);
            assert!(waiting.join().unwrap().unwrap() > 0);
        });
    }
}

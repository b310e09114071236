//! When a client tries again, and when it gives up.
//!
//! Two bounds, for two kinds of failure:
//!
//! - A connection that breaks *in the middle of work* (a batch of bundles in the making, a bundle
//!   that is spent) costs an attempt ([`ClientOptions::attempts`]), and so does every bundle that
//!   is prepared for one question. A server that breaks every connection, or finds fault with
//!   every bundle, is tried a fixed number of times.
//! - A server that is *away* costs time ([`ClientOptions::wait`]): it may restart, or calibrate a
//!   model for a minute. It says *later* (it is full, it is stopping), or refuses connections, or
//!   something in front of it takes them and drops them before a word of the server's arrives:
//!   during the handshake, the greeting or the tokenizer, or instead of an answer to a request.
//!   Nothing is lost by that, so it is asked until the time is over. The time counts from the
//!   moment when the server was missed, and anew after work that was begun or done: it was back by
//!   then.
//!
//! Everything else is final and said at once: a certificate that is not trusted or not accepted,
//! another version, a token that is not known, a message that makes no sense.
//!
//! Pauses grow and are drawn at random, so that clients that were sent away together do not come
//! back together.

use super::{ClientOptions, Event};
use primer_service::{ServiceError, random};
use primer_wire::clock::now;
use std::time::Duration;

/// How long a server that says *later* is asked again if the options do not say how long.
const LATER: Duration = Duration::from_secs(30);
/// The longest pause before another attempt, before chance is applied.
const LONGEST: Duration = Duration::from_secs(8);

/// What has been tried of one piece of work.
pub(super) struct Tries {
    /// Which attempt this is.
    attempt: u32,
    /// When the server was missed, if it is.
    missed: Option<Duration>,
    /// Pauses since then.
    pauses: u32,
}

impl Tries {
    pub(super) fn new() -> Self {
        Self {
            attempt: 1,
            missed: None,
            pauses: 0,
        }
    }

    /// Notes that the server was there and worked: if it is missed again, it is for the first time.
    pub(super) fn worked(&mut self) {
        (self.missed, self.pauses) = (None, 0);
    }

    /// Tells the observer that there is another try after an error, and returns the pause before
    /// it.
    ///
    /// # Errors
    /// The error, if it is time to give up.
    pub(super) fn another(
        &mut self,
        error: ServiceError,
        address: &str,
        options: &ClientOptions,
        observer: &mut dyn FnMut(Event<'_>),
    ) -> Result<Duration, ServiceError> {
        options.hang_up.check()?;
        let before = self.attempt;
        let Some(pause) = self.again(&error, options) else {
            let wait = options.wait.unwrap_or_default();
            return Err(error.at(address, self.attempt, wait));
        };
        let (error, attempt) = (&error, self.attempt);
        observer(match attempt == before {
            true => Event::Waiting { error, pause },
            false => Event::Retry { error, attempt },
        });
        Ok(pause)
    }

    /// Returns the pause before another try after an error; none, if it is time to give up.
    fn again(&mut self, error: &ServiceError, options: &ClientOptions) -> Option<Duration> {
        use ServiceError::{Away, Connect, Refused};
        let wait = match error {
            Refused(refusal) if refusal.is_temporary() => options.wait.unwrap_or(LATER),
            Connect { .. } | Away { .. } => options.wait.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        if !wait.is_zero() {
            let missed = *self.missed.get_or_insert_with(now);
            let left = wait.saturating_sub(now().saturating_sub(missed));
            let pause = pause(self.pauses);
            self.pauses += 1;
            return (!left.is_zero()).then(|| pause.min(left));
        }
        let attempts = match error {
            Refused(_) => false,
            // A server that was there a moment ago may be restarting.
            Connect { .. } => self.attempt > 1,
            other => other.is_broken_connection(),
        };
        if !attempts || self.attempt >= options.attempts {
            return None;
        }
        let pause = pause(self.attempt - 1);
        self.attempt += 1;
        self.worked();
        Some(pause)
    }
}

/// Draws a pause around half a second, one, two, and so on; each between half of that and one and a
/// half.
fn pause(before: u32) -> Duration {
    let base = Duration::from_millis(500 << before.min(8)).min(LONGEST);
    // A system without random bytes fails elsewhere.
    let chance = random::<2>().map_or(0.5, |bytes| {
        f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
    });
    base.mul_f64(0.5 + chance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use primer_service::message::Refusal;
    use primer_wire::{Direction, NetError};

    fn options(wait: Option<u64>, attempts: u32) -> ClientOptions {
        ClientOptions {
            wait: wait.map(Duration::from_secs),
            attempts,
            ..ClientOptions::default()
        }
    }

    /// Makes the error of a connection that breaks in the middle of work.
    fn gone() -> ServiceError {
        let direction = Direction::Send;
        NetError::PeerGone { direction }.into()
    }

    fn dropped() -> ServiceError {
        gone().before_answer("somewhere")
    }

    fn unreachable() -> ServiceError {
        ServiceError::Connect {
            address: "somewhere".into(),
            cause: std::io::ErrorKind::ConnectionRefused.into(),
        }
    }

    /// Counts how often there is another try, at most a hundred times.
    fn often(tries: &mut Tries, error: &ServiceError, options: &ClientOptions) -> usize {
        (0..100)
            .take_while(|_| tries.again(error, options).is_some())
            .count()
    }

    #[test]
    fn work_that_breaks_costs_attempts() {
        for wait in [None, Some(0), Some(1000)] {
            assert_eq!(often(&mut Tries::new(), &gone(), &options(wait, 3)), 2);
        }
    }

    #[test]
    fn what_will_not_change_is_final() {
        let nonsense = ServiceError::Nonsense { what: "x".into() };
        let tls = NetError::Tls("an alert".into());
        let tls = ServiceError::from(tls).before_answer("somewhere");
        for refusal in [Refusal::Token, Refusal::Version(1), Refusal::Full] {
            let refused = ServiceError::Refused(refusal);
            assert_eq!(
                often(&mut Tries::new(), &refused, &options(Some(1000), 3)),
                0
            );
        }
        for error in [nonsense, tls] {
            assert_eq!(often(&mut Tries::new(), &error, &options(Some(1000), 3)), 0);
        }
    }

    #[test]
    fn later_costs_time() {
        for refusal in [Refusal::Busy(1), Refusal::Stopping, Refusal::Lengths(1)] {
            let later = ServiceError::Refused(refusal);
            let mut tries = Tries::new();
            assert_eq!(often(&mut tries, &later, &options(None, 1)), 100);
            assert_eq!(tries.attempt, 1);
            assert_eq!(often(&mut tries, &later, &options(Some(0), 9)), 0);
            tries.missed = Some(now() - Duration::from_secs(31));
            assert_eq!(often(&mut tries, &later, &options(None, 9)), 0);
            let left = tries.again(&later, &options(Some(32), 9)).unwrap();
            assert!(left <= Duration::from_secs(1));
        }
    }

    #[test]
    fn a_server_that_is_away_is_waited_for_only_on_demand() {
        for away in [unreachable(), dropped()] {
            let mut tries = Tries::new();
            assert_eq!(often(&mut tries, &away, &options(Some(60), 1)), 100);
            tries.missed = Some(now() - Duration::from_secs(61));
            assert_eq!(often(&mut tries, &away, &options(Some(60), 9)), 0);
        }
        let never = options(None, 3);
        assert_eq!(often(&mut Tries::new(), &unreachable(), &never), 0);
        // A connection that came up and broke is worth an attempt.
        assert_eq!(often(&mut Tries::new(), &dropped(), &never), 2);
        // It was there a moment ago.
        let mut tries = Tries::new();
        assert!(tries.again(&gone(), &never).is_some());
        assert_eq!(often(&mut tries, &unreachable(), &never), 1);
    }

    #[test]
    fn the_wait_counts_anew_after_work() {
        let patient = options(Some(60), 3);
        let mut tries = Tries::new();
        assert!(tries.again(&dropped(), &patient).is_some());
        tries.missed = Some(now() - Duration::from_secs(61));
        // It was back, and the work broke.
        assert!(tries.again(&gone(), &patient).is_some());
        assert_eq!(often(&mut tries, &dropped(), &patient), 100);
        tries.missed = Some(now() - Duration::from_secs(61));
        assert_eq!(often(&mut tries, &dropped(), &patient), 0);
        tries.worked();
        assert_eq!(often(&mut tries, &dropped(), &patient), 100);
    }

    #[test]
    fn the_last_word_says_what_was_tried() {
        let mut heard = 0;
        let mut last = |wait| {
            let (mut tries, options) = (Tries::new(), options(Some(wait), 1));
            tries.missed = Some(now() - Duration::from_secs(61));
            let mut observer = |_: Event<'_>| heard += 1;
            let ended = tries.another(dropped(), "elsewhere", &options, &mut observer);
            ended.unwrap_err().to_string()
        };
        let (waited, hasty) = (last(60), last(0));
        assert!(waited.contains("retried for 60 s"), "{waited}");
        assert!(hasty.ends_with("the server behind it is down"), "{hasty}");
        assert!(waited.contains("somewhere ended the connection") && heard == 0);
    }

    #[test]
    fn pauses_grow_and_differ() {
        let first: std::collections::HashSet<Duration> = (0..20).map(|_| pause(0)).collect();
        assert!(first.len() > 10, "{first:?}");
        let within = |pause: &Duration, base: u64| {
            (base / 2..=base * 3 / 2).contains(&(pause.as_millis() as u64))
        };
        assert!(first.iter().all(|pause| within(pause, 500)));
        assert!(within(&pause(3), 4000));
        assert!(within(&pause(100), 8000));
    }
}

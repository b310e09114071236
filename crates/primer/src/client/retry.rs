//! When a client tries again, and when it gives up.
//!
//! Two bounds, for two kinds of failure:
//!
//! - A connection that *breaks* costs an attempt ([`ClientOptions::attempts`]), and so does every
//!   bundle that is prepared for one question. A server that breaks every connection, or finds
//!   fault with every bundle, is tried a fixed number of times.
//! - A server that says *later* (it is full, it is stopping), or that cannot be reached, costs time
//!   ([`ClientOptions::wait`]): it may restart, or calibrate a model for a minute. Pauses grow and
//!   are drawn at random, so that clients that were sent away together do not come back together.

use super::ClientOptions;
use crate::service::{ServiceError, random};
use std::time::{Duration, Instant};

/// How long a server that says *later* is asked again if nobody says how long.
const LATER: Duration = Duration::from_secs(30);
/// The longest pause before another attempt, before chance is applied.
const LONGEST: Duration = Duration::from_secs(8);

/// What has been tried of one piece of work.
pub(super) struct Tries {
    started: Instant,
    /// Which attempt this is.
    pub(super) attempt: u32,
    pauses: u32,
}

impl Tries {
    pub(super) fn new() -> Self {
        Self {
            started: Instant::now(),
            attempt: 1,
            pauses: 0,
        }
    }

    /// The pause before another try after an error; none, if it is time to give up. `opening` says
    /// whether the connection was not up yet.
    pub(super) fn again(
        &mut self,
        error: &ServiceError,
        opening: bool,
        options: &ClientOptions,
    ) -> Option<Duration> {
        let pause = self.pause();
        let broken = error.is_broken_connection();
        let unreachable = matches!(error, ServiceError::Connect { .. }) || (opening && broken);
        let wait = match error {
            ServiceError::Refused(refusal) if refusal.is_temporary() => {
                options.wait.unwrap_or(LATER)
            }
            _ if unreachable => options.wait.unwrap_or_default(),
            _ => Duration::ZERO,
        };
        let left = wait.saturating_sub(self.started.elapsed());
        if !left.is_zero() {
            self.pauses += 1;
            return Some(pause.min(left));
        }
        // A server that was there a moment ago may be restarting.
        let restarting = unreachable && self.attempt > 1;
        let refused = matches!(error, ServiceError::Refused(_));
        if (broken && !refused || restarting) && self.attempt < options.attempts {
            self.attempt += 1;
            self.pauses += 1;
            return Some(pause);
        }
        None
    }

    /// Half a second, one, two, and so on; each between half of that and one and a half.
    fn pause(&self) -> Duration {
        let base = Duration::from_millis(500 << self.pauses.min(8)).min(LONGEST);
        // A system without random bytes fails elsewhere.
        let chance = random::<2>().map_or(0.5, |bytes| {
            f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
        });
        base.mul_f64(0.5 + chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::message::Refusal;
    use primer_net::{Direction, NetError};

    fn options(wait: Option<u64>, attempts: u32) -> ClientOptions {
        ClientOptions {
            wait: wait.map(Duration::from_secs),
            attempts,
            ..ClientOptions::default()
        }
    }

    fn gone() -> ServiceError {
        let direction = Direction::Send;
        NetError::PeerGone { direction }.into()
    }

    fn unreachable() -> ServiceError {
        ServiceError::Connect {
            address: "somewhere".into(),
            cause: std::io::ErrorKind::ConnectionRefused.into(),
        }
    }

    #[test]
    fn broken_connections_cost_attempts() {
        for wait in [None, Some(0), Some(1000)] {
            let mut tries = Tries::new();
            assert!(tries.again(&gone(), false, &options(wait, 3)).is_some());
            assert!(tries.again(&gone(), false, &options(wait, 3)).is_some());
            assert!(tries.again(&gone(), false, &options(wait, 3)).is_none());
        }
        let mut tries = Tries::new();
        let refused = ServiceError::Refused(Refusal::Token);
        assert!(
            tries
                .again(&refused, true, &options(Some(1000), 3))
                .is_none()
        );
    }

    #[test]
    fn later_costs_time() {
        for refusal in [Refusal::Busy(1), Refusal::Stopping, Refusal::Lengths(1)] {
            let later = ServiceError::Refused(refusal);
            let mut tries = Tries::new();
            for _ in 0..100 {
                assert!(tries.again(&later, true, &options(None, 1)).is_some());
            }
            assert_eq!(tries.attempt, 1);
            assert!(tries.again(&later, true, &options(Some(0), 9)).is_none());
            tries.started -= Duration::from_secs(31);
            assert!(tries.again(&later, true, &options(None, 9)).is_none());
            let left = tries.again(&later, true, &options(Some(32), 9)).unwrap();
            assert!(left <= Duration::from_secs(1));
        }
    }

    #[test]
    fn a_server_that_cannot_be_reached_is_waited_for_only_on_demand() {
        let mut tries = Tries::new();
        assert!(
            tries
                .again(&unreachable(), true, &options(None, 3))
                .is_none()
        );
        assert!(
            tries
                .again(&unreachable(), true, &options(Some(60), 3))
                .is_some()
        );
        // It accepts connections and says nothing yet: it is starting.
        assert!(tries.again(&gone(), true, &options(Some(60), 1)).is_some());
        // It was there a moment ago.
        let mut tries = Tries::new();
        assert!(tries.again(&gone(), false, &options(None, 3)).is_some());
        assert!(
            tries
                .again(&unreachable(), true, &options(None, 3))
                .is_some()
        );
        assert!(
            tries
                .again(&unreachable(), true, &options(None, 3))
                .is_none()
        );
    }

    #[test]
    fn pauses_grow_and_differ() {
        let mut tries = Tries::new();
        let first: std::collections::HashSet<Duration> = (0..20).map(|_| tries.pause()).collect();
        assert!(first.len() > 10, "{first:?}");
        let within = |pause: &Duration, base: u64| {
            (base / 2..=base * 3 / 2).contains(&(pause.as_millis() as u64))
        };
        assert!(first.iter().all(|pause| within(pause, 500)));
        tries.pauses = 3;
        assert!(within(&tries.pause(), 4000));
        tries.pauses = 100;
        assert!(within(&tries.pause(), 8000));
    }
}

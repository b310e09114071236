//! The connection that bundles are prepared on: that of the questions, unless an operator gave
//! preparation, the heavy part, replicas and an address of its own.

use super::link::{Link, Prepared};
use super::{Client, ClientOptions};
use crate::service::ServiceError;

impl Client {
    /// Takes the connection to prepare on, brought up if there is none.
    fn take_preparing(&mut self) -> Result<Link, ServiceError> {
        self.link()?;
        let Some(address) = self.options.prepare_at.clone() else {
            return Ok(self.link.take().expect("just brought up"));
        };
        if let Some(link) = self.preparing.take() {
            return Ok(link);
        }
        // The same pseudonym: to the replicas it is one client.
        let (options, pseudonym) = (&self.options, &self.pseudonym);
        let link = Link::open(&address, options, &mut self.known, pseudonym)?;
        if link.card.generation != self.card.generation || link.card.scheme != self.card.scheme {
            return Err(ServiceError::Nonsense {
                what: format!(
                    "at {address}, the card of another model than at {}",
                    self.address
                ),
            });
        }
        Ok(link)
    }

    /// One offline phase.
    pub(super) fn try_prepare(
        &mut self,
        tokens: usize,
        bundles: usize,
    ) -> Result<Prepared, ServiceError> {
        let mut link = self.take_preparing()?;
        let peer = self.peer();
        let place = (&self.store, &*self.address, &peer, self.options.expiry);
        link.threads = crate::threads(self.options.threads);
        let prepared = link.prepare((tokens, bundles), place, &mut *self.observer);
        self.preparations += u64::from(prepared.is_ok());
        if let (Ok(_), Some(program)) = (&prepared, link.program()) {
            self.programs.keep(program.clone());
        }
        // Who was refused can go on; after anything else the two sides may disagree on where they
        // are.
        if matches!(prepared, Ok(_) | Err(ServiceError::Refused(_))) {
            let kept = match self.options {
                ClientOptions {
                    prepare_at: Some(_),
                    ..
                } => &mut self.preparing,
                _ => &mut self.link,
            };
            *kept = Some(link);
        }
        prepared
    }
}

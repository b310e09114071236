//! The connection that bundles are prepared on: that of the questions, unless an operator gave
//! preparation, the heavy part, replicas and an address of its own.

use super::Client;
use super::link::{Link, Prepared};
use primer_hint::published::Identity;
use primer_service::ServiceError;
use primer_service::message::Card;

impl Client {
    /// Takes the connection to prepare on, brought up if there is none.
    fn take_prepare_link(&mut self) -> Result<Link, ServiceError> {
        self.link()?;
        let Some(address) = self.options.prepare_at.clone() else {
            return Ok(self.link.take().expect("just brought up"));
        };
        if let Some(link) = self.preparing.take() {
            return Ok(link);
        }
        // The same pseudonym: to the replicas it is one client.
        let (options, dial) = (&self.options, &mut *self.parts.dial);
        let link = Link::open(&address, options, dial, &self.pseudonym)?;
        let known = |card: &Card| (card.generation, card.hint);
        if known(&link.card) != known(&self.card) {
            return Err(ServiceError::Nonsense {
                what: format!(
                    "at {address}, the card of another model than at {}",
                    self.address
                ),
            });
        }
        Ok(link)
    }

    /// Does something on the connection to prepare on.
    fn with_prepare_link<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &mut Link) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        let mut link = self.take_prepare_link()?;
        let done = work(self, &mut link);
        // Who was refused can go on; after anything else the two sides may disagree on where they
        // are.
        if matches!(done, Ok(_) | Err(ServiceError::Refused(_))) {
            let kept = match self.options.prepare_at {
                Some(_) => &mut self.preparing,
                None => &mut self.link,
            };
            *kept = Some(link);
        }
        done
    }

    /// Runs one offline phase.
    pub(super) fn try_prepare(
        &mut self,
        tokens: usize,
        bundles: usize,
    ) -> Result<Prepared, ServiceError> {
        self.with_prepare_link(|client, link| {
            let hint = client.hint(link)?;
            let peer = client.peer();
            let place = (
                &*client.parts.bundles,
                &*client.address,
                &peer,
                client.options.expiry,
            );
            link.threads = primer_ring::threads::or_cores(client.options.threads);
            let observer = &mut *client.observer;
            let prepared = link.prepare((tokens, bundles), hint, place, observer)?;
            client.work_done += 1;
            if let Some(program) = link.program() {
                client.programs.keep(program.clone());
            }
            Ok(prepared)
        })
    }

    /// Fetches the model's hint, unless it is here; bundles are prepared with it. It is fetched by
    /// itself before the first bundle is prepared; this is for doing so ahead of time.
    ///
    /// # Errors
    /// [`ServiceError`]; what was fetched stays, and is not fetched again.
    pub fn fetch_hint(&mut self) -> Result<Identity, ServiceError> {
        let hint = self.with_retry(|client| client.with_prepare_link(Self::hint))?;
        Ok(*hint.identity())
    }
}

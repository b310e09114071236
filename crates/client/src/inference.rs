//! One inference: a bundle is taken or prepared, offered to the server, spent, and used.

use super::link::{check_program, read_attachment, store_error};
use super::{Client, Cost, Event};
use primer_engine::Program;
use primer_engine::client::Answer;
use primer_plan::plan::Plan;
use primer_service::ServiceError;
use primer_store::{Entry, StoreError, unix_now};
use primer_text::Input;
use primer_wire::clock::now;

impl Client {
    /// Computes the model's outputs for tokens.
    pub(super) fn infer(&mut self, input: &Input) -> Result<(Answer, Cost), ServiceError> {
        let (mut cost, mut fresh) = (Cost::default(), 0);
        let answer = self.with_retry(|client| client.try_infer(input, &mut cost, &mut fresh))?;
        Ok((answer, cost))
    }

    /// Makes one attempt. Stored bundles that the server does not know any more are passed over;
    /// each goes for good, so there is an end. A bundle just prepared that it does not know is its
    /// fault, and an error; `fresh` counts those that were prepared for this answer.
    fn try_infer(
        &mut self,
        input: &Input,
        cost: &mut Cost,
        fresh: &mut u32,
    ) -> Result<Answer, ServiceError> {
        loop {
            self.link()?;
            let (entry, ahead) = match self.find(input.tokens())? {
                Some(entry) => (entry, true),
                None => {
                    let tokens = self.bucket(input.tokens())?;
                    if *fresh >= self.options.attempts {
                        return Err(ServiceError::Elsewhere { bundles: *fresh });
                    }
                    *fresh += 1;
                    let prepared = self.prepare_some(tokens, 1)?;
                    cost.offline_s += prepared.seconds;
                    cost.bytes += prepared.bytes;
                    let entries = self.parts.bundles.list().map_err(store_error)?;
                    let entry = entries.into_iter().find(|e| prepared.ids.contains(&e.id));
                    let Some(entry) = entry else {
                        continue; // Another process of ours was faster.
                    };
                    (entry, false)
                }
            };
            let Some(program) = self.program(&entry)? else {
                continue; // Another process of ours was faster.
            };
            let started = now();
            match self.link()?.ask(entry.id, entry.program) {
                Err(ServiceError::Refused(refusal)) if refusal.is_about_a_bundle() => {
                    let id = entry.id;
                    (self.observer)(Event::Discarded {
                        id,
                        refusal: &refusal,
                    });
                    self.discard(id)?;
                    if !ahead {
                        return Err(ServiceError::Fickle { refusal });
                    }
                    continue;
                }
                result => result?,
            }
            let spent = match self.parts.bundles.spend(entry.id, &entry.peer, unix_now()) {
                Ok(spent) => spent,
                Err(
                    StoreError::Gone { .. }
                    | StoreError::Unknown { .. }
                    | StoreError::Expired { .. }
                    | StoreError::Damaged { .. },
                ) => {
                    self.link()?.withdraw()?;
                    continue;
                }
                Err(error) => return Err(store_error(error)),
            };
            let mut padded = input.clone();
            padded.pad_to(entry.tokens as usize, self.text.padding());
            let link = self.link.as_mut().expect("asked on it");
            let mut answer = link.infer(&program, spent, &padded, &mut cost.bytes)?;
            self.shown = std::mem::take(&mut answer.shown);
            cost.online_s += (now() - started).as_secs_f64();
            cost.tokens = padded.tokens();
            cost.prepared_ahead = ahead;
            return Ok(answer);
        }
    }

    /// Returns the program that a bundle was prepared for, compiled unless it was before; none if
    /// the bundle is gone.
    fn program(&mut self, entry: &Entry) -> Result<Option<Program>, ServiceError> {
        if let Some(program) = self.programs.get(&entry.program) {
            return Ok(Some(program));
        }
        let unusable = |why| ServiceError::Bundle { id: entry.id, why };
        let attachment = self
            .parts
            .bundles
            .attachment(entry.id)
            .map_err(store_error)?;
        if attachment.is_none() && !self.parts.bundles.contains(entry.id).map_err(store_error)? {
            return Ok(None);
        }
        let (_, plan) = (attachment.as_deref())
            .and_then(read_attachment)
            .ok_or_else(|| unusable("its plan is missing"))?;
        let plan = Plan::decode(plan).map_err(|_| unusable("its plan cannot be read"))?;
        let program = Program::received(plan, self.card.reveal)?;
        let program = program.with_hint(&self.card.hint)?;
        if *program.fingerprint() != entry.program {
            return Err(unusable("its plan is another one"));
        }
        check_program(&program, &self.card)?;
        self.programs.keep(program.clone());
        Ok(Some(program))
    }
}

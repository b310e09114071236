//! Products of two secrets, whatever they are made of.
//!
//! Two protocols compute them, and this is the one face that the two parties see:
//!
//! * [`fhgs`]: both factors are values of the plan;
//! * [`chgs`]: one factor is the image of the other under weights of the server's.
//!
//! Both have the same course. Offline, exchanges that leave the client with the terms that it knows
//! already; online the server opens its shares against masks, the client sends its share of the
//! result minus a fresh mask, or both hand what they have to a stop. The online part comes in
//! halves, as that of stops does: products and stops that need nothing of each other share a round
//! trip.

use crate::chgs::{self, Merged};
use crate::client::OnlineClient;
use crate::error::Result;
use crate::exchange::{Exchange, Source};
use crate::fhgs::{self, Factors};
use crate::masks::Masks;
use crate::scheme::Recipe;
use crate::seeds::Seeds;
use crate::server::{OnlineServer, ServerModel};
use crate::share::Share;
use crate::work::Kept;
use primer_he::product::EncodedWeights;
use primer_plan::graph::{Graph, Step, ValueId};
use primer_plan::plan::Plan;
use primer_wire::Channel;

/// A product of two secrets.
pub(crate) enum SecretProduct {
    /// Of two values.
    Factors(Factors),
    /// Of a value with its own image: scores straight from the input of a layer.
    Merged(Merged),
}

impl SecretProduct {
    /// Of a step; none unless it is such a product.
    pub(crate) fn of(plan: &Plan, recipe: &Recipe, step: &Step) -> Option<Self> {
        let merged = || Merged::of(plan, step).map(Self::Merged);
        let factors = Factors::of(plan.graph(), recipe, step);
        factors.map(Self::Factors).or_else(merged)
    }

    /// Returns its factors, if both are values of the plan.
    pub(crate) fn factors(&self) -> Option<Factors> {
        match self {
            Self::Factors(factors) => Some(*factors),
            Self::Merged(_) => None,
        }
    }

    /// The homomorphic exchanges that prepare it, for some bundles together.
    pub(crate) fn exchanges(
        &self,
        graph: &Graph,
        recipe: &Recipe,
        bundles: usize,
    ) -> Result<Vec<Exchange>> {
        match self {
            Self::Factors(factors) => fhgs::exchanges(graph, recipe, *factors, bundles),
            // No packing of merged scores takes more than one bundle.
            Self::Merged(merged) => chgs::exchanges(graph, recipe, *merged),
        }
    }

    /// What the bundles keep of it.
    pub(crate) fn kept(&self, graph: &Graph, output: ValueId) -> Kept {
        match self {
            Self::Factors(factors) => fhgs::kept(graph, *factors, output),
            Self::Merged(_) => chgs::kept(graph, output),
        }
    }

    /// The values that the server opens online, in order. Those opened before are not opened again.
    pub(crate) fn opens(&self) -> Vec<ValueId> {
        match self {
            Self::Factors(factors) => factors.opens(),
            Self::Merged(merged) => vec![merged.input],
        }
    }

    /// Residues that the server opens besides: of no value of the plan.
    pub(crate) fn opens_besides(&self, graph: &Graph) -> Option<usize> {
        match self {
            Self::Factors(_) => None,
            Self::Merged(_) => {
                let (rows, cols) = chgs::Sizes::of(graph).image();
                Some(rows * cols)
            }
        }
    }

    /// Offline, the client: what it keeps, from the decrypted answers.
    pub(crate) fn client_offline(
        &self,
        graph: &Graph,
        masks: &mut Masks,
        answers: Vec<Share>,
    ) -> Vec<Share> {
        match self {
            Self::Factors(factors) => {
                let (r, s) = (masks.get(factors.left), masks.get(factors.right));
                let second = factors.lifted().map(|id| masks.of(Source::Second(id)));
                fhgs::client_offline(graph, *factors, (&r, &s), second.as_deref(), answers)
            }
            Self::Merged(merged) => {
                let r = masks.get(merged.input);
                chgs::client_offline(chgs::Sizes::of(graph), &r, answers).into()
            }
        }
    }

    /// Offline, the server: what the client's masks are multiplied with for the exchange number
    /// `part` of step `index`, unless it is a weight of the model. `values` are the masks that it
    /// will open its shares with, by bundle, or, in the paper's form, its shares.
    pub(crate) fn multiplier(
        &self,
        model: &ServerModel,
        (index, part): (usize, usize),
        exchange: &Exchange,
        seeds: &[Seeds],
        values: &dyn Fn(usize, ValueId) -> Share,
    ) -> Result<EncodedWeights> {
        match self {
            Self::Factors(factors) => {
                let graph = model.program().plan().graph();
                let of = |bundle| (values(bundle, factors.left), values(bundle, factors.right));
                let masks: Vec<(Share, Share)> = (0..seeds.len()).map(of).collect();
                fhgs::multiplier(graph, *factors, part, &masks, &exchange.product)
            }
            Self::Merged(merged) => {
                chgs::multiplier(model, *merged, index, &seeds[0], &exchange.product)
            }
        }
    }

    /// Offline, the server: what it keeps, from its shares of products that end in shares.
    pub(crate) fn server_offline(
        &self,
        graph: &Graph,
        index: usize,
        seeds: &Seeds,
        shares: Vec<Share>,
    ) -> Vec<Share> {
        match self {
            Self::Factors(factors) => fhgs::server_offline(graph, *factors, shares),
            Self::Merged(merged) => vec![chgs::correction(graph, *merged, index, seeds)],
        }
    }

    /// Online, the client, first half: hears what is opened. Gives its share of the result: minus
    /// the mask, which is what it owes the server, or, if a stop takes it, as it is.
    pub(crate) fn client_listen(
        &self,
        channel: &mut Channel,
        online: &mut OnlineClient<'_>,
        (output, masked): (ValueId, bool),
        known: Vec<Share>,
    ) -> Result<Share> {
        online.hear_opened(channel, &self.opens())?;
        match self {
            Self::Factors(factors) => {
                let mask = masked.then(|| online.masks.get(output));
                let product = (*factors, output);
                Ok(fhgs::client_share(online, product, known, mask))
            }
            // No stop takes merged scores as they are.
            Self::Merged(merged) => {
                let known = two(known);
                chgs::client_listen(channel, online, (*merged, output), known)
            }
        }
    }

    /// Online, the server, first half: opens its shares. Gives its own part of the result; what the
    /// client owes is added to it, unless a stop takes it as it is.
    pub(crate) fn server_request(
        &self,
        channel: &mut Channel,
        online: &mut OnlineServer<'_>,
        index: usize,
        kept: Vec<Share>,
    ) -> Result<Share> {
        online.open(channel, &self.opens())?;
        match self {
            Self::Factors(factors) => Ok(fhgs::server_part(online, (*factors, index), kept)),
            Self::Merged(merged) => {
                chgs::server_request(channel, online, (*merged, index), &one(kept))
            }
        }
    }
}

fn one(shares: Vec<Share>) -> Share {
    let [share] = exactly(shares);
    share
}

fn two(shares: Vec<Share>) -> [Share; 2] {
    exactly(shares)
}

/// A step's own preparation made these, and reading them back gives as many.
fn exactly<const N: usize>(shares: Vec<Share>) -> [Share; N] {
    <[Share; N]>::try_from(shares).unwrap_or_else(|_| unreachable!("as many as were kept"))
}

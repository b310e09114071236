//! Products of two secrets, of either kind.
//!
//! Two protocols compute them, and this is the one face that the two parties see:
//!
//! * [`fhgs`]: both factors are values of the plan;
//! * [`chgs`]: one factor is the image of the other under weights of the server's.
//!
//! Both have the same course. Offline, exchanges that leave the client with the terms that it knows
//! already; online the server opens its shares against masks, the client sends its share of the
//! result minus a fresh mask. The online part comes in
//! halves, as that of stops does: products and stops that need nothing of each other share a round
//! trip.

use crate::chgs::{self, Merged};
use crate::client::OnlineClient;
use crate::compiled::StoredMatrices;
use crate::error::Result;
use crate::exchange::Exchange;
use crate::fhgs::{self, Factors};
use crate::masks::Masks;
use crate::scheme::Recipe;
use crate::seeds::Seeds;
use crate::server::{OnlineServer, ServerModel};
use primer_engine::share::Share;
use primer_paper_he::product::EncodedWeights;
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
    /// Reads it off a step; none unless it is such a product.
    pub(crate) fn of(plan: &Plan, recipe: &Recipe, step: &Step) -> Option<Self> {
        let merged = || Merged::of(plan, step).map(Self::Merged);
        let factors = Factors::of(recipe, step);
        factors.map(Self::Factors).or_else(merged)
    }

    /// Lists the homomorphic exchanges that prepare it.
    pub(crate) fn exchanges(&self, graph: &Graph, recipe: &Recipe) -> Result<Vec<Exchange>> {
        match self {
            Self::Factors(factors) => fhgs::exchanges(graph, recipe, *factors),
            Self::Merged(merged) => chgs::exchanges(graph, recipe, *merged),
        }
    }

    /// Returns what the bundles keep of it.
    pub(crate) fn kept(&self, graph: &Graph, output: ValueId) -> StoredMatrices {
        match self {
            Self::Factors(_) => fhgs::kept(graph, output),
            Self::Merged(_) => chgs::kept(graph, output),
        }
    }

    /// Returns the values that the server opens online, in order. Those opened before are not
    /// opened again.
    pub(crate) fn opens(&self) -> Vec<ValueId> {
        match self {
            Self::Factors(factors) => factors.opens(),
            Self::Merged(merged) => vec![merged.input],
        }
    }

    /// Counts the residues that the server opens besides: of no value of the plan.
    pub(crate) fn opens_besides(&self, graph: &Graph) -> Option<usize> {
        match self {
            Self::Factors(_) => None,
            Self::Merged(_) => {
                let (rows, cols) = chgs::Sizes::of(graph).image();
                Some(rows * cols)
            }
        }
    }

    /// Returns what the client keeps, from the decrypted answers.
    pub(crate) fn client_offline(
        &self,
        graph: &Graph,
        masks: &mut Masks,
        answers: Vec<Share>,
    ) -> Vec<Share> {
        match self {
            Self::Factors(factors) => {
                let (r, s) = (masks.get(factors.left), masks.get(factors.right));
                vec![fhgs::client_offline(graph, *factors, (&r, &s), answers)]
            }
            Self::Merged(merged) => {
                let r = masks.get(merged.input);
                chgs::client_offline(chgs::Sizes::of(graph), &r, answers).into()
            }
        }
    }

    /// Encodes what the server multiplies the client's masks with for the exchange number `part` of
    /// step `index`, unless it is a weight of the model. `values` are the masks that it will open
    /// its shares with, or, in the paper's form, its shares.
    pub(crate) fn multiplier(
        &self,
        model: &ServerModel,
        (index, part): (usize, usize),
        exchange: &Exchange,
        seeds: &Seeds,
        values: &dyn Fn(ValueId) -> Share,
    ) -> Result<EncodedWeights> {
        let product = &exchange.product;
        match self {
            Self::Factors(factors) => {
                let graph = model.program().plan().graph();
                let (u, v) = (values(factors.left), values(factors.right));
                fhgs::multiplier(graph, *factors, part, (&u, &v), product)
            }
            Self::Merged(merged) => chgs::multiplier(model, *merged, index, seeds, product),
        }
    }

    /// Returns what the server keeps.
    pub(crate) fn server_offline(
        &self,
        graph: &Graph,
        index: usize,
        seeds: &Seeds,
    ) -> Option<Share> {
        match self {
            Self::Factors(_) => None,
            Self::Merged(merged) => Some(chgs::correction(graph, *merged, index, seeds)),
        }
    }

    /// Hears what is opened: the client's first half, online. Returns what it owes the server: its
    /// share of the result minus the mask.
    pub(crate) fn client_listen(
        &self,
        channel: &mut Channel,
        online: &mut OnlineClient<'_>,
        output: ValueId,
        known: Vec<Share>,
    ) -> Result<Share> {
        online.hear_opened(channel, &self.opens())?;
        match self {
            Self::Factors(factors) => {
                let [constant] = exactly(known);
                Ok(fhgs::client_share(online, (*factors, output), constant))
            }
            Self::Merged(merged) => {
                chgs::client_listen(channel, online, (*merged, output), exactly(known))
            }
        }
    }

    /// Opens the server's shares: its first half, online. Returns its own part of the result, to
    /// which what the client owes is added.
    pub(crate) fn server_request(
        &self,
        channel: &mut Channel,
        online: &mut OnlineServer<'_>,
        index: usize,
        kept: Vec<Share>,
    ) -> Result<Share> {
        online.open(channel, &self.opens())?;
        match self {
            Self::Factors(factors) => Ok(fhgs::server_part(online, (*factors, index))),
            Self::Merged(merged) => {
                let [correction] = exactly(kept);
                chgs::server_request(channel, online, (*merged, index), &correction)
            }
        }
    }
}

/// Takes apart what a step's own preparation made; reading it back gives as many.
fn exactly<const N: usize>(shares: Vec<Share>) -> [Share; N] {
    <[Share; N]>::try_from(shares).unwrap_or_else(|_| unreachable!("as many as were kept"))
}

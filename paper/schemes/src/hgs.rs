//! HGS: the client's masks times the server's weights by encrypted exchanges, as in the paper.
//!
//! **Relation.** The client holds `r`, and they want shares of `r·W` ([`crate::linear`]).
//!
//! ```text
//! offline   client -> server   Enc(r), once for each value and form
//!           server -> client   Enc(r·W + S), S uniform, circuit-private
//!           client             holds r·W + S
//!           server             holds -S
//! ```
//!
//! **Bytes:** those of a query and an answer of `he::product`, offline; none online. **Rounds:**
//! one offline for each term, none online. **Learned:** nothing: the server sees ciphertexts under
//! the client's key; the client decrypts a uniform matrix, noise flooded.
//!
//! A diagonal weight `g⊙x - ⟨h, x⟩` (a LayerNorm's gain on the residual path) has its two scales
//! put into the weights; those of a dense one are applied to both shares as a shift, which is
//! linear.
//!
//! **Deviations from the paper.** Weights stay 15-bit integers and shifts happen on shares, so that
//! noise grows with the weight, not with p; one encryption of a mask serves all products that read
//! it.

use crate::error::Result;
use crate::exchange::Exchange;
use crate::linear::{Linear, Scaling, Term, size};
use crate::scheme::Recipe;
use crate::seeds::{Seeds, Use};
use primer_engine::share::Share;
use primer_paper_he::product::{Product, Relation};
use primer_plan::graph::{Graph, ValueId};
use primer_plan::plan::Plan;

impl Term {
    /// Counts the bits that the answer is shifted by.
    const fn answer_shift(&self) -> u32 {
        match self.scaling {
            Scaling::Dense(shift) => shift,
            Scaling::Diagonal { .. } => 0,
        }
    }
}

/// Lists one exchange for each term.
pub(crate) fn exchanges(
    graph: &Graph,
    recipe: &Recipe,
    (linear, output): (&Linear, ValueId),
) -> Result<Vec<Exchange>> {
    let (rows, cols) = (graph.value(output).rows, graph.value(output).cols);
    let method = recipe.packing.method(graph.shape.hidden);
    let exchange = |term: &Term| -> Result<Exchange> {
        let relation = match term.scaling {
            Scaling::Dense(_) => Relation::Dense {
                rows,
                inputs: term.cols,
                outputs: cols,
            },
            Scaling::Diagonal { .. } => Relation::Centred { rows, cols },
        };
        let product = Product::new(&method, relation)?;
        Ok(Exchange::new(product, vec![term.owner]))
    };
    linear.terms.iter().map(exchange).collect()
}

/// Puts the client's share of the masks' products together, offline.
pub(crate) fn client_offline(linear: &Linear, answers: Vec<Share>) -> Share {
    let shifted = answers.into_iter().zip(&linear.terms);
    let shifted = shifted.map(|(mut answer, term)| {
        answer.shift(term.answer_shift());
        answer
    });
    let sum = shifted.reduce(|mut sum, answer| {
        sum.add(&answer);
        sum
    });
    sum.expect("a linear step has a term")
}

/// Returns the server's share of the masks' products: the masks of its answers, with their sign
/// turned.
pub(crate) fn server_share(
    plan: &Plan,
    linear: &Linear,
    (step, output): (usize, ValueId),
    seeds: &Seeds,
) -> Share {
    let (rows, cols) = size(plan, output);
    let mut sum = Share::zeros(rows, cols);
    for (part, term) in linear.terms.iter().enumerate() {
        let mut mask = seeds.share(Use::Answer { step, part }, rows, cols);
        mask.shift(term.answer_shift());
        sum.sub(&mask);
    }
    sum
}

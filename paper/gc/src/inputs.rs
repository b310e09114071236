//! The client's input bits: all words, then all types, then the padding.

use crate::error::{GcError, Result};
use crate::labels::Labels;
use crate::spec::index_bits;
use crate::walk::Inputs;
use primer_garble::Label;
use primer_ot::Bits;
use primer_plan::graph::Graph;
use primer_text::Input;
use zeroize::Zeroizing;

/// Returns the bits of a token's word, type and padding.
fn widths(graph: &Graph) -> [usize; 3] {
    let shape = &graph.shape;
    [index_bits(shape.vocab), index_bits(shape.types), 1]
}

/// Returns the number of input bits of the client.
pub(crate) fn input_bits(graph: &Graph) -> usize {
    graph.tokens * widths(graph).iter().sum::<usize>()
}

/// Writes an input as bits.
pub(crate) fn bits(graph: &Graph, input: &Input) -> Result<Bits> {
    input.fits(&graph.shape)?;
    if input.tokens() != graph.tokens || input.types.len() != graph.tokens {
        return Err(GcError::Tokens {
            found: input.tokens(),
            expected: graph.tokens,
        });
    }
    let [word, kind, _] = widths(graph);
    let number = |numbers: &[u32], width: usize, i: usize| numbers[i / width] >> (i % width) & 1;
    let (words, kinds) = (graph.tokens * word, graph.tokens * kind);
    Ok(Bits::from_fn(input_bits(graph), |i| {
        if i < words {
            number(&input.ids, word, i) == 1
        } else if i < words + kinds {
            number(&input.types, kind, i - words) == 1
        } else {
            i - words - kinds >= input.length
        }
    }))
}

/// Cuts labels, in the order of the bits, into what they are labels of.
pub(crate) fn cut(graph: &Graph, labels: &[Label]) -> Inputs {
    let [word, kind, _] = widths(graph);
    let (words, rest) = labels.split_at(graph.tokens * word);
    let (kinds, padding) = rest.split_at(graph.tokens * kind);
    let part = |labels: &[Label], bits| Labels::new(1, bits, Zeroizing::new(labels.to_vec()));
    Inputs {
        indices: [part(words, word), part(kinds, kind)],
        padding: part(padding, 1),
    }
}

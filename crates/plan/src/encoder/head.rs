//! What stands on top of an encoder: from the last layer to what the client learns.

use super::Builder;
use crate::graph::{Op, PaperStep, StopFunction, Term, ValueId, WeightKind};
use crate::role::{LinearMap, ValueRole};
use crate::shape::{Head, Pooling, Summary};

impl Builder {
    /// Adds the steps after the last layer.
    pub(super) fn head(&mut self, x: ValueId) {
        let n = self.graph.tokens;
        self.paper = PaperStep::Others;
        let head = self.graph.shape.head.clone();
        self.graph.outputs = match head {
            Head::Classify {
                labels, summary, ..
            } => {
                let pooled = self.pooler(x, summary);
                let size = (1, labels.len());
                let sum = self.linear(LinearMap::Classifier, ValueRole::Logits, pooled, size, None);
                vec![self.requantise("logits", sum)]
            }
            Head::Span => {
                let sum = self.linear(LinearMap::Span, ValueRole::Logits, x, (n, 2), None);
                vec![self.requantise("logits", sum)]
            }
            Head::Tokens { labels } => {
                let (map, size) = (LinearMap::Classifier, (n, labels.len()));
                let sum = self.linear(map, ValueRole::Logits, x, size, None);
                vec![self.requantise("logits", sum)]
            }
            Head::Sentence { pooling, .. } => vec![match pooling {
                Pooling::First => self.last_hidden(x, 1),
                Pooling::Mean => self.sentence(x),
            }],
            Head::Encoder { pooled } => {
                let mut outputs = vec![self.last_hidden(x, n)];
                if pooled {
                    outputs.push(self.pooler(x, Summary::Tanh));
                }
                outputs
            }
        };
    }

    /// Adds up the hidden states of all tokens except the padding.
    fn sentence(&mut self, x: ValueId) -> ValueId {
        let n = self.graph.tokens;
        let input = self.last_hidden(x, n);
        let kept = self.value("kept", ValueRole::Kept, n, 1);
        self.push(Op::Kept { output: kept });
        let cols = self.cols(input);
        let output = self.value("sentence.sum", ValueRole::Sentence, 1, cols);
        self.push(Op::Pool {
            input,
            kept,
            output,
        });
        self.requantise("sentence", output)
    }

    /// Makes the hidden state of the first `n` tokens with its gain and shift.
    fn last_hidden(&mut self, x: ValueId, n: usize) -> ValueId {
        let hidden = self.graph.shape.hidden;
        let map = LinearMap::LastHidden;
        let weight = self.weight(map, WeightKind::Diagonal, 1, hidden);
        let bias = self.weight(map, WeightKind::Bias, 1, hidden);
        let sum = self.value("last_hidden.sum", ValueRole::LastHidden, n, hidden);
        self.push(Op::Linear {
            terms: vec![Term { input: x, weight }],
            bias,
            output: sum,
        });
        self.requantise("last_hidden", sum)
    }

    /// Makes the summary of the first token.
    fn pooler(&mut self, x: ValueId, summary: Summary) -> ValueId {
        let size = (1, self.graph.shape.hidden);
        let sum = self.linear(LinearMap::Pooler, ValueRole::Pooled, x, size, None);
        let function = match summary {
            Summary::Tanh => StopFunction::Tanh,
            Summary::Relu | Summary::Gelu => StopFunction::Summary,
        };
        self.stop("pooled", ValueRole::Pooled, function, sum)
    }
}

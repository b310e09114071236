//! DistilBERT: half of BERT's layers under other names, without token types and without a pooler.
//! Its classifier has a summary of its own, followed by a ReLU.

use super::{Description, Fields, Positions, Types};
use primer_plan::shape::{Family, Summary};

pub(super) const DISTILBERT: Description = Description {
    family: Family::DistilBert,
    model_type: "distilbert",
    prefix: "distilbert.",
    fields: Fields {
        layers: "n_layers",
        hidden: "dim",
        heads: "n_heads",
        ffn: "hidden_dim",
        activation: "activation",
    },
    types: Types::None,
    positions: Positions::First,
    projected: false,
    summary: Summary::Relu,
    classifier: ["pre_classifier", "classifier"],
    layer: "transformer.layer",
    parts: &[
        ("attention.self.query", "attention.q_lin"),
        ("attention.self.key", "attention.k_lin"),
        ("attention.self.value", "attention.v_lin"),
        ("attention.output.dense", "attention.out_lin"),
        ("attention.output.LayerNorm", "sa_layer_norm"),
        ("intermediate.dense", "ffn.lin1"),
        ("output.dense", "ffn.lin2"),
        ("output.LayerNorm", "output_layer_norm"),
    ],
};

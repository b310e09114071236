//! Descriptions of how the families of encoders differ on disk.
//!
//! All other code knows one set of names, BERT's, and one order, that of `primer_plan::encoder`. A
//! description says how a family calls the fields of `config.json` and its tensors, where its
//! positions begin, what it does with token types, and what its classifier's summary looks like.

mod bert;
mod distilbert;
mod electra;
mod roberta;

use primer_plan::shape::{Family, Head, Summary};

/// How a family's files differ from BERT's.
pub(super) struct Description {
    /// Which family.
    pub(super) family: Family,
    /// `model_type`.
    pub(super) model_type: &'static str,
    /// What the encoder's tensors begin with in a model that has a head.
    pub(super) prefix: &'static str,
    /// The fields of `config.json`.
    pub(super) fields: Fields,
    /// What token types mean to it.
    pub(super) types: Types,
    /// Where positions begin.
    pub(super) positions: Positions,
    /// Whether `embedding_size` may differ from `hidden_size`.
    pub(super) projected: bool,
    /// The function after a classifier's summary.
    pub(super) summary: Summary,
    /// Tensors of a classifier: the summary's map and the last one.
    pub(super) classifier: [&'static str; 2],
    /// What precedes a layer's number.
    pub(super) layer: &'static str,
    /// Parts of a layer, by BERT's names.
    pub(super) parts: &'static [(&'static str, &'static str)],
}

/// Names in `config.json`.
pub(super) struct Fields {
    pub(super) layers: &'static str,
    pub(super) hidden: &'static str,
    pub(super) heads: &'static str,
    pub(super) ffn: &'static str,
    pub(super) activation: &'static str,
}

/// BERT's names, which most families have kept.
const FIELDS: Fields = Fields {
    layers: "num_hidden_layers",
    hidden: "hidden_size",
    heads: "num_attention_heads",
    ffn: "intermediate_size",
    activation: "hidden_act",
};

/// What token types mean to a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Types {
    /// They tell the texts of a pair apart.
    Told,
    /// There is a table, but every token has its first row, which is added to the positions.
    First,
    /// There are none.
    None,
}

/// Where positions begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Positions {
    /// At the table's first row.
    First,
    /// After the row that has the number of the padding token.
    BehindPadding,
}

const ALL: [&Description; 5] = [
    &bert::BERT,
    &distilbert::DISTILBERT,
    &roberta::ROBERTA,
    &roberta::XLM_ROBERTA,
    &electra::ELECTRA,
];

impl Description {
    /// Finds the description of a `model_type`.
    pub(super) fn of(model_type: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|known| known.model_type == model_type)
    }

    /// Lists all values of `model_type` that are known.
    pub(super) fn model_types() -> String {
        ALL.map(|known| format!("\"{}\"", known.model_type))
            .join(", ")
    }

    /// Returns what a tensor is called in the file, without the prefix, from the name that it has
    /// here.
    pub(super) fn file_name(&self, name: &str, head: &Head) -> String {
        if matches!(head, Head::Classify { .. }) {
            for (ours, theirs) in ["pooler.dense.", "classifier."].iter().zip(self.classifier) {
                if let Some(rest) = name.strip_prefix(ours) {
                    return format!("{theirs}.{rest}");
                }
            }
        }
        let Some(in_layer) = name.strip_prefix("encoder.layer.") else {
            return name.to_owned();
        };
        let Some((number, part)) = in_layer.split_once('.') else {
            return name.to_owned();
        };
        for (ours, theirs) in self.parts {
            if let Some(rest) = part.strip_prefix(ours) {
                return format!("{}.{number}.{theirs}{rest}", self.layer);
            }
        }
        format!("{}.{number}.{part}", self.layer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_called_as_each_family_calls_them() {
        let head = Head::classify(vec!["a".into()]);
        let tokens = Head::Tokens {
            labels: vec!["a".into()],
        };
        let name = |kind: &str, name: &str, head: &Head| {
            Description::of(kind).unwrap().file_name(name, head)
        };
        let attention = "encoder.layer.3.attention.output.dense.weight";
        assert_eq!(name("bert", attention, &head), attention);
        for (ours, theirs) in [
            (attention, "transformer.layer.3.attention.out_lin.weight"),
            (
                "encoder.layer.0.attention.output.LayerNorm.bias",
                "transformer.layer.0.sa_layer_norm.bias",
            ),
            (
                "encoder.layer.11.output.LayerNorm.bias",
                "transformer.layer.11.output_layer_norm.bias",
            ),
            (
                "encoder.layer.0.output.dense.bias",
                "transformer.layer.0.ffn.lin2.bias",
            ),
            ("pooler.dense.weight", "pre_classifier.weight"),
            ("classifier.weight", "classifier.weight"),
            ("embeddings.LayerNorm.bias", "embeddings.LayerNorm.bias"),
        ] {
            assert_eq!(name("distilbert", ours, &head), theirs);
        }
        for kind in ["roberta", "xlm-roberta", "electra"] {
            assert_eq!(
                name(kind, "pooler.dense.bias", &head),
                "classifier.dense.bias"
            );
            assert_eq!(
                name(kind, "classifier.bias", &head),
                "classifier.out_proj.bias"
            );
            assert_eq!(name(kind, "classifier.bias", &tokens), "classifier.bias");
        }
    }
}

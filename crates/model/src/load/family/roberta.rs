//! RoBERTa and XLM-RoBERTa: BERT's layers. Positions begin after the padding's number, every token
//! has the same type, and the classifier has its own summary.

use super::{Description, FIELDS, Positions, Types};
use primer_plan::shape::{Family, Summary};

pub(super) const ROBERTA: Description = Description {
    family: Family::Roberta,
    model_type: "roberta",
    prefix: "roberta.",
    fields: FIELDS,
    types: Types::First,
    positions: Positions::BehindPadding,
    projected: false,
    summary: Summary::Tanh,
    classifier: ["classifier.dense", "classifier.out_proj"],
    layer: "encoder.layer",
    parts: &[],
};

pub(super) const XLM_ROBERTA: Description = Description {
    family: Family::XlmRoberta,
    model_type: "xlm-roberta",
    ..ROBERTA
};

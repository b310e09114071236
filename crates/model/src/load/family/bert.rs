//! BERT: the other families are described by how they differ from it.

use super::{Description, FIELDS, Positions, Types};
use primer_plan::shape::{Family, Summary};

pub(super) const BERT: Description = Description {
    family: Family::Bert,
    model_type: "bert",
    prefix: "bert.",
    fields: FIELDS,
    types: Types::Told,
    positions: Positions::First,
    projected: false,
    summary: Summary::Tanh,
    classifier: ["pooler.dense", "classifier"],
    layer: "encoder.layer",
    parts: &[],
};

//! ELECTRA: BERT's layers after embeddings that may be narrower, and a classifier whose summary is
//! followed by a GELU.

use super::{Description, FIELDS, Positions, Types};
use primer_plan::shape::{Family, Summary};

pub(super) const ELECTRA: Description = Description {
    family: Family::Electra,
    model_type: "electra",
    prefix: "electra.",
    fields: FIELDS,
    types: Types::Told,
    positions: Positions::First,
    projected: true,
    summary: Summary::Gelu,
    classifier: ["classifier.dense", "classifier.out_proj"],
    layer: "encoder.layer",
    parts: &[],
};

//! What the graphs of the paper's schemes cost.
#![allow(missing_docs)]

use primer_model::synthetic::bert_shape;
use primer_paper_plan::Form;
use primer_plan::graph::StopFunction;
use primer_plan::shape::Shape;

fn bert_base() -> Shape {
    bert_shape(12, 768, 12)
}

#[test]
fn bert_base_has_the_elements_of_the_design() {
    let graph = Form::Separate.graph(&bert_base(), 30);
    let counts = graph.counts();
    let elements = |f| counts.stop_elements[&f];
    assert_eq!(elements(StopFunction::Softmax), 12 * 10_800);
    assert_eq!(elements(StopFunction::Activation), 12 * 92_160);
    // Per layer: Q, K, V, attention, and twice two for the LayerNorms; the embedding's
    // LayerNorm once; the logits.
    assert_eq!(
        elements(StopFunction::Requantise),
        12 * (69_120 + 5 * 23_040) + 2 * 23_040 + 2
    );
    assert_eq!(elements(StopFunction::InverseRoot), 25 * 30);
    assert_eq!(elements(StopFunction::Tanh), 768);
    let dense = 30 * 768 * (4 * 768 + 2 * 3072) * 12 + 30 * 768 * 30_524 + 768 * 768 + 768 * 2;
    let residual = 2 * 2 * 30 * 768 * 12;
    assert_eq!(counts.weight_products, dense + residual);
    let attention = 2 * 12 * 30 * 30 * 64 * 12;
    let norms = 2 * 30 * 768 * 25;
    assert_eq!(counts.secret_products, attention + norms);
}

#[test]
fn merging_trades_requantisations_for_weight_products() {
    let [separate, merged] =
        [Form::Separate, Form::Merged].map(|form| form.graph(&bert_base(), 30).counts());
    // Queries and keys of twelve layers are gone, and with them two stops per layer.
    let requantised = |c: &primer_plan::count::Counts| c.stop_elements[&StopFunction::Requantise];
    assert_eq!(
        requantised(&separate) - requantised(&merged),
        12 * 2 * 23_040
    );
    assert_eq!(separate.stops - merged.stops, 12 * 2);
    // Twelve heads' matrices for two.
    assert_eq!(
        merged.weight_products - separate.weight_products,
        12 * (12 - 2) * 30 * 768 * 768
    );
    assert_eq!(
        merged.secret_products - separate.secret_products,
        12 * 12 * 30 * 30 * (768 - 64)
    );
}

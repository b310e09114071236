//! Writes the seeds of the fuzzing corpora: a tiny model as configuration, plan and prepared file,
//! for the product's graph and for those of the paper's schemes.
//!
//! ```text
//! cargo run -p primer-paper-plan --example fuzz_seeds
//! ```

use primer_model::calibrate::Calibrated;
use primer_model::fold::FloatWeights;
use primer_model::quantise::IntModel;
use primer_paper_plan::Form;
use primer_plan::assign::{Observation, Observations, WeightRange, assign_by};
use primer_plan::function::Activation;
use primer_plan::plan::Plan;
use primer_plan::shape::{Family, Head, Pooling, Shape};
use std::path::Path;

/// Bytes of the checksum at the end of a prepared file, which the target appends itself.
const CHECKSUM: usize = 32;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let labels = vec!["no".to_owned(), "yes".to_owned()];
    let models = [
        (
            "classify",
            Activation::GeluErf,
            Head::classify(labels.clone()),
            Some(Form::Separate),
        ),
        ("span", Activation::Relu, Head::Span, Some(Form::Merged)),
        (
            "encoder",
            Activation::GeluTanh,
            Head::Encoder { pooled: true },
            Some(Form::Separate),
        ),
        ("tokens", Activation::GeluErf, Head::Tokens { labels }, None),
        (
            "sentence",
            Activation::GeluErf,
            Head::Sentence {
                pooling: Pooling::Mean,
                normalised: true,
            },
            None,
        ),
    ];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for part in ["config", "plan", "prepared"] {
        std::fs::create_dir_all(corpus.join(part))?;
    }
    for (name, activation, head, form) in models {
        let architecture = match head {
            Head::Classify { .. } => "BertForSequenceClassification",
            Head::Span => "BertForQuestionAnswering",
            Head::Tokens { .. } => "BertForTokenClassification",
            Head::Encoder { .. } | Head::Sentence { .. } => "BertModel",
        };
        let act = match activation {
            Activation::GeluErf => "gelu",
            Activation::GeluTanh => "gelu_new",
            Activation::Relu => "relu",
        };
        let config = format!(
            "{{\"architectures\": [\"{architecture}\"], \"model_type\": \"bert\", \
             \"hidden_act\": \"{act}\", \"num_hidden_layers\": 1, \"hidden_size\": 4, \
             \"num_attention_heads\": 2, \"intermediate_size\": 4, \"vocab_size\": 3, \
             \"max_position_embeddings\": 2, \"type_vocab_size\": 1, \"layer_norm_eps\": 1e-12, \
             \"position_embedding_type\": \"absolute\", \"is_decoder\": false, \
             \"id2label\": {{\"0\": \"no\", \"1\": \"yes\"}}}}\n"
        );
        std::fs::write(corpus.join("config").join(name), config)?;
        let shape = Shape {
            family: Family::Bert,
            layers: 1,
            hidden: 4,
            embedding: 4,
            heads: 2,
            ffn: 4,
            vocab: 3,
            positions: 2,
            types: 1,
            activation,
            epsilon: 1e-12,
            head,
        };
        let checkpoint = primer_model::synthetic::checkpoint(&shape, &[7; 16]);
        let folded = FloatWeights::fold(&shape, &checkpoint);
        let weights = form.map_or(folded.clone(), |form| form.weights(&folded));
        let (design, graph) = (weights.design(), weights.graph(1));
        let mut seen = Observation::EMPTY;
        seen.record([0.5, 4.0]);
        let range = WeightRange {
            max_abs: 0.5,
            mean_max_abs: 0.1,
            column: 2.0,
            norm: 0.0,
        };
        let scales = assign_by(
            design,
            &graph,
            &Observations::of(vec![seen; graph.values.len()]),
            &vec![range; graph.weights.len()],
        )?;
        let plan = Plan::by(design, &shape, 2, scales.clone())?;
        std::fs::write(corpus.join("plan").join(name), plan.encode())?;
        let bytes = IntModel::quantise(&weights, Calibrated::unsorted(scales))?.to_bytes();
        let content = &bytes[..bytes.len() - CHECKSUM];
        std::fs::write(corpus.join("prepared").join(name), content)?;
    }
    Ok(())
}

//! Private inference against the fixed-point reference.
#![allow(missing_docs)]

use primer_model::calibrate::calibrate;
use primer_model::fixed::{self, Truncate, Workspace};
use primer_model::fold::FloatWeights;
use primer_model::load::{LoadedModel, ModelFiles};
use primer_model::quantise::IntModel;
use primer_model::text::{Input, TextEncoder};
use primer_net::pair::run_pair;
use primer_plan::graph::ValueId;
use primer_protocol::client::Answer;
use primer_protocol::server::ServerModel;
use primer_protocol::session::{ClientSession, ServerSession};
use primer_protocol::{Program, ProtocolError, Scheme};
use primer_ring::prg::Prg;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn demo() -> (Arc<IntModel>, TextEncoder) {
    let LoadedModel {
        shape,
        checkpoint,
        text,
    } = ModelFiles::open(&root().join("models/sst2-demo"))
        .unwrap()
        .load()
        .unwrap();
    let weights = FloatWeights::fold(&shape, &checkpoint);
    let calibration = std::fs::read_to_string(root().join("models/calibration.txt")).unwrap();
    let scales = calibrate(&weights, &text, &calibration, |_, _| ()).unwrap();
    (
        Arc::new(IntModel::quantise(&weights, scales).unwrap()),
        text,
    )
}

type Shares = HashMap<ValueId, Vec<u64>>;

fn infer(model: &Arc<IntModel>, input: &Input, scheme: Scheme) -> (Answer, Shares) {
    let tokens = input.tokens();
    let mut shares = Shares::new();
    let result = run_pair::<_, _, ProtocolError>(
        |channel| {
            let mut witness = |id: ValueId, share: &primer_ring::matrix::Matrix<u64>| {
                shares.insert(id, share.data().to_vec());
            };
            let mut session = ClientSession::open(channel, scheme, tokens, Prg::new(&[1; 16]))?;
            let storage = Default::default();
            let bundle = session.prepare(channel, &storage, &mut witness)?;
            session.infer(channel, bundle, input, &storage, &mut witness)
        },
        |channel| {
            let plan = |_, tokens| model.plan(tokens).map_err(|e| e.to_string());
            let mut session = ServerSession::accept(channel, plan, Prg::new(&[2; 16]))?;
            let program: Program = session.program().clone();
            let encoded = ServerModel::new(model.clone(), &program)?;
            let bundle = session.prepare(channel, &encoded)?;
            session.infer(channel, &encoded, bundle)
        },
    );
    let (answer, _) = result.unwrap();
    (answer, shares)
}

fn reference(model: &IntModel, input: &Input, shares: &Shares) -> Vec<i64> {
    let plan = model.plan(input.tokens()).unwrap();
    let mut given = |id: ValueId, index: usize| shares[&id][index];
    let mut truncate = Truncate::Shares(&mut given);
    let outcome = fixed::run(
        &plan,
        model,
        input,
        &mut truncate,
        &mut Workspace::default(),
    );
    outcome.integers[0].data().to_vec()
}

#[test]
fn equals_the_reference_with_the_same_shares() {
    let (model, text) = demo();
    let truncate = primer_model::text::Truncate::LongestFirst;
    let mut input = text
        .encode("a warm and funny film", None, 128, truncate)
        .unwrap();
    input.pad_to(8, text.padding());
    let (answer, shares) = infer(&model, &input, Scheme::Fp);
    assert_eq!(
        answer.integers[0].data(),
        reference(&model, &input, &shares)
    );
    let logits = answer.reals[0].row(0);
    assert!(logits[1] > logits[0], "{logits:?}");
}

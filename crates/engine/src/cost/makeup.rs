//! What the bytes of an inference are made of, by kind of work.

use super::{Count, Part};
use crate::compiled::CompiledStep;
use crate::program::Program;
use primer_rlwe::product::Relation;
use primer_wire::PhaseBytes;
use std::collections::BTreeMap;

/// Counts the bytes of one inference by kind of work, frame headers included, the handshake, the
/// masked input and the outputs not: products by what is multiplied, stops by their names.
pub fn makeup(program: &Program) -> BTreeMap<&'static str, PhaseBytes> {
    let mut kinds: BTreeMap<&'static str, PhaseBytes> = BTreeMap::new();
    let mut count = Count::new(program, program.exchanges(), 1);
    let graph = program.plan().graph();
    for index in 0..graph.steps.len() {
        let mut part = Part::default();
        count.messages(index, &mut part);
        if part.bytes.offline_up > 0 {
            *kinds.entry("secrets of masks").or_default() += part.bytes;
        }
        let mut part = Part::default();
        count.corrections(index, &mut part);
        if part.bytes.offline_up > 0 {
            *kinds.entry("correction of the input").or_default() += part.bytes;
        }
        for exchange in program.exchanges().of_step(index) {
            let kind = match exchange.product.relation() {
                Relation::Heads { .. } => "products of heads",
                Relation::RowSums { .. } | Relation::ScaledRows { .. } => "products by rows",
                Relation::Hadamard { .. } => "products of elements",
            };
            let mut part = Part::default();
            count.exchange(exchange, &mut part);
            *kinds.entry(kind).or_default() += part.bytes;
        }
        let mut part = Part::default();
        count.after_exchanges(index, &mut part);
        let mut rest = part.bytes;
        if let Some(compiled) = program.compiled(index).stop() {
            let stop = compiled.stop.bytes();
            *kinds.entry(compiled.stop.name()).or_default() += stop;
            rest.offline_up -= stop.offline_up;
            rest.offline_down -= stop.offline_down;
            rest.online_up -= stop.online_up;
            rest.online_down -= stop.online_down;
        }
        if let CompiledStep::Product(_) = program.compiled(index) {
            *kinds.entry("opened shares").or_default() += rest;
        }
    }
    kinds
}

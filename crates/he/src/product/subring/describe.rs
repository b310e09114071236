//! What messages say about the matrices in them, and how long they are: both follow from sizes, so
//! a receiver knows them before a message comes.

use super::super::query::Form;
use super::super::relation::Relation;
use super::SubringPacker;
use super::plan::Plan;
use crate::error::HeError;
use crate::params::Params;
use crate::subring::heads::HeadShape;
use crate::subring::noise::Margins;
use crate::subring::shape::Lanes;
use crate::subring::slots::SlotShape;
use crate::wire::{self, Described};

impl SubringPacker {
    /// What a query says about itself.
    pub(super) fn describe_query(&self, params: &Params, form: &Form) -> Described {
        match *form {
            Form::Blocks { rows, cols, block } => {
                let count = Lanes::new(params, rows).runs() * cols.div_ceil(block);
                Described {
                    form: 0,
                    numbers: [rows, cols, block, count],
                }
            }
            Form::Heads {
                heads,
                rows,
                inputs,
                outputs,
                ..
            } => {
                let shape = HeadShape::choose(params, rows, (heads, inputs, outputs));
                let [together, replicas] = shape.numbers();
                let cut = together << 16 | replicas;
                Described {
                    form: 1,
                    numbers: [rows, heads * inputs, cut, shape.queries()],
                }
            }
            Form::Rows { rows, cols } => Described {
                form: 2,
                numbers: [rows, cols, 0, SlotShape::new(params, rows, cols).count()],
            },
            Form::Repeated { rows } => Described {
                form: 3,
                numbers: [rows, 1, 0, Lanes::new(params, rows).runs()],
            },
        }
    }

    /// What an answer says about itself, and its length.
    pub(super) fn describe_answer(
        &self,
        params: &Params,
        relation: &Relation,
    ) -> Result<(Described, usize), HeError> {
        let margins = Margins::of(params)?;
        let len = |sent: usize| margins.answer_len(params.degree(), sent);
        let (rows, cols) = relation.size();
        let (form, cut, lengths): (_, _, Vec<usize>) = match self.plan(params, relation) {
            Plan::Blocks(blocks, _) => {
                let runs = 0..blocks.lanes.runs();
                let lengths = runs.flat_map(|run| {
                    let rows = blocks.lanes.of_run(run).len();
                    let answers = 0..blocks.answers();
                    answers.map(move |a| len(rows * blocks.outputs_of(a).len()))
                });
                (0, blocks.stride, lengths.collect())
            }
            Plan::Heads(shape) => {
                let runs = shape.lanes.runs();
                let lengths = (0..runs).flat_map(|run| {
                    let one = len(shape.lanes.of_run(run).len() * shape.lanes.points());
                    std::iter::repeat_n(one, shape.answers() / runs)
                });
                let [together, replicas] = shape.numbers();
                (1, together << 16 | replicas, lengths.collect())
            }
            Plan::Slots(shape) => {
                let answers = match relation {
                    Relation::RowSums { .. } => shape.lanes.runs(),
                    _ => shape.count(),
                };
                (2, 0, vec![len(params.degree()); answers])
            }
        };
        let described = Described {
            form,
            numbers: [rows, cols, cut, lengths.len()],
        };
        Ok((described, wire::answer_len(lengths.iter().sum())))
    }
}

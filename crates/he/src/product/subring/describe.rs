//! What messages say about the matrices in them, and how long they are: both follow from sizes, so
//! a receiver knows them before a message comes.

use super::super::query::Form;
use super::super::relation::Relation;
use super::SubringPacker;
use super::plan::Cut;
use crate::error::HeError;
use crate::params::Params;
use crate::subring::noise::Margins;
use crate::subring::shape::Lanes;
use crate::wire::{self, Described};

impl SubringPacker {
    /// What a query says about itself.
    pub(super) fn describe_query(
        &self,
        params: &Params,
        form: &Form,
    ) -> Result<Described, HeError> {
        let Form::Blocks { rows, cols, block } = *form else {
            return Err(HeError::Unsupported {
                relation: format!("a query of {form:?}"),
            });
        };
        let count = Lanes::new(params, rows).runs() * cols.div_ceil(block);
        Ok(Described {
            form: 0,
            numbers: [rows, cols, block, count],
        })
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
        let Cut { blocks, .. } = self.cut(params, relation)?;
        let runs = 0..blocks.lanes.runs();
        let lengths = runs.flat_map(|run| {
            let rows = blocks.lanes.of_run(run).len();
            let answers = 0..blocks.answers();
            answers.map(move |a| len(rows * blocks.outputs_of(a).len()))
        });
        let lengths: Vec<usize> = lengths.collect();
        let described = Described {
            form: 0,
            numbers: [rows, cols, blocks.stride, lengths.len()],
        };
        Ok((described, wire::answer_len(lengths.iter().sum())))
    }
}

//! What messages say about the matrices in them, and how long they are: both follow from sizes, so
//! a receiver knows them before a message comes.

use super::plan::Plan;
use super::relation::Relation;
use crate::form::Form;
use crate::params::Params;
use crate::split::heads::HeadShape;
use crate::split::lanes::Lanes;
use crate::split::slots::SlotShape;
use crate::wire::{self, Described};

/// An answer as it travels.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct AnswerLayout {
    pub(super) described: Described,
    /// Bytes of a coefficient of `c1`.
    pub(super) width: usize,
    /// Bytes of all of it.
    pub(super) len: usize,
}

/// Tells how heads are cut, as one number.
fn cut(shape: &HeadShape) -> usize {
    let [together, replicas] = shape.numbers();
    together << 16 | replicas
}

/// Returns what a query says about itself.
pub(super) fn describe_query(params: &Params, form: &Form) -> Described {
    let (form, numbers) = match *form {
        Form::Heads {
            heads,
            rows,
            inputs,
            outputs,
            ..
        } => {
            let shape = HeadShape::choose(params, rows, (heads, inputs, outputs));
            (1, [rows, heads * inputs, cut(&shape), shape.queries()])
        }
        Form::Rows { rows, cols } => {
            let count = SlotShape::new(params, rows, cols).count();
            (2, [rows, cols, 0, count])
        }
        Form::Repeated { rows } => (3, [rows, 1, 0, Lanes::new(params, rows).runs()]),
    };
    Described { form, numbers }
}

/// Returns what an answer says about itself, and its length.
pub(super) fn describe_answer(params: &Params, relation: &Relation) -> AnswerLayout {
    let plan = Plan::of(params, relation);
    let width = plan.split(params).width(params);
    let (form, cut, answers) = match &plan {
        Plan::Heads(shape) => (1, cut(shape), shape.answers()),
        Plan::Sums(shape) => (2, 0, shape.lanes.runs()),
        Plan::Products(shape, _) => (2, 0, shape.count()),
    };
    let (rows, cols) = relation.size();
    AnswerLayout {
        described: Described {
            form,
            numbers: [rows, cols, cut, answers],
        },
        width,
        len: wire::answer_len(answers * width * params.degree()),
    }
}

//! Matrices in slots: the two packings of the paper behind one interface.
//!
//! [`layout`] says where things lie, [`chunks`] how columns are cut, [`matrix`] is what travels
//! (encrypted inputs, answers), [`weights`] what the server prepares once for a model.

pub(crate) mod chunks;
pub(crate) mod encode;
pub(crate) mod layout;
pub(crate) mod matrix;
pub(crate) mod weights;

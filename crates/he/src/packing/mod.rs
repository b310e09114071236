//! Matrices in slots: the two packings of the paper behind one interface.
//!
//! [`layout`] says where things lie, [`matrix`] is what travels (encrypted inputs, answers),
//! [`weights`] what the server prepares once for a model.

pub(crate) mod encode;
pub mod layout;
pub mod matrix;
pub mod weights;

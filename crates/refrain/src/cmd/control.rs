//! Verbs that ask a running loop or change an ended one.

pub(crate) mod approve;
pub(crate) mod archive;
pub(crate) mod cancel;
pub(crate) mod pause;
pub(crate) mod steer;

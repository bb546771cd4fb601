//! Verbs that send requests to a running loop or change a stopped one.

pub(crate) mod approve;
pub(crate) mod archive;
pub(crate) mod cancel;
pub(crate) mod pause;
pub(crate) mod steer;

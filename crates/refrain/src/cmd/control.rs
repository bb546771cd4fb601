//! Verbs that send requests to a running loop or change a stopped one.

pub(crate) mod answer;
pub(crate) mod approve;
pub(crate) mod archive;
pub(crate) mod cancel;
pub(crate) mod discard;
pub(crate) mod gc;
pub(crate) mod merge;
pub(crate) mod move_loop;
pub(crate) mod pause;
pub(crate) mod sandbox;
pub(crate) mod steer;
pub(crate) mod take_back;

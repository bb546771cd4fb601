//! Codex (`codex exec`), by its stream of JSON events.
//!
//! Tested with 0.169.0. It reports no model, no cost and no error codes: errors are recognized by the text of its
//! messages.
//!
//! How often it tries again is configured per provider, whose name only the user's configuration knows, and the
//! built-in one cannot be changed: Refrain leaves that alone and shows the retries. At its start it asks a server for
//! its list of plugins; they may be the user's, so they are not disabled either (`--disable plugins`).

mod checkup;
mod faults;
mod launch;
mod reader;
mod wire;

pub(crate) use launch::begin_anew;

use crate::adapter::{Adapter, Call, Clock, Launch, StreamDecoder};
use crate::args::UserArgs;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Codex;

impl Adapter for Codex {
    fn tested(&self) -> &'static [&'static str] {
        &["0.169.0"]
    }

    fn launch(&self, call: &Call<'_>) -> Launch {
        launch::launch(call)
    }

    fn dialect(&self, call: &Call<'_>) -> Box<dyn StreamDecoder> {
        Box::new(reader::Reader::new(Clock::clone(call.clock)))
    }

    fn takes_schema(&self) -> bool {
        true
    }

    fn model_flags(&self) -> &'static [&'static str] {
        &launch::MODEL
    }

    fn own_model(&self, args: &[String]) -> Option<String> {
        launch::own_model(UserArgs::new(args))
    }
}

//! Claude Code (`claude -p`), by its stream of JSON events.
//!
//! Tested with 2.1.329. Its `result` event contains the result, the cost and the final message of a run. A run can
//! have several; each is reported, and the last counts.

mod checkup;
mod faults;
mod launch;
mod reader;
mod usage;
mod wire;

use crate::adapter::{Adapter, Call, Launch, StreamDecoder};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Claude;

impl Adapter for Claude {
    fn tested(&self) -> &'static [&'static str] {
        &["2.1.329"]
    }

    fn launch(&self, call: &Call<'_>) -> Launch {
        launch::launch(call)
    }

    fn dialect(&self, call: &Call<'_>) -> Box<dyn StreamDecoder> {
        Box::new(reader::Reader::new(launch::format(call), launch::is_live(call)))
    }

    fn takes_schema(&self) -> bool {
        true
    }

    fn model_flags(&self) -> &'static [&'static str] {
        &launch::MODEL
    }
}

use refrain_core::agent::{FaultKind, Until, Usage};
use refrain_core::event::{Event, Process};

/// What happened to the child in flight, or to leftover processes of it.
pub(crate) enum ChildEvent {
    Started(Process),
    NotStarted(String),
    Used(Usage),
    /// Its program waits for its provider by itself, for this reason and until then; or it does not any more.
    Retrying(Option<(FaultKind, Option<Until>)>),
    /// Its provider answered: something came from the model.
    Answered,
    /// It is over: the event that records it.
    Finished(Box<Event>),
    Swept {
        killed: u32,
        survivors: Vec<i32>,
        names: Vec<String>,
    },
    OutputLost,
}

//! The rules of one loop, by table and by property. What a whole run does under crashes is in `simulation`.

mod asking;
mod deciding;
mod ends;
mod every_event;
pub(crate) mod journal;
mod journals;
mod moving;
mod order;
mod proof;
mod properties;
mod sessions;
mod views;

//! What a request says, as the command line has it. Flattened structs have no doc comment: clap would take it for the help
//! of the verb.

pub mod begin;
pub mod fleet;
pub mod gates;
pub mod git;
pub mod heading;
pub mod kinds;
pub mod notify;
pub mod review;
pub mod sandbox;
pub mod stuck;
pub mod until;
pub mod values;
pub mod variants;
pub mod work;

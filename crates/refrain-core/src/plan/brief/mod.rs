//! The prompt of a task's agent: the specification that is made of the task, its plan and more ([`Brief`]), and the
//! prompt around it, which says what happened in earlier rounds ([`Again`]). How an agent claims is in every loop's
//! prompt ([`crate::prompt`]).

pub mod tokens;

mod document;
mod earlier_rounds;
mod prompt;
mod spec;
mod template;
mod view;

pub use document::PlanDocument;
pub use earlier_rounds::{Again, FailedCommand};
pub use prompt::prompt;
pub use spec::{Brief, MAX_TOKENS, Part, PartKind, Sources, SpecFile, verification};
pub use template::{SpecTemplate, SpecTemplateError};
pub use view::{BriefPart, TaskBrief};

#[cfg(test)]
mod tests;

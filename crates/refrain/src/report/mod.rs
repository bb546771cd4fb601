//! The report on a loop or a plan for people: one document, rendered on a terminal or as an HTML page.

mod document;
mod page;
mod parts;
mod plan;
mod text;

pub(crate) use document::{Document, document};
pub(crate) use page::page;
pub(crate) use plan::plan_document;
pub(crate) use text::text;

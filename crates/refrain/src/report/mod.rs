//! The report on a loop, as people read it: one document, shown on a terminal or as a page.

mod document;
mod page;
mod parts;
mod text;

pub(crate) use document::document;
pub(crate) use page::page;
pub(crate) use text::text;

//! A document as one self-contained HTML page: no script, no network, no other file. The template library escapes every
//! text, because the template's name ends in `html`.

use askama::Template;

use super::document::Document;
use super::parts::{Block, Section};

#[derive(Debug, Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: &'a str,
    verdict: &'a super::parts::Cell,
    reason: &'a str,
    sections: &'a [Section],
    made: &'a str,
}

/// The whole page; `made` names the program that made it.
/// Errors: Only if writing into memory fails, which cannot happen.
pub(crate) fn page(document: &Document, made: &str) -> Result<String, askama::Error> {
    let Document { title, verdict, reason, sections } = document;
    Page { title, verdict, reason, sections, made }.render()
}

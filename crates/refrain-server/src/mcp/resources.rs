//! Loops as resources: the `state.md` and the journal of each.

use rmcp::model::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};

use crate::requests::{Address, List, LoopView, Part, Refusal, RequestHandler, addresses};

const MARKDOWN: &str = "text/markdown";
/// The type of JSON, one value a line.
const LINES: &str = "application/x-ndjson";

pub(super) fn listed(handler: &RequestHandler) -> Result<ListResourcesResult, Refusal> {
    let loops = handler.list(&List { workspace: None, include_finished: true })?.loops;
    let of = |view: &LoopView| addresses(view).iter().map(resource).collect::<Vec<_>>();
    Ok(ListResourcesResult::with_all_items(loops.iter().flat_map(of).collect()))
}

fn resource(address: &Address) -> Resource {
    let (what, mime) = described(address.part);
    Resource::new(address.to_string(), format!("{} {what}", address.id)).with_mime_type(mime)
}

pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = |end: &str, name: &str, says: &str, mime: &str| {
        let template = ResourceTemplate::new(format!("refrain://{{project}}/loops/{{id}}/{end}"), name);
        template.with_description(says).with_mime_type(mime)
    };
    let state = "What the agent of a loop noted: Goal, Progress, Next Action, Notes";
    let journal = "The events of a loop, one JSON object a line: the last 100, or a page of up to 1000";
    ListResourceTemplatesResult::with_all_items(vec![
        template("state", "state", state, MARKDOWN),
        template("journal{?from,limit}", "journal", journal, LINES),
    ])
}

pub(super) fn read(handler: &RequestHandler, uri: &str) -> Result<ReadResourceResult, Refusal> {
    let address: Address = uri.parse()?;
    let text = handler.read(&address)?;
    let (_, mime) = described(address.part);
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(mime)]))
}

fn described(part: Part) -> (&'static str, &'static str) {
    match part {
        Part::State => ("state.md", MARKDOWN),
        Part::Journal { .. } => ("journal", LINES),
    }
}

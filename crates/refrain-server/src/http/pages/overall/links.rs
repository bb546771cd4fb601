//! Addresses with parameters, and the links that choose what a page shows.

use crate::http::pages::frame::PageQuery;
use crate::http::pages::start::escaped;
use crate::requests::ProjectView;

/// A link that chooses what a page shows.
pub(crate) struct Pill {
    pub(crate) label: String,
    pub(crate) href: String,
    pub(crate) is_chosen: bool,
}

/// A parameter of the page, if it is not empty.
pub(super) fn given(asked: &PageQuery, name: &str) -> Option<String> {
    asked.get(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The address of a page with these parameters; empty ones are left out.
pub(crate) fn address(path: &str, parameters: &[(&str, &str)]) -> String {
    let given = parameters.iter().filter(|(_, value)| !value.is_empty());
    let given: Vec<_> = given.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    if given.is_empty() { path.to_owned() } else { format!("{path}?{}", given.join("&")) }
}

/// The projects to choose from, if there are several; the first links to the page without one.
pub(crate) fn project_pills(
    projects: Vec<ProjectView>,
    chosen: Option<&str>,
    first: Option<&str>,
    link: impl Fn(&str) -> String,
) -> Vec<Pill> {
    if projects.len() < 2 {
        return Vec::new();
    }
    // Without a name a page of one project is that of the first.
    let default = projects.first().filter(|_| first.is_none()).map(|it| it.name.clone());
    let chosen = chosen.or(default.as_deref());
    let pill = |it: ProjectView| Pill {
        is_chosen: chosen == Some(it.name.as_str()),
        href: link(&it.name),
        label: it.folder.rsplit('/').next().unwrap_or_default().to_owned(),
    };
    let first =
        first.map(|label| Pill { label: label.to_owned(), href: link(""), is_chosen: chosen.is_none() });
    first.into_iter().chain(projects.into_iter().map(pill)).collect()
}

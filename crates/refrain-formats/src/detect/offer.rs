//! The offer as a whole: every ecosystem that is there is asked, not only the first.

use refrain_core::gate::Offer;

use super::draft::Draft;
use super::listing::Listing;
use super::{golang, node, python, rust, simple_ecosystems, tasks};

/// Protected files of any repository: those that run in continuous integration, before commits, and around tests.
const PROTECT: &[&str] = &[
    "/.github/workflows/**",
    "/.github/actions/**",
    "/.gitlab-ci.yml",
    "/.gitlab/ci/**",
    "/.circleci/**",
    "/.travis.yml",
    "/azure-pipelines.yml",
    "/bitbucket-pipelines.yml",
    "/Jenkinsfile",
    "/.buildkite/**",
    "/.woodpecker/**",
    "/.woodpecker.yml",
    "/.drone.yml",
    "/.cirrus.yml",
    "/.ci/**",
    "/.pre-commit-config.yaml",
    "/.husky/**",
    "/lefthook.yml",
    "/refrain.toml",
    "**/.env.test",
    "**/.env.test.local",
    "**/.envrc",
    "**/.tool-versions",
    "**/mise.toml",
    "**/.mise.toml",
];

/// A manifest for which the note about skipped files is worth its line.
const MANIFESTS: &[&str] = &["Cargo.toml", "package.json", "pyproject.toml", "go.mod"];

const NAMED: usize = 5;

/// The gates and protections that a repository offers; the same listing always makes the same offer. If it has no hard
/// gate, a note says so: nothing would be proven.
pub fn offer(listing: &Listing) -> Offer {
    let mut draft = Draft::new(listing);
    rust::detect(&mut draft);
    node::detect(&mut draft);
    python::detect(&mut draft);
    golang::detect(&mut draft);
    simple_ecosystems::detect(&mut draft);
    // Last: they ask whether others cover what they would.
    tasks::detect(&mut draft);
    draft.protect(PROTECT);
    let named = listing.passed_over(|name| MANIFESTS.contains(&name));
    if let Some(first) = named.get(..named.len().min(NAMED)).filter(|first| !first.is_empty()) {
        let more =
            if named.len() > NAMED { format!(" and {} more", named.len() - NAMED) } else { String::new() };
        draft
            .note(format!("no gate is offered for {}{more}: inputs of tests, or examples", first.join(", ")));
    }
    let mut offer = draft.finish();
    if !offer.has_required() {
        offer.notes.insert(0, "no test was found that could be a gate: give one with --gate CMD".to_owned());
    }
    offer
}

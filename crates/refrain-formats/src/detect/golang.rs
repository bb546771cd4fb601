//! Go: each module has its own gate, those of a `go.work` too, because `./...` ends where another module begins.

use super::draft::Draft;
use super::listing::join;

const PROTECT: &[&str] = &["**/.golangci.*", "**/go.work"];

const TESTS: &[&str] = &["**/*_test.go", "**/testdata/**"];

const LINTER: &[&str] = &[".golangci.yml", ".golangci.yaml", ".golangci.toml", ".golangci.json"];

pub(super) fn detect(draft: &mut Draft<'_>) {
    let listing = draft.listing;
    let modules = listing.folders(|name| name == "go.mod");
    for folder in &modules {
        if listing.below(folder, &modules).any(|path| path.ends_with("_test.go")) {
            draft.test(folder, "go-test", "go test ./...");
        } else {
            draft.note(format!(
                "{} has no *_test.go, so that no gate is offered for it: --gate 'go test ./...' asks for some",
                join(folder, "go.mod")
            ));
        }
        draft.lint(folder, "go-vet", "go vet ./...");
        // Its configuration is looked for upwards.
        if listing.first(folder, LINTER).or_else(|| listing.first("", LINTER)).is_some() {
            draft.lint(folder, "golangci-lint", "golangci-lint run");
        }
    }
    if !modules.is_empty() {
        draft.protect(PROTECT);
        draft.protect_existing(TESTS);
    }
}

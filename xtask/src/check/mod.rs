//! `cargo xtask check`: the rules of docs/architecture.md and CONTRIBUTING.md that the compiler does not check.

mod arrows;
mod book;
mod finding;
mod knots;
mod names;
mod pages;
mod purity;
mod sizes;
pub(crate) mod source;
mod suites;
mod wording;

use finding::{Finding, Weight};

use crate::failure::{Result, fail};
use crate::generate;
use crate::workspace::Workspace;

/// Runs every check, prints a line for each finding, and fails if one of them is an error.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let mut findings = arrows::check(&workspace);
    findings.extend(knots::check(&workspace)?);
    findings.extend(sizes::check(&workspace.root)?);
    findings.extend(suites::check(&workspace)?);
    findings.extend(purity::check(&workspace.root)?);
    findings.extend(pages::check(&workspace)?);
    findings.extend(book::check(&workspace.root)?);
    findings.extend(names::check(&workspace.root)?);
    findings.extend(wording::check(&workspace.root)?);
    // Last, because it builds the binary, and the others need nothing built.
    match generate::stale(&workspace) {
        Ok(stale) => findings.extend(stale.into_iter().map(|(file, wrong)| {
            Finding::error(file, wrong, "run `cargo xtask generate` and commit the result")
        })),
        Err(failure) => findings.push(Finding::error(
            "docs/",
            format!("cannot tell whether generated files are current: {failure}"),
            "make `cargo xtask generate` work",
        )),
    }
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|finding| finding.weight == Weight::Error).count();
    let warnings = findings.len() - errors;
    if errors > 0 {
        return fail(format!("{errors} error(s), {warnings} warning(s)"));
    }
    println!(
        "checked: arrows, knots, file sizes, test suites, purity of refrain-core, pages about the code, the book, names, wording, generated files; {warnings} warning(s)"
    );
    Ok(())
}

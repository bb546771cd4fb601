//! Reads the pages about the code, `docs/architecture.md` and one page for each crate, for the check and the search.

use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::files::{entries, read, shown};
use crate::workspace::{Package, Workspace};

/// The first page, and the folder of the others.
pub(crate) const FIRST: &str = "docs/architecture.md";
const OTHERS: &str = "docs/architecture";

pub(crate) struct Page {
    /// Its path, relative to the repository.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The base folders of its paths, in this order.
    bases: Vec<PathBuf>,
}

/// All pages, the first one first.
pub(crate) fn load(workspace: &Workspace) -> Result<Vec<Page>> {
    let root = &workspace.root;
    let mut pages = vec![Page::new(FIRST.into(), read(&root.join(FIRST))?, vec![root.clone()])];
    for path in entries(&root.join(OTHERS))? {
        let name = shown(&path, root);
        let of = workspace.packages.iter().find(|package| page_of(package) == name);
        let bases = std::iter::once(root.clone()).chain(of.map(|package| package.folder().to_owned()));
        pages.push(Page::new(name, read(&path)?, bases.collect()));
    }
    Ok(pages)
}

pub(crate) fn page_of(package: &Package) -> String {
    format!("{OTHERS}/{}.md", package.name.trim_start_matches("refrain-"))
}

impl Page {
    pub(crate) fn new(name: String, text: String, bases: Vec<PathBuf>) -> Self {
        Self { name, text, bases }
    }

    /// Its lines with their numbers, without blocks of code.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut is_code = false;
        self.text.lines().enumerate().filter_map(move |(index, line)| {
            let is_fence = line.starts_with("```");
            is_code ^= is_fence;
            (!is_code && !is_fence).then_some((index + 1, line))
        })
    }

    /// The existing path, relative to the repository, that a text in backticks names.
    pub(crate) fn resolve(&self, quoted: &str) -> Option<PathBuf> {
        let found = self.bases.iter().map(|base| base.join(quoted)).find(|path| path.exists())?;
        let root = self.bases.first()?;
        Some(found.strip_prefix(root).unwrap_or(&found).to_owned())
    }

    /// Whether a text in backticks is meant as a path: a Rust file, or something below a folder that exists. What a build makes
    /// (`target/`) is no path of the repository: it exists on some machines only.
    pub(crate) fn means_path(&self, quoted: &str) -> bool {
        let is_plain = !quoted.contains(|c: char| c.is_whitespace() || "<>{}*…".contains(c));
        let is_below = quoted.split_once('/').is_some_and(|(folder, _)| {
            !matches!(folder, "" | "target") && self.bases.iter().any(|base| base.join(folder).is_dir())
        });
        is_plain && (is_below || Path::new(quoted).extension().is_some_and(|end| end == "rs"))
    }
}

/// The texts in backticks of a line.
pub(crate) fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

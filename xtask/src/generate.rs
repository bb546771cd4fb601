//! `cargo xtask generate`: files in the repository that are made from the program.
//!
//! The program itself writes them (`refrain generate DIR`, hidden), because its types and its command line are their
//! source: `docs/schema/` and `docs/reference/cli`. Man pages and completions are made when they are installed.
//! `docs/architecture.svg` is drawn here, from the manifests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::drawing;
use crate::failure::{Doing, Result, fail};
use crate::files::{below, fresh_folder, write};
use crate::process::{capture, cargo, command, environment};
use crate::workspace::Workspace;

const DRAWING: &str = "architecture.svg";

/// The content of generated files, by path below docs/.
type Generated = BTreeMap<PathBuf, Vec<u8>>;

/// Writes the files, or with `check` names those that are outdated.
pub(crate) fn run(check: bool) -> Result<()> {
    let workspace = Workspace::load()?;
    if check {
        let stale = stale(&workspace)?;
        for (file, wrong) in &stale {
            println!("{file}: {wrong}; run `cargo xtask generate` and commit the result");
        }
        return if stale.is_empty() {
            Ok(())
        } else {
            fail(format!("{} generated file(s) not current", stale.len()))
        };
    }
    let docs = workspace.root.join("docs");
    let (wanted, present) = (wanted(&workspace)?, present(&docs)?);
    for (path, text) in &wanted {
        if present.get(path) != Some(text) {
            write(&docs.join(path), text)?;
            println!("wrote docs/{}", path.display());
        }
    }
    for path in present.keys().filter(|path| !wanted.contains_key(*path)) {
        fs::remove_file(docs.join(path)).doing(format!("remove docs/{}", path.display()))?;
        println!("removed docs/{}", path.display());
    }
    Ok(())
}

/// Each generated file that is not as the program would write it, and how it differs.
pub(crate) fn stale(workspace: &Workspace) -> Result<Vec<(String, &'static str)>> {
    let (wanted, present) = (wanted(workspace)?, present(&workspace.root.join("docs"))?);
    let mut stale = Vec::new();
    for (path, text) in &wanted {
        match present.get(path) {
            None => stale.push((path, "is missing")),
            Some(found) if found != text => stale.push((path, "is not current")),
            Some(_) => {}
        }
    }
    stale.extend(
        present
            .keys()
            .filter(|path| !wanted.contains_key(*path))
            .map(|path| (path, "is no longer generated")),
    );
    Ok(stale.into_iter().map(|(path, wrong)| (format!("docs/{}", path.display()), wrong)).collect())
}

/// Builds the program, with the features that the tests have, so that nothing is compiled anew for it, and lets it write.
fn wanted(workspace: &Workspace) -> Result<Generated> {
    let build = ["build", "--quiet", "--workspace", "--bins", "--examples"];
    capture(cargo().current_dir(&workspace.root).args(build))?;
    let scratch = workspace.target.join("xtask-generate");
    fresh_folder(&scratch)?;
    // Nothing of the machine may show in the files: no width of a terminal, no locale, no configuration.
    let path = environment("PATH").unwrap_or_default();
    let program = workspace.target.join("debug/refrain");
    capture(
        command(&program)
            .arg("generate")
            .arg(&scratch)
            .current_dir(&scratch)
            .env_clear()
            .env("PATH", path)
            .env("HOME", &scratch),
    )?;
    let mut found = present(&scratch)?;
    if found.is_empty() {
        return fail("`refrain generate DIR` wrote neither schemas nor pages");
    }
    found.insert(DRAWING.into(), drawing::svg(workspace).into_bytes());
    Ok(found)
}

/// The generated files in a folder laid out like docs/.
fn present(folder: &Path) -> Result<Generated> {
    let mut paths = below(&folder.join("schema"))?;
    paths.extend(below(&folder.join("reference/cli"))?);
    paths.extend(Some(folder.join(DRAWING)).filter(|path| path.is_file()));
    let mut found = Generated::new();
    for path in paths {
        let text = fs::read(&path).doing(format!("read {}", path.display()))?;
        found.insert(path.strip_prefix(folder).unwrap_or(&path).to_owned(), text);
    }
    Ok(found)
}

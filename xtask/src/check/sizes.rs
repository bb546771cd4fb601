//! The length of source files and the number of files in a folder. A file has one subject: from 500 lines it is
//! questionable, past 800 it is an error. A folder has at most 15 files, to be read at a glance.

use std::collections::BTreeMap;
use std::path::Path;

use super::finding::Finding;
use crate::failure::Result;
use crate::files::{read, rust_files};

const WARN: usize = 500;
const FAIL: usize = 800;
const MOST_FILES: usize = 15;

/// Every Rust file of the repository, tracked or new, that is too long.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let names = rust_files(root)?;
    for name in &names {
        findings.extend(judge(name, read(&root.join(name))?.lines().count()));
    }
    findings.extend(crowded(&names));
    Ok(findings)
}

/// Every folder with too many files.
fn crowded(names: &[String]) -> Vec<Finding> {
    let mut folders = BTreeMap::<&str, usize>::new();
    for name in names {
        *folders.entry(name.rsplit_once('/').map_or("", |(folder, _)| folder)).or_default() += 1;
    }
    let crowded = folders.into_iter().filter(|(_, files)| *files > MOST_FILES);
    crowded
        .map(|(folder, files)| {
            let mend = format!("group them in folders by subject; at most {MOST_FILES} may stand in one");
            Finding::error(folder, format!("{files} files"), mend)
        })
        .collect()
}

fn judge(name: &str, lines: usize) -> Option<Finding> {
    let wrong = format!("{lines} lines");
    if lines > FAIL && !is_test(name) {
        Some(Finding::error(
            name,
            wrong,
            format!("split it by subject; {FAIL} is the limit, under 300 the aim"),
        ))
    } else if lines > WARN {
        Some(Finding::warning(name, wrong, "ask whether it still has one subject; the aim is under 300"))
    } else {
        None
    }
}

/// Tests may be long: a table of cases has one subject at any length.
fn is_test(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    name.split('/').any(|part| part == "tests") || file == "tests.rs" || file.ends_with("_tests.rs")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Weight;
    use super::*;

    #[test]
    fn a_folder_holds_at_most_fifteen_files() {
        let files = |count| (0..count).map(|n| format!("crates/a/src/{n}.rs")).collect::<Vec<_>>();
        assert!(crowded(&files(15)).is_empty());
        assert_eq!(crowded(&files(16)).len(), 1);
        let apart: Vec<_> = files(15).into_iter().chain(["crates/a/src/b/1.rs".to_owned()]).collect();
        assert!(crowded(&apart).is_empty());
    }

    #[test]
    fn length_is_judged_by_the_kind_of_file() {
        for (name, lines, expected) in [
            ("crates/a/src/b.rs", 500, None),
            ("crates/a/src/b.rs", 501, Some(Weight::Warning)),
            ("crates/a/src/b.rs", 801, Some(Weight::Error)),
            ("crates/a/src/tests.rs", 801, Some(Weight::Warning)),
            ("crates/a/src/b_tests.rs", 801, Some(Weight::Warning)),
            ("crates/a/tests/it/main.rs", 2000, Some(Weight::Warning)),
            ("crates/a/src/contests.rs", 801, Some(Weight::Error)),
        ] {
            assert_eq!(
                judge(name, lines).map(|finding| finding.weight),
                expected,
                "{name} with {lines} lines"
            );
        }
    }
}

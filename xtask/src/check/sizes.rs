//! How long source files are. A file has one subject; at 500 lines it should be asked whether that is still so, and
//! past 800 it is not.

use std::path::Path;

use super::finding::Finding;
use crate::failure::Result;
use crate::files::{read, rust_files};

const WARN: usize = 500;
const FAIL: usize = 800;

/// Every Rust file of the repository, tracked or new, that is too long.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in rust_files(root)? {
        findings.extend(judge(&name, read(&root.join(&name))?.lines().count()));
    }
    Ok(findings)
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

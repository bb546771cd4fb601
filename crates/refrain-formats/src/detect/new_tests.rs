//! The gate of `refrain run` in a project without tests: the tests that the run makes.

use std::collections::BTreeSet;

use regex::Regex;

/// The tests of an ecosystem.
struct NewTests {
    /// The files of a project that has such tests, as a regular expression.
    paths: &'static str,
    /// Runs the tests, once there are some, and says so: without such a line the work is unverified.
    run: &'static str,
}

const ECOSYSTEMS: [NewTests; 5] = [
    NewTests {
        paths: r"^package\.json$",
        run: "! grep -q '\"test\"' package.json || grep -q 'no test specified' package.json || \
            { CI=true npm test && echo 'new-tests: npm test passed'; }",
    },
    NewTests {
        paths: r"^Cargo\.toml$",
        run: "! files | grep '\\.rs$' | tr '\\n' '\\0' | xargs -0 cat | grep -q '#\\[[a-z:_]*test' || \
            { cargo test && echo 'new-tests: cargo test passed'; }",
    },
    NewTests {
        paths: r"(^|/)(test_[^/]*|[^/]*_test)\.py$",
        run: "python3 -m pytest && echo 'new-tests: pytest passed'",
    },
    NewTests { paths: r"_test\.go$", run: "go test ./... && echo 'new-tests: go test passed'" },
    NewTests { paths: r"^test\.sh$", run: "sh test.sh && echo 'new-tests: test.sh passed'" },
];

/// The files of the project, without those that git ignores.
const FILES: &str = "files() { if git rev-parse --git-dir >/dev/null 2>&1; then \
    git -c core.quotePath=false ls-files -co --exclude-standard; else \
    find . -type f -not -path '*/.*' -not -path '*/node_modules/*' -not -path '*/site-packages/*' \
    -not -path './target/*' | cut -c3-; fi; }; ";

/// The command that runs the tests that a run makes, in a project with these files. What was there before is no test of the run,
/// and the user has not trusted it.
pub fn new_tests(files: &BTreeSet<String>, package: Option<&str>) -> String {
    // One without a script for tests may get one. What cannot be read may have one.
    let is_script = |text: &str| text.contains("\"test\"") && !text.contains("no test specified");
    let has_script = package.is_none_or(is_script);
    let files = || files.iter().filter(|path| *path != "package.json" || has_script);
    let is_there = |tests: &NewTests| {
        Regex::new(tests.paths).is_ok_and(|pattern| files().any(|path| pattern.is_match(path)))
    };
    let parts = ECOSYSTEMS.iter().filter(|tests| !is_there(tests));
    let parts =
        parts.map(|NewTests { paths, run }| format!("( ! files | grep -qE '{paths}' || {{ {run}; }} )"));
    format!("{FILES}{}", parts.collect::<Vec<_>>().join(" && "))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(&["README.md", "src/lib.rs"], None, "npm cargo pytest go test.sh")]
    #[case::a_package_without_tests(&["package.json"], Some("{}"), "npm cargo pytest go test.sh")]
    #[case::of_npm_init(&["package.json"], Some(r#"{"test": "echo no test specified"}"#), "npm cargo pytest go test.sh")]
    #[case::a_script_that_tests_nothing(&["package.json"], Some(r#"{"test": "true"}"#), "cargo pytest go test.sh")]
    #[case::a_package_that_cannot_be_read(&["package.json"], None, "cargo pytest go test.sh")]
    #[case::tests_of_another_package(&["node_modules/p/test_a.py"], None, "npm cargo go test.sh")]
    #[case::all(&["Cargo.toml", "a_test.go", "sub/a_test.py", "test.sh"], None, "npm")]
    fn what_was_there_is_left_out(#[case] files: &[&str], #[case] package: Option<&str>, #[case] runs: &str) {
        let files = files.iter().map(|path| (*path).to_owned()).collect();
        let command = new_tests(&files, package);
        for name in ["npm", "cargo", "pytest", "go", "test.sh"] {
            let says = ["new-tests: ", name, " "].concat();
            let is_run = runs.split(' ').any(|run| run == name);
            assert_eq!(command.contains(says.trim_end()), is_run, "{name}: {command}");
        }
    }
}

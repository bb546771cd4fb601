//! `cargo xtask lines`: the Rust lines of each crate, comments and blank lines included.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::check::source::{shipped, without_comments};
use crate::failure::Result;
use crate::files::{read, rust_files};
use crate::workspace::Workspace;

/// The purpose of a line; the columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Production,
    /// A module under `#[cfg(test)]`, inline or in a file of its own.
    UnitTest,
    Simulation,
    /// The `tests/` folder of a crate.
    Test,
    /// Examples and benchmarks, and all of `testkit` and `xtask`.
    Other,
}

const COLUMNS: [&str; 7] = ["crate", "prod", "unit tests", "simulation", "tests/", "other", "all"];

/// The lines of one crate by [`Kind`].
type Counts = [usize; 5];

/// Prints the table, the largest crate first.
pub(crate) fn run() -> Result<()> {
    let root = Workspace::load()?.root;
    let names = rust_files(&root)?.into_iter();
    let files = names.map(|name| Ok((read(&root.join(&name))?, name))).collect::<Result<Vec<_>>>()?;
    print!("{}", table(&count(files.iter().map(|(text, name)| (name.as_str(), text.as_str())))));
    Ok(())
}

/// The lines of each crate, from the path and the text of each file.
fn count<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<&'a str, Counts> {
    let (mut counts, mut seen, mut test_modules) = (BTreeMap::<_, Counts>::new(), Vec::new(), Vec::new());
    for (name, text) in files {
        let source = shipped(&without_comments(text), Path::new(name));
        seen.push((name, text.lines().count(), source.test_lines));
        test_modules.extend(source.test_modules);
    }
    for (name, lines, test_lines) in seen {
        let counts = counts.entry(crate_of(name)).or_default();
        let kind = kind(name, &test_modules);
        let test_lines = if kind == Kind::Production { test_lines } else { 0 };
        counts[kind as usize] += lines - test_lines;
        counts[Kind::UnitTest as usize] += test_lines;
    }
    counts
}

fn crate_of(name: &str) -> &str {
    let mut parts = name.split('/').filter(|part| *part != "crates");
    parts.next().unwrap_or(name)
}

fn kind(name: &str, test_modules: &[PathBuf]) -> Kind {
    let folder = name.trim_start_matches("crates/").split('/').nth(1);
    if matches!(crate_of(name), "testkit" | "xtask") {
        Kind::Other
    } else if name.split('/').any(|part| matches!(part, "simulation" | "simulation.rs")) {
        Kind::Simulation
    } else if folder == Some("tests") {
        Kind::Test
    } else if folder != Some("src") {
        Kind::Other
    } else if test_modules.iter().any(|module| Path::new(name).starts_with(module)) {
        Kind::UnitTest
    } else {
        Kind::Production
    }
}

fn table(counts: &BTreeMap<&str, Counts>) -> String {
    let mut rows: Vec<(&str, Counts)> = counts.iter().map(|(name, counts)| (*name, *counts)).collect();
    rows.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.iter().sum::<usize>()));
    let mut total = Counts::default();
    for (_, counts) in &rows {
        total.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    rows.push(("all", total));
    let mut text = line(&COLUMNS.map(str::to_owned));
    for (name, counts) in rows {
        let figures = counts.iter().copied().chain([counts.iter().sum()]).map(|figure| figure.to_string());
        text += &line(&std::iter::once(name.to_owned()).chain(figures).collect::<Vec<_>>());
    }
    let [production, ..] = total;
    text + &format!("\nproduction {production}\nall {}\n", total.iter().sum::<usize>())
}

fn line(cells: &[String]) -> String {
    let [name, figures @ ..] = cells else { return String::new() };
    figures.iter().fold(format!("{name:<16}"), |line, figure| line + &format!("{figure:>12}")) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_counted_once_by_its_purpose() {
        let files = [
            ("crates/a/src/lib.rs", "mod b;\n\n// why\n#[cfg(test)]\nmod tests {\n    fn t() {}\n}\n"),
            ("crates/a/src/b.rs", "fn b() {}\n#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;\n"),
            ("crates/a/src/b_tests.rs", "fn t() {}\n"),
            ("crates/a/src/b/simulation/world.rs", "\n\n"),
            ("crates/a/src/simulation.rs", "#[cfg(test)]\nmod tests {\n}\n"),
            ("crates/a/src/simulations.rs", "fn c() {}"),
            ("crates/a/tests/it/main.rs", "\n\n\n\n\n"),
            ("crates/a/examples/e.rs", "\n\n\n\n\n\n\n"),
            ("crates/testkit/src/lib.rs", "\n"),
            ("crates/testkit/tests/it.rs", "\n"),
            ("xtask/src/main.rs", "#[cfg(test)]\nmod tests {\n}\n"),
        ];
        let counts = count(files.into_iter());
        let expected = [("a", [8, 5, 5, 5, 7]), ("testkit", [0, 0, 0, 0, 2]), ("xtask", [0, 0, 0, 0, 3])];
        assert_eq!(counts.into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_largest_crate_comes_first_and_the_sums_last() {
        let counts = BTreeMap::from([("a", [1, 0, 0, 0, 0]), ("b", [2, 3, 4, 5, 6])]);
        let table = table(&counts);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["b", "2", "3", "4", "5", "6", "20"]);
        assert_eq!(lines[2], ["a", "1", "0", "0", "0", "0", "1"]);
        assert_eq!(lines[3], ["all", "3", "3", "4", "5", "6", "21"]);
        assert_eq!(lines[5..], [vec!["production", "3"], vec!["all", "21"]]);
    }
}

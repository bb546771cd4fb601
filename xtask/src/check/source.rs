//! Reads Rust as text for the checks: without comments and tests.

use std::path::{Path, PathBuf};

use crate::failure::Result;
use crate::files::{below, read};

/// The Rust files below a folder that are shipped, each with its text without comments and tests.
pub(crate) fn shipped_sources(folder: &Path) -> Result<Vec<(PathBuf, String)>> {
    let (mut sources, mut only_tests) = (Vec::new(), Vec::new());
    for path in below(folder)? {
        if path.extension().is_some_and(|extension| extension == "rs") {
            let shipped = shipped(&without_comments(&read(&path)?), &path);
            sources.push((path, shipped.text));
            only_tests.extend(shipped.test_modules);
        }
    }
    sources.retain(|(path, _)| !only_tests.iter().any(|tests| path.starts_with(tests)));
    Ok(sources)
}

/// The text with comments blanked out and lines kept. Knows strings well enough not to see a comment in a URL.
pub(crate) fn without_comments(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            rest = &rest[length..];
            continue;
        } else if rest.starts_with("/*") {
            let length = block_comment(rest);
            out.extend(rest[..length].chars().filter(|c| *c == '\n'));
            rest = &rest[length..];
            continue;
        } else if c == '"' {
            string(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("'\\\"'") {
            4
        } else {
            c.len_utf8()
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// The length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a string literal, its quotes included.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

const FOR_TESTS: &str = "#[cfg(test)]";

/// A source file, divided into shipped code and tests.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shipped {
    /// The text without its inline test modules; lines keep their numbers.
    pub(crate) text: String,
    /// How many lines the inline test modules have.
    pub(crate) test_lines: usize,
    /// The files and folders that may hold the test modules that it only declares.
    pub(crate) test_modules: Vec<PathBuf>,
}

/// Divides a text without comments; `path` is its file.
pub(crate) fn shipped(text: &str, path: &Path) -> Shipped {
    let (mut out, mut test_lines, mut test_modules) = (String::new(), 0, Vec::new());
    let mut lines = text.split_inclusive('\n');
    while let Some(line) = lines.next() {
        out.push_str(line);
        if line.trim() != FOR_TESTS {
            continue;
        }
        // Further attributes may precede the item; one of them may name its file.
        let (mut named, mut above) = (None, 1);
        for line in lines.by_ref() {
            let item = line.trim();
            if item.starts_with("#[") {
                named = item.strip_prefix("#[path = \"").and_then(|rest| rest.split('"').next());
                out.push('\n');
                above += 1;
                continue;
            }
            if let Some(module) = item.split_whitespace().skip_while(|word| *word != "mod").nth(1) {
                if let Some(module) = module.strip_suffix(';') {
                    test_modules.extend(places(path, module, named));
                } else {
                    test_lines += above + 1;
                    if !item.ends_with('}') {
                        // rustfmt puts the closing brace below the item's first letter.
                        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
                        let body = lines.by_ref().take_while(|line| line.trim_end() != end).count();
                        out.extend(std::iter::repeat_n('\n', body + 1));
                        test_lines += body + 1;
                    }
                }
                out.push('\n');
            } else {
                out.push_str(line);
            }
            break;
        }
    }
    Shipped { text: out, test_lines, test_modules }
}

/// The possible places of a module that the file at `path` declares: the file itself, or the folder of its children.
fn places(path: &Path, module: &str, named: Option<&str>) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    if let Some(file) = named {
        return vec![folder.join(file)];
    }
    let stem = path.file_stem().unwrap_or_default();
    let children =
        if stem == "lib" || stem == "mod" || stem == "main" { folder.to_owned() } else { folder.join(stem) };
    vec![children.join(format!("{module}.rs")), children.join(module)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_modules_are_omitted_wherever_they_stand() {
        let text = "use a;\n#[cfg(test)]\nmod far;\n#[cfg(test)]\n#[path = \"x_tests.rs\"]\nmod tests;\n\
                    #[cfg(test)]\nmod near {\n    fn b() {\n    }\n}\nfn c() {}\n";
        let found = shipped(text, Path::new("src/x.rs"));
        assert_eq!(found.text.lines().count(), text.lines().count(), "lines keep their numbers");
        assert_eq!(found.text.lines().last(), Some("fn c() {}"));
        assert!(!found.text.contains("fn b"));
        assert_eq!(found.test_lines, 5);
        let expected = ["src/x/far.rs", "src/x/far", "src/x_tests.rs"].map(PathBuf::from);
        assert_eq!(found.test_modules, expected);
        let found = shipped("#[cfg(test)]\nmod t;\n", Path::new("src/mod.rs"));
        assert_eq!(found.test_modules[0], Path::new("src/t.rs"));
    }

    #[test]
    fn other_test_only_items_are_kept() {
        let text = "#[cfg(test)]\nuse std::fs;\nfn c() {}\n";
        let expected = Shipped { text: text.to_owned(), test_lines: 0, test_modules: Vec::new() };
        assert_eq!(shipped(text, Path::new("src/lib.rs")), expected);
    }
}

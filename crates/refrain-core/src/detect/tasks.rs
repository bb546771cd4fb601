//! Runners of any language: make, just, scripts. At the top of a repository they stand beside the gates of its ecosystems,
//! because they may do more than those; one that runs the very same command is no second gate. In folders they stand in
//! where nothing else covers the folder: there, they are mostly called from the top.

use super::draft::Draft;
use super::listing::{SCRIPTS, join, split};

/// The names of makefiles, in the order in which make prefers them.
const MAKEFILES: &[&str] = &["GNUmakefile", "makefile", "Makefile"];
const JUSTFILES: &[&str] = &["justfile", "Justfile", ".justfile"];

/// What is run for tests, the first that is there, and for linters.
const TEST: &[&str] = &["test", "tests", "check"];
const LINT: &[&str] = &["lint"];

pub(super) fn detect(draft: &mut Draft<'_>) {
    let listing = draft.listing;
    for folder in listing.folders(|name| MAKEFILES.contains(&name)) {
        let Some(file) = listing.first(folder, MAKEFILES) else { continue };
        let targets = targets(listing.text(folder, file).unwrap_or_default());
        if offer(draft, folder, "make", &targets) {
            // Any of the three names takes precedence over another, or is included.
            let globs = [MAKEFILES[0], "Makefile", "*.mk"]
                .map(|name| format!("/{}", join(&globset::escape(folder), name)));
            draft.protect(&globs.each_ref().map(String::as_str));
        }
    }
    for folder in listing.folders(|name| JUSTFILES.contains(&name)) {
        let Some(file) = listing.first(folder, JUSTFILES) else { continue };
        let recipes = recipes(listing.text(folder, file).unwrap_or_default());
        if offer(draft, folder, "just", &recipes) {
            let globs =
                ["justfile", ".justfile"].map(|name| format!("/{}", join(&globset::escape(folder), name)));
            draft.protect(&globs.each_ref().map(String::as_str));
        }
    }
    scripts(draft);
}

/// What make or just can run.
#[derive(Debug, PartialEq, Eq)]
struct Task<'a> {
    name: &'a str,
    /// Its only line, where it has no more and depends on nothing.
    line: Option<&'a str>,
}

/// Offers what a file of tasks holds for tests and linters; whether any gate uses the file.
fn offer(draft: &mut Draft<'_>, folder: &str, runner: &str, tasks: &[Task<'_>]) -> bool {
    if !folder.is_empty() && draft.is_covered(folder) {
        return false;
    }
    let mut is_used = false;
    for (names, hard) in [(TEST, true), (LINT, false)] {
        let Some(task) = names.iter().find_map(|name| tasks.iter().find(|task| task.name == *name)) else {
            continue;
        };
        if let Some(line) = task.line.filter(|line| draft.runs(folder, line)) {
            draft.note(format!(
                "`{runner} {}` is no gate of its own: it runs `{line}`, which is one",
                task.name
            ));
            continue;
        }
        let (name, command) = (format!("{runner}-{}", task.name), format!("{runner} {}", task.name));
        if hard {
            draft.test(folder, &name, command);
            draft.protect_called(folder, task.line.unwrap_or_default());
        } else {
            draft.lint(folder, &name, command);
        }
        is_used = true;
    }
    is_used
}

/// The targets that a makefile names itself. Those of included files and of patterns are not seen.
fn targets(text: &str) -> Vec<Task<'_>> {
    let mut found: Vec<Task<'_>> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((names, rest)) = line.split_once(':').filter(|_| !line.starts_with(['\t', '#', ' ', '.']))
        else {
            continue;
        };
        // An assignment: `CC := cc`, `export A ::= b`, `A = b:c`.
        if names.contains('=') || rest.trim_start_matches(':').starts_with('=') {
            continue;
        }
        let (needs, first) = rest.split_once(';').map_or((rest, None), |(needs, first)| (needs, Some(first)));
        let mut recipe: Vec<&str> = first.into_iter().collect();
        while let Some(line) = lines.next_if(|line| line.starts_with('\t') || line.trim().is_empty()) {
            recipe.push(line);
        }
        let needs = needs.trim_start_matches(':').split('#').next().unwrap_or_default();
        let line = only_line(&recipe).filter(|_| needs.trim().is_empty());
        found.extend(names.split_whitespace().map(|name| Task { name, line }));
    }
    found
}

/// The recipes of a justfile that need no argument, and its aliases.
fn recipes(text: &str) -> Vec<Task<'_>> {
    let mut found: Vec<Task<'_>> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(alias) = line.strip_prefix("alias ") {
            found.extend(alias.split(":=").next().map(|name| Task { name: name.trim(), line: None }));
            continue;
        }
        if line.starts_with([' ', '\t', '#', '[']) || line.contains(":=") {
            continue;
        }
        let Some((head, needs)) = line.split_once(':') else { continue };
        let mut words = head.trim_start_matches('@').split_whitespace();
        let Some(name) = words.next() else { continue };
        if words.any(|parameter| !parameter.contains('=') && !parameter.starts_with('*')) {
            continue;
        }
        let mut recipe = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with([' ', '\t']) || line.trim().is_empty()) {
            recipe.push(line);
        }
        let line =
            only_line(&recipe).filter(|_| needs.split('#').next().unwrap_or_default().trim().is_empty());
        found.push(Task { name, line });
    }
    found
}

/// The command of a recipe that has one line, without the marks that only change how it is shown.
fn only_line<'a>(recipe: &[&'a str]) -> Option<&'a str> {
    let mut lines =
        recipe.iter().map(|line| line.trim()).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let only = lines.next()?;
    lines.next().is_none().then(|| only.trim_start_matches('@').trim())
}

fn scripts(draft: &mut Draft<'_>) {
    let listing = draft.listing;
    let is_one = |name: &str| SCRIPTS.iter().any(|script| !script.contains('/') && *script == name);
    let mut folders = listing.folders(is_one);
    folders.retain(|folder| !folder.is_empty());
    for folder in std::iter::once("").chain(folders) {
        let Some(script) = listing.first(folder, SCRIPTS) else { continue };
        // A script in the folder of scripts is the top's.
        let is_counted = SCRIPTS.contains(&join(folder, script).as_str()) && !folder.is_empty();
        if is_counted || (!folder.is_empty() && draft.is_covered(folder)) {
            continue;
        }
        let name = split(script).1;
        draft.test(folder, name.trim_end_matches(".sh"), call(script, listing.text(folder, script)));
        draft.protect_file(&join(folder, script));
        draft.protect_existing(&["**/test/**", "**/tests/**"]);
    }
}

/// How a script is run: by the interpreter that it names, so that it needs no executable bit.
fn call(script: &str, text: Option<&str>) -> String {
    let Some(first) = text.and_then(|text| text.lines().next()) else { return format!("./{script}") };
    let Some(line) = first.strip_prefix("#!") else { return format!("sh {script}") };
    let words: Vec<&str> = line.split_whitespace().collect();
    let plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    match words.as_slice() {
        [env, program] if split(env).1 == "env" && plain(program) => format!("{program} {script}"),
        [program, arguments @ ..]
            if split(program).1 != "env"
                && plain(split(program).1)
                && arguments.iter().all(|word| plain(word)) =>
        {
            let arguments: String = arguments.iter().map(|word| format!("{word} ")).collect();
            format!("{} {arguments}{script}", split(program).1)
        }
        _ => format!("./{script}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task<'a>(name: &'a str, line: Option<&'a str>) -> Task<'a> {
        Task { name, line }
    }

    #[test]
    fn makefiles_are_read() {
        let text = "CC := cc\nA = b:c\n.PHONY: test\nall: build\n\ntest: build\n\tcargo test\n\nlint fmt:\n\t@cargo clippy\n\
                    one:; go test ./...\ntwo::\n\ta\n\tb\n%.o: %.c\n\tcc\n# no: comment\nlast:";
        assert_eq!(
            targets(text),
            [
                task("all", None),
                task("test", None),
                task("lint", Some("cargo clippy")),
                task("fmt", Some("cargo clippy")),
                task("one", Some("go test ./...")),
                task("two", None),
                task("%.o", None),
                task("last", None),
            ]
        );
    }

    #[test]
    fn justfiles_are_read() {
        let text = "set shell := [\"bash\", \"-c\"]\nversion := \"1\"\nalias t := test\n\n# all tests\n@test filter='' *rest:\n  \
                    cargo test\n\nlint: fmt\n    cargo clippy\n\n[private]\nrelease TAG:\n    git tag {{TAG}}\n";
        assert_eq!(recipes(text), [task("t", None), task("test", Some("cargo test")), task("lint", None)]);
    }

    #[test]
    fn scripts_are_run_by_what_they_name() {
        for (first, command) in [
            ("#!/bin/sh", "sh test.sh"),
            ("#!/bin/bash -eu", "bash -eu test.sh"),
            ("#!/usr/bin/env bash", "bash test.sh"),
            ("#!/usr/bin/env -S bash -e", "./test.sh"),
            ("#!/bin/sh;rm", "./test.sh"),
            ("echo hello", "sh test.sh"),
        ] {
            assert_eq!(call("test.sh", Some(first)), command, "{first}");
        }
        assert_eq!(call("test.sh", None), "./test.sh");
    }
}

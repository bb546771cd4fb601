//! Runners of any language: make, just, scripts. At the top of a repository they are offered beside the gates of its
//! ecosystems, because they may do more; a runner with the very same command is no second gate. In a folder they are
//! offered only if nothing else covers it: there, they are mostly called from the top.

use super::draft::Draft;
use super::listing::{SCRIPTS, join, split};

/// The names of makefiles, in the order in which make prefers them.
const MAKEFILES: &[&str] = &["GNUmakefile", "makefile", "Makefile"];
const JUSTFILES: &[&str] = &["justfile", "Justfile", ".justfile"];

/// The names of tasks for tests, of which the first that exists is used, and for linters.
const TEST: &[&str] = &["test", "tests", "check"];
const LINT: &[&str] = &["lint"];

pub(super) fn detect(draft: &mut Draft<'_>) {
    let listing = draft.listing;
    for folder in listing.folders(|name| MAKEFILES.contains(&name)) {
        let Some(file) = listing.first(folder, MAKEFILES) else { continue };
        let targets = targets(listing.text(folder, file).unwrap_or_default());
        if offer(draft, folder, "make", &targets) {
            // Any of the three names takes precedence over another, or is included. Make remakes a makefile from
            // `Makefile.sh`, and from what version control systems of old keep.
            let globs = [
                MAKEFILES[0],
                "Makefile",
                "*.mk",
                "GNUmakefile.*",
                "Makefile.*",
                "*.mk.*",
                "*,v",
                "{RCS,SCCS}/**",
            ]
            .map(|name| format!("/{}", join(&globset::escape(folder), name)));
            draft.protect(&globs.each_ref().map(String::as_str));
            for included in included(listing.text(folder, file).unwrap_or_default()) {
                draft.protect_file(&join(folder, included));
            }
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

#[derive(Debug, PartialEq, Eq)]
struct Task<'a> {
    name: &'a str,
    /// Its only line, if it has no more and depends on nothing.
    line: Option<&'a str>,
    recipe: Vec<&'a str>,
    /// The tasks that run before it, beside files.
    needs: Vec<&'a str>,
}

/// The lines of a task and of all that run before it.
fn lines<'a>(tasks: &[Task<'a>], name: &str) -> String {
    let (mut lines, mut seen, mut next) = (Vec::new(), Vec::new(), vec![name]);
    while let Some(name) = next.pop() {
        if !seen.contains(&name) {
            seen.push(name);
            for task in tasks.iter().filter(|task| task.name == name) {
                lines.extend(task.recipe.iter().map(|line| line.trim().trim_start_matches(['@', '-', '+'])));
                next.extend(&task.needs);
            }
        }
    }
    lines.join("\n")
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
            draft.protect_called(folder, &lines(tasks, task.name));
        } else {
            draft.lint(folder, &name, command);
        }
        is_used = true;
    }
    is_used
}

/// The files that a makefile includes, as far as it names them in full.
fn included(text: &str) -> impl Iterator<Item = &str> {
    let words = ["include ", "-include ", "sinclude "];
    let lines = text.lines().filter_map(move |line| words.iter().find_map(|word| line.strip_prefix(word)));
    let names = lines.flat_map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    let is_plain =
        |name: &&str| !name.contains(['$', '*', '?', '[', '%', '~']) && !name.starts_with(['/', '.']);
    names.map(|name| name.trim_start_matches("./")).filter(is_plain)
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
        let needs: Vec<&str> = needs.split_whitespace().collect();
        let task = |name| Task { name, line, recipe: recipe.clone(), needs: needs.clone() };
        found.extend(names.split_whitespace().map(task));
    }
    found
}

/// The recipes of a justfile that need no argument, and its aliases.
fn recipes(text: &str) -> Vec<Task<'_>> {
    let mut found: Vec<Task<'_>> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(alias) = line.strip_prefix("alias ") {
            let (name, target) = alias.split_once(":=").unwrap_or((alias, ""));
            found.push(Task {
                name: name.trim(),
                line: None,
                recipe: Vec::new(),
                needs: vec![target.trim()],
            });
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
        let needs: Vec<&str> = needs.split('#').next().unwrap_or_default().split_whitespace().collect();
        let line = only_line(&recipe).filter(|_| needs.is_empty());
        found.push(Task { name, line, recipe, needs });
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
        draft.protect_called_by(folder, script);
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

    fn shown<'a>(tasks: Vec<Task<'a>>) -> Vec<(&'a str, Option<&'a str>)> {
        tasks.into_iter().map(|task| (task.name, task.line)).collect()
    }

    fn task<'a>(name: &'a str, line: Option<&'a str>) -> (&'a str, Option<&'a str>) {
        (name, line)
    }

    #[test]
    fn a_make_target_includes_the_lines_of_its_dependencies() {
        let text = "test: build check\n\t@sh test.sh\ncheck: test\n\t-sh check.sh\n\ttrue\nother:\n\tno\n";
        assert_eq!(lines(&targets(text), "test"), "sh test.sh\nsh check.sh\ntrue");
        assert_eq!(
            lines(&recipes("alias t := test\ntest: fmt\n  sh test.sh\nfmt:\n  fmt\n"), "t"),
            "sh test.sh\nfmt"
        );
    }

    #[test]
    fn included_files_are_found() {
        let text = "include a.mk b/c.mk # d\n-include ./local\ninclude $(D)/x.mk ../up.mk\ninclude=1\n";
        assert_eq!(included(text).collect::<Vec<_>>(), ["a.mk", "b/c.mk", "local"]);
    }

    #[test]
    fn makefiles_are_read() {
        let text = "CC := cc\nA = b:c\n.PHONY: test\nall: build\n\ntest: build\n\tcargo test\n\nlint fmt:\n\t@cargo clippy\n\
                    one:; go test ./...\ntwo::\n\ta\n\tb\n%.o: %.c\n\tcc\n# no: comment\nlast:";
        assert_eq!(
            shown(targets(text)),
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
        assert_eq!(
            shown(recipes(text)),
            [task("t", None), task("test", Some("cargo test")), task("lint", None)]
        );
    }

    #[test]
    fn a_script_is_run_by_the_interpreter_it_names() {
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

//! Import cycles between files of one crate. Small ones are harmless; in a large one no file can be read, moved or
//! tested by itself. Imports are read as text, re-exports are followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::finding::Finding;
use super::source::shipped_sources;
use crate::failure::Result;
use crate::files::shown;
use crate::workspace::Workspace;

const MOST: usize = 4;

/// Larger knots that are to be dissolved, and how many files each has now: it must not grow.
const KNOWN: &[(&str, usize)] = &[];

/// The longest chain of re-exports that is followed.
const DEEPEST: usize = 8;

type Module = Vec<String>;

/// The names of a path, and the keyword before it.
type Import = (Vec<String>, Kind);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Inline,
    Use,
    /// It only passes a name on.
    PubUse,
}

pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let src = package.folder().join("src");
        let files: Vec<_> = shipped_sources(&src)?
            .into_iter()
            .filter_map(|(path, text)| Some((module_of(path.strip_prefix(&src).ok()?)?, path, text)))
            .collect();
        let modules = files.iter().map(|(module, _, text)| (module.clone(), text.as_str())).collect();
        let most = KNOWN.iter().find(|(name, _)| *name == package.name).map_or(MOST, |(_, most)| *most);
        for knot in knots(&modules).into_iter().filter(|knot| knot.len() > most) {
            let place = |module: &Module| {
                let file = files.iter().find(|(known, ..)| known == module);
                file.map(|(_, path, _)| shown(path, &workspace.root)).unwrap_or_default()
            };
            let names: Vec<_> = knot.iter().map(place).collect();
            findings.push(Finding::error(
                &names[0],
                format!("{} files import each other in a circle: {}", knot.len(), names.join(", ")),
                format!("at most {most} may: move what they share below all of them"),
            ));
        }
    }
    Ok(findings)
}

/// The module that a file is, by its path below `src`; none of a program beside the crate's own.
fn module_of(path: &Path) -> Option<Module> {
    let mut names: Module =
        path.with_extension("").iter().map(|name| name.to_string_lossy().into()).collect();
    match names.last().map(String::as_str) {
        Some("lib" | "main") if names.len() == 1 => names.clear(),
        Some("mod") => drop(names.pop()),
        _ if names.first().is_some_and(|first| first == "bin") => return None,
        _ => {}
    }
    Some(names)
}

/// The circles among these modules, the largest first.
fn knots(modules: &BTreeMap<Module, &str>) -> Vec<Vec<Module>> {
    let names: Vec<_> = modules.keys().collect();
    let imports: BTreeMap<&Module, Vec<Import>> =
        modules.iter().map(|(module, text)| (module, imports(text))).collect();
    let at = |module: &Module| names.iter().position(|name| *name == module);
    let mut graph = DiGraph::<(), ()>::new();
    for _ in &names {
        graph.add_node(());
    }
    for (from, module) in names.iter().enumerate() {
        for (path, _) in imports[*module].iter().filter(|(_, kind)| *kind != Kind::PubUse) {
            let target = resolve(&imports, module, path, DEEPEST).and_then(|target| at(&target));
            if let Some(to) = target.filter(|to| *to != from) {
                graph.update_edge(NodeIndex::new(from), NodeIndex::new(to), ());
            }
        }
    }
    let mut knots: Vec<Vec<Module>> = tarjan_scc(&graph)
        .into_iter()
        .filter(|knot| knot.len() > 1)
        .map(|knot| {
            knot.into_iter()
                .map(|at| names[at.index()].clone())
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect()
        })
        .collect();
    knots.sort_by_key(|knot| usize::MAX - knot.len());
    knots
}

/// The module that defines what a path names; none for another crate's.
fn resolve(
    imports: &BTreeMap<&Module, Vec<Import>>,
    from: &Module,
    path: &[String],
    depth: usize,
) -> Option<Module> {
    let (mut module, mut rest) = match path.first()?.as_str() {
        "crate" => (Module::new(), &path[1..]),
        "self" => (from.clone(), &path[1..]),
        "super" => (from.clone(), path),
        first => {
            let child = [from.as_slice(), &[first.to_owned()]].concat();
            (imports.contains_key(&child).then(|| from.clone())?, path)
        }
    };
    while let Some((name, behind)) = rest.split_first() {
        let child = [module.as_slice(), std::slice::from_ref(name)].concat();
        if name == "super" {
            module.pop();
        } else if imports.contains_key(&child) {
            module = child;
        } else {
            let is_it = |(path, kind): &&Import| *kind != Kind::Inline && path.last() == Some(name);
            let passed_on = imports.get(&module)?.iter().find(is_it).filter(|_| depth > 0);
            let passed_on = passed_on.and_then(|(path, _)| resolve(imports, &module, path, depth - 1));
            match passed_on {
                // A re-exported module: the rest of the path is in it.
                Some(target) if target.last() == Some(name) && !behind.is_empty() => module = target,
                passed_on => return passed_on.or(Some(module)),
            }
        }
        rest = behind;
    }
    imports.contains_key(&module).then_some(module)
}

/// Every path in a text that may lead to another module.
fn imports(text: &str) -> Vec<Import> {
    let words = words(text);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let is_use = words[at] == "use";
        let begins_path = is_name(words[at])
            && words.get(at + 1) == Some(&"::")
            && (at == 0 || !matches!(words[at - 1], "::" | "."));
        if is_use {
            let is_public = at > 0 && matches!(words[at - 1], "pub" | ")");
            let kind = if is_public { Kind::PubUse } else { Kind::Use };
            at = tree(&words, at + 1, &[], &mut |path| found.push((path, kind)));
        } else if begins_path {
            at = tree(&words, at, &[], &mut |path| found.push((path, Kind::Inline)));
        } else {
            at += 1;
        }
    }
    found
}

/// Reads a path, or a group of paths, from `at`; returns where it ends.
fn tree(words: &[&str], mut at: usize, before: &[String], found: &mut impl FnMut(Vec<String>)) -> usize {
    let mut path = before.to_vec();
    loop {
        match words.get(at) {
            Some(&"{") => {
                at += 1;
                while words.get(at).is_some_and(|word| *word != "}") {
                    at = if words[at] == "," { at + 1 } else { tree(words, at, &path, found) };
                }
                return at + 1;
            }
            Some(name) if is_name(name) => path.push(name.trim_start_matches("r#").to_owned()),
            Some(_) | None => {
                found(path);
                return at + 1;
            }
        }
        at += 1;
        match words.get(at) {
            Some(&"::") if words.get(at + 1).is_some_and(|next| is_name(next) || *next == "{") => at += 1,
            Some(&"as") => {
                found(path);
                return at + 2;
            }
            Some(_) | None => {
                found(path);
                return at;
            }
        }
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Names, `::` and single characters, without strings.
fn words(text: &str) -> Vec<&str> {
    let (mut words, mut at) = (Vec::new(), 0);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if c.is_ascii_alphanumeric() || c == '_' {
            let raw = if rest.starts_with("r#") { 2 } else { 0 };
            let end = rest[raw..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            end.map_or(rest.len(), |end| raw + end)
        } else if rest.starts_with("::") {
            2
        } else {
            c.len_utf8()
        };
        if c != '"' && !c.is_whitespace() {
            words.push(&rest[..length.max(1)]);
        }
        at += length.max(1);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let modules = files.iter().map(|(path, text)| (module_of(Path::new(path)).unwrap(), *text)).collect();
        knots(&modules).iter().map(|knot| knot.iter().map(|module| module.join("::")).collect()).collect()
    }

    #[test]
    fn files_that_import_each_other_are_a_knot() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::{c::{self, C}, d::D}; pub struct B;"),
            ("c.rs", "fn f() -> crate::a::A { crate::a::A }"),
        ];
        assert_eq!(circles(&files), [["a", "b", "c"]]);
    }

    #[test]
    fn a_re_export_leads_to_where_the_thing_is() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::B;"),
            ("a.rs", "use crate::B; pub fn a() {}"),
            ("b.rs", "use crate::a; pub struct B;"),
        ];
        assert_eq!(circles(&files), [["a", "b"]]);
        let none = [files[0], files[1], ("b.rs", "pub struct B;")];
        assert!(circles(&none).is_empty());
    }

    #[test]
    fn an_item_of_a_re_exported_module_is_found_there() {
        let files = [
            ("lib.rs", "mod room; mod a; pub use room::b;"),
            ("room.rs", "pub mod b;"),
            ("room/b.rs", "mod c; pub use c::C; use crate::a::A;"),
            ("room/b/c.rs", "pub struct C;"),
            ("a.rs", "use crate::b::C; pub struct A;"),
        ];
        assert!(circles(&files).is_empty());
    }

    #[test]
    fn a_parent_that_uses_its_child_and_is_used_by_it_is_a_knot_of_two() {
        let files = [
            ("lib.rs", "mod r#loop;"),
            ("loop.rs", "mod x; fn f() { x::g() }"),
            ("loop/x.rs", "use super::f;"),
        ];
        assert_eq!(circles(&files), [["loop", "loop::x"]]);
    }

    #[test]
    fn strings_and_other_crates_are_no_imports() {
        let files = [("lib.rs", "mod a;"), ("a.rs", r#"use std::fs; const A: &str = "crate::b::c";"#)];
        assert!(circles(&files).is_empty());
    }
}

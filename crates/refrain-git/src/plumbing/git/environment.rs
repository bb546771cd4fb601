//! The environment of git: whose repository it works in, its settings, and where it is found.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use camino::Utf8Path;
use refrain_forge::FROM_FILE;
use refrain_proc::program::{folders_outside, in_path_outside};

/// The variables with which a surrounding git (a hook, `git rebase --exec`) would redirect ours to its own
/// repository: the output of `git rev-parse --local-env-vars`, without the configuration of a `git -c`; and the one
/// that names a tree with other attributes.
const BENDING: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE",
    "GIT_ICASE_PATHSPECS",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NAMESPACE",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REFLOG_ACTION",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Variables set for every git: no prompts, no editor, no optional locks.
const SET: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("LANGUAGE", ""),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    // Replacements by `git replace` are ignored.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
];

pub(crate) const NO_LAZY_FETCH: (&str, &str) = ("GIT_NO_LAZY_FETCH", "1");

/// The author of a commit: name, address, and date, as in [`AUTHOR`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author(pub(crate) [OsString; 3]);

/// The variables that set the author of a commit (git-commit-tree(1)).
pub(super) const AUTHOR: [&str; 3] = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];

/// Derives the environment for git from the user's.
pub(crate) fn environment(person: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    let is_kept = |name: &OsStr| {
        let name = name.to_str().unwrap_or_default();
        !BENDING.contains(&name)
            && name != FROM_FILE
            && !name.starts_with("GIT_TRACE")
            && !SET.iter().any(|(set, _)| *set == name)
    };
    let mut env: Vec<_> = person.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
    env.extend(SET.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    env
}

/// The path of a `git` program outside `dirs`, which an agent can write to; none if there is none.
pub(crate) fn program(env: &[(OsString, OsString)], dirs: &[&Utf8Path]) -> Option<PathBuf> {
    in_path_outside("git", env, dirs)
}

/// The environment's `PATH` without folders in `dirs`; none if it contains none of them.
pub(crate) fn path_outside(env: &[(OsString, OsString)], dirs: &[&Utf8Path]) -> Option<OsString> {
    let (outside, is_all) = folders_outside(env, dirs);
    if is_all { None } else { std::env::join_paths(outside).ok() }
}

/// A path as git reads it in double quotes.
pub(crate) fn quoted(path: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' | 0..=31 | 127 => quoted.extend(format!("\\{byte:03o}").into_bytes()),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

/// The variables that pass these settings to git (git(1), `GIT_CONFIG_COUNT`), before those that are already in the
/// environment.
pub(super) fn in_variables(
    settings: &[(String, String)],
    env: &[(OsString, OsString)],
) -> Vec<(String, OsString)> {
    if settings.is_empty() {
        return Vec::new();
    }
    let variable = |name: &str| env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value);
    let count: usize =
        variable("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok()).unwrap_or(0);
    let theirs = (0..count).filter_map(|at| {
        Some((
            variable(&format!("GIT_CONFIG_KEY_{at}"))?.clone(),
            variable(&format!("GIT_CONFIG_VALUE_{at}"))?.clone(),
        ))
    });
    let ours = settings.iter().map(|(key, value)| (OsString::from(key), OsString::from(value)));
    let all: Vec<_> = ours.chain(theirs).collect();
    let mut variables = vec![("GIT_CONFIG_COUNT".to_owned(), all.len().to_string().into())];
    for (at, (key, value)) in all.into_iter().enumerate() {
        variables.push((format!("GIT_CONFIG_KEY_{at}"), key));
        variables.push((format!("GIT_CONFIG_VALUE_{at}"), value));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_surrounding_git_does_not_bend_ours() {
        let person = [("GIT_DIR", "/x"), ("GIT_INDEX_FILE", "/y"), ("LC_ALL", "de_DE"), ("HOME", "/h")];
        let person = person.map(|(name, value)| (name.into(), value.into()));
        let env = environment(&person);
        let value =
            |name: &str| env.iter().filter(|(n, _)| n == name).map(|(_, v)| v.clone()).collect::<Vec<_>>();
        assert!(value("GIT_DIR").is_empty() && value("GIT_INDEX_FILE").is_empty());
        assert_eq!((value("LC_ALL"), value("HOME")), (vec!["C".into()], vec!["/h".into()]));
    }

    #[test]
    fn settings_stand_before_those_of_the_environment() {
        let env: Vec<(OsString, OsString)> =
            [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "a.b"), ("GIT_CONFIG_VALUE_0", "theirs")]
                .map(|(name, value)| (name.into(), value.into()))
                .into();
        let told = in_variables(&[("a.b".to_owned(), "ours".to_owned())], &env);
        let value = |name: &str| told.iter().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(value("GIT_CONFIG_COUNT"), "2");
        assert_eq!(
            (value("GIT_CONFIG_VALUE_0"), value("GIT_CONFIG_VALUE_1")),
            ("ours".into(), "theirs".into())
        );
        assert!(in_variables(&[], &env).is_empty());
    }

    #[test]
    fn no_git_of_the_project_is_run() {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(dir.path()).unwrap();
        std::os::unix::fs::symlink("/bin/sh", root.join("git")).unwrap();
        let env = [("PATH".into(), format!("{root}:.:/nonexistent").into())];
        assert_eq!(program(&env, &[root]), None);
        assert_eq!(path_outside(&env, &[root]), Some("/nonexistent".into()));
    }
}

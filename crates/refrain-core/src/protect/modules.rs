//! Modules of a test runner that a new file would hide: `python -m unittest` imports `difflib` from the current folder,
//! if one is there, before it looks among the standard modules.

use crate::git::RepoPath;

use super::Kind;

/// Modules that unittest and pytest import themselves, or that nearly every test does: standard ones, and those that
/// come with pytest. Those that the interpreter has loaded before it looks into any folder (`os`, `io`) cannot be
/// hidden.
const MODULES: &[&str] = &[
    "_pytest",
    "argparse",
    "array",
    "ast",
    "asyncio",
    "base64",
    "bdb",
    "bisect",
    "bz2",
    "codeop",
    "collections",
    "concurrent",
    "configparser",
    "contextlib",
    "contextvars",
    "copy",
    "copyreg",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "dis",
    "doctest",
    "enum",
    "exceptiongroup",
    "fnmatch",
    "fractions",
    "functools",
    "getpass",
    "gettext",
    "glob",
    "hashlib",
    "heapq",
    "importlib",
    "iniconfig",
    "inspect",
    "itertools",
    "json",
    "keyword",
    "linecache",
    "locale",
    "logging",
    "lzma",
    "math",
    "numbers",
    "opcode",
    "operator",
    "packaging",
    "pathlib",
    "pdb",
    "pkgutil",
    "platform",
    "pluggy",
    "pprint",
    "pygments",
    "pytest",
    "random",
    "re",
    "reprlib",
    "runpy",
    "select",
    "selectors",
    "shlex",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "string",
    "struct",
    "subprocess",
    "sysconfig",
    "tempfile",
    "textwrap",
    "threading",
    "time",
    "token",
    "tokenize",
    "tomllib",
    "traceback",
    "types",
    "typing",
    "unicodedata",
    "unittest",
    "urllib",
    "uuid",
    "warnings",
    "weakref",
    "xml",
    "zipfile",
    "zlib",
];

const ENDS: &[&str] = &[".py", ".pyc", ".so"];

/// Those of them that Python takes rather than the source.
const COMPILED: &[&str] = &[".pyc", ".so"];

/// Whether Python made the file from its source when it imported that: no commit wants it.
pub fn is_compiled_python(path: &[u8]) -> bool {
    path.ends_with(b".pyc") && path.split(|byte| *byte == b'/').rev().nth(1) == Some(b"__pycache__")
}

/// The source that Python skips if there is such a file: `tests/test_a.py` for `tests/test_a.so` and for
/// `tests/__pycache__/test_a.cpython-313.pyc`.
pub(super) fn source_behind(path: &RepoPath) -> Option<RepoPath> {
    let bytes = path.to_bytes();
    let path = str::from_utf8(&bytes).ok()?;
    let (folder, file) = path.rsplit_once('/').map_or(("", path), |(folder, file)| (folder, file));
    let folder = match folder.rsplit_once('/').unwrap_or(("", folder)) {
        (above, "__pycache__") => above,
        // Python takes one beside its source only if the source is missing.
        _ if file.ends_with(".pyc") => return None,
        _ => folder,
    };
    let (name, _) = file.split_once('.').filter(|_| COMPILED.iter().any(|end| file.ends_with(end)))?;
    let source = if folder.is_empty() { format!("{name}.py") } else { format!("{folder}/{name}.py") };
    Some(RepoPath::from_bytes(source.as_bytes()))
}

/// The module that the path would hide from a runner in one of the folders.
pub(super) fn hidden(path: &RepoPath, kind: Kind, folders: &[String]) -> Option<&'static str> {
    let bytes = path.to_bytes();
    let path = str::from_utf8(&bytes).ok()?;
    folders.iter().find_map(|folder| {
        let inside = match folder.as_str() {
            "" => path,
            folder => path.strip_prefix(folder)?.strip_prefix('/')?,
        };
        let name = match inside.split_once('/') {
            // A package; without this file a module of the same name comes first.
            Some((name, file)) => {
                ENDS.iter().any(|end| file.strip_suffix(end) == Some("__init__")).then_some(name)
            }
            None if kind == Kind::File => {
                let (name, _) = inside.split_once('.')?;
                ENDS.iter().any(|end| inside.ends_with(end)).then_some(name)
            }
            // A link may lead to a package.
            None => Some(inside.split('.').next().unwrap_or(inside)),
        }?;
        MODULES.binary_search(&name).ok().map(|at| MODULES[at])
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn modules_are_sorted() {
        assert!(MODULES.is_sorted());
    }

    #[rstest]
    #[case::imported("tests/__pycache__/test_a.cpython-313.pyc", Some("tests/test_a.py"), true)]
    #[case::at_the_top("__pycache__/test_a.cpython-313.pyc", Some("test_a.py"), true)]
    #[case::an_extension("tests/test_a.so", Some("tests/test_a.py"), false)]
    #[case::of_one_version("test_a.cpython-313-x86_64-linux-gnu.so", Some("test_a.py"), false)]
    #[case::beside_its_source("tests/test_a.pyc", None, false)]
    #[case::a_source("tests/test_a.py", None, false)]
    #[case::another_library("tests/__pycache__/notes.txt", None, false)]
    fn python_takes_compiled_code_for_its_source(
        #[case] path: &str,
        #[case] source: Option<&str>,
        #[case] is_made_by_import: bool,
    ) {
        let behind = source_behind(&RepoPath::from_bytes(path.as_bytes()));
        assert_eq!(behind, source.map(|source| RepoPath::from_bytes(source.as_bytes())));
        assert_eq!(is_compiled_python(path.as_bytes()), is_made_by_import);
    }

    #[rstest]
    #[case::a_file("difflib.py", Kind::File, Some("difflib"))]
    #[case::compiled("difflib.pyc", Kind::File, Some("difflib"))]
    #[case::an_extension("difflib.cpython-311-x86_64-linux-gnu.so", Kind::File, Some("difflib"))]
    #[case::a_package("difflib/__init__.py", Kind::File, Some("difflib"))]
    #[case::in_the_tests_folder("tests/iniconfig.py", Kind::File, Some("iniconfig"))]
    #[case::a_link("difflib", Kind::Link, Some("difflib"))]
    #[case::a_link_to_a_file("difflib.py", Kind::Link, Some("difflib"))]
    #[case::elsewhere("src/difflib.py", Kind::File, None)]
    #[case::deeper("tests/unit/difflib.py", Kind::File, None)]
    #[case::a_part_of_a_package("difflib/extra.py", Kind::File, None)]
    #[case::another_file("difflib.md", Kind::File, None)]
    #[case::another_module("sums.py", Kind::File, None)]
    #[case::a_program("difflib", Kind::File, None)]
    fn a_module_is_hidden_by_its_name(
        #[case] path: &str,
        #[case] kind: Kind,
        #[case] expected: Option<&str>,
    ) {
        let folders = [String::new(), "tests".to_owned()];
        assert_eq!(hidden(&RepoPath::from_bytes(path.as_bytes()), kind, &folders), expected);
        assert_eq!(hidden(&RepoPath::from_bytes(path.as_bytes()), kind, &[]), None);
    }
}

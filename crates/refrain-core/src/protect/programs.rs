//! Which programs a gate's command has looked up in `PATH`: a conservative reading of it, as no shell runs for that. What
//! is not understood is no program: a word too few is a pin too few, a word too many would refuse honest work.
//!
//! Where they are found, and what they are, is pinned at the start: a program of the same name that stands earlier in
//! `PATH` proves nothing. What lies in the worktree is part of the work, and protected by its path, or not at all.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::printable;

/// A program as it was found in `PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// What the command calls it.
    pub name: String,
    /// Where it was found; none where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What it holds; none where it was not found, or lies in the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
}

/// A program of a gate that is another than at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherProgram {
    /// What the command calls it.
    pub name: String,
    /// Where it was at the start; none where it was nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Where it is now; none where it is nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

impl fmt::Display for OtherProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = printable(&self.name);
        match (self.before.as_deref().map(printable), self.now.as_deref().map(printable)) {
            (Some(before), Some(now)) if before == now => {
                write!(f, "the gates' program {name} ({now}) is another than at the start")
            }
            (Some(before), Some(now)) => {
                write!(f, "the gates' program {name} is found as {now}, and was {before} at the start")
            }
            (Some(before), None) => write!(f, "the gates' program {name} ({before}) is gone"),
            (None, now) => write!(
                f,
                "the gates' program {name} was nowhere at the start, and now lies in the worktree: {}",
                now.unwrap_or_default()
            ),
        }
    }
}

impl Program {
    /// The programs that are others than before. One that was missing may be installed, but not be made by the work itself.
    #[must_use]
    pub fn others(before: &[Self], now: &[Self]) -> Vec<OtherProgram> {
        let is_another = |(was, is): &(&Self, &Self)| match (&was.path, &is.path) {
            (Some(_), _) => was != is,
            // In the worktree there is no hash.
            (None, Some(_)) => is.blake3.is_none(),
            (None, None) => false,
        };
        let pairs = before.iter().filter_map(|was| Some((was, now.iter().find(|is| is.name == was.name)?)));
        pairs
            .filter(is_another)
            .map(|(was, is)| OtherProgram {
                name: was.name.clone(),
                before: was.path.clone(),
                now: is.path.clone(),
            })
            .collect()
    }
}

/// What a shell does itself, and so does not look up.
const BUILTINS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "break", "cd", "continue", "echo", "eval", "exit", "export", "false", "fg",
    "getopts", "hash", "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set",
    "shift", "source", "test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset",
    "wait",
];

/// Words behind which another command begins.
const BEFORE: &[&str] =
    &["!", "do", "elif", "else", "if", "then", "time", "until", "while", "{", "command", "exec"];

/// Programs that run the command which follows their own options and assignments.
const RUNNERS: &[&str] = &["env", "nice", "nohup", "setsid", "stdbuf", "xvfb-run"];

/// Words of a compound whose rest is no command.
const OTHERS: &[&str] = &["case", "done", "esac", "fi", "for", "function", "in", "select", "}"];

/// The programs by their names, each once, in the order in which they stand.
#[must_use]
pub fn programs(command: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for simple in simple_commands(command) {
        for name in names(&simple) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

/// The text between operators. Quotes and escapes are kept: `shlex` reads them.
fn simple_commands(command: &str) -> Vec<String> {
    let (mut all, mut current) = (Vec::new(), String::new());
    let mut quote = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None | Some('"'), '\\') => {
                current.push(c);
                current.extend(chars.next());
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            // `2>&1` goes on.
            (None, '&') if current.ends_with('>') => {}
            (None, ';' | '&' | '|' | '(' | ')' | '\n') => {
                all.push(std::mem::take(&mut current));
                continue;
            }
            (None | Some(_), _) => {}
        }
        current.push(c);
    }
    all.push(current);
    all
}

/// The programs at the head of one simple command: it, and where it runs another, that.
fn names(simple: &str) -> Vec<String> {
    let mut found = Vec::new();
    let words = shlex::split(simple).unwrap_or_default();
    for word in words.iter().map(String::as_str) {
        if is_assignment(word) || BEFORE.contains(&word) || (word.starts_with('-') && !found.is_empty()) {
            continue;
        }
        if OTHERS.contains(&word) || BUILTINS.contains(&word) || !is_plain(word) {
            break;
        }
        found.push(word.to_owned());
        if !RUNNERS.contains(&word) {
            break;
        }
    }
    found
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Whether a word is a bare name, without a path and without anything that the shell would make something else of.
fn is_plain(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+".contains(c))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn program(path: Option<&str>, hash: Option<&str>) -> Program {
        Program { name: "make".into(), path: path.map(str::to_owned), blake3: hash.map(str::to_owned) }
    }

    const AT: Option<&str> = Some("/usr/bin/make");
    const NEAR: Option<&str> = Some("/home/me/bin/make");

    #[rstest]
    #[case::the_same(program(AT, Some("a")), program(AT, Some("a")), "")]
    #[case::changed(program(AT, Some("a")), program(AT, Some("b")), "make (/usr/bin/make) is another")]
    #[case::earlier(
        program(AT, Some("a")),
        program(NEAR, Some("b")),
        "make is found as /home/me/bin/make, and was /usr/bin/make"
    )]
    #[case::gone(program(AT, Some("a")), program(None, None), "make (/usr/bin/make) is gone")]
    #[case::in_the_worktree(program(NEAR, None), program(NEAR, None), "")]
    #[case::into_the_worktree(
        program(AT, Some("a")),
        program(NEAR, None),
        "make is found as /home/me/bin/make"
    )]
    #[case::installed(program(None, None), program(AT, Some("a")), "")]
    #[case::made(
        program(None, None),
        program(NEAR, None),
        "make was nowhere at the start, and now lies in the worktree"
    )]
    fn programs_are_compared(#[case] before: Program, #[case] now: Program, #[case] says: &str) {
        let others = Program::others(&[before], &[now]);
        let said = others.first().map(ToString::to_string).unwrap_or_default();
        assert_eq!(said.is_empty(), says.is_empty());
        assert!(said.contains(says), "{said}");
    }

    #[rstest]
    #[case::one("cargo test --workspace", &["cargo"])]
    #[case::a_variable("CI=true npm test", &["npm"])]
    #[case::several("cd ./web && npm ci && npm test | tee log; go vet ./...", &["npm", "tee", "go"])]
    #[case::without_spaces("make&&pytest;ruff check .", &["make", "pytest", "ruff"])]
    #[case::a_path("./test.sh && bin/check", &[])]
    #[case::a_script("sh test.sh", &["sh"])]
    #[case::builtins("[ -f done ] && test -e x || exit 1", &[])]
    #[case::quoted_operators(r#"grep -q "a && b; c" 'x | y' f"#, &["grep"])]
    #[case::an_escaped_one(r"grep a\;b f", &["grep"])]
    #[case::compounds("if grep -q x f; then exit 1; fi; for i in a b; do pytest $i; done", &["grep", "pytest"])]
    #[case::a_group("{ cargo test 2>&1; } | tee log", &["cargo", "tee"])]
    #[case::a_redirection_in_front(">&2 echo x; > log pytest", &[])]
    #[case::a_subshell("(cd web; npm test)", &["npm"])]
    #[case::a_runner("env -i A=1 pytest -q", &["env", "pytest"])]
    #[case::exec("exec python3 -m unittest", &["python3"])]
    #[case::not_what_is_expanded("$RUNNER test; `which x`; *", &[])]
    #[case::lines("cargo fmt --check\ncargo test", &["cargo"])]
    #[case::unbalanced("echo 'x", &[])]
    #[case::nothing("", &[])]
    fn a_command_looks_up(#[case] command: &str, #[case] expected: &[&str]) {
        assert_eq!(programs(command), expected);
    }
}

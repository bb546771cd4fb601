//! Which programs a gate's command looks up in `PATH`, and which one it starts with: a conservative reading of it,
//! without a shell. An unclear word is no program: a word too few is a pin too few, a word too many would refuse honest
//! work.
//!
//! Where they are found, and their content, is pinned at the start: a program of the same name that comes earlier in
//! `PATH` proves nothing. A program in the worktree is part of the work, and protected by its path, or not at all.

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
    /// The programs that are others than before. One that was missing may be installed, but not be made by the work
    /// itself.
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

/// The builtins of a shell, which it does not look up.
const BUILTINS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "break", "cd", "continue", "echo", "eval", "exit", "export", "false", "fg",
    "getopts", "hash", "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set",
    "shift", "source", "test", "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset",
    "wait",
];

const BEFORE: &[&str] =
    &["!", "do", "elif", "else", "if", "then", "time", "until", "while", "{", "command", "exec"];

/// Programs that run the command which follows their own options and assignments.
const RUNNERS: &[&str] = &["env", "nice", "nohup", "setsid", "stdbuf", "xvfb-run"];

/// Builtins and keywords of other shells: `/bin/sh` may be one of them.
const OTHER_BUILTINS: &[&str] = &[
    "bind",
    "builtin",
    "caller",
    "compgen",
    "complete",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "enable",
    "fc",
    "help",
    "history",
    "let",
    "logout",
    "mapfile",
    "popd",
    "print",
    "pushd",
    "readarray",
    "shopt",
    "suspend",
    "typeset",
    "whence",
];

/// Builtins that succeed and leave it as it was which program a later word names, unless they set `PATH`.
const PASSES: &[&str] = &[":", "cd", "echo", "export", "printf", "set", "true", "ulimit", "umask", "unset"];

/// Words before the first program that change nothing about where it is found.
const LEADS: &[&str] = &["!", "{", "exec", "command", "time"];

/// Words of a compound whose rest is no command.
const OTHERS: &[&str] = &["case", "done", "esac", "fi", "for", "function", "in", "select", "}"];

/// The programs by their names, each once, in order.
pub fn programs(command: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for Simple { text, .. } in simple_commands(command) {
        for name in names(&text) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found
}

/// The program that a shell looks up first when it runs the command, as a name or a path; none if a builtin, a
/// condition or an expansion decides about it. After assignments, and after builtins that always succeed, as in `cd web
/// && npm test`.
pub fn first_program(command: &str) -> Option<String> {
    let mut has_moved = false;
    for Simple { text, end } in simple_commands(command) {
        let words = shlex::split(&text)?;
        // Another `PATH` leads elsewhere.
        if words.iter().any(|word| word.starts_with("PATH=")) {
            return None;
        }
        let mut words = words.iter().map(String::as_str).filter(|word| !is_assignment(word)).peekable();
        while words.next_if(|word| LEADS.contains(word)).is_some() {}
        let Some(word) = words.next() else { continue };
        // A word followed by parentheses is the name of a function.
        if end == Some('(') {
            return None;
        }
        if PASSES.contains(&word) {
            has_moved |= word == "cd";
            if matches!(end, Some('|')) {
                return None;
            }
            continue;
        }
        let is_known = [BUILTINS, OTHER_BUILTINS, BEFORE, OTHERS].iter().any(|words| words.contains(&word));
        let is_elsewhere = has_moved && word.contains('/') && !word.starts_with('/');
        return (!is_known && !is_elsewhere && is_literal(word)).then(|| word.to_owned());
    }
    None
}

/// One command of a line of shell: what is between two operators.
pub struct Simple {
    /// Its text. Quotes and escapes are kept: `shlex` reads them.
    pub text: String,
    /// The first character of the operator after it.
    pub end: Option<char>,
}

/// The commands of a line of shell, in their order; operators within quotes do not count.
pub fn simple_commands(command: &str) -> Vec<Simple> {
    let (mut all, mut current) = (Vec::new(), String::new());
    let mut quote = None;
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            // A comment may hold anything.
            (None, '#') if !current.ends_with(|before: char| !before.is_whitespace()) => {
                while chars.next_if(|c| *c != '\n').is_some() {}
                continue;
            }
            (None | Some('"'), '\\') => {
                current.push(c);
                current.extend(chars.next());
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            // `2>&1` continues.
            (None, '&') if current.ends_with('>') => {}
            (None, ';' | '&' | '|' | '(' | ')' | '\n') => {
                all.push(Simple { text: std::mem::take(&mut current), end: Some(c) });
                continue;
            }
            (None | Some(_), _) => {}
        }
        current.push(c);
    }
    all.push(Simple { text: current, end: None });
    all
}

/// The programs at the head of one simple command: the first one, and the one that it runs.
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

/// Whether the shell takes a word literally: nothing expands it, and it is no redirection.
fn is_literal(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with(['~', '-'])
        && !word.contains(['$', '`', '*', '?', '[', ']', '{', '}', '<', '>', '\\', '!', '='])
        && !word.contains(char::is_control)
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
    #[case::a_name("crago test", Some("crago"))]
    #[case::a_path("./test.sh --all", Some("./test.sh"))]
    #[case::an_absolute_path("/opt/ci/check", Some("/opt/ci/check"))]
    #[case::a_quoted_path("'./my test.sh' x", Some("./my test.sh"))]
    #[case::a_name_with_a_point("python3.12 -m pytest", Some("python3.12"))]
    #[case::an_interpreter("sh missing.sh", Some("sh"))]
    #[case::after_assignments("CI=true A='b c' npm test", Some("npm"))]
    #[case::after_a_line_of_assignments("A=1\nB=2; npm test", Some("npm"))]
    #[case::after_a_comment("# don't stop; at this\ncrago test", Some("crago"))]
    #[case::before_a_comment("crago test # or make", Some("crago"))]
    #[case::no_comment("a#b c", Some("a#b"))]
    #[case::of_a_pipeline("crago test 2>&1 | tee log", Some("crago"))]
    #[case::of_a_list("crago fmt && make; true", Some("crago"))]
    #[case::with_another_way("crago test || true", Some("crago"))]
    #[case::negated("! gerp -q TODO src", Some("gerp"))]
    #[case::in_a_group("{ crago test; }", Some("crago"))]
    #[case::in_a_subshell("(crago test) && npm test", Some("crago"))]
    #[case::with_exec("exec crago test", Some("crago"))]
    #[case::with_command("command crago test", Some("crago"))]
    #[case::asked_for("command -v crago", None)]
    #[case::timed("time crago test", Some("crago"))]
    #[case::in_another_folder("cd web && npm ci && npm test", Some("npm"))]
    #[case::in_a_subshell_elsewhere("(cd web; npm test)", Some("npm"))]
    #[case::a_path_in_another_folder("cd web && ./test.sh", None)]
    #[case::an_absolute_path_in_another_folder("cd web && /opt/test", Some("/opt/test"))]
    #[case::after_set("set -eu\ncrago test", Some("crago"))]
    #[case::after_echo("echo tests; crago test", Some("crago"))]
    #[case::where_there_is_no_folder("cd web || npm test", None)]
    #[case::a_runner("env -i A=1 pytest -q", Some("env"))]
    #[case::a_builtin("test -f done", None)]
    #[case::a_bracket("[ -f done ] && crago test", None)]
    #[case::a_bracket_of_bash("[[ -f done ]]", None)]
    #[case::nothing_but_success("true", None)]
    #[case::an_end("exit 1", None)]
    #[case::a_condition("if crago test; then exit 1; fi", None)]
    #[case::a_loop("for i in a b; do crago $i; done", None)]
    #[case::a_loop_with_a_condition("while crago test; do sleep 1; done", None)]
    #[case::a_choice("case $A in a) crago;; esac", None)]
    #[case::a_function("check() { crago test; }; check", None)]
    #[case::a_function_of_bash("function check { crago test; }; check", None)]
    #[case::a_file_that_is_read(". ./env.sh && crago test", None)]
    #[case::evaluated("eval crago test", None)]
    #[case::a_builtin_of_bash("shopt -s nullglob; crago", None)]
    #[case::a_variable("$RUNNER test", None)]
    #[case::a_quoted_variable("\"$HOME/bin/check\" x", None)]
    #[case::a_substitution("`which crago` test", None)]
    #[case::a_home("~/bin/check", None)]
    #[case::a_pattern("./test*.sh", None)]
    #[case::a_redirection_in_front(">log crago test", None)]
    #[case::another_path("PATH=./bin:$PATH crago test", None)]
    #[case::another_path_for_all("export PATH=./bin:$PATH; crago test", None)]
    #[case::unbalanced("crago 'x", None)]
    #[case::nothing(" \n", None)]
    fn a_command_starts_with(#[case] command: &str, #[case] expected: Option<&str>) {
        assert_eq!(first_program(command).as_deref(), expected);
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
    #[case::a_comment("# it's; make\ncargo test", &["cargo"])]
    #[case::unbalanced("echo 'x", &[])]
    #[case::nothing("", &[])]
    fn a_command_looks_up(#[case] command: &str, #[case] expected: &[&str]) {
        assert_eq!(programs(command), expected);
    }
}

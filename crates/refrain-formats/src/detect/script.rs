//! The files that a gate's shell script reads or runs: `. ./lib.sh`, `sh x.sh`, `./ci/check`. Those that decide whether
//! the gate passes are protected with it; those that it tests are the work, and stay free.
//!
//! A script seldom says which of the two a file is. Its folder and its name do (`ci/`, `scripts/`, `lib.sh`,
//! `test-helpers.sh`), and so does how it is used: a file whose output, or whose functions' output, the script compares
//! is under test.

use std::collections::BTreeSet;

use refrain_core::gate::shows_output;
use refrain_core::protect::{Simple, simple_commands};

use super::listing::{join, split};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScriptCall {
    /// Relative to the folder that the script runs in, or to its own.
    pub(super) path: String,
    /// It is read into the script's own shell.
    pub(super) is_sourced: bool,
    /// The script captures its output, so that it may be under test.
    pub(super) is_taken: bool,
    pub(super) has_arguments: bool,
}

const SOURCES: &[&str] =
    &["src", "source", "sources", "app", "apps", "bin", "cmd", "pkg", "internal", "packages", "crates"];

const MACHINERY: &[&str] = &[
    ".ci",
    "ci",
    "script",
    "scripts",
    "tool",
    "tools",
    "hack",
    "build-aux",
    "test",
    "tests",
    "spec",
    "e2e",
    "contrib",
    "support",
    "test-support",
    "testing",
];

/// Words of names of files that help scripts.
const HELPERS: &[&str] = &[
    "assert",
    "assertions",
    "asserts",
    "base",
    "bootstrap",
    "ci",
    "common",
    "conf",
    "config",
    "env",
    "environment",
    "func",
    "funcs",
    "functions",
    "harness",
    "helper",
    "helpers",
    "include",
    "init",
    "lib",
    "library",
    "libs",
    "lint",
    "prelude",
    "run",
    "runner",
    "setup",
    "shared",
    "util",
    "utils",
    "verify",
];

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

const BEFORE: &[&str] =
    &["!", "do", "elif", "else", "if", "then", "time", "until", "while", "{", "command", "exec", "env"];

/// Every file that the script names as one that it reads or runs.
pub(super) fn called(text: &str) -> BTreeSet<ScriptCall> {
    let text = without_folders(text);
    let commands = simple_commands(&text);
    let mut found = BTreeSet::new();
    let mut is_substituted = false;
    for (at, Simple { text, end }) in commands.iter().enumerate() {
        let is_piped =
            *end == Some('|') && commands.get(at + 1).is_some_and(|next| !next.text.trim().is_empty());
        let shown =
            ["> /dev/null", ">/dev/null"].iter().fold(text.clone(), |text, end| text.replace(end, ""));
        let is_taken = is_substituted || is_piped || !shows_output(&shown);
        is_substituted = text.ends_with('$') && *end == Some('(');
        let Some(words) = shlex::split(text) else { continue };
        let mut words = words.iter().map(String::as_str).skip_while(|word| {
            BEFORE.contains(word) || word.split_once('=').is_some_and(|(name, _)| is_name(name))
        });
        let Some(first) = words.next() else { continue };
        let mut add = |path: Option<&str>, is_sourced, rest: Vec<&str>| {
            let Some(path) = path.and_then(plain) else { return };
            let redirected = rest.iter().position(|word| word.contains(['>', '<'])).unwrap_or(rest.len());
            let has_arguments = redirected > 0;
            found.insert(ScriptCall { path, is_sourced, is_taken: is_taken && !is_sourced, has_arguments });
        };
        match split(first).1 {
            "." | "source" => add(words.next(), true, Vec::new()),
            shell if SHELLS.contains(&shell) => {
                let mut rest = words.skip_while(|word| word.starts_with('-') && !is_command_option(word));
                match rest.next() {
                    Some(option) if is_command_option(option) => {
                        found.extend(rest.next().map(called).unwrap_or_default());
                    }
                    path => add(path, false, rest.collect()),
                }
            }
            _ if first.contains('/') => add(Some(first), false, words.collect()),
            _ => {}
        }
    }
    found
}

/// Whether a file that a script calls decides with it, and is not what it tests. `text` is the file's, if known,
/// `callers` those of all scripts.
pub(super) fn decides(called: &ScriptCall, path: &str, text: Option<&str>, callers: &[&str]) -> bool {
    let folder = split(path).0;
    let in_one_of = |names: &[&str]| folder.split('/').any(|part| names.contains(&part));
    if called.is_taken || in_one_of(SOURCES) {
        return false;
    }
    let functions = if called.is_sourced { text.map(functions).unwrap_or_default() } else { Vec::new() };
    let is_used = |how: fn(&str, &str) -> bool| {
        functions.iter().any(|name| callers.iter().any(|caller| how(caller, name)))
    };
    if is_used(compares) {
        return false;
    }
    let says_so = checks(path)
        || stem(path).split(|c: char| !c.is_ascii_alphanumeric()).any(|word| HELPERS.contains(&word));
    in_one_of(MACHINERY)
        || says_so
        || match called.is_sourced {
            true => !is_used(is_condition),
            false => !called.has_arguments,
        }
}

pub(super) fn checks(path: &str) -> bool {
    let stem = stem(path);
    ["test", "spec", "check"].iter().any(|word| stem.contains(word))
}

/// A file's name up to its first dot that does not begin it.
fn stem(path: &str) -> String {
    let name = split(path).1;
    name.split('.').find(|part| !part.is_empty()).unwrap_or_default().to_ascii_lowercase()
}

/// The script with its own folder, as scripts write that, taken out: `$(dirname "$0")/lib.sh`, `"$DIR"/lib.sh`.
fn without_folders(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("$(dirname ") {
        let end = rest[at..].find(')').map_or(rest.len(), |end| at + end + 1);
        plain.push_str(&rest[..at]);
        plain.push('.');
        rest = &rest[end..];
    }
    plain.push_str(rest);
    plain
}

/// A path that a shell would not expand but for a variable in front, which is taken for the script's folder.
fn plain(word: &str) -> Option<String> {
    let word = match word.strip_prefix('$') {
        Some(rest) => {
            let (variable, rest) = match rest.strip_prefix('{') {
                Some(rest) => rest.split_once('}')?,
                None => rest.split_at(rest.find('/')?),
            };
            let is_variable =
                variable.split(['%', ':', '[']).next().is_some_and(|name| is_name(name) || name == "0");
            rest.strip_prefix('/').filter(|_| is_variable)?
        }
        None => word,
    };
    let is_plain =
        !word.contains(['$', '`', '*', '?', '[', '{', '<', '>', '\\', '~']) && !word.starts_with(['-', '/']);
    let mut parts: Vec<&str> = Vec::new();
    for part in word.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            part => parts.push(part),
        }
    }
    (is_plain && !parts.is_empty()).then(|| parts.join("/"))
}

fn is_command_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
}

fn is_name(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn functions(text: &str) -> Vec<&str> {
    let of_line = |line: &'_ str| -> Option<usize> { line.find("()") };
    let defined = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let name = match line.strip_prefix("function ") {
            Some(rest) => rest.split(|c: char| c.is_whitespace() || c == '(').next()?,
            None => line[..of_line(line)?].trim(),
        };
        is_name(name).then_some(name)
    });
    defined.collect()
}

/// Whether a line of the script compares what the function prints.
fn compares(script: &str, function: &str) -> bool {
    let calls = |line: &str, open: &str| {
        line.match_indices(open).any(|(at, _)| {
            let rest = line[at + open.len()..].trim_start();
            rest.strip_prefix(function)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        })
    };
    script.lines().filter(|line| calls(line, "$(") || calls(line, "`")).any(|line| {
        [" = ", " == ", " != ", " -eq ", " -ne ", "assert", "expect", "check", "case "]
            .iter()
            .any(|mark| line.contains(mark))
    })
}

/// Whether a line of the script asks whether the function succeeds.
fn is_condition(script: &str, function: &str) -> bool {
    let first = |part: &str| {
        let mut words =
            part.split_whitespace().skip_while(|word| matches!(*word, "!" | "while" | "until" | "{" | "("));
        words.next() == Some(function)
    };
    let asks = |line: &str| {
        let line = line.trim();
        let line_if =
            ["if ", "elif ", "while ", "until ", "! "].iter().find_map(|word| line.strip_prefix(word));
        let parts: Vec<&str> =
            line_if.unwrap_or(line).split("&&").flat_map(|part| part.split("||")).collect();
        let asked = if line_if.is_some() { &parts[..] } else { &parts[..parts.len() - 1] };
        asked.iter().any(|part| part.split(';').any(first))
    };
    script.lines().any(asks)
}

/// Where a called file may be: relative to the folder that the gate runs in, and to that of the script.
pub(super) fn places(called: &ScriptCall, folder: &str, script: &str) -> Vec<String> {
    let mut places = vec![join(folder, &called.path), join(split(script).0, &called.path)];
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn call(path: &str, is_sourced: bool, is_taken: bool) -> ScriptCall {
        ScriptCall { path: path.to_owned(), is_sourced, is_taken, has_arguments: false }
    }

    #[rstest]
    #[case::a_dot(". ./lib.sh", Some(call("lib.sh", true, false)))]
    #[case::source("source lib/common.sh\n", Some(call("lib/common.sh", true, false)))]
    #[case::if_it_is_there("[ ! -f .env ] || . ./.env", Some(call(".env", true, false)))]
    #[case::seen_from_the_script(". \"$(dirname \"$0\")/lib.sh\"", Some(call("lib.sh", true, false)))]
    #[case::the_same_without_quotes(". $(dirname $0)/lib.sh", Some(call("lib.sh", true, false)))]
    #[case::a_variable_in_front("source \"$DIR/lib.sh\"", Some(call("lib.sh", true, false)))]
    #[case::one_of_bash("source \"${BASH_SOURCE%/*}/lib.sh\"", Some(call("lib.sh", true, false)))]
    #[case::a_shell("bash -eu ci/run", Some(call("ci/run", false, false)))]
    #[case::with_arguments("bash ci/run x", Some(ScriptCall { has_arguments: true, ..call("ci/run", false, false) }))]
    #[case::the_shells_path("/bin/sh check.sh || exit 1", Some(call("check.sh", false, false)))]
    #[case::by_its_path("if ./ci/check; then :; fi", Some(call("ci/check", false, false)))]
    #[case::with_a_variable("A=1 ./ci/check", Some(call("ci/check", false, false)))]
    #[case::in_a_command("sh -ec '. ./lib.sh && run'", Some(call("lib.sh", true, false)))]
    #[case::with_errors_shown("sh check.sh 2>&1", Some(call("check.sh", false, false)))]
    #[case::without_its_words("sh check.sh > /dev/null || exit 1", Some(call("check.sh", false, false)))]
    #[case::up(". ../lib.sh", Some(call("lib.sh", true, false)))]
    #[case::its_output_is_compared("[ $(sh sum.sh) = 3 ]", Some(call("sum.sh", false, true)))]
    #[case::its_output_goes_on("./sum.sh | grep -q 3", Some(call("sum.sh", false, true)))]
    #[case::its_output_is_kept("./sum.sh > out", Some(call("sum.sh", false, true)))]
    #[case::a_word_that_is_expanded(". ./lib/$x.sh", None)]
    #[case::a_pattern("sh tests/*.sh", None)]
    #[case::elsewhere(". /etc/profile", None)]
    #[case::a_comment("# . ./lib.sh", None)]
    #[case::a_program("cargo test", None)]
    #[case::no_file("bash", None)]
    fn scripts_name_files(#[case] text: &str, #[case] expected: Option<ScriptCall>) {
        assert_eq!(called(text).into_iter().collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
    }

    const FUNCTION: Option<&str> = Some("sum() { echo 0; }\n");
    const SETS: Option<&str> = Some("LEVEL=1\n");

    #[rstest]
    #[case::a_helper("lib/common.sh", true, FUNCTION, "sum 1 2", true)]
    #[case::a_helper_by_its_name("test-helpers.sh", true, FUNCTION, "", true)]
    #[case::in_a_folder_of_checks("ci/deep/x.sh", false, FUNCTION, "", true)]
    #[case::settings("settings.sh", true, SETS, "", true)]
    #[case::a_source("src/sum.sh", true, FUNCTION, "", false)]
    #[case::a_source_with_a_helpers_name("src/lib.sh", true, FUNCTION, "", false)]
    #[case::what_is_compared("lib.sh", true, FUNCTION, "[ \"$(sum 1 2)\" = 3 ]", false)]
    #[case::what_is_asserted("lib.sh", true, FUNCTION, "assert_eq \"$(sum 1 2)\" 3", false)]
    #[case::what_another_function_is("lib.sh", true, FUNCTION, "[ \"$(summary)\" = 3 ]", true)]
    #[case::a_script_whose_end_decides("greet.sh", false, FUNCTION, "", true)]
    #[case::what_is_asked("sum.sh", true, FUNCTION, "sum 1 2 || exit 1", false)]
    #[case::what_is_asked_for("sum.sh", true, FUNCTION, "if sum 1 2; then", false)]
    #[case::what_is_only_called("sum.sh", true, FUNCTION, "[ -f x ] || sum 1 2", true)]
    #[case::unread("sum.sh", true, None, "", true)]
    fn scripts_that_decide_are_distinguished_from_tested_code(
        #[case] path: &str,
        #[case] is_sourced: bool,
        #[case] text: Option<&str>,
        #[case] caller: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(decides(&call(path, is_sourced, false), path, text, &[caller]), expected);
    }

    #[test]
    fn a_script_whose_output_is_compared_is_under_test() {
        assert!(!decides(&call("check.sh", false, true), "check.sh", FUNCTION, &[]));
        let with = ScriptCall { has_arguments: true, ..call("is_even.sh", false, false) };
        assert!(!decides(&with, "is_even.sh", None, &[]), "it may be asked about its argument");
        let with = ScriptCall { has_arguments: true, ..call("ci/run", false, false) };
        assert!(decides(&with, "ci/run", None, &[]));
    }
}

//! Which programs a gate's command has looked up in `PATH`: a conservative reading of it, as no shell runs for that. What
//! is not understood is no program; a word too few is a pin too few, a word too many would refuse honest work.

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
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
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

//! The reason why a remote rejects a push. Git's exit code and its machine-readable output come first; if there is
//! none, as when the connection ends, only its messages are left, in the C locale that we set.

use std::fmt;

use refrain_core::text::printable;
use refrain_proc::tool::ToolOutput;

use crate::plumbing::git::said;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no repository at the remote's address.
    NoRemote {
        /// Git's message, printable.
        said: String,
    },
    /// Authentication failed, or access is denied.
    NoPermission {
        said: String,
    },
    /// A rule of the remote forbids pushing to this branch.
    ProtectedBranch {
        said: String,
    },
    /// A hook rejected the push: a local one, or one of the remote's.
    HookDeclined {
        said: String,
    },
    /// The branch existed on the remote and was deleted there.
    BranchDeleted,
    /// The remote is unreachable, or the connection broke: it may be tried again.
    Unreachable {
        said: String,
    },
    /// The name of the branch, or a commit that the remote lacks, contains a suspected secret: its description.
    Secret(String),
    Other {
        said: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRemote { said } => {
                write!(
                    f,
                    "there is no repository at the remote; git remote -v says where it should be: {said}"
                )
            }
            Self::NoPermission { said } => {
                write!(
                    f,
                    "the remote does not let us in; see to it that git push works without a question: {said}"
                )
            }
            Self::ProtectedBranch { said } => {
                write!(f, "the remote protects this branch; use a pull request (--git-workflow pr): {said}")
            }
            Self::HookDeclined { said } => write!(f, "a hook declined the push: {said}"),
            Self::BranchDeleted => f.write_str(
                "the branch was deleted at the remote; push it again by hand if that was a mistake",
            ),
            Self::Unreachable { said } => write!(f, "the remote cannot be reached: {said}"),
            Self::Secret(secret) => {
                write!(f, "{secret}; take it out, or push it yourself once it may be seen")
            }
            Self::Other { said } => write!(f, "the remote did not take it: {said}"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PushResult {
    Pushed,
    Rejected { said: String },
    Refused(Refusal),
}

/// Messages of git, ssh, and of the forges about denied access, in lower case.
const NO_PERMISSION: &[&str] = &[
    "permission denied",
    "authentication failed",
    "could not read username",
    "could not read password",
    "unable to get password from user",
    "returned error: 401",
    "returned error: 403",
    "access denied",
    "denied to ",
    "write access to repository not granted",
    "not allowed to push",
    "not allowed to upload",
    "host key verification failed",
    "deploy key",
];

const NO_REMOTE: &[&str] = &[
    "does not appear to be a git repository",
    "repository not found",
    "could not be found",
    "returned error: 404",
    "returned error: 410",
    "you were looking for could not",
    "' not found",
];

/// The same, about protected branches. GitHub has numbers for them (GH006: protected branch, GH013: repository
/// rules).
const PROTECTED: &[&str] = &["protected branch", "gh006", "gh013", "rule violations"];

/// The same, about connections that fail or end too early.
const UNREACHABLE: &[&str] = &[
    "could not resolve",
    "couldn't connect",
    "failed to connect",
    "connection ",
    "timed out",
    "timeout",
    "hung up unexpectedly",
    "unexpected disconnect",
    "early eof",
    "rpc failed",
    "network is unreachable",
    "no route to host",
    "returned error: 429",
    "returned error: 5",
    "empty reply",
    "gnutls",
    "openssl",
];

pub(crate) fn of_transport(said: String) -> Refusal {
    let words = said.to_lowercase();
    let has = |known: &[&str]| known.iter().any(|known| words.contains(known));
    if has(NO_PERMISSION) {
        Refusal::NoPermission { said }
    } else if has(NO_REMOTE) {
        Refusal::NoRemote { said }
    } else if has(UNREACHABLE) {
        Refusal::Unreachable { said }
    } else {
        Refusal::Other { said }
    }
}

/// Git's report about a push to this branch: `flag TAB from:to TAB summary (reason)` (git-push(1), "OUTPUT").
pub(crate) fn of_push(done: &ToolOutput, refname: &str) -> PushResult {
    let printed = String::from_utf8_lossy(&done.stdout);
    let line = printed.lines().find_map(|line| {
        let (flag, rest) = line.split_once('\t')?;
        let (names, summary) = rest.split_once('\t')?;
        (names.rsplit_once(':')?.1 == refname).then_some((flag, summary))
    });
    let Some((flag, summary)) = line else {
        // Without a line about the branch, a local hook rejected it, unless the error is fatal.
        return PushResult::Refused(match done.status.code() {
            Some(1) => Refusal::HookDeclined { said: said(done) },
            _ => of_transport(said(done)),
        });
    };
    if flag != "!" {
        return PushResult::Pushed;
    }
    let (kind, reason) = summary.split_once(" (").unwrap_or((summary, ""));
    let reason = printable(reason.trim_end_matches(')')).into_owned();
    let told = told(done).unwrap_or_else(|| reason.clone());
    let words = format!("{reason}\n{told}").to_lowercase();
    let has = |known: &[&str]| known.iter().any(|known| words.contains(known));
    match kind {
        "[rejected]" if ["non-fast-forward", "fetch first", "stale info"].contains(&reason.as_str()) => {
            PushResult::Rejected { said: reason }
        }
        // Another push was faster.
        "[remote rejected]" if has(&["cannot lock ref", "failed to update ref", "incorrect old value"]) => {
            PushResult::Rejected { said: told }
        }
        "[remote rejected]" if has(PROTECTED) => PushResult::Refused(Refusal::ProtectedBranch { said: told }),
        "[remote rejected]" if has(NO_PERMISSION) => {
            PushResult::Refused(Refusal::NoPermission { said: told })
        }
        "[remote rejected]" if has(&["hook declined"]) => {
            PushResult::Refused(Refusal::HookDeclined { said: told })
        }
        "[remote failure]" => PushResult::Refused(Refusal::Unreachable { said: told }),
        _ => PushResult::Refused(Refusal::Other { said: told }),
    }
}

/// The remote's message, without git's prefix of each line; none if it is empty.
fn told(done: &ToolOutput) -> Option<String> {
    let printed = String::from_utf8_lossy(&done.stderr);
    let lines = printed.lines().filter_map(|line| line.strip_prefix("remote: ")).map(str::trim_end);
    let text = lines.collect::<Vec<_>>().join("\n");
    Some(printable(text.trim()).into_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn kind(refusal: &Refusal) -> &'static str {
        match refusal {
            Refusal::NoRemote { .. } => "no remote",
            Refusal::NoPermission { .. } => "no permission",
            Refusal::ProtectedBranch { .. } => "protected",
            Refusal::HookDeclined { .. } => "hook",
            Refusal::BranchDeleted => "deleted",
            Refusal::Unreachable { .. } => "unreachable",
            Refusal::Secret(_) => "secret",
            Refusal::Other { .. } => "other",
        }
    }

    #[test]
    fn connection_errors_are_recognised_by_their_text() {
        for (said, expected) in [
            ("fatal: '../nix.git' does not appear to be a git repository", "no remote"),
            ("ERROR: Repository not found.\nfatal: Could not read from remote repository.", "no remote"),
            ("fatal: repository 'https://github.com/a/b.git/' not found", "no remote"),
            ("remote: The project you were looking for could not be found", "no remote"),
            ("git@github.com: Permission denied (publickey).", "no permission"),
            (
                "remote: Permission to a/b.git denied to me.\nfatal: unable to access 'x': The requested URL returned error: 403",
                "no permission",
            ),
            (
                "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
                "no permission",
            ),
            ("fatal: Authentication failed for 'https://github.com/a/b.git/'", "no permission"),
            ("remote: HTTP Basic: Access denied", "no permission"),
            ("ssh: connect to host localhost port 1: Connection refused", "unreachable"),
            (
                "fatal: unable to access 'https://localhost:1/x/': Failed to connect to localhost port 1 after 0 ms",
                "unreachable",
            ),
            (
                "fatal: unable to access 'http://nohost.invalid/x/': Could not resolve host: nohost.invalid",
                "unreachable",
            ),
            (
                "send-pack: unexpected disconnect while reading sideband packet\nfatal: the remote end hung up unexpectedly",
                "unreachable",
            ),
            ("error: RPC failed; HTTP 502 curl 22 The requested URL returned error: 502", "unreachable"),
            ("fatal: unable to parse object: abc", "other"),
        ] {
            assert_eq!(kind(&of_transport(said.to_owned())), expected, "{said}");
        }
    }

    #[test]
    fn porcelain_output_decides_the_push_result_when_present() {
        let to = "refs/heads/main";
        let line = |rest: &str| format!("To there\n{rest}\nDone\n").replace('|', "\t");
        for (code, stdout, stderr, expected) in [
            (0, line("*|abc:refs/heads/main|[new branch]"), "", "pushed"),
            (0, line(" |abc:refs/heads/main|a..b"), "", "pushed"),
            (0, line("=|abc:refs/heads/main|[up to date]"), "", "pushed"),
            (1, line("!|abc:refs/heads/main|[rejected] (non-fast-forward)"), "", "rejected"),
            (1, line("!|abc:refs/heads/main|[rejected] (fetch first)"), "", "rejected"),
            (
                1,
                line(
                    "!|abc:refs/heads/main|[remote rejected] (cannot lock ref 'refs/heads/main': is at a but expected b)",
                ),
                "",
                "rejected",
            ),
            (
                1,
                line("!|abc:refs/heads/main|[remote rejected] (protected branch hook declined)"),
                "remote: error: GH006: Protected branch update failed",
                "protected",
            ),
            (
                1,
                line(
                    "!|abc:refs/heads/main|[remote rejected] (push declined due to repository rule violations)",
                ),
                "",
                "protected",
            ),
            (
                1,
                line("!|abc:refs/heads/main|[remote rejected] (pre-receive hook declined)"),
                "remote: GitLab: You are not allowed to push code to protected branches on this project.",
                "protected",
            ),
            (
                1,
                line("!|abc:refs/heads/main|[remote rejected] (pre-receive hook declined)"),
                "remote: GitLab: You are not allowed to push code to this project.",
                "no permission",
            ),
            (
                1,
                line("!|abc:refs/heads/main|[remote rejected] (pre-receive hook declined)"),
                "remote: no ticket in the message",
                "hook",
            ),
            (
                1,
                line("!|abc:refs/heads/main|[remote rejected] (branch is currently checked out)"),
                "",
                "other",
            ),
            (
                1,
                line("!|abc:refs/heads/main|[remote failure] (remote failed to report status)"),
                "",
                "unreachable",
            ),
            (1, "the tests fail\n".to_owned(), "error: failed to push some refs to 'there'", "hook"),
            (128, String::new(), "fatal: the remote end hung up unexpectedly", "unreachable"),
            (1, line("!|abc:refs/heads/other|[rejected] (fetch first)"), "", "hook"),
        ] {
            let status = ExitStatus::from_raw(code << 8);
            let done = ToolOutput { status, stdout: stdout.clone().into(), stderr: stderr.into() };
            let answer = of_push(&done, to);
            let found = match &answer {
                PushResult::Pushed => "pushed",
                PushResult::Rejected { .. } => "rejected",
                PushResult::Refused(refusal) => kind(refusal),
            };
            assert_eq!(found, expected, "{stdout} {stderr}: {answer:?}");
        }
    }

    #[test]
    fn text_of_a_remote_is_shown_without_prefix_and_escapes() {
        let stderr = b"remote: no\x1b[31m        \nremote: really        \nerror: failed\n".to_vec();
        let done = ToolOutput { status: ExitStatus::from_raw(256), stdout: Vec::new(), stderr };
        let text = told(&done).unwrap();
        assert!(text.starts_with("no") && text.ends_with("\nreally") && !text.contains('\x1b'), "{text:?}");
    }
}

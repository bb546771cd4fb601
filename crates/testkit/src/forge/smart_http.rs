//! Git over HTTP, as a forge serves it: `git http-backend`, run as a CGI program (RFC 3875) and guarded by a token.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use super::reply::Reply;
use crate::model::http::Incoming;

pub(super) fn is_git(incoming: &Incoming) -> bool {
    incoming.path.starts_with("/owner/project.git/")
}

/// Has git answer it, in the folder of all repositories.
#[expect(clippy::disallowed_methods, reason = "the other end of a push is no process of Refrain's")]
pub(super) fn reply(repos: &Path, incoming: &Incoming) -> Reply {
    let mut command = Command::new("git");
    command
        .arg("http-backend")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").expect("there is a PATH")).env("HOME", repos);
    command.env("GIT_PROJECT_ROOT", repos).env("GIT_HTTP_EXPORT_ALL", "1").env("REMOTE_USER", "somebody");
    command.env("REQUEST_METHOD", &incoming.method).env("PATH_INFO", &incoming.path);
    command.env("QUERY_STRING", &incoming.query).env("CONTENT_LENGTH", incoming.body.len().to_string());
    for (variable, header) in [
        ("CONTENT_TYPE", "content-type"),
        ("HTTP_CONTENT_ENCODING", "content-encoding"),
        ("GIT_PROTOCOL", "git-protocol"),
    ] {
        command.env(variable, incoming.header(header));
    }
    let mut child = command.spawn().expect("git can be started");
    let mut input = child.stdin.take().expect("it is a pipe");
    let output = std::thread::scope(|scope| {
        // It may not want all of it.
        scope.spawn(move || input.write_all(&incoming.body));
        child.wait_with_output().expect("git ends")
    });
    let printed = output.stdout;
    let end = printed.windows(4).position(|four| four == b"\r\n\r\n").expect("git answers as CGI has it");
    let head = String::from_utf8_lossy(&printed[..end]).into_owned();
    let field = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| *found == name).map(|(_, value)| value.to_owned()).next()
    };
    let status = field("Status").and_then(|status| status.split(' ').next()?.parse().ok()).unwrap_or(200);
    Reply::bytes(status, field("Content-Type").unwrap_or_default(), printed[end + 4..].to_vec())
}

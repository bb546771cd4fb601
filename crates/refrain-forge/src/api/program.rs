//! `gh api` and `glab api`: one HTTP request each, with the user's login. Both take the same flags and have the same
//! output format, with `--include` the status and the headers first.

use std::ffi::OsString;
use std::fmt;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_core::text::printable;
use refrain_proc::tool::{Cancel, Tool, ToolError};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::api::exchange::ForgeResponse;
use crate::error::{Trouble, of_program, of_status, told};
use crate::token::FROM_FILE;

pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Variables that would change an answer: a terminal's colours, another host or repository, and debug output.
const BENDING: &[&str] = &[
    "GH_FORCE_TTY",
    "GH_REPO",
    "GH_HOST",
    "GH_DEBUG",
    "DEBUG",
    "CLICOLOR_FORCE",
    "GITLAB_HOST",
    "GITLAB_URI",
    // The token of the user's own file: it is not for programs.
    FROM_FILE,
];

/// Tokens that a program would send to any host. They are kept only if the user also names the host.
const TOKENS: &[&str] = &[
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITLAB_TOKEN",
    "GITLAB_ACCESS_TOKEN",
    "OAUTH_TOKEN",
    "CI_JOB_TOKEN",
];

/// Variables in which the user names a host.
const HOSTS: &[&str] = &["GH_HOST", "GITLAB_HOST", "GL_HOST", "GITLAB_URI", "CI_SERVER_FQDN"];

/// Variables that are set: no prompts, no pager, no update check.
const SET: &[(&str, &str)] = &[
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("GH_PAGER", "cat"),
    ("GLAB_NO_PROMPT", "1"),
    ("NO_PROMPT", "1"),
    ("GLAB_CHECK_UPDATE", "false"),
    ("PAGER", "cat"),
    ("GLAB_PAGER", "cat"),
    ("NO_COLOR", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// A forge's program and the host to ask.
pub(crate) struct Program {
    name: &'static str,
    host: String,
    dir: Utf8PathBuf,
    env: Vec<(OsString, OsString)>,
    /// The user names the host in their environment.
    is_named: bool,
    cancel: Option<Cancel>,
}

impl Program {
    /// `name` for `host`, run in `dir` with the user's environment.
    pub(crate) fn new(
        name: &'static str,
        host: &str,
        dir: &Utf8Path,
        env: &[(OsString, OsString)],
        cancel: Option<&Cancel>,
    ) -> Self {
        let is_kept = |name: &OsString| {
            let name = name.to_str().unwrap_or_default();
            !BENDING.contains(&name) && !SET.iter().any(|(set, _)| *set == name)
        };
        let is_host = |(name, value): &(OsString, OsString)| {
            HOSTS.iter().any(|known| name == known) && value.to_string_lossy().contains(host)
        };
        let is_named = env.iter().any(is_host);
        let mut env: Vec<_> = env.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        env.extend(SET.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        Self { name, host: host.to_owned(), dir: dir.to_owned(), env, is_named, cancel: cancel.cloned() }
    }

    /// Whether the user has a login at the host, even one that no longer works. The check sends no token that may be
    /// meant for another host. For an unreachable host the answer is an error.
    pub(crate) fn is_logged_in(&self) -> Result<bool, Trouble> {
        const BROKEN: &[&str] =
            &["authentication failed", "failed to log in", "is invalid", "api call failed"];
        let is_shown = |name: &OsString| self.is_named || !TOKENS.iter().any(|token| name == token);
        let env: Vec<_> = self.env.iter().filter(|(name, _)| is_shown(name)).cloned().collect();
        let tool = self.tool(["auth", "status", "--hostname", &self.host]).env(&env);
        let done = match tool.run() {
            Err(ToolError::Missing { .. }) => return Ok(false),
            done => done.map_err(|error| self.failed(error))?,
        };
        if done.status.success() {
            return Ok(true);
        }
        let said = [done.stdout.as_slice(), done.stderr.as_slice()].concat();
        let said = printable(String::from_utf8_lossy(&said).trim()).into_owned();
        let words = said.to_lowercase();
        match of_program((self.name, &self.host), None, said) {
            trouble @ Trouble::Unreachable { .. } => Err(trouble),
            _ => Ok(BROKEN.iter().any(|known| words.contains(known))),
        }
    }

    /// Sends one request.
    /// Errors: [`Trouble`], also if the answer's status is not a success.
    pub(crate) fn ask(
        &self,
        method: &Method,
        endpoint: &str,
        body: Option<&Value>,
    ) -> Result<ForgeResponse, Trouble> {
        let mut args = vec!["api", "--hostname", &self.host, "--method", method.as_str(), "--include"];
        let input = body.map(Value::to_string).unwrap_or_default();
        if body.is_some() {
            args.extend(["--header", "Content-Type: application/json", "--input", "-"]);
        }
        args.extend(["--", endpoint]);
        let tool = self.tool(args).input(input.as_bytes());
        let done = tool.run().map_err(|error| self.failed(error))?;
        let Some(answer) = ForgeResponse::parse(&done.stdout) else {
            let said = told(&[], &done.stderr);
            return Err(of_program((self.name, &self.host), done.status.code(), said));
        };
        let said = told(&answer.body, &done.stderr);
        match of_status((self.name, &self.host), answer.status, &answer.headers, said) {
            Some(trouble) => Err(trouble),
            // The answer was cut off. With GraphQL the same exit code also means errors in the answer.
            None if !done.status.success() && endpoint != "graphql" => {
                Err(of_program((self.name, &self.host), done.status.code(), told(&[], &done.stderr)))
            }
            None => Ok(answer),
        }
    }

    fn tool<'a>(&'a self, args: impl IntoIterator<Item = &'a str>) -> Tool<'a> {
        let tool = Tool::new(self.name, self.dir.as_std_path()).env(&self.env).args(args);
        tool.limit(LIMIT).cancel(self.cancel.as_ref())
    }

    fn failed(&self, error: ToolError) -> Trouble {
        match error {
            ToolError::Missing { .. } => Trouble::NoProgram { program: self.name, host: self.host.clone() },
            ToolError::Cancelled { .. } => Trouble::Cancelled,
            ToolError::TimedOut { limit, .. } => {
                Trouble::Unreachable { said: format!("no answer within {} s", limit.as_secs()) }
            }
            ToolError::TooMuch { most, .. } => {
                Trouble::Refused { status: 0, said: format!("its answer is longer than {} MiB", most >> 20) }
            }
            other @ (ToolError::NoFolder { .. }
            | ToolError::Failed { .. }
            | ToolError::Blocked { .. }
            | ToolError::Io { .. }) => Trouble::Tool(other),
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment contains tokens.
        f.debug_struct("Program").field("name", &self.name).field("host", &self.host).finish_non_exhaustive()
    }
}

impl ForgeResponse {
    /// Parses `HTTP/2.0 200 OK`, one header per line, an empty line, and the body; none if it does not begin so.
    fn parse(printed: &[u8]) -> Option<Self> {
        let mut rest = printed;
        let mut line = || {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let (line, behind) = rest.split_at(end);
            rest = &behind[1..];
            Some(String::from_utf8_lossy(line).trim_end_matches('\r').to_owned())
        };
        let first = line()?;
        let mut words = first.split(' ');
        let status = words.next().filter(|word| word.starts_with("HTTP/")).and(words.next())?.parse().ok()?;
        let mut headers = HeaderMap::new();
        while let Some(line) = line().filter(|line| !line.is_empty()) {
            if let Some((name, value)) = line.split_once(':')
                && let (Ok(name), Ok(value)) =
                    (name.parse::<HeaderName>(), value.trim().parse::<HeaderValue>())
            {
                // Of too many headers the rest is left out.
                let _ = headers.try_append(name, value);
            }
        }
        Some(Self { status, headers, body: rest.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_response_of_a_program_is_parsed() {
        let answer = ForgeResponse::parse(
            b"HTTP/2.0 201 Created\nX-Ratelimit-Remaining: 12\r\nDate: Mon, 01 Jan\r\n\r\n{\"a\":\n1}",
        )
        .unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (201, b"{\"a\":\n1}".as_slice()));
        assert_eq!(
            (&answer.headers["x-ratelimit-remaining"], answer.headers.get("link")),
            (&HeaderValue::from_static("12"), None)
        );
        assert_eq!(ForgeResponse::parse(b"HTTP/1.1 204 No Content\n\r\n").unwrap().status, 204);
        for bad in ["", "gh: not logged in", "{\"status\":200}\n", "HTTP/1.1\n"] {
            assert_eq!(ForgeResponse::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}

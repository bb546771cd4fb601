//! A token for GitHub if `gh` has no login: the variable it comes from, and the host that may receive it.

use std::ffi::OsString;
use std::fmt;

use crate::place::RepositoryAddress;

/// The variable in which the engine passes the token from the user's file. No program that we start gets it.
pub const FROM_FILE: &str = "REFRAIN_GITHUB_TOKEN";

/// The variables with GitHub's own tokens, in the order of `gh`; then the user's file.
const OWN: &[&str] = &["GH_TOKEN", "GITHUB_TOKEN", FROM_FILE];

/// Those of other hosts that run GitHub.
const ENTERPRISE: &[&str] = &["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"];

/// The variable for git's credential helper, set only for that git.
const FOR_GIT: &str = "REFRAIN_GIT_TOKEN";

/// GitHub ignores the user name and checks only the token.
const HELPER: &str =
    r#"!f() { [ "$1" = get ] && printf 'username=x-access-token\npassword=%s\n' "$REFRAIN_GIT_TOKEN"; }; f"#;

#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    value: String,
    from: &'static str,
}

pub(super) fn is_githubs(host: &str) -> bool {
    host == "github.com" || host.ends_with(".ghe.com")
}

/// The value of a variable; the last of its name counts.
pub(super) fn variable<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a str> {
    let found = env.iter().rev().find(|(found, _)| found == name)?.1.to_str()?.trim();
    (!found.is_empty()).then_some(found)
}

/// Whether the user declares the host as one that runs GitHub: as for `gh`, or as on GitHub's own runners.
fn is_named(host: &str, env: &[(OsString, OsString)]) -> bool {
    let server = variable(env, "GITHUB_SERVER_URL").and_then(host_of);
    variable(env, "GH_HOST").is_some_and(|named| named.eq_ignore_ascii_case(host))
        || server.as_deref() == Some(host)
}

/// The host of an address without a path.
pub(super) fn host_of(url: &str) -> Option<String> {
    RepositoryAddress::of(&format!("{}/of/any", url.trim_end_matches('/'))).map(|place| place.host)
}

pub(super) fn is_private(url: &str) -> bool {
    let is_here = |host: String| matches!(host.as_str(), "127.0.0.1" | "localhost");
    url.starts_with("https://") || (url.starts_with("http://") && host_of_any(url).is_some_and(is_here))
}

fn host_of_any(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    host_of(&format!("{scheme}://{}", rest.split('/').next()?))
}

impl Token {
    pub fn of(host: &str, env: &[(OsString, OsString)]) -> Option<Self> {
        let names = match is_githubs(host) {
            true => OWN,
            false if is_named(host, env) => ENTERPRISE,
            false => return None,
        };
        // The file is for github.com only, because it names no host.
        let names = names.iter().filter(|name| **name != FROM_FILE || host == "github.com");
        let found = names.filter_map(|name| Some((*name, variable(env, name)?))).next()?;
        // A value with a line break could inject more than a token.
        let (name, value) =
            Some(found).filter(|(_, value)| value.bytes().all(|byte| byte.is_ascii_graphic()))?;
        let from = if name == FROM_FILE { "the file github-token" } else { name };
        Some(Self { value: value.to_owned(), from })
    }

    pub(super) fn expose(&self) -> &str {
        &self.value
    }

    pub(super) const fn from(&self) -> &'static str {
        self.from
    }

    /// An environment in which git sends the token to the host of a remote's address and does not store it; none if
    /// the token is not for that host, or if the connection could be read by others.
    pub fn for_git(
        url: &str,
        env: &[(OsString, OsString)],
        known: &[(OsString, OsString)],
    ) -> Option<Vec<(OsString, OsString)>> {
        let token = Self::of(&RepositoryAddress::of(url)?.host, known).filter(|_| is_private(url))?;
        let (scheme, rest) = url.split_once("://")?;
        let place = rest.split('/').next()?.rsplit('@').next()?;
        let key = format!("credential.{scheme}://{place}.helper");
        let count: usize =
            variable(env, "GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
        let mut env = env.to_vec();
        // The user's own helpers are disabled: git has tried them before, and they would store the token.
        for (at, value) in ["", HELPER].into_iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{}", count + at).into(), key.clone().into()));
            env.push((format!("GIT_CONFIG_VALUE_{}", count + at).into(), value.into()));
        }
        env.push(("GIT_CONFIG_COUNT".into(), (count + 2).to_string().into()));
        env.push((FOR_GIT.into(), token.value.into()));
        Some(env)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("from", &self.from).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn a_host_is_shown_its_own_token_and_no_other() {
        let all = [("GH_TOKEN", "a"), ("GITHUB_TOKEN", "b"), (FROM_FILE, "c"), ("GH_ENTERPRISE_TOKEN", "d")];
        for (host, pairs, expected) in [
            ("github.com", &all[..], Some("a")),
            ("github.com", &all[1..], Some("b")),
            ("github.com", &all[2..], Some("c")),
            ("github.com", &all[3..], None),
            ("tenant.ghe.com", &all[1..], Some("b")),
            ("tenant.ghe.com", &all[2..], None),
            ("git.example.org", &all[..], None),
            ("git.example.org", &[("GH_HOST", "git.example.org"), all[0], all[3]], Some("d")),
            ("git.example.org", &[("GITHUB_SERVER_URL", "https://git.example.org/"), all[3]], Some("d")),
            ("git.example.org", &[("GH_HOST", "example.org"), all[0], all[3]], None),
            ("evilgithub.com", &all[..], None),
            ("github.com", &[("GH_TOKEN", " "), ("GITHUB_TOKEN", "b\n")], Some("b")),
            ("github.com", &[("GH_TOKEN", "a\nprotocol=http")], None),
        ] {
            let found = Token::of(host, &env(pairs)).map(|token| token.value);
            assert_eq!(found.as_deref(), expected, "{host} {pairs:?}");
        }
        let shown = format!("{:?}", Token::of("github.com", &env(&[("GH_TOKEN", "ghp_x")])));
        assert!(!shown.contains("ghp_x"), "{shown}");
    }

    #[test]
    fn git_gets_a_token_only_over_https_to_a_known_host() {
        let known = env(&[("GH_TOKEN", "a"), ("GIT_CONFIG_COUNT", "1")]);
        for (url, expected) in [
            ("https://github.com/o/r.git", Some("credential.https://github.com.helper")),
            ("https://me@github.com/o/r.git", Some("credential.https://github.com.helper")),
            ("http://github.com/o/r.git", None),
            ("git@github.com:o/r.git", None),
            ("ssh://git@github.com/o/r.git", None),
            ("https://git.example.org/o/r.git", None),
        ] {
            let env = Token::for_git(url, &known, &known);
            let key = env.as_ref().and_then(|env| variable(env, "GIT_CONFIG_KEY_2"));
            assert_eq!(key, expected, "{url}");
            assert_eq!(env.as_ref().and_then(|env| variable(env, "GIT_CONFIG_COUNT")), expected.map(|_| "3"));
        }
    }
}

//! The message of a commit with our trailers, and its identity.

use crate::error::GitError;
use crate::plumbing::git::Git;

/// Git's messages when no identity is configured.
pub(crate) const IDENTITY_ERRORS: &[&str] = &[
    "Please tell me who you are",
    "empty ident name",
    "auto-detect email",
    "auto-detect name",
    "no email was given",
    "no name was given",
];

/// The identity for temporary commits that are never shown, if git has none.
pub(crate) const OWN_IDENTITY: &[&str] = &["-c", "user.name=Refrain", "-c", "user.email=refrain@localhost"];

/// The message with these trailers. A message of several paragraphs may already end in trailers, which ours must
/// join: git decides what a trailer is.
pub(crate) fn with_trailers(
    git: Git<'_>,
    message: &str,
    trailers: &[(&str, &str)],
) -> Result<String, GitError> {
    let message = message.trim();
    let trailers: Vec<String> = trailers.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    // A list is not a block of trailers.
    let last = message.rsplit("\n\n").next().unwrap_or_default();
    if last.len() == message.len() || last.lines().all(|line| line.starts_with("- ")) {
        return Ok(format!("{message}\n\n{}\n", trailers.join("\n")));
    }
    let mut args = vec!["interpret-trailers", "--no-divider", "--if-exists", "add"];
    args.extend(trailers.iter().flat_map(|trailer| ["--trailer", trailer]));
    let whole = format!("{message}\n");
    Ok(String::from_utf8_lossy(&Git::output(git, args, whole.as_bytes())?).into_owned())
}

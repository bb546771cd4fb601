//! The person's own token for GitHub: the file `github-token` in their config home, for where `gh` has no login.

use std::ffi::OsString;

use refrain_agents::environment;
use refrain_core::Spec;
use refrain_forge::FROM_FILE;
use refrain_store::outbox::webhook::{SecretError, secret};

use crate::host::Host;

impl Host {
    /// The token in the file; none without a file.
    pub(crate) fn github_token(&self) -> Result<Option<String>, SecretError> {
        secret(&self.config_home.join("github-token"))
    }

    /// The environment for git and forges of this loop. An unusable file is reported at the start.
    pub(crate) fn git_env(&self, spec: &Spec) -> Vec<(OsString, OsString)> {
        let mut env = environment::of_git(spec, self.env.iter().cloned());
        let token = self.github_token().ok().flatten();
        env.extend(token.map(|token| (FROM_FILE.into(), token.into())));
        env
    }
}

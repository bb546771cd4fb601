//! The push target of a branch, chosen from settings as git does (git-config(1): `branch.<name>.pushRemote`,
//! `pushurl`, `insteadOf`).

use refrain_core::git::PushTarget;

use crate::plumbing::configuration::GitSettings;
use crate::publish::without_password;

impl GitSettings {
    /// The push target of a branch: the remote that git would push to, else `origin`, else the only one; none
    /// without. It has the same name there, unless git pushes to the tracked branch (`push.default=upstream`).
    pub(crate) fn push_target(&self, branch: &str) -> Option<PushTarget> {
        let remote = self.remote_of(branch)?;
        let is_tracked = matches!(self.value("push.default"), "upstream" | "tracking")
            && self.value(&format!("branch.{branch}.remote")) == remote;
        let merges =
            if is_tracked { self.value(&format!("branch.{branch}.merge")).to_owned() } else { String::new() };
        let to = merges.strip_prefix("refs/heads/").unwrap_or(branch).to_owned();
        let url = without_password(&self.push_url(remote)?);
        Some(PushTarget { branch: branch.to_owned(), remote: remote.to_owned(), to, url })
    }

    /// The remote that a branch is pushed to. A push target that has no name, or no target at all, means that nothing
    /// goes to another remote.
    fn remote_of(&self, branch: &str) -> Option<&str> {
        let remotes = self.remotes();
        let named = [format!("branch.{branch}.pushremote"), "remote.pushdefault".to_owned()];
        if let Some(name) = named.iter().map(|key| self.value(key)).find(|name| !name.is_empty()) {
            return remotes.contains(&name).then_some(name);
        }
        let tracked = self.value(&format!("branch.{branch}.remote"));
        let found = [tracked, "origin"].into_iter().find(|name| remotes.contains(name));
        let only = if let [only] = remotes.as_slice() { Some(*only) } else { None };
        found.or(only)
    }

    fn remotes(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for setting in &self.settings {
            let parts = setting.key.strip_prefix("remote.").and_then(|key| key.rsplit_once('.'));
            if let Some((name, "url" | "pushurl")) = parts
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        names
    }

    /// The push address of a remote, including a password in it.
    pub(crate) fn push_url(&self, remote: &str) -> Option<String> {
        let listed = |key: &str| {
            let values = self.values(key);
            // An empty value clears the list before it.
            let from = values.iter().rposition(|value| value.is_empty()).map_or(0, |at| at + 1);
            values.get(from).map(|first| (*first).to_owned())
        };
        if let Some(url) = listed(&format!("remote.{remote}.pushurl")) {
            return Some(self.instead(&url, "insteadof").unwrap_or(url));
        }
        let url = listed(&format!("remote.{remote}.url"))?;
        let other = self.instead(&url, "pushinsteadof").or_else(|| self.instead(&url, "insteadof"));
        Some(other.unwrap_or(url))
    }

    /// An address after applying the longest matching prefix of `what`: `insteadof` or `pushinsteadof`.
    fn instead(&self, url: &str, what: &str) -> Option<String> {
        let mut longest: Option<(&str, &str)> = None;
        for setting in &self.settings {
            let Some((base, name)) = setting.key.strip_prefix("url.").and_then(|key| key.rsplit_once('.'))
            else {
                continue;
            };
            let is_longer = longest.is_none_or(|(_, begin)| begin.len() < setting.value.len());
            if name == what && url.starts_with(&setting.value) && is_longer {
                longest = Some((base, &setting.value));
            }
        }
        longest.map(|(base, begin)| format!("{base}{}", &url[begin.len()..]))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const ORIGIN: (&str, &str) = ("remote.origin.url", "https://me:word@host/a.git");

    #[rstest]
    #[case::without_a_password(&[ORIGIN], Some("origin main https://host/a.git"))]
    #[case::an_address_for_pushes(&[ORIGIN, ("remote.origin.pushurl", "ssh://host/a")], Some("origin main ssh://host/a"))]
    #[case::the_longest_rule(
        &[ORIGIN, ("url.x:.insteadof", "https://"), ("url.y:.insteadof", "https://me:word@host/"), ("url.z:.insteadof", "https://")],
        Some("origin main y:a.git")
    )]
    #[case::a_rule_for_pushes(
        &[ORIGIN, ("url.x:.insteadof", "https://me:word@host/"), ("url.p:.pushinsteadof", "https://me:word@")],
        Some("origin main p:host/a.git")
    )]
    #[case::a_rule_for_pushes_and_an_address_for_them(
        &[ORIGIN, ("remote.origin.pushurl", "/b.git"), ("url.p:.pushinsteadof", "/"), ("url.q:.insteadof", "/")],
        Some("origin main q:b.git")
    )]
    #[case::the_list_began_anew(&[ORIGIN, ("remote.origin.url", ""), ("remote.origin.url", "/b")], Some("origin main /b"))]
    #[case::a_remote_for_pushes(
        &[ORIGIN, ("remote.mine.url", "/b"), ("remote.pushdefault", "mine")],
        Some("mine main /b")
    )]
    #[case::a_place_without_a_name(&[ORIGIN, ("branch.main.pushremote", "/b")], None)]
    #[case::the_branch_that_is_tracked(
        &[ORIGIN, ("push.default", "upstream"), ("branch.main.remote", "origin"), ("branch.main.merge", "refs/heads/dev")],
        Some("origin dev https://host/a.git")
    )]
    #[case::the_only_one(&[("remote.a.b.url", "/b")], Some("a.b main /b"))]
    #[case::two_that_are_not_called_origin(&[("remote.a.url", "/a"), ("remote.b.url", "/b")], None)]
    #[case::none(&[], None)]
    fn a_branch_is_pushed_where_git_would_push_it(
        #[case] settings: &[(&str, &str)],
        #[case] expected: Option<&str>,
    ) {
        let target = GitSettings::of(settings).push_target("main");
        let told = target.map(|target| format!("{} {} {}", target.remote, target.to, target.url));
        assert_eq!(told.as_deref(), expected);
    }
}

//! Settings that make git run a program or connect elsewhere, and the replacements for those that differ from their
//! pins. An agent can write to every configuration file of its user.

use std::collections::BTreeSet;

use camino::Utf8PathBuf;
use refrain_core::git::{GitPin, GitPins};

use crate::plumbing::git::NO_LAZY_FETCH;

const MERGE: &str = "git merge-file --marker-size=%L %A %O %B";

/// The override of a setting that differs from its pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The last value that equals its pin, else this one.
    Value(&'static str),
    /// An empty value, which clears a list, and then the values that equal their pins.
    List,
    /// Whether hooks run: none does, if one differs from its pin.
    Hook,
    /// None: another setting, whose name no agent can guess, decides instead, or it is not used.
    Named,
}

/// The rule for a key as `git config --list` writes it: section and name in lower case.
pub(crate) fn rule(key: &str) -> Option<Rule> {
    let (section, subsection, name) = parts(key)?;
    Some(match (section, subsection, name) {
        ("filter", Some(_), "clean" | "smudge" | "process") => Rule::Value(""),
        ("filter", Some(_), "required") => Rule::Value("false"),
        ("merge", Some(_), "driver") => Rule::Value(MERGE),
        ("core", None, "hookspath") | ("hook", Some(_), _) => Rule::Hook,
        ("core", None, "sshcommand") => Rule::Value("ssh"),
        ("core", None, "attributesfile") => Rule::Value("/dev/null"),
        ("credential", _, "helper") => Rule::List,
        ("http", _, "extraheader" | "curloptresolve") => Rule::List,
        ("http", _, "sslverify" | "proxysslverify") => Rule::Value("true"),
        ("http", _, "savecookies") => Rule::Value("false"),
        (
            "http",
            _,
            "proxy" | "sslcainfo" | "sslcapath" | "sslcert" | "sslkey" | "cookiefile" | "proxysslcainfo"
            | "proxysslcert" | "proxysslkey" | "pinnedpubkey",
        )
        | ("remote", Some(_), "proxy")
        | ("lfs", _, "path" | "args" | "standalonetransferagent" | "url" | "pushurl" | "clean" | "smudge") => {
            Rule::Value("")
        }
        ("gpg", None | Some("openpgp"), "program") => Rule::Value("gpg"),
        ("gpg", Some("x509"), "program") => Rule::Value("gpgsm"),
        ("gpg", Some("ssh"), "program") => Rule::Value("ssh-keygen"),
        ("gpg", Some("ssh"), "defaultkeycommand") | ("user", None, "signingkey") => Rule::Value(""),
        ("gpg", None, "format") => Rule::Value("openpgp"),
        ("core", None, "autocrlf") => Rule::Value("false"),
        ("core", None, "eol") => Rule::Value("native"),
        // What they say decides which changes git sees.
        ("core", None, "symlinks" | "filemode") => Rule::Value("true"),
        ("core", None, "ignorecase") => Rule::Value("false"),
        ("commit", None, "gpgsign") => Rule::Value("false"),
        ("remote", Some(_), "uploadpack") => Rule::Value("git-upload-pack"),
        ("remote", Some(_), "receivepack") => Rule::Value("git-receive-pack"),
        ("core", None, "gitproxy")
        | ("remote", Some(_), "url" | "pushurl" | "vcs" | "promisor")
        | ("url", Some(_), "insteadof" | "pushinsteadof")
        | ("extensions", None, "partialclone") => Rule::Named,
        _ => return None,
    })
}

fn parts(key: &str) -> Option<(&str, Option<&str>, &str)> {
    let (section, rest) = key.split_once('.')?;
    Some(match rest.rsplit_once('.') {
        Some((subsection, name)) => (section, Some(subsection), name),
        None => (section, None, rest),
    })
}

/// A setting of a user's git, in the order in which git reads them.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) value: String,
    /// Its pin; none for a setting without a [`Rule`].
    pub(crate) pin: Option<GitPin>,
}

/// The overrides for a git command beyond the user's configuration.
#[derive(Debug, Default)]
pub(crate) struct Overrides {
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) variables: Vec<(&'static str, &'static str)>,
    pub(crate) without_hooks: Vec<(String, String)>,
    pub(crate) allows_hooks: bool,
    /// The settings with programs that filter or merge content.
    pub(crate) filters: Vec<String>,
    pub(crate) has_programs: bool,
    pub(crate) has_reference_hook: bool,
    /// Where links in the git folder lead.
    pub(crate) link_targets: Vec<Utf8PathBuf>,
    /// Whether git gets objects from a remote while it reads.
    pub(crate) fetches: bool,
}

impl Overrides {
    /// The overrides that these settings and files require; `pins` is none before anything is pinned.
    pub(crate) fn of(settings: &[Setting], files: &[GitPin], pins: Option<&GitPins>) -> Self {
        let mut overrides = Self { allows_hooks: true, ..Self::default() };
        for setting in settings {
            overrides.of_every(setting);
        }
        let Some(pins) = pins else { return overrides };
        let is_changed = |setting: &&Setting| setting.pin.as_ref().is_some_and(|pin| !pins.has(pin));
        let mut keys: Vec<&str> = Vec::new();
        for setting in settings.iter().filter(is_changed) {
            if !keys.contains(&setting.key.as_str()) {
                keys.push(&setting.key);
                let pinned = settings.iter().filter(|other| other.key == setting.key && !is_changed(other));
                overrides.replace(&setting.key, pinned.map(|other| other.value.as_str()));
            }
        }
        for name in pins.changes(settings.iter().filter_map(|setting| setting.pin.as_ref()).chain(files)) {
            if name.starts_with(HOOKS) || rule(&name) == Some(Rule::Hook) {
                overrides.allows_hooks = false;
            } else if name == ATTRIBUTES {
                overrides.settings.push(("core.attributesFile".to_owned(), "/dev/null".to_owned()));
            }
        }
        overrides
    }

    /// No program filters or merges content.
    pub(crate) fn drop_filters(&mut self) {
        self.require_filters(false);
        for key in std::mem::take(&mut self.filters) {
            if let Some(Rule::Value(other)) = rule(&key) {
                self.settings.push((key, other.to_owned()));
            }
        }
    }

    /// Whether content that a filter does not make is an error.
    pub(crate) fn require_filters(&mut self, is_required: bool) {
        let parts = self.filters.iter().filter_map(|key| parts(key));
        let names: BTreeSet<_> = parts.filter(|(section, ..)| *section == "filter").map(|it| it.1).collect();
        let keys = names.into_iter().flatten().map(|name| format!("filter.{name}.required"));
        let required: Vec<_> = keys.map(|key| (key, is_required.to_string())).collect();
        self.settings.extend(required);
    }

    /// The overrides that apply with any pins: no git of ours runs a hook from a setting, or the command of a
    /// trailer.
    fn of_every(&mut self, setting: &Setting) {
        let Some((section, Some(subsection), name)) = parts(&setting.key) else { return };
        match (section, name) {
            ("hook", "command" | "event") => {
                self.without_hooks.push((format!("hook.{subsection}.enabled"), "false".to_owned()));
            }
            ("trailer", "command" | "cmd") => {
                for when in ["ifExists", "ifMissing"] {
                    self.settings.push((format!("trailer.{subsection}.{when}"), "doNothing".to_owned()));
                }
            }
            _ => {}
        }
    }

    fn replace<'a>(&mut self, key: &str, pinned: impl DoubleEndedIterator<Item = &'a str>) {
        let mut set = |value: &str| self.settings.push((key.to_owned(), value.to_owned()));
        match rule(key) {
            Some(Rule::Value(other)) => set(pinned.last().unwrap_or(other)),
            Some(Rule::List) => {
                set("");
                pinned.for_each(set);
            }
            Some(Rule::Hook | Rule::Named) | None => {}
        }
        let section = parts(key).map_or("", |(section, ..)| section);
        if matches!(section, "remote" | "url" | "extensions" | "core" | "http" | "credential") {
            // Missing objects would be fetched from an unknown remote.
            self.variables.push(NO_LAZY_FETCH);
        }
        if key == "core.gitproxy" {
            self.variables.push(("GIT_PROXY_COMMAND", ""));
        }
    }
}

/// The prefix of pinned files in the hooks folder.
pub(crate) const HOOKS: &str = "hooks/";

/// The pinned attributes file of the repository, below its git folder.
pub(crate) const OWN_ATTRIBUTES: &str = "info/attributes";

/// The pinned file with the user's own attributes.
pub(crate) const ATTRIBUTES: &str = "attributes";

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn setting(key: &str, value: &str) -> Setting {
        let pin = rule(key).map(|_| GitPin { name: key.to_owned(), digest: value.to_owned() });
        Setting { key: key.to_owned(), value: value.to_owned(), pin }
    }

    fn told(then: &[(&str, &str)], now: &[(&str, &str)]) -> Overrides {
        let settings =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| setting(key, value)).collect();
        let (then, now): (Vec<Setting>, Vec<Setting>) = (settings(then), settings(now));
        let pins = then.into_iter().filter_map(|setting| setting.pin).collect();
        Overrides::of(&now, &[], Some(&GitPins { pins, ..GitPins::default() }))
    }

    #[rstest]
    #[case::as_pinned(&[("filter.f.clean", "cat")], &[("filter.f.clean", "cat")], &[])]
    #[case::new(&[], &[("filter.f.clean", "evil")], &[("filter.f.clean", "")])]
    #[case::changed(&[("filter.f.clean", "cat")], &[("filter.f.clean", "evil")], &[("filter.f.clean", "")])]
    #[case::added(
        &[("core.sshcommand", "ssh -i key")],
        &[("core.sshcommand", "ssh -i key"), ("core.sshcommand", "evil")],
        &[("core.sshcommand", "ssh -i key")]
    )]
    #[case::a_list(
        &[("credential.helper", "store")],
        &[("credential.helper", "store"), ("credential.helper", "evil")],
        &[("credential.helper", ""), ("credential.helper", "store")]
    )]
    #[case::with_dots(&[], &[("http.https://a.b/.proxy", "evil")], &[("http.https://a.b/.proxy", "")])]
    #[case::what_git_sees_of_a_change(
        &[("core.filemode", "true"), ("core.ignorecase", "true")],
        &[("core.filemode", "false"), ("core.ignorecase", "true"), ("core.symlinks", "false"), ("core.autocrlf", "input")],
        &[("core.filemode", "true"), ("core.symlinks", "true"), ("core.autocrlf", "false")]
    )]
    #[case::a_merge_driver(&[], &[("merge.m.driver", "evil")], &[("merge.m.driver", MERGE)])]
    #[case::not_ours(&[], &[("user.name", "A"), ("color.ui", "always"), ("http.postbuffer", "1")], &[])]
    fn settings_that_differ_from_their_pins_are_overridden(
        #[case] then: &[(&str, &str)],
        #[case] now: &[(&str, &str)],
        #[case] expected: &[(&str, &str)],
    ) {
        let told = told(then, now);
        let told: Vec<(&str, &str)> =
            told.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn hooks_are_run_as_long_as_nothing_of_them_is_changed() {
        assert!(told(&[("core.hookspath", "h")], &[("core.hookspath", "h")]).allows_hooks);
        for (then, now) in [
            (&[][..], &[("core.hookspath", "h")][..]),
            (&[("core.hookspath", "h")], &[]),
            (&[], &[("hook.a.command", "evil")]),
        ] {
            assert!(!told(then, now).allows_hooks, "{then:?} {now:?}");
        }
        let pin = |digest: &str| GitPin { name: format!("{HOOKS}pre-commit"), digest: digest.to_owned() };
        let pins = GitPins { pins: vec![pin("1")], ..GitPins::default() };
        for (now, allows) in [(vec![pin("1")], true), (vec![pin("2")], false), (Vec::new(), false)] {
            assert_eq!(Overrides::of(&[], &now, Some(&pins)).allows_hooks, allows, "{now:?}");
        }
    }

    #[test]
    fn a_hook_and_a_trailer_that_are_settings_are_never_run_by_us() {
        let told = told(&[("hook.a.command", "x")], &[("hook.a.command", "x"), ("trailer.t.cmd", "x")]);
        assert_eq!(told.without_hooks, [("hook.a.enabled".to_owned(), "false".to_owned())]);
        assert!(told.settings.contains(&("trailer.t.ifMissing".to_owned(), "doNothing".to_owned())));
        assert!(told.allows_hooks);
    }
}

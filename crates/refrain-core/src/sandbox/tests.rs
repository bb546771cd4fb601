use rstest::rstest;

use super::*;
use crate::spec::AgentKind;

fn places() -> Places {
    Places {
        home: "/home/ada".into(),
        checkout: None,
        checkout_git: None,
        worktree: "/work/project".into(),
        git: Some(GitFolders { own: "/work/project/.git".into(), common: "/work/project/.git".into() }),
        modules: vec!["/work/project/.git/modules/lib".into()],
        own: vec!["/home/ada/.local/state/refrain".into()],
        credentials: vec!["/srv/kube".into()],
        show: vec!["/home/ada/.local/state/refrain/loop/prompt.md".into()],
        agent_homes: vec![(AgentKind::Codex, "/srv/codex".into())],
        agent_caches: vec![(AgentKind::Opencode, "/srv/cache/opencode".into())],
        cache_layers: Some("/home/ada/.local/state/refrain/loop/caches".into()),
        verification: None,
        temporary: Some("/home/ada/.local/state/refrain/loop/tmp/1".into()),
    }
}

fn linked() -> Places {
    Places {
        worktree: "/work/linked".into(),
        git: Some(GitFolders {
            own: "/work/project/.git/worktrees/linked".into(),
            common: "/work/project/.git".into(),
        }),
        ..places()
    }
}

/// What a path is by a policy: the rule that is nearest to it decides.
fn access(policy: &Policy, path: &str) -> &'static str {
    let path = camino::Utf8Path::new(path);
    let rules = [
        ("hidden", &policy.hide),
        ("cache", &policy.caches),
        ("private", &policy.private),
        ("writable", &policy.write),
        ("read-only", &policy.read_only),
        ("shown", &policy.show),
    ];
    let nearest = rules.iter().flat_map(|(name, paths)| paths.iter().map(move |rule| (rule, *name)));
    let nearest = nearest.filter(|(rule, _)| path.starts_with(rule));
    nearest.max_by_key(|(rule, _)| rule.components().count()).map_or("read-only", |(_, name)| name)
}

const CLAUDE: Role = Role::Agent(AgentKind::Claude);

#[rstest]
#[case("/work/project/src/main.rs", "writable", "writable")]
#[case("/work/other/file", "read-only", "read-only")]
#[case("/usr/bin/cc", "read-only", "read-only")]
#[case("/work/project/.git/objects/ab", "writable", "read-only")]
#[case("/work/project/.git/objects/info/alternates", "read-only", "read-only")]
#[case("/work/project/.git/refs/heads/main", "writable", "read-only")]
#[case("/work/project/.git/index.lock", "writable", "read-only")]
#[case("/work/project/.git/hooks/pre-commit", "read-only", "read-only")]
#[case("/work/project/.git/config", "read-only", "read-only")]
#[case("/work/project/.git/config.worktree", "read-only", "read-only")]
#[case("/work/project/.git/info/attributes", "read-only", "read-only")]
#[case("/work/project/.git/commondir", "read-only", "read-only")]
#[case("/work/project/.git/worktrees/other/gitdir", "read-only", "read-only")]
#[case("/work/project/.git/remotes/origin", "read-only", "read-only")]
#[case("/work/project/.git/branches/main", "read-only", "read-only")]
#[case("/work/project/.git/modules/lib/commondir", "read-only", "read-only")]
#[case("/home/ada/.authinfo", "hidden", "hidden")]
#[case("/home/ada/.var/app/org.mozilla.firefox", "hidden", "hidden")]
#[case("/home/ada/.config/mozilla/firefox/p/logins.json", "hidden", "hidden")]
#[case("/home/ada/.librewolf/p/logins.json", "hidden", "hidden")]
#[case("/home/ada/.local/state/bash/history", "hidden", "hidden")]
#[case("/work/project/.git/refrain/loops", "hidden", "hidden")]
#[case("/work/project/.git/modules/lib/objects/ab", "writable", "read-only")]
#[case("/work/project/.git/modules/no-head/config", "read-only", "read-only")]
#[case("/work/project/.git/modules/lib/config", "read-only", "read-only")]
#[case("/work/project/.git/modules/lib/hooks/x", "read-only", "read-only")]
#[case("/tmp/x", "private", "private")]
#[case("/var/tmp/x", "private", "private")]
#[case("/dev/shm/x", "private", "private")]
#[case("/home/ada/.bashrc", "read-only", "read-only")]
#[case("/home/ada/.cargo/registry/cache", "cache", "cache")]
#[case("/home/ada/.cargo/credentials.toml", "hidden", "hidden")]
#[case("/home/ada/.npm/x", "cache", "cache")]
#[case("/home/ada/.npmrc", "hidden", "hidden")]
#[case("/home/ada/.ssh/id_ed25519", "hidden", "hidden")]
#[case("/home/ada/.config/gh/hosts.yml", "hidden", "hidden")]
#[case("/home/ada/.aws/credentials", "hidden", "hidden")]
#[case("/home/ada/.netrc", "hidden", "hidden")]
#[case("/home/ada/.config/rclone/rclone.conf", "hidden", "hidden")]
#[case("/home/ada/.bash_history", "hidden", "hidden")]
#[case("/home/ada/.local/share/keyrings/login", "hidden", "hidden")]
#[case("/home/ada/.local/state/refrain/loop/journal", "hidden", "hidden")]
#[case("/home/ada/.local/state/refrain/loop/prompt.md", "shown", "shown")]
#[case("/home/ada/.claude/projects/x.jsonl", "writable", "hidden")]
#[case("/home/ada/.claude/settings.json", "read-only", "hidden")]
#[case("/home/ada/.claude/shell-snapshots/x.sh", "private", "hidden")]
#[case("/home/ada/.claude/daemon/control.sock", "private", "hidden")]
#[case("/home/ada/.claude/hooks/x", "read-only", "hidden")]
#[case("/home/ada/.claude/CLAUDE.md", "read-only", "hidden")]
#[case("/home/ada/.claude/local/claude", "read-only", "hidden")]
#[case("/home/ada/.claude/.credentials.json", "writable", "hidden")]
#[case("/home/ada/.claude.json", "read-only", "hidden")]
#[case("/home/ada/.codex/auth.json", "hidden", "hidden")]
#[case("/srv/codex/auth.json", "hidden", "hidden")]
#[case("/home/ada/.gemini/settings.json", "hidden", "hidden")]
#[case("/home/ada/.cache/opencode/bin/x", "hidden", "hidden")]
#[case("/srv/kube", "hidden", "hidden")]
#[case("/etc/shadow", "hidden", "hidden")]
#[case("/etc/shadow-", "hidden", "hidden")]
#[case("/etc/wireguard/wg0.conf", "hidden", "hidden")]
#[case("/run/user/1000/bus", "hidden", "hidden")]
#[case("/run/docker.sock", "hidden", "hidden")]
#[case("/var/lib/lxd/unix.socket", "hidden", "hidden")]
#[case("/home/ada/.colima/default/docker.sock", "hidden", "hidden")]
#[case("/run/current-system/sw/bin/sh", "shown", "shown")]
fn the_defaults_are_those_of_the_design(#[case] path: &str, #[case] agent: &str, #[case] gate: &str) {
    let spec = SandboxSpec::default();
    assert_eq!(access(&policy(&spec, CLAUDE, &places()), path), agent, "the agent");
    assert_eq!(access(&policy(&spec, Role::Gate, &places()), path), gate, "a gate");
}

#[rstest]
#[case(AgentKind::Opencode, "/home/ada/.cache/opencode/packages/x", "cache")]
#[case(AgentKind::Opencode, "/srv/cache/opencode/bin/x", "cache")]
#[case(AgentKind::Opencode, "/home/ada/.local/share/opencode/auth.json", "writable")]
#[case(AgentKind::Opencode, "/home/ada/.local/share/opencode/snapshot/x/config", "cache")]
#[case(AgentKind::Opencode, "/home/ada/.config/opencode/opencode.json", "read-only")]
#[case(AgentKind::Opencode, "/home/ada/.config/opencode/package.json", "read-only")]
#[case(AgentKind::Opencode, "/home/ada/.config/opencode/node_modules/x/index.js", "read-only")]
#[case(AgentKind::Claude, "/home/ada/.claude/chrome/chrome-native-host", "read-only")]
#[case(AgentKind::Claude, "/home/ada/.claude/ide/4711.lock", "private")]
#[case(AgentKind::Claude, "/home/ada/.claude/.config.json", "read-only")]
#[case(AgentKind::Claude, "/home/ada/.claude/project-settings/x", "read-only")]
#[case(AgentKind::Claude, "/home/ada/.claude/bridge-spawn/x", "private")]
#[case(AgentKind::Codex, "/home/ada/.codex/automations/x/automation.toml", "read-only")]
#[case(AgentKind::Codex, "/srv/codex/.tmp/plugins/x", "cache")]
#[case(AgentKind::Opencode, "/home/ada/.config/opencode/tui.json", "read-only")]
#[case(AgentKind::Opencode, "/home/ada/.config/opencode/config", "read-only")]
#[case(AgentKind::Gemini, "/home/ada/.gemini/antigravity/mcp_config.json", "read-only")]
#[case(AgentKind::Gemini, "/home/ada/.gemini/config/mcp_config.json", "read-only")]
#[case(AgentKind::Gemini, "/home/ada/.gemini/acknowledgments/agents.json", "read-only")]
#[case(AgentKind::Gemini, "/home/ada/.gemini/antigravity-browser-profile/Default/Cookies", "hidden")]
#[case(AgentKind::Gemini, "/home/ada/.gemini/cli-browser-profile/Default/Cookies", "private")]
#[case(AgentKind::Gemini, "/home/ada/.gemini/history/x/.git/config", "cache")]
#[case(AgentKind::Gemini, "/home/ada/.gemini/tmp/bin/rg", "read-only")]
#[case(AgentKind::Codex, "/srv/codex/tmp/arg0/apply_patch", "private")]
#[case(AgentKind::Codex, "/home/ada/.codex/app-server-control/app-server-control.sock", "private")]
fn files_that_other_sessions_use_cannot_be_changed(
    #[case] kind: AgentKind,
    #[case] path: &str,
    #[case] expected: &str,
) {
    let policy = policy(&SandboxSpec::default(), Role::Agent(kind), &places());
    assert_eq!(access(&policy, path), expected);
}

#[test]
fn what_is_hidden_is_hidden_where_variables_place_it() {
    let names = |folder| hidden_below(folder).map(camino::Utf8Path::as_str).collect::<Vec<_>>();
    assert!(["gh", "mozilla", "git/credentials"].iter().all(|name| names(".config").contains(name)));
    assert!(names(".local/share").contains(&"keyrings") && !names(".local/share").contains(&"gh"));
}

#[rstest]
#[case("/home/ada/.claude/scripts", true)]
#[case("/home/ada/.claude/statusline.sh", true)]
#[case("/home/ada/.claude/projects", false)]
#[case("/home/ada/.claude/shell-snapshots", false)]
#[case("/home/ada/.claude/hooks", false)]
#[case("/home/ada/.claude/own", false)]
fn programs_are_looked_for_where_no_rule_says_more(#[case] path: &str, #[case] expected: bool) {
    let spec = SandboxSpec { write: vec!["/home/ada/.claude/own".into()], ..SandboxSpec::default() };
    assert_eq!(policy(&spec, CLAUDE, &places()).protects_programs_at(path.into()), expected);
}

#[rstest]
#[case(CLAUDE, "/home/ada/.claude", Some(false))]
#[case(CLAUDE, "/home/ada/.claude/projects", Some(true))]
#[case(CLAUDE, "/home/ada/.claude/debug", None)]
#[case(CLAUDE, "/home/ada/.codex/sessions", None)]
#[case(Role::Agent(AgentKind::Codex), "/srv/codex/sessions", Some(true))]
#[case(Role::Agent(AgentKind::Opencode), "/home/ada/.local/share/opencode/storage", Some(true))]
#[case(Role::Agent(AgentKind::Gemini), "/home/ada/.gemini/tmp", Some(true))]
#[case(CLAUDE, "/work/project/.git", Some(true))]
#[case(Role::Gate, "/home/ada/.claude/projects", None)]
fn no_link_stays_where_later_sessions_write(
    #[case] role: Role,
    #[case] path: &str,
    #[case] is_deep: Option<bool>,
) {
    let policy = policy(&SandboxSpec::default(), role, &places());
    let found = policy.no_links.iter().find(|(folder, _)| folder == path);
    assert_eq!(found.map(|(_, is_deep)| *is_deep), is_deep);
}

#[rstest]
#[case("/usr/bin/agent", false)]
#[case("/tmp/agent", true)]
#[case("/dev/shm/agent", true)]
#[case("/home/ada/.codex/bin/agent", true)]
#[case("/home/ada/.claude/local/agent", false)]
#[case("/tmp/project/agent", false)]
fn a_program_in_a_hidden_folder_is_not_seen(#[case] program: &str, #[case] expected: bool) {
    let places = Places { worktree: "/tmp/project".into(), git: None, ..places() };
    assert_eq!(policy(&SandboxSpec::default(), CLAUDE, &places).hides(program.into()), expected);
}

#[rstest]
#[case("/work/linked/src", "writable")]
#[case("/work/linked/.git", "read-only")]
#[case("/work/project/src", "read-only")]
#[case("/work/project/.git/objects/ab", "writable")]
#[case("/work/project/.git/HEAD", "read-only")]
#[case("/work/project/.git/worktrees/linked/index.lock", "writable")]
#[case("/work/project/.git/worktrees/linked/gitdir", "read-only")]
#[case("/work/project/.git/worktrees/linked/commondir", "read-only")]
#[case("/work/project/.git/worktrees/other/HEAD", "read-only")]
fn a_linked_worktree_is_the_only_one_that_is_written(#[case] path: &str, #[case] expected: &str) {
    assert_eq!(access(&policy(&SandboxSpec::default(), CLAUDE, &linked()), path), expected);
}

#[rstest]
#[case("/work/linked/src", "writable", "writable")]
#[case("/work/linked/.git", "put back", "put back")]
#[case("/work/project/src", "read-only", "read-only")]
#[case("/work/project/.git/objects/ab", "writable", "read-only")]
#[case("/work/project/.git/refs/heads/x", "writable", "read-only")]
#[case("/work/project/.git/logs/HEAD", "writable", "read-only")]
#[case("/work/project/.git/HEAD", "read-only", "read-only")]
#[case("/work/project/.git/config", "read-only", "read-only")]
#[case("/work/project/.git/hooks/pre-commit", "read-only", "read-only")]
#[case("/work/project/.git/packed-refs", "read-only", "read-only")]
#[case("/work/project/.git/worktrees/other/HEAD", "read-only", "read-only")]
#[case("/work/project/.git/worktrees/linked/index.lock", "writable", "read-only")]
#[case("/work/project/.git/worktrees/linked/gitdir", "put back", "read-only")]
#[case("/work/project/.git/worktrees/linked/config.worktree", "put back", "read-only")]
#[case("/work/project/.git/modules/lib/objects/ab", "read-only", "read-only")]
#[case("/work/project/.git/refrain/loops", "hidden", "hidden")]
#[case("/tmp/x", "hidden", "hidden")]
#[case("/etc/resolv.conf", "shown", "shown")]
#[case("/home/ada/.ssh/id_ed25519", "hidden", "hidden")]
#[case("/home/ada/.bashrc", "read-only", "read-only")]
#[case("/home/ada/.cargo/registry/cache", "read-only", "read-only")]
#[case("/home/ada/.local/state/refrain/loop/journal", "hidden", "hidden")]
#[case("/home/ada/.local/state/refrain/loop/tmp/1/x", "writable", "writable")]
#[case("/home/ada/.claude/projects/x.jsonl", "writable", "hidden")]
#[case("/home/ada/.claude/settings.json", "put back", "hidden")]
#[case("/home/ada/.claude.json", "read-only", "hidden")]
#[case("/home/ada/.codex/auth.json", "hidden", "hidden")]
fn without_namespaces_files_are_limited(#[case] path: &str, #[case] agent: &str, #[case] gate: &str) {
    let spec = SandboxSpec { mechanism: Mechanism::Files, ..SandboxSpec::default() };
    for (role, expected) in [(CLAUDE, agent), (Role::Gate, gate)] {
        let policy = policy(&spec, role, &linked());
        let is_put_back = policy.read_only.iter().any(|rule| path.starts_with(rule.as_str()));
        let is = if is_put_back { "put back" } else { access(&policy, path) };
        assert_eq!(is, expected, "{role:?}");
        assert!(policy.hosts.is_empty() && policy.caches.is_empty() && policy.private.is_empty());
    }
}

#[test]
fn on_another_machine_a_sandbox_allows_what_both_users_allow() {
    let there = SandboxSpec {
        hosts: vec!["a.example".parse().unwrap(), "db.internal:5432=10.0.0.7".parse().unwrap()],
        localhost: vec![5432, 6379],
        write: vec!["/home/ada/.cache/ccache".into(), "/srv/build".into()],
        hide: vec!["/home/ada/other".into()],
        bounds: Bounds { memory: Some(8 << 30), cpus: None, is_required: false },
        ..SandboxSpec::default()
    };
    let own = SandboxSpec {
        hosts: vec!["b.example".parse().unwrap()],
        localhost: vec![5432],
        write: vec!["/srv".into(), "/home/bob/.cache/ccache".into()],
        hide: vec!["/home/bob/taxes".into()],
        processes: 1000,
        bounds: Bounds { memory: Some(4 << 30), cpus: Some(2), is_required: true },
        ..SandboxSpec::default()
    };
    let expected = SandboxSpec {
        hosts: vec!["a.example".parse().unwrap()],
        localhost: vec![5432],
        write: vec!["/srv/build".into()],
        hide: vec!["/home/ada/other".into(), "/home/bob/taxes".into()],
        processes: 1000,
        bounds: Bounds { memory: Some(4 << 30), cpus: Some(2), is_required: true },
        ..SandboxSpec::default()
    };
    assert_eq!(there.moved_to(&own), expected);
    let wide = SandboxSpec { write: vec!["/srv/build/a".into()], ..own.clone() };
    assert_eq!(there.moved_to(&wide).write, ["/srv/build/a"], "a part of it");
    assert_eq!(there.moved_to(&SandboxSpec::default()).write, [""; 0]);
    let files = SandboxSpec { mechanism: Mechanism::Files, ..there };
    assert_eq!(files.moved_to(&own).mechanism, Mechanism::Files);
}

#[test]
fn only_a_stricter_mode_of_a_project_counts() {
    use SandboxMode::{Auto, Files, Off, On};
    let stricter: Vec<_> = SandboxMode::ALL
        .into_iter()
        .flat_map(|mode| SandboxMode::ALL.map(|other| (mode, other)))
        .filter(|(mode, other)| mode.is_stricter_than(*other))
        .collect();
    assert_eq!(stricter, [(Auto, Off), (Files, Off), (On, Off), (On, Auto), (On, Files)]);
}

#[rstest]
#[case("/work/project/src/main.rs", "writable")]
#[case("/work/project/.git/objects/ab", "writable")]
#[case("/work/project/.git/hooks/pre-commit", "read-only")]
#[case("/work/project/.git/config", "read-only")]
#[case("/work/project/.git/refrain/loops", "hidden")]
#[case("/home/ada/.claude/projects/x.jsonl", "hidden")]
#[case("/home/ada/.codex/auth.json", "hidden")]
#[case("/home/ada/.gnupg", "hidden")]
#[case("/srv/checkout/tree/file", "writable")]
#[case("/srv/checkout/tree/.git", "read-only")]
#[case("/work/project/.git/worktrees/slot/index.lock", "writable")]
#[case("/work/project/.git/worktrees/slot/commondir", "read-only")]
#[case("/work/project/.git/worktrees/other/index", "read-only")]
fn git_writes_its_objects_and_sees_no_agent(#[case] path: &str, #[case] expected: &str) {
    let own = "/work/project/.git/worktrees/slot";
    let places = Places {
        checkout: Some("/srv/checkout/tree".into()),
        checkout_git: Some(GitFolders { own: own.into(), common: "/work/project/.git".into() }),
        show: vec![own.into()],
        ..places()
    };
    assert_eq!(access(&policy(&SandboxSpec::default(), Role::Git, &places), path), expected);
}

#[rstest]
#[case(CLAUDE, "/work/project/.git/commondir", Some(Some(".\n")))]
#[case(CLAUDE, "/work/project/.git/config.worktree", Some(Some("")))]
#[case(CLAUDE, "/work/project/.git/objects/info/alternates", Some(Some("")))]
#[case(CLAUDE, "/work/project/.git/remotes", Some(None))]
#[case(CLAUDE, "/work/project/.git/modules", Some(None))]
#[case(CLAUDE, "/work/project/.git/modules/lib/modules", Some(None))]
#[case(CLAUDE, "/work/project/.git/modules/lib/hooks", Some(None))]
#[case(CLAUDE, "/work/project/.git/modules/lib/commondir", Some(Some(".\n")))]
#[case(CLAUDE, "/home/ada/.claude/settings.json", Some(Some("{}\n")))]
#[case(CLAUDE, "/home/ada/.claude/commands", Some(None))]
#[case(CLAUDE, "/home/ada/.claude/.claude.json", None)]
#[case(CLAUDE, "/home/ada/.claude/.config.json", None)]
#[case(Role::Agent(AgentKind::Gemini), "/home/ada/.gemini/antigravity-browser-profile", Some(None))]
#[case(CLAUDE, "/home/ada/.codex/config.toml", None)]
#[case(Role::Agent(AgentKind::Codex), "/home/ada/.codex/.env", Some(Some("")))]
#[case(Role::Git, "/work/project/.git/commondir", Some(Some(".\n")))]
#[case(Role::Gate, "/work/project/.git/commondir", None)]
fn what_is_believed_at_once_has_a_placeholder(
    #[case] role: Role,
    #[case] path: &str,
    #[case] content: Option<Option<&str>>,
) {
    let placed = |spec: &SandboxSpec| {
        let made = policy(spec, role, &places()).placeholders.into_iter();
        made.filter(|(made, _)| made == path).map(|(_, content)| content).next()
    };
    assert_eq!(placed(&SandboxSpec::default()), content.map(|content| content.map(str::to_owned)));
    let files = SandboxSpec { mechanism: Mechanism::Files, ..SandboxSpec::default() };
    assert_eq!(placed(&files), None);
}

#[test]
fn a_gate_writes_the_checkout_that_it_runs_in() {
    let places = Places { checkout: Some("/home/ada/.local/state/refrain/checkout/tree".into()), ..places() };
    let policy = policy(&SandboxSpec::default(), Role::Gate, &places);
    assert_eq!(access(&policy, "/home/ada/.local/state/refrain/checkout/tree/target"), "writable");
    assert_eq!(access(&policy, "/work/project/src"), "read-only");
}

#[test]
fn what_one_process_writes_into_a_cache_no_other_one_runs() {
    let layer = |role, verification: Option<&str>| {
        let places = Places { verification: verification.map(str::to_owned), ..places() };
        policy(&SandboxSpec::default(), role, &places).cache_layer.unwrap()
    };
    let all = [
        layer(CLAUDE, None),
        layer(CLAUDE, Some("1-a")),
        layer(Role::Gate, None),
        layer(Role::Gate, Some("1-a")),
        layer(Role::Gate, Some("2-b")),
        layer(Role::Git, None),
    ];
    let folders: std::collections::BTreeSet<_> = all.iter().map(|layer| &layer.folder).collect();
    assert_eq!(folders.len(), all.len());
    let bases: Vec<_> = all.iter().map(|layer| layer.base.as_ref()).collect();
    let before = Some(&all[2].folder);
    assert_eq!(bases, [None, None, None, before, before, None], "gates know what ran before the agent");
}

#[test]
fn only_the_agent_reaches_its_provider() {
    let spec = SandboxSpec { hosts: vec!["Registry.example.org".parse().unwrap()], ..SandboxSpec::default() };
    let names =
        |role| policy(&spec, role, &places()).hosts.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(Role::Gate), ["registry.example.org:443"]);
    assert!(names(CLAUDE).contains(&"api.anthropic.com:443".to_owned()));
    assert!(!names(Role::Agent(AgentKind::Codex)).contains(&"api.anthropic.com:443".to_owned()));
}

#[rstest]
#[case("PATH", false, true, true)]
#[case("LC_ALL", false, true, true)]
#[case("GIT_AUTHOR_NAME", false, true, true)]
#[case("AWS_SECRET_ACCESS_KEY", false, false, false)]
#[case("GITHUB_TOKEN", false, false, false)]
#[case("GITHUB_TOKEN", true, true, true)]
#[case("SSH_AUTH_SOCK", false, false, false)]
#[case("DBUS_SESSION_BUS_ADDRESS", false, false, false)]
#[case("XDG_RUNTIME_DIR", false, false, false)]
#[case("ANTHROPIC_API_KEY", false, true, false)]
#[case("ANTHROPIC_API_KEY", true, true, false)]
#[case("OPENAI_API_KEY", false, false, false)]
#[case("HTTPS_PROXY", false, false, false)]
#[case("OTEL_EXPORTER_OTLP_ENDPOINT", false, true, true)]
#[case("OTEL_EXPORTER_OTLP_HEADERS", false, false, false)]
#[case("OTEL_EXPORTER_OTLP_TRACES_HEADERS", true, true, true)]
fn variables_pass_by_a_list(
    #[case] name: &str,
    #[case] is_given: bool,
    #[case] agent: bool,
    #[case] gate: bool,
) {
    assert_eq!(passes(CLAUDE, name, is_given), agent);
    assert_eq!(passes(Role::Gate, name, is_given), gate);
}

#[rstest]
#[case("api.example.org", Some("api.example.org:443"))]
#[case("API.example.org:8443", Some("api.example.org:8443"))]
#[case("db.internal:5432=10.0.0.7", Some("db.internal:5432=10.0.0.7"))]
#[case("10.0.0.7", None)]
#[case("[::1]:443", None)]
#[case("2130706433", None)]
#[case("0x7f.1", None)]
#[case("a..b", None)]
#[case("a b", None)]
#[case("example.org:0", None)]
#[case("example.org:x", None)]
#[case("example.org=name", None)]
#[case("", None)]
fn a_host_is_a_name(#[case] text: &str, #[case] expected: Option<&str>) {
    let host = text.parse::<Host>().ok().map(|host| host.to_string());
    assert_eq!(host.as_deref(), expected);
}

#[rstest]
#[case("CONNECT api.example.org:443 HTTP/1.1", "connect api.example.org:443")]
#[case("CONNECT API.EXAMPLE.ORG.:443 HTTP/1.1", "connect api.example.org:443")]
#[case("CONNECT api.example.org:80 HTTP/1.1", "refuse api.example.org:80")]
#[case("CONNECT evil.org:443 HTTP/1.1", "refuse evil.org:443")]
#[case("CONNECT 127.0.0.1:443 HTTP/1.1", "refuse 127.0.0.1:443")]
#[case("CONNECT [::1]:443 HTTP/1.1", "refuse [::1]:443")]
#[case("CONNECT [::ffff:127.0.0.1]:443 HTTP/1.1", "refuse [::ffff:127.0.0.1]:443")]
#[case("CONNECT 2130706433:443 HTTP/1.1", "refuse 2130706433:443")]
#[case("CONNECT 0x7f.1:443 HTTP/1.1", "refuse 0x7f.1:443")]
#[case("CONNECT api.example.org@evil.org:443 HTTP/1.1", "refuse api.example.org@evil.org:443")]
#[case("CONNECT api.example.org:443@evil.org:443 HTTP/1.1", "refuse api.example.org:443@evil.org:443")]
#[case("CONNECT evil.org:443\r\nHost: api.example.org:443", "refuse evil.org:443")]
#[case("GET http://api.example.org@evil.org/ HTTP/1.1", "refuse api.example.org@evil.org")]
#[case("CONNECT x HTTP/1.1", "refuse x")]
#[case("GET http://api.example.org/a?b HTTP/1.1", "redirect https://api.example.org/a?b")]
#[case("GET http://api.example.org/\u{fc} HTTP/1.1", "refuse api.example.org, which is allowed")]
#[case("GET http://api.example.org:80/\u{fc} HTTP/1.1", "refuse api.example.org, which is allowed")]
#[case("GET http://evil.org/ HTTP/1.1", "refuse evil.org")]
#[case("GET http://evil.org/\u{fc} HTTP/1.1", "refuse evil.org")]
#[case("GET / HTTP/1.1", "refuse /")]
#[case("", "refuse ")]
fn the_proxy_answers(#[case] head: &str, #[case] expected: &str) {
    let hosts = ["api.example.org".parse().unwrap()];
    let answer = match answer(&hosts, format!("{head}\r\nHost: x\r\n\r\n").as_bytes()) {
        ProxyDecision::Connect(host) => format!("connect {host}"),
        ProxyDecision::Redirect(location) => format!("redirect {location}"),
        ProxyDecision::Refuse(request) if request.is_allowed => {
            format!("refuse {}, which is allowed", request.host)
        }
        ProxyDecision::Refuse(request) => format!("refuse {}", request.host),
    };
    assert_eq!(answer, expected);
}

#[rstest]
#[case("1.1.1.1", true)]
#[case("127.0.0.1", false)]
#[case("10.1.2.3", false)]
#[case("172.16.0.1", false)]
#[case("192.168.1.1", false)]
#[case("169.254.169.254", false)]
#[case("100.64.0.1", false)]
#[case("0.0.0.0", false)]
#[case("224.0.0.1", false)]
#[case("255.255.255.255", false)]
#[case("2606:4700::1111", true)]
#[case("::1", false)]
#[case("fe80::1", false)]
#[case("fd00::1", false)]
#[case("::ffff:127.0.0.1", false)]
#[case("::ffff:1.1.1.1", true)]
#[case("::127.0.0.1", false)]
#[case("2001:0:7f00:1::", false)]
#[case("2002:7f00:1::", false)]
#[case("64:ff9b::7f00:1", false)]
fn private_addresses_are_distinguished_from_public_ones(#[case] address: &str, #[case] expected: bool) {
    assert_eq!(is_public(address.parse().unwrap()), expected);
}

#[rstest]
#[case(SandboxMode::Files, "/tmp/shop", Some("/tmp"))]
#[case(SandboxMode::Files, "/var/tmp/shop", Some("/var/tmp"))]
#[case(SandboxMode::Files, "/tmpfiles/shop", None)]
#[case(SandboxMode::Files, "/home/ada/shop", None)]
#[case(SandboxMode::On, "/tmp/shop", None)]
#[case(SandboxMode::Auto, "/tmp/shop", None)]
#[case(SandboxMode::Off, "/tmp/shop", None)]
fn files_alone_hide_a_repository_below_tmp(
    #[case] mode: SandboxMode,
    #[case] project: &str,
    #[case] folder: Option<&str>,
) {
    assert_eq!(hidden_repository(mode, project.into()), folder);
}

#[rstest]
#[case("127.0.0.1", true)]
#[case("10.1.2.3", true)]
#[case("172.16.0.1", true)]
#[case("172.32.0.1", false)]
#[case("192.168.1.1", true)]
#[case("169.254.169.254", true)]
#[case("100.64.0.1", true)]
#[case("100.127.255.255", true)]
#[case("100.128.0.1", false)]
#[case("0.0.0.0", true)]
#[case("1.1.1.1", false)]
// Not public, and on no network of this machine: a proxy may give it to any name.
#[case("198.18.0.1", false)]
#[case("::1", true)]
#[case("::", true)]
#[case("fe80::1", true)]
#[case("fd00::1", true)]
#[case("::ffff:192.168.1.1", true)]
#[case("::ffff:1.1.1.1", false)]
#[case("2606:4700::1111", false)]
fn addresses_of_the_users_own_network_are_known(#[case] address: &str, #[case] expected: bool) {
    assert_eq!(is_of_own_network(address.parse().unwrap()), expected);
}

#[test]
fn the_link_to_a_git_folder_stays_as_it_is() {
    let nowhere = Places { git: None, ..places() };
    let submodule = GitFolders {
        own: "/work/project/.git/modules/lib".into(),
        common: "/work/project/.git/modules/lib".into(),
    };
    let submodule = Places { worktree: "/work/project/lib".into(), git: Some(submodule), ..places() };
    for (places, link) in [(nowhere, "/work/project/.git"), (submodule, "/work/project/lib/.git")] {
        let policy = policy(&SandboxSpec::default(), CLAUDE, &places);
        assert!(policy.read_only.iter().any(|path| path == link), "{link}: {policy:?}");
    }
}

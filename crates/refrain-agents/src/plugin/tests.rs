use std::path::Path;

use super::content::*;
use super::*;

/// Every file below a folder of `plugins/`, by its path there.
fn below(folder: &Path, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        match entry.path().is_dir() {
            true => names.extend(below(&entry.path(), &format!("{name}/"))),
            false => names.push(name),
        }
    }
    names.sort();
    names
}

fn sources(agent: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    below(&root.join("plugins").join(agent), "")
}

fn plugin(agent: AgentKind, program: &str) -> Plugin {
    let variable = |name: &str| (name == "HOME").then_some("/h");
    let homes = Homes { variable, own: Utf8Path::new("/d/plugins"), program };
    homes.plugin(agent).unwrap()
}

const AGENTS: [AgentKind; 4] = [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini, AgentKind::Opencode];

#[test]
fn every_file_of_a_plugin_is_built_in() {
    let names = |texts: &[(&str, &str)]| texts.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(names(claude::TEXTS), sources("claude"));
    assert_eq!(names(gemini::TEXTS), sources("gemini"));
    assert_eq!(sources("codex"), ["hooks.json", "skills/refrain-loop/SKILL.md"]);
    assert_eq!(sources("opencode"), ["command/refrain-loop.md", "plugin/refrain.js"]);
}

#[test]
fn each_program_has_its_places() {
    let paths = |agent| {
        let Plugin { files, settings, .. } = plugin(agent, "refrain");
        let shared = settings.map(|shared| shared.path);
        files
            .into_iter()
            .map(|file| file.path)
            .chain(shared)
            .map(Utf8PathBuf::into_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(paths(AgentKind::Codex), ["/h/.codex/skills/refrain-loop/SKILL.md", "/h/.codex/hooks.json"]);
    assert_eq!(
        paths(AgentKind::Opencode),
        ["/h/.config/opencode/command/refrain-loop.md", "/h/.config/opencode/plugin/refrain.js"]
    );
    let gemini = paths(AgentKind::Gemini);
    assert!(gemini.contains(&"/h/.gemini/extensions/refrain/gemini-extension.json".to_owned()), "{gemini:?}");
    let claude = paths(AgentKind::Claude);
    assert!(claude.contains(&"/d/plugins/claude/.claude-plugin/plugin.json".to_owned()), "{claude:?}");
    assert_eq!(claude.last().unwrap(), "/h/.claude/settings.json");
}

#[test]
fn homes_of_their_own_count_where_they_are_absolute() {
    let path = |set: &'static str, value: &'static str, agent| {
        let variable = |name: &str| match name {
            "HOME" => Some("/h"),
            name if name == set => Some(value),
            _ => None,
        };
        let homes = Homes { variable, own: Utf8Path::new("/d"), program: "refrain" };
        let plugin = homes.plugin(agent).unwrap();
        plugin.settings.map_or_else(|| plugin.files[0].path.clone(), |shared| shared.path).into_string()
    };
    assert_eq!(path("CODEX_HOME", "/c", AgentKind::Codex), "/c/hooks.json");
    assert_eq!(path("CODEX_HOME", "c", AgentKind::Codex), "/h/.codex/hooks.json");
    assert_eq!(path("CLAUDE_CONFIG_DIR", "/c", AgentKind::Claude), "/c/settings.json");
    assert_eq!(path("XDG_CONFIG_HOME", "/x", AgentKind::Opencode), "/x/opencode/command/refrain-loop.md");
    assert!(path("GEMINI_CLI_HOME", "/g", AgentKind::Gemini).starts_with("/g/.gemini/extensions/refrain/"));
    let nowhere = Homes { variable: |_: &str| None, own: Utf8Path::new("/d"), program: "refrain" };
    assert!(AGENTS.iter().all(|agent| nowhere.plugin(*agent).is_none()));
}

#[test]
fn a_program_that_no_name_leads_to_is_called_by_its_path() {
    for agent in AGENTS {
        let by_name = plugin(agent, "refrain");
        let by_path = plugin(agent, "/o 'p\"t/refrain");
        let texts = |plugin: &Plugin| {
            let files = plugin.files.iter().map(|file| (file.path.to_string(), file.text.clone()));
            let edits = plugin.settings.iter().flat_map(|shared| &shared.edits);
            let edits = edits.map(|edit| (edit.path.join("."), edit.value.clone()));
            files.chain(edits).collect::<Vec<_>>()
        };
        let verbs = ["hook", "tick", "list", "cancel", "plan", "status"];
        let calls = |text: &str| verbs.iter().any(|verb| text.contains(&format!("refrain {verb}")));
        for ((path, by_name), (_, by_path)) in texts(&by_name).iter().zip(texts(&by_path)) {
            assert!(!calls(&by_path), "{path}: {by_path}");
            assert_eq!(calls(by_name) || path.ends_with(".js"), by_name != &by_path, "{path}: {by_path}");
            if path.ends_with(".json") || path.contains("hooks.") {
                let read: Result<serde_json::Value, _> = serde_json::from_str(&by_path);
                assert!(read.is_ok(), "{path}: {by_path}");
            }
        }
    }
    let stop = &plugin(AgentKind::Codex, "/o p/refrain").settings.unwrap().edits[0];
    assert!(stop.value.contains("\"command\": \"'/o p/refrain' hook stop --agent codex\""), "{}", stop.value);
    let script = &plugin(AgentKind::Opencode, "/o p/refrain").files[1].text;
    assert!(script.contains("const REFRAIN = \"/o p/refrain\""), "{script}");
}

#[test]
fn the_hooks_of_codex_are_those_of_its_file() {
    let edits = plugin(AgentKind::Codex, "refrain").settings.unwrap().edits;
    let (text, _) = settings::put("", &edits).unwrap();
    let whole: serde_json::Value =
        serde_json::from_str(include_str!("../../../../plugins/codex/hooks.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), whole);
    let marks: Vec<_> = edits.iter().map(|edit| &edit.kind).collect();
    let mark = |event: &str| settings::Kind::Element(format!("hook {event} --agent codex"));
    assert_eq!(marks, [&mark("stop"), &mark("session-start")]);
}

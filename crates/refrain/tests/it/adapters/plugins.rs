//! `refrain plugin`: installs and removes our plugin for each agent, without changing anything else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Invocation, Run, Sandbox};

use crate::sandbox;

const AGENTS: [&str; 4] = ["claude", "codex", "gemini", "opencode"];

/// `refrain plugin`, with the program on `PATH`.
fn plugin(sandbox: &Sandbox, words: &[&str]) -> Invocation {
    let link = link(sandbox);
    let bin = link.parent().unwrap();
    if !bin.exists() {
        fs::create_dir(bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_refrain"), &link).unwrap();
    }
    let words: Vec<&str> = ["plugin"].iter().chain(words).copied().collect();
    sandbox.command(&words).env("PATH", &format!("{}:/usr/bin:/bin", bin.display()))
}

/// Where `PATH` finds the program.
fn link(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("bin/refrain")
}

#[track_caller]
fn run(sandbox: &Sandbox, words: &[&str]) -> Run {
    plugin(sandbox, words).run().with_code(0)
}

fn standing(sandbox: &Sandbox, agent: &str) -> String {
    let all = run(sandbox, &["status", agent, "--json"]).json();
    assert_eq!((&all[0]["agent"], all.as_array().unwrap().len()), (&json!(agent), 1));
    all[0]["standing"].as_str().unwrap().to_owned()
}

/// The file of the person's that an agent's plugin is named in.
fn settings(sandbox: &Sandbox, agent: &str) -> PathBuf {
    let home = sandbox.root().join("home");
    match agent {
        "claude" => home.join(".claude/settings.json"),
        "codex" => home.join(".codex/hooks.json"),
        other => panic!("{other} has none"),
    }
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    testkit::write(path, text);
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_plugin_is_put_there_once_and_taken_back_whole() {
    for agent in AGENTS {
        let sandbox = sandbox();
        fs::create_dir_all(sandbox.root().join("home/data/refrain")).unwrap();
        let before = sandbox.snapshot();
        assert_eq!(standing(&sandbox, agent), "not-installed");

        let rehearsed = run(&sandbox, &["install", agent, "--dry-run"]).stdout;
        assert_eq!(sandbox.snapshot(), before, "{agent}: a rehearsal touches nothing");
        let installed = run(&sandbox, &["install", agent]).stdout;
        let paths = |text: &str, word: &str| -> Vec<String> {
            text.lines().filter_map(|line| line.strip_prefix(word)).map(str::to_owned).collect()
        };
        let written = paths(&installed, "wrote ");
        assert_eq!(paths(&rehearsed, "would write "), written, "{agent}");
        assert!(!written.is_empty() && written.iter().all(|path| Path::new(path).is_file()), "{installed}");
        // The dry run showed exactly what was written.
        let shown: String = rehearsed
            .lines()
            .filter_map(|line| line.strip_prefix("  +"))
            .map(|line| format!("{}\n", line.trim()))
            .collect();
        let held = |path: &String| {
            text(Path::new(path)).lines().map(|line| format!("{}\n", line.trim())).collect::<String>()
        };
        assert_eq!(shown, written.iter().map(held).collect::<String>(), "{agent}");
        assert!(installed.contains("\nnext: "), "{installed}");
        assert_eq!(standing(&sandbox, agent), "installed");

        let with = sandbox.snapshot();
        let again = run(&sandbox, &["install", agent]).stdout;
        assert!(
            again.starts_with(&format!("the plugin for {agent} is installed already; nothing was changed\n")),
            "{again}"
        );
        assert_eq!(sandbox.snapshot(), with, "{agent}: twice is once");

        run(&sandbox, &["remove", agent, "--dry-run"]);
        assert_eq!(sandbox.snapshot(), with, "{agent}: a rehearsal touches nothing");
        run(&sandbox, &["remove", agent]);
        assert_eq!(sandbox.snapshot(), before, "{agent}: nothing of it is left");
        let again = run(&sandbox, &["remove", agent]).stdout;
        assert_eq!(again, format!("nothing of the plugin for {agent} is there; nothing was changed\n"));
    }
}

const ODD: &[&str] = &[
    "",
    "\n",
    "{}",
    "{ }\n",
    "{\n}\n",
    "\u{feff}{}",
    "\u{feff}{\r\n\t\"model\": \"x\"\r\n}\r\n",
    "{\n  // nothing yet\n}\n",
    "{\"env\":{\"A\":\"1\"}}",
    "{\"env\":{\"A\":\"1\"},}",
    "{\n\n  \"model\": \"x\"\n\n}\n\n",
    "{\n\t\"model\": \"x\", // mine\n\t// the end\n}\n",
    "{\n  \"model\": \"x\" /* mine */ ,\n}",
    "{\r\n  \"hooks\": {}\r\n}",
    "{\"hooks\": {\"Stop\": []}}",
    "{\n  \"hooks\": {\n    \"Stop\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"mine\" }] }\n    ]\n  }\n}\n",
    "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"command\":\"mine\"}]}, ],\"SessionStart\":[]}}",
    "{\n  \"enabledPlugins\": {\"a@b\": true}, \"extraKnownMarketplaces\": {\n  }\n}\n// the end",
    "{\"enabledPlugins\": {\"refrain@refrain\": false}}",
    "{\n    \"\\u00e9\": \"\u{e9} \\\" { [\",\n    \"enabledPlugins\": {}\n}",
    "  {\"a\" : 1}  ",
];

#[test]
fn settings_of_any_kind_are_given_back_to_the_byte() {
    for agent in ["claude", "codex"] {
        let sandbox = sandbox();
        let path = settings(&sandbox, agent);
        for odd in ODD {
            put(&path, odd);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            run(&sandbox, &["install", agent]);
            assert_eq!(standing(&sandbox, agent), "installed", "{odd:?}");
            assert_ne!(text(&path), *odd);
            run(&sandbox, &["remove", agent]);
            assert_eq!(text(&path), *odd, "{agent}");
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        }
    }
}

#[test]
fn settings_changed_since_the_install_are_kept() {
    for agent in ["claude", "codex"] {
        let sandbox = sandbox();
        let path = settings(&sandbox, agent);
        put(&path, "{\n  \"model\": \"x\" // mine\n}\n");
        run(&sandbox, &["install", agent]);
        let changed = text(&path).replace("\"x\"", "\"y\"");
        testkit::write(&path, &changed);
        assert_eq!(standing(&sandbox, agent), "installed");
        run(&sandbox, &["install", agent]);
        assert_eq!(text(&path), changed);
        run(&sandbox, &["remove", agent]);
        assert_eq!(text(&path), "{\n  \"model\": \"y\" // mine\n}\n", "{agent}");

        // A file that was made for it is removed, unless it has other content by then.
        fs::remove_file(&path).unwrap();
        run(&sandbox, &["install", agent]);
        testkit::write(&path, text(&path).replacen('{', "{\n  \"model\": \"y\",", 1));
        run(&sandbox, &["remove", agent]);
        let left: Value = serde_json::from_str(&text(&path)).unwrap();
        assert_eq!(left, json!({"model": "y"}), "{agent}");
    }
}

#[test]
fn an_installed_file_that_was_changed_is_kept() {
    let sandbox = sandbox();
    let skill = sandbox.root().join("home/.codex/skills/refrain-loop/SKILL.md");
    run(&sandbox, &["install", "codex"]);
    testkit::write(&skill, "mine\n");
    assert_eq!(standing(&sandbox, "codex"), "older");
    let kept = format!("kept {}, as it was changed since\n", skill.display());
    for verb in ["install", "remove"] {
        let said = run(&sandbox, &[verb, "codex"]).stdout;
        assert!(said.contains(&kept), "{said}");
        assert_eq!(text(&skill), "mine\n");
    }
    assert!(!settings(&sandbox, "codex").exists());
    // It was there before, now: it is not replaced.
    let before = sandbox.snapshot();
    let refused = plugin(&sandbox, &["install", "codex"]).run().with_code(2);
    assert!(refused.stderr.contains(skill.to_str().unwrap()), "{}", refused.stderr);
    assert!(refused.stderr.contains("move it away first"), "{}", refused.stderr);
    assert_eq!(sandbox.snapshot(), before, "nothing was touched");
}

#[test]
fn an_older_one_is_brought_up_to_date_and_a_missing_part_put_back() {
    let sandbox = sandbox();
    // It is called by its own path if it is not on `PATH`.
    let bare =
        sandbox.command(&["plugin", "install", "codex"]).env("PATH", "/usr/bin:/bin").run().with_code(0);
    let program = fs::canonicalize(env!("CARGO_BIN_EXE_refrain")).unwrap();
    let called = format!("codex calls {}; install again when that moves\n", program.display());
    assert!(bare.stdout.contains(&called), "{}", bare.stdout);
    let path = settings(&sandbox, "codex");
    assert!(text(&path).contains(&format!("{} hook stop --agent codex", program.display())));
    assert_eq!(standing(&sandbox, "codex"), "older");
    let said = run(&sandbox, &["status", "codex"]).stdout;
    assert!(said.starts_with("codex     installed, but older\n") && said.contains("  older    "), "{said}");
    run(&sandbox, &["install", "codex"]);
    assert_eq!(standing(&sandbox, "codex"), "installed");
    let called = format!("\"{} hook stop --agent codex\"", link(&sandbox).display());
    assert!(text(&path).contains(&called), "{}", text(&path));
    assert_eq!(text(&path).matches("hook stop").count(), 1);

    fs::remove_file(sandbox.root().join("home/.codex/skills/refrain-loop/SKILL.md")).unwrap();
    assert_eq!(standing(&sandbox, "codex"), "partly");
    run(&sandbox, &["install", "codex"]);
    assert_eq!(standing(&sandbox, "codex"), "installed");
    // The note is lost: files with the expected content are still recognized as ours.
    fs::remove_file(sandbox.root().join("home/data/refrain/plugins/installed.json")).unwrap();
    run(&sandbox, &["remove", "codex"]);
    assert_eq!(standing(&sandbox, "codex"), "not-installed");
    assert_eq!(text(&path), "{}\n");
}

#[test]
fn malformed_agent_settings_are_refused_and_not_changed() {
    let cases: [(&str, &str, &str); 9] = [
        ("codex", "[]", "the whole is no object"),
        ("codex", "{\"hooks\": \"x\"}", "hooks is no object"),
        ("codex", "{\"hooks\": {\"Stop\": {}}}", "hooks.Stop is no array"),
        ("codex", "{\"hooks\": {}, \"hooks\": {}}", "hooks stands there twice"),
        ("codex", "{\"hooks\": {}", "it is no JSON"),
        ("codex", "hooks = 1\n", "it is no JSON"),
        ("claude", "{\"enabledPlugins\": []}", "enabledPlugins is no object"),
        (
            "claude",
            "{\"extraKnownMarketplaces\": {\"refrain\": {}}}",
            "extraKnownMarketplaces.refrain is something else already",
        ),
        ("claude", "\u{1b}[2J", "it is no JSON"),
    ];
    let sandbox = sandbox();
    run(&sandbox, &["status"]);
    for (agent, odd, why) in cases {
        let path = settings(&sandbox, agent);
        put(&path, odd);
        let before = sandbox.snapshot();
        for words in [&["install", agent][..], &["install", agent, "--dry-run"]] {
            let refused = plugin(&sandbox, words).run().with_code(2);
            let said = &refused.stderr;
            assert!(said.contains(path.to_str().unwrap()) && said.contains(why), "{odd}: {said}");
            assert!(
                said.contains("correct that file, and try again") && !said.contains('\u{1b}'),
                "{odd}: {said}"
            );
            assert_eq!(sandbox.snapshot(), before, "{odd}");
        }
        let standing = standing(&sandbox, agent);
        assert_eq!(standing, if why.contains("already") { "partly" } else { "not-installed" }, "{odd}");
    }
    // Not even a text.
    let path = settings(&sandbox, "codex");
    testkit::write(&path, b"{\"a\": \"\xff\"}");
    plugin(&sandbox, &["install", "codex"]).run().with_code(2);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    plugin(&sandbox, &["install", "codex"]).run().with_code(2);
}

#[test]
fn a_crash_in_the_middle_leaves_nothing_that_the_next_call_does_not_know() {
    for agent in AGENTS {
        let sandbox = sandbox();
        let home = sandbox.root().join("home");
        fs::create_dir_all(home.join("data/refrain")).unwrap();
        if agent == "claude" || agent == "codex" {
            put(&settings(&sandbox, agent), "{\n  \"model\": \"x\" // mine\n}\n");
        }
        let before = sandbox.snapshot();
        let installed = run(&sandbox, &["install", agent]).stdout;
        let written = installed.lines().filter_map(|line| line.split_once(' '));
        let written: Vec<_> = written.filter(|(word, _)| ["wrote", "changed"].contains(word)).collect();
        let with = sandbox.snapshot();
        // The note is written first; so many of its files followed.
        let mut counts = vec![0, 1, written.len() / 2, written.len() - 1, written.len()];
        counts.dedup();
        for count in counts {
            for verb in ["install", "remove"] {
                for (path, bytes) in with.iter().filter(|(path, _)| path.is_file()) {
                    testkit::write(path, bytes);
                }
                for (_, path) in &written[count..] {
                    let path = Path::new(path);
                    match before.iter().find(|(found, _)| found == path) {
                        Some((_, bytes)) => testkit::write(path, bytes),
                        None => fs::remove_file(path).unwrap(),
                    }
                }
                run(&sandbox, &[verb, agent]);
                let expected = if verb == "install" { &with } else { &before };
                let found = sandbox.snapshot();
                let odd = |one: &[_], other: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
                    one.iter().filter(|entry| !other.contains(entry)).map(|(path, _)| path.clone()).collect()
                };
                let differ = (odd(&found, expected), odd(expected, &found));
                assert_eq!(differ, (vec![], vec![]), "{agent}: {count} of {}, then {verb}", written.len());
                run(&sandbox, &["install", agent]);
            }
        }
    }
}

#[test]
fn a_link_to_settings_that_lie_elsewhere_stays_one() {
    let sandbox = sandbox();
    let (path, real) = (settings(&sandbox, "codex"), sandbox.root().join("home/dotfiles/hooks.json"));
    put(&real, "{}\n");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("../dotfiles/hooks.json", &path).unwrap();
    run(&sandbox, &["install", "codex"]);
    assert!(path.is_symlink() && text(&real).contains("refrain hook stop"));
    run(&sandbox, &["remove", "codex"]);
    assert!(path.is_symlink());
    assert_eq!(text(&real), "{}\n");
    // A dangling link belongs to the user too.
    fs::remove_file(&real).unwrap();
    plugin(&sandbox, &["install", "codex"]).run().with_code(2);
    assert!(path.is_symlink() && !real.exists());
}

#[test]
fn configured_home_folders_of_agents_are_used() {
    let sandbox = sandbox();
    let at = |name: &str| sandbox.root().join("home/elsewhere").join(name);
    let homes = [("CODEX_HOME", "codex", "hooks.json"), ("CLAUDE_CONFIG_DIR", "claude", "settings.json")];
    for (variable, agent, file) in homes {
        let home = at(agent);
        plugin(&sandbox, &["install", agent]).env(variable, home.to_str().unwrap()).run().with_code(0);
        assert!(home.join(file).is_file());
        assert!(!settings(&sandbox, agent).exists());
        assert_eq!(standing(&sandbox, agent), if agent == "codex" { "not-installed" } else { "partly" });
        // It is removed from the place where it was installed.
        run(&sandbox, &["remove", agent]);
        assert!(!home.exists());
    }
}

#[test]
fn invalid_plugin_commands_are_refused() {
    let sandbox = sandbox();
    let cases: [(&[&str], &str); 5] = [
        (&[], "a verb is missing; accepted: what refrain plugin --help lists"),
        (&["install"], "AGENT"),
        (&["install", "cursor"], "claude, codex, gemini and opencode"),
        (&["remove", "generic"], "claude, codex, gemini and opencode"),
        (&["status", "--dry-run"], "--dry-run"),
    ];
    for (words, said) in cases {
        let refused = plugin(&sandbox, words).run().with_code(2);
        assert!(refused.stderr.contains(said), "{words:?}: {}", refused.stderr);
    }
    let homeless = plugin(&sandbox, &["install", "codex"]).env("HOME", "").run().with_code(2);
    assert!(homeless.stderr.contains("HOME is not set"), "{}", homeless.stderr);
    let inside = plugin(&sandbox, &["install", "codex"]).env("REFRAIN_LOOP_ID", "job").run().with_code(17);
    assert!(inside.stderr.contains("from inside an attempt"), "{}", inside.stderr);
    assert!(!settings(&sandbox, "codex").exists());
}

#[test]
fn settings_that_the_plugin_did_not_make_are_kept() {
    let sandbox = sandbox();
    let (claude, codex) = (settings(&sandbox, "claude"), settings(&sandbox, "codex"));
    let theirs =
        "{\"extraKnownMarketplaces\": {\"refrain\": {\"source\": \"theirs\"}}, \"enabledPlugins\": {}}";
    put(&claude, theirs);
    put(&codex, "{\"hooks\": {\"Stop\": []}}");
    run(&sandbox, &["remove", "claude"]);
    run(&sandbox, &["remove", "codex"]);
    assert_eq!((text(&claude).as_str(), text(&codex).as_str()), (theirs, "{\"hooks\": {\"Stop\": []}}"));
}

#[test]
fn another_program_of_the_name_is_not_called() {
    let sandbox = sandbox();
    let bin = sandbox.root().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink("/bin/true", bin.join("refrain")).unwrap();
    run(&sandbox, &["install", "codex"]);
    let own = fs::canonicalize(env!("CARGO_BIN_EXE_refrain")).unwrap();
    let called = format!("{} hook stop --agent codex", own.display());
    assert!(text(&settings(&sandbox, "codex")).contains(&called));
}

#[test]
fn a_plugin_program_that_a_shell_cannot_run_is_reported() {
    let sandbox = sandbox();
    run(&sandbox, &["install", "codex"]);
    let status = run(&sandbox, &["status", "codex", "--json"]).json();
    let link = link(&sandbox);
    assert_eq!((&status[0]["program"], &status[0]["problem"]), (&json!(link), &Value::Null));
    fs::remove_file(&link).unwrap();
    let said = run(&sandbox, &["status", "codex"]).stdout;
    let problem = format!("  problem: codex cannot run {}: ", link.display());
    assert!(said.contains(&problem) && said.contains("refrain plugin install codex mends it\n"), "{said}");
    let said = sandbox.refrain(&["doctor"]).stdout;
    let problem = format!("its plugin calls {}, which a shell cannot run: ", link.display());
    assert!(said.contains(&problem), "{said}");
}

#[test]
fn an_unreadable_install_note_is_not_overwritten() {
    let sandbox = sandbox();
    run(&sandbox, &["install", "codex"]);
    let note = sandbox.root().join("home/data/refrain/plugins/installed.json");
    testkit::write(&note, "{ of a later version");
    let before = sandbox.snapshot();
    for words in [["install", "gemini"], ["remove", "codex"], ["status", "codex"]] {
        let refused = plugin(&sandbox, &words).run().with_code(1);
        assert!(refused.stderr.contains("installed.json"), "{}", refused.stderr);
    }
    assert_eq!(sandbox.snapshot(), before);
}

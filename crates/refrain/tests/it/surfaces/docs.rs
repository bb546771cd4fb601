//! The commands of the README and of the book: every line of every `sh` block is run, in the order of its document,
//! in a project of its own, with small scripts in place of the named programs.
//!
//! `ID` is the possible loop that was touched last. A block that cannot be run says why, in a comment that readers do
//! not see: `<!-- not run: why -->` above it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rstest::rstest;
use serde_json::json;
use testkit::{Forge, Gate, Invocation, Sandbox, Signal};

use crate::sandbox;

/// Above a block that is not run, followed by the reason.
const NOT_RUN: &str = "<!-- not run: ";

/// A document's command lines; one with a file behind it (`<<'END'`) is one with the lines of that.
fn commands(text: &str) -> Vec<String> {
    let (mut found, mut is_run, mut in_block) = (Vec::<String>::new(), true, false);
    let mut in_file = false;
    for line in text.lines() {
        match line {
            line if in_file => {
                found.last_mut().unwrap().push_str(&format!("\n{line}"));
                in_file = line != "END";
            }
            "```sh" => in_block = true,
            line if line.starts_with("```") => (in_block, is_run) = (false, true),
            line if line.starts_with(NOT_RUN) => {
                assert!(line.len() > NOT_RUN.len() + " -->".len(), "a reason is missing: {line}");
                is_run = false;
            }
            line if in_block && is_run && !line.trim().is_empty() && !line.starts_with('#') => {
                in_file = line.ends_with("<<'END'");
                found.push(line.to_owned());
            }
            _ => {}
        }
    }
    found
}

/// The final message of every agent here, whether it works or reviews.
const MESSAGE: &str =
    "All tests pass.\\n\\nSPEC_PASS\\n<promise>TASK_COMPLETE</promise>\\n<promise>COMPLETE</promise>";

/// A plan of two tasks.
const TASKS: &str = r#"{"tag": "my-feature", "tasks": [
  {"id": 1, "title": "Set up the router", "status": "pending", "complexity": 1, "depends_on": []},
  {"id": 2, "title": "Implement auth middleware", "status": "pending", "complexity": 3, "depends_on": [1]}
]}"#;

/// The place in which a document's commands run.
struct DocsProject {
    sandbox: Sandbox,
    gate: Gate,
    path: String,
    /// The folder that `cd` led to.
    folder: std::path::PathBuf,
    /// The forge of `origin`, if the document is about that.
    forge: Option<Forge>,
}

impl DocsProject {
    fn new() -> Self {
        let sandbox = sandbox();
        let bin = sandbox.root().join("bin");
        fs::create_dir(&bin).unwrap();
        let program = |path: &Path, script: &str| {
            testkit::write(path, format!("#!/bin/sh\n{script}\n"));
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        };
        let usage = json!({"input_tokens": 1, "output_tokens": 1});
        let claude = json!({"type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "session_id": "s",
            "result": MESSAGE.replace("\\n", "\n"), "total_cost_usd": 0.1, "usage": usage, "terminal_reason": "completed"});
        let codex = json!({"type": "item.completed",
            "item": {"id": "1", "type": "agent_message", "text": MESSAGE.replace("\\n", "\n")}});
        let gemini = json!({"type": "message", "role": "assistant", "content": MESSAGE.replace("\\n", "\n"), "delta": true});
        let stream = |lines: &[String]| format!("cat > /dev/null\ncat <<'END'\n{}\nEND", lines.join("\n"));
        let codex = [
            r#"{"type":"thread.started","thread_id":"t"}"#.to_owned(),
            codex.to_string(),
            json!({"type": "turn.completed", "usage": usage}).to_string(),
        ];
        let gemini = [
            r#"{"type":"init","session_id":"s","model":"m"}"#.to_owned(),
            gemini.to_string(),
            r#"{"type":"result","status":"success","stats":{"total_tokens":2,"input_tokens":1,"output_tokens":1}}"#.to_owned(),
        ];
        program(&bin.join("claude"), &stream(&[claude.to_string()]));
        program(&bin.join("codex"), &stream(&codex));
        program(&bin.join("gemini"), &stream(&gemini));
        program(
            &bin.join("opencode"),
            &format!("[ \"$1\" = acp ] || {{ printf '{OPENCODE}\\n'; exit; }}\n{ACP}"),
        );
        for silent in ["curl", "notify-send", "cargo", "npm"] {
            program(&bin.join(silent), "cat > /dev/null");
        }
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_refrain"), bin.join("refrain")).unwrap();
        // In the foreground it is done at once; in the background it holds until it is released.
        let agent = format!(
            "echo I look.\ntest -e $NOTES/claim || {{ read -r _ < $GATES/go; exit; }}\nprintf '{MESSAGE}\\n'"
        );
        program(&sandbox.project().join("agent.sh"), &agent);
        testkit::write(&sandbox.project().join("TASK.md"), "Fix the tests.\n");
        testkit::write(&sandbox.project().join("spec.md"), "1. All tests pass.\n");
        testkit::write(&sandbox.project().join("PLAN.md"), "# A shop\n\n## Task 1: Sell shoes\n");
        fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
        testkit::write(&sandbox.project().join(".scud/tasks/my-feature.json"), TASKS);
        fs::create_dir(sandbox.project().join("specs")).unwrap();
        for task in ["auth.md", "auth-feature.md", "bug-123.md"] {
            testkit::write(&sandbox.project().join("specs").join(task), "1. All tests pass.\n");
        }
        program(&sandbox.project().join("test.sh"), "echo 1 passed");
        testkit::write(&sandbox.project().join("refrain.toml"), "[start]\nmax-iterations = 20\n");
        // A task of a plan starts from the committed files.
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-qm", "Begin"]);
        // A reader of the documents has looked at their own project.
        sandbox.trust();
        let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
        let path = format!("{}:{usual}", bin.display());
        let folder = sandbox.project();
        Self { gate: sandbox.gate("go"), sandbox, path, folder, forge: None }
    }

    /// The same, with a remote at a forge.
    fn with_a_forge() -> Self {
        let mut place = Self::new();
        let forge = Forge::github(place.sandbox.root());
        place.sandbox.git(&["remote", "add", "origin", &forge.url()]);
        place.forge = Some(forge);
        place.run("git push --quiet origin main");
        place
    }

    fn shell(&self, line: &str) -> Invocation {
        let forge: Vec<_> = self.forge.iter().flat_map(Forge::env).collect();
        // Its programs come first; those of the place replace the rest.
        let before =
            forge.iter().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path.split(':').next());
        let path = before.map_or_else(|| self.path.clone(), |before| format!("{before}:{}", self.path));
        let shell = self.sandbox.tool("bash", &["-c", line]).dir(&self.folder);
        forge.iter().fold(shell, |shell, (name, value)| shell.env(name, value)).env("PATH", &path)
    }

    /// The loop that these words could mean, as completion has it.
    fn meant(&self, verb: &str) -> String {
        let ask = self.sandbox.command(&["--", "refrain", verb, ""]);
        let answer = ask.env("_REFRAIN_COMPLETES", "bash").env("_CLAP_COMPLETE_INDEX", "2").run().stdout;
        let id = answer.lines().next().filter(|id| !id.starts_with('-'));
        id.unwrap_or_else(|| panic!("there is no loop that refrain {verb} ID could mean")).to_owned()
    }

    /// Runs one line to its end, and sees that it went well.
    fn run(&mut self, line: &str) {
        if let Some(folder) = line.strip_prefix("cd ") {
            self.folder.push(folder);
            return;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        // The loop verbs, spelled out.
        let verb = words.iter().skip(1).find(|word| **word != "loop").copied();
        let verb = if words[0] == "refrain" { verb.unwrap_or_default() } else { "" };
        let line = match words.contains(&"ID") {
            true => line.replacen(" ID", &format!(" {}", self.meant(verb)), 1),
            false => line.to_owned(),
        };
        let claim = self.sandbox.root().join("notes/claim");
        match matches!(verb, "start" | "resume") && !words.contains(&"--detach") {
            true => testkit::write(&claim, ""),
            false => drop(fs::remove_file(&claim)),
        }
        // Of a paused loop, `watch` shows the end and returns.
        let is_paused =
            |id: &&str| *id != "ID" && *id != "#" && self.sandbox.status(id)["status"] == "paused";
        let has_stopped = verb == "watch" && words.get(2).is_some_and(is_paused);
        if (verb == "watch" && !has_stopped) || words.contains(&"-f") {
            // It continues until the reader has seen enough.
            let session = self.shell(&format!("exec {line}")).spawn();
            session.wait_for_output("I look.");
            session.signal(Signal::INT);
            session.wait().with_code(130);
            return;
        }
        // A loop that waits for a person ends as blocked.
        let code = if words.contains(&"--require-approval") { 14 } else { 0 };
        self.shell(&line).run().with_code(code);
        if verb == "pause" {
            let id = self.meant("status");
            self.gate.let_one_pass();
            self.sandbox.wait_for_status(&id, "paused");
        }
    }
}

/// What `opencode run --format json` prints in a turn, as a format of `printf`.
const OPENCODE: &str = r#"{"type":"text","sessionID":"s","part":{"text":"<promise>COMPLETE</promise>"}}\n{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":5,"output":5}}}"#;

/// A program that speaks the Agent Client Protocol as far as one turn needs.
const ACP: &str = r#"ask() { read -r line; id=$(printf '%s' "$line" | sed 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/'); }
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
ask; result '{"protocolVersion":1}'
ask; result '{"sessionId":"s"}'
ask
printf '%s\n' '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"<promise>COMPLETE</promise>"}}}}'
result '{"stopReason":"end_turn"}'
cat > /dev/null"#;

fn run_document(path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let commands = commands(&text);
    if commands.is_empty() {
        return;
    }
    println!("{}", path.display());
    let needs_forge =
        ["publishing.md", "pull-requests.md", "coming-from.md"].iter().any(|it| path.ends_with(it));
    let mut place = if needs_forge { DocsProject::with_a_forge() } else { DocsProject::new() };
    for line in commands {
        println!("  {line}");
        place.run(&line);
    }
}

fn docs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("docs")
}

#[test]
fn the_readme_names_the_version() {
    let short = env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0;
    let readme = fs::read_to_string(docs().with_file_name("README.md")).unwrap();
    assert!(readme.contains(&format!("Version {short}. ")), "README.md does not say {short}");
}

#[test]
fn the_readmes_commands_run() {
    run_document(&docs().with_file_name("README.md"));
}

#[rstest]
#[case::tutorial("tutorial")]
#[case::how_to("how-to")]
#[case::reference("reference")]
#[case::explanation("explanation")]
fn the_commands_of_the_book_run(#[case] part: &str) {
    let documents = fs::read_dir(docs().join(part)).unwrap().flatten().map(|entry| entry.path());
    let mut documents: Vec<_> =
        documents.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    documents.sort();
    assert!(!documents.is_empty(), "{part}");
    documents.iter().for_each(|path| run_document(path));
}

#[test]
fn every_command_of_the_docs_is_run_unless_marked() {
    let text = "```sh\ncat > f <<'END'\n# in it\n\nEND\nrefrain list\n\n# a remark\nrefrain status ID  # how\n```\n<!-- not run: it builds -->\n```sh\ncargo build\n```\n```text\nno\n```\n```sh\nlast\n```\n";
    assert_eq!(
        commands(text),
        ["cat > f <<'END'\n# in it\n\nEND", "refrain list", "refrain status ID  # how", "last"]
    );
}

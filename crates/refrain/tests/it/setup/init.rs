//! `refrain init`: the files it writes work, and existing files stay unchanged to the byte.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rstest::rstest;
use serde_json::{Value, json};
use testkit::Sandbox;

use crate::adapters::agents::claude;
use crate::surfaces::terminal::Terminal;
use crate::{CLAIM, plain_folder, sandbox};

const ALL: [&str; 3] = ["init", "--make", "--vscode"];

fn read(sandbox: &Sandbox, name: &str) -> String {
    fs::read_to_string(sandbox.project().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn put(sandbox: &Sandbox, name: &str, text: &str) {
    let path = sandbox.project().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    testkit::write(&path, text);
}

/// A `PATH` on which the program is found by its name.
fn path(sandbox: &Sandbox) -> String {
    let bin = sandbox.root().join("bin");
    if !bin.exists() {
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_refrain"), bin.join("refrain")).unwrap();
    }
    let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    format!("{}:{usual}", bin.display())
}

#[test]
fn a_project_is_made_ready_once() {
    let sandbox = sandbox();
    let before = sandbox.snapshot();
    let rehearsed = sandbox.refrain(&[&ALL[..], &["--dry-run"]].concat()).with_code(0).stdout;
    assert_eq!(sandbox.snapshot(), before, "a rehearsal writes nothing");
    let names = ["refrain.toml", "AGENTS.md", "Makefile", ".vscode/tasks.json"];
    for name in names {
        assert!(rehearsed.lines().any(|line| line == format!("{name}: would be written")), "{rehearsed}");
    }
    let said = sandbox.refrain(&ALL).with_code(0).stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[..4], names.map(|name| format!("{name}: written")), "{said}");
    assert!(lines[4].ends_with(&format!("until then: git add {} && git commit", names.join(" "))), "{said}");
    let hash = lines[5].split_once("next: refrain trust --show, then refrain trust --hash ").unwrap().1;
    let hash = hash.split(';').next().unwrap().to_owned();
    // The dry run showed exactly what was written.
    let shown: String = rehearsed
        .lines()
        .filter_map(|line| line.strip_prefix("  +"))
        .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect();
    assert_eq!(shown, names.map(|name| read(&sandbox, name)).concat());
    let mode = fs::metadata(sandbox.project().join("refrain.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o644, 0o644, "it is a file of the project, which others read");

    let with = sandbox.snapshot();
    let again = sandbox.refrain(&ALL).with_code(0).stdout;
    let (kept, next) = again.split_once("next: ").expect("refrain.toml is not trusted yet");
    assert_eq!(kept, names.map(|name| format!("{name}: left as it is\n")).concat());
    assert!(next.contains(&format!("refrain trust --hash {hash}")), "{next}");
    assert_eq!(sandbox.snapshot(), with, "twice is once");
    sandbox.refrain(&["trust", "--hash", &hash]).with_code(0);
}

#[test]
fn the_start_that_is_proposed_works_without_a_test() {
    let sandbox = sandbox();
    let said = sandbox.refrain(&["init", "--yes", "--agent", "claude"]).with_code(0).stdout;
    let goal = said.split_once("next: refrain start \"").unwrap().1.trim_end_matches(['"', '\n']);
    assert!(read(&sandbox, "refrain.toml").contains("\n# No test was found"), "{said}");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-qm", "Refrain"]);
    let claude = claude(&sandbox, "says '<promise>COMPLETE</promise>'");
    sandbox.refrain(&["start", "--command", &claude, goal]).with_code(0);
}

#[test]
fn the_configuration_has_the_values_that_were_chosen() {
    let sandbox = sandbox();
    put(&sandbox, "Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\n");
    put(&sandbox, "Cargo.lock", "");
    put(&sandbox, "src/lib.rs", "");
    let run = sandbox.refrain(&["init", "--agent", "codex", "--git", "commit"]).with_code(0).stdout;
    assert!(run.contains("next: refrain trust"), "{run}");
    let again = sandbox.refrain(&["init"]).with_code(0).stdout;
    assert!(again.contains("next: refrain trust"), "it is still not trusted: {again}");
    let text = read(&sandbox, "refrain.toml");
    assert!(text.contains("\nauto-gates = true   # cargo test"), "{text}");
    let values = || sandbox.refrain(&["config", "show", "--json"]).with_code(0).json();
    let value = |key: &str| {
        let shown = values();
        let found = shown["values"].as_array().unwrap().iter().find(|it| it["key"] == key);
        found.unwrap_or_else(|| panic!("{key} is not in {shown:#?}"))["value"].clone()
    };
    assert_eq!(values()["project_file"]["trusted"], false, "no person has seen it");
    sandbox.trust();
    assert_eq!((value("start.agent"), value("start.auto-gates")), (json!("codex"), json!(true)));
    assert_eq!((value("git.workflow"), value("git.worktree")), (json!("commit"), json!(false)));

    fs::remove_file(sandbox.project().join("refrain.toml")).unwrap();
    sandbox
        .refrain(&["init", "--agent", "gemini", "--git", "none", "--no-gates", "--no-sandbox", "--yes"])
        .with_code(0);
    assert!(!read(&sandbox, "refrain.toml").contains("sandbox"));
    assert_eq!(values()["project_file"]["trusted"], true);
    assert_eq!((value("start.agent"), value("start.auto-gates")), (json!("gemini"), json!(false)));
    assert_eq!(value("git.workflow"), json!("none"));
    for (flag, given) in [("--agent", "ghost"), ("--git", "push")] {
        let refused = sandbox.refrain(&["init", flag, given]).with_code(2).stderr;
        assert!(refused.contains(given), "{refused}");
    }
}

#[test]
fn in_a_folder_without_git_it_says_what_loops_cannot_do() {
    let sandbox = plain_folder();
    let said = sandbox.refrain(&["init", "--yes"]).with_code(0).stdout;
    assert!(
        said.contains("no git repository: loops commit nothing here. To change that: git init"),
        "{said}"
    );
    assert!(read(&sandbox, "refrain.toml").contains("workflow = \"none\"\nworktree = false\n"));
    sandbox.refrain(&["start", "--command", "true", "-m", "1", "p"]).with_code(10);

    fs::remove_file(sandbox.project().join("refrain.toml")).unwrap();
    let said = sandbox.refrain(&["init", "--yes", "--git", "worktree"]).with_code(0).stdout;
    assert!(said.contains("run git init, as no loop can start before that"), "{said}");
    let refused = sandbox.refrain(&["start", "--command", "true", "p"]).with_code(2).stderr;
    assert!(refused.contains("run `git init` there first"), "{refused}");
}

#[test]
fn a_terminal_asks_and_trusts_the_answers() {
    let sandbox = sandbox();
    put(&sandbox, "test.sh", "echo '1 passed'\n");
    let mut terminal = Terminal::open(&sandbox, &["init"], &[]);
    terminal.wait_for("Agent: claude, codex, opencode, gemini or none?");
    terminal.type_keys("ghost\n");
    terminal.wait_for("accepted: claude, codex, opencode, gemini");
    terminal.type_keys("opencode\n");
    terminal.wait_for("sh test.sh   (required)");
    terminal.wait_for("Use these gates? yes or no [yes]");
    terminal.type_keys("\n");
    terminal.wait_for("Where do loops commit?");
    terminal.type_keys("\n");
    terminal.wait_for("Run agents and gates in a sandbox");
    terminal.type_keys("\n");
    let (code, text) = terminal.wait();
    assert!(code == 0 && text.contains("next: refrain start"), "{text}");
    let written = read(&sandbox, "refrain.toml");
    for part in [
        "agent = \"opencode\"\n",
        "auto-gates = true   # sh test.sh\n",
        "worktree = true\n",
        "[sandbox]\nmode = \"auto\"\n",
    ] {
        assert!(written.contains(part), "{part}: {written}");
    }
    let shown = sandbox.refrain(&["config", "show", "--json"]).with_code(0).json();
    assert_eq!(shown["project_file"]["trusted"], true);
    let listed = sandbox.refrain(&["trust", "--list"]).with_code(0).stdout;
    assert!(listed.contains("refrain.toml") && listed.contains("sh test.sh"), "{listed}");
}

#[test]
fn make_runs_loops() {
    let sandbox = sandbox();
    let path = path(&sandbox);
    let agent = sandbox.agent("agent", CLAIM);
    let make = |words: &[&str]| {
        let run = sandbox.tool("make", words).env("PATH", &path);
        run.env("REFRAIN_COMMAND", &agent).run()
    };
    put(&sandbox, "Makefile", "all:\n\t@echo mine");
    sandbox.refrain(&["init", "--make"]).with_code(0);
    assert_eq!(read(&sandbox, "Makefile"), "all:\n\t@echo mine\n\ninclude refrain.mk\n");
    assert_eq!(make(&[]).with_code(0).stdout, "mine\n", "the first target is the usual one still");
    let rehearsed = make(&["-n", "loop-implement", "ITERATIONS=20"]).with_code(0).stdout;
    assert_eq!(rehearsed.trim_end(), "refrain implement --iterations 20");
    make(&["loop-research", "REFRAIN_OPTIONS=--name one"]).with_code(0);
    make(&["loop-implement", "ITERATIONS=2", "REFRAIN_OPTIONS=--name two"]).with_code(0);
    let charged = |id: &str| sandbox.status(id)["charged"].clone();
    assert_eq!((charged("one"), charged("two")), (json!(1), json!(1)), "a maximum: the claim ends it");
}

#[rstest]
#[case::included("include refrain.mk\n", &["refrain.mk: written", "Makefile: left as it is"])]
#[case::with_all_others("-include make/*.mk\n", &["refrain.mk: written", "Makefile: left as it is"])]
#[case::targets_of_that_name("loop-implement:\n\ttrue\n", &["Makefile: left as it is"])]
#[case::empty("", &["refrain.mk: written", "Makefile: added to, after what it holds"])]
#[case::a_line_that_goes_on("A = b \\\n", &["refrain.mk: written", "Makefile: left as it is, as its last line continues; to be added by hand:", "  + include refrain.mk"])]
fn a_makefile_stays_as_it_is(#[case] text: &str, #[case] said: &[&str]) {
    let sandbox = sandbox();
    put(&sandbox, "Makefile", text);
    let run = sandbox.refrain(&["init", "--make"]).with_code(0).stdout;
    let lines: Vec<&str> = run
        .lines()
        .skip(2)
        .filter(|line| !line.starts_with("next: ") && !line.starts_with("note: "))
        .collect();
    assert_eq!(lines, said);
    assert!(read(&sandbox, "Makefile").starts_with(text));
}

#[test]
fn the_section_goes_into_the_file_that_agents_read_here() {
    for (there, chosen) in [
        ([Some("# Mine"), None], "AGENTS.md"),
        ([None, Some("# Mine\r\n")], "CLAUDE.md"),
        ([Some(""), Some("@AGENTS.md\n")], "AGENTS.md"),
        ([Some("# Mine\n"), Some("<!-- refrain:begin -->\nold\n")], "CLAUDE.md"),
    ] {
        let sandbox = sandbox();
        let names = ["AGENTS.md", "CLAUDE.md"];
        let put =
            |(name, text): (&&str, &Option<&str>)| text.iter().for_each(|text| put(&sandbox, name, text));
        names.iter().zip(&there).for_each(put);
        let said = sandbox.refrain(&["init"]).with_code(0).stdout;
        assert!(said.contains(&format!("\n{chosen}: ")), "{said}");
        for (name, text) in names.iter().zip(&there) {
            let is_old = text.is_some_and(|text| text.contains("refrain:begin"));
            match (text, *name == chosen && !is_old) {
                (Some(text), true) => {
                    let now = read(&sandbox, name);
                    assert!(now.starts_with(text) && now.ends_with("<!-- refrain:end -->\n"), "{now}");
                    assert!(now.contains("REFRAIN_STATE_FILE"), "{now}");
                }
                (Some(text), false) => assert_eq!(&read(&sandbox, name), text),
                (None, _) => assert!(!sandbox.project().join(name).exists()),
            }
        }
        let with = sandbox.snapshot();
        sandbox.refrain(&["init"]).with_code(0);
        assert_eq!(sandbox.snapshot(), with, "twice is once");
    }
}

#[test]
fn written_files_are_named_when_the_next_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = sandbox();
    put(&sandbox, "AGENTS.md", "Ours.\n");
    let file = sandbox.project().join("AGENTS.md");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().append(true).open(&file).is_ok() {
        // Nothing is read-only to root.
        return;
    }
    let said = sandbox.refrain(&["init"]).with_code(1).stderr;
    assert!(said.contains("AGENTS.md could not be written; written before it: refrain.toml"), "{said}");
}

#[test]
fn a_folder_in_place_of_the_configuration_is_refused() {
    let sandbox = sandbox();
    put(&sandbox, "refrain.toml/notes.txt", "mine\n");
    let before = sandbox.snapshot();
    let refused = sandbox.refrain(&["init", "--yes"]).with_code(2);
    for part in ["refrain.toml is a folder; accepted: a file, or nothing there", "move that folder away"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert_eq!(sandbox.snapshot(), before);
}

#[test]
fn files_that_cannot_be_extended_are_kept_and_named() {
    let sandbox = sandbox();
    let outside = sandbox.root().join("outside.md");
    testkit::write(&outside, "theirs\n");
    symlink(&outside, sandbox.project().join("AGENTS.md")).unwrap();
    symlink(sandbox.root().join("nowhere"), sandbox.project().join("refrain.toml")).unwrap();
    testkit::write(&sandbox.project().join("Makefile"), b"all:\n\techo \xff\n");
    put(&sandbox, ".vscode/tasks.json", "{ // mine\n}\n");
    let before = sandbox.snapshot();
    let said = sandbox.refrain(&ALL).with_code(0).stdout;
    for line in [
        "refrain.toml: left as it is",
        "AGENTS.md: left as it is, as it is a symbolic link; to be added by hand:",
        "refrain.mk: written",
        "Makefile: left as it is, as it is no UTF-8 text; to be added by hand:",
        "  + include refrain.mk",
        ".vscode/tasks.json: left as it is, as it has tasks of its own; to be added by hand:",
    ] {
        assert!(said.lines().any(|found| found == line), "{line} is not in\n{said}");
    }
    fs::remove_file(sandbox.project().join("refrain.mk")).unwrap();
    assert_eq!(sandbox.snapshot(), before);
    assert_eq!(fs::read_to_string(outside).unwrap(), "theirs\n");
    assert!(!sandbox.root().join("nowhere").exists());
}

#[test]
fn tasks_of_the_editor_are_json_and_name_verbs_that_there_are() {
    let sandbox = plain_folder();
    sandbox.refrain(&ALL).with_code(0);
    let tasks: Value = serde_json::from_str(&read(&sandbox, ".vscode/tasks.json")).unwrap();
    for task in tasks["tasks"].as_array().unwrap() {
        let verb = task["args"][0].as_str().unwrap();
        sandbox.refrain(&[verb, "--help"]).with_code(0);
    }
    assert!(Path::new(&sandbox.project().join("AGENTS.md")).is_file(), "without a repository too");
}

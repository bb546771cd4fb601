//! The tables of docs/how-to/coming-from.md: each command of a session, begun as Claude Code would begin it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use testkit::{Forge, Sandbox};

use crate::sandbox;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The commands of Refrain's in the tables, each with what is typed after it.
fn commands(text: &str) -> Vec<(String, String)> {
    let cells =
        text.lines().filter(|line| line.starts_with("| `/")).filter_map(|line| line.split(" | ").nth(1));
    let typed = cells.map(|cell| cell.trim_end_matches('|').trim().trim_matches('`').to_owned());
    let words = typed.map(|typed| {
        let (command, rest) = typed.split_once(' ').unwrap_or((&typed, ""));
        (command.strip_prefix("/refrain:").unwrap().to_owned(), rest.to_owned())
    });
    words.collect()
}

/// What the plugin's command runs before the model is asked, with what was typed put in.
fn script(command: &str, typed: &str) -> Option<String> {
    let path = root().join("plugins/claude/commands").join(format!("{command}.md"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("/refrain:{command}: {error}"));
    let (_, block) = text.split_once("```!\n")?;
    Some(block.split_once("\n```").unwrap().0.replace("$ARGUMENTS", typed))
}

#[test]
fn every_command_of_a_session_begins() {
    let sandbox = sandbox();
    let bin = sandbox.root().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_refrain"), bin.join("refrain")).unwrap();
    let forge = Forge::github(sandbox.root());
    sandbox.git(&["remote", "add", "origin", &forge.url()]);
    let in_forge = |tool| {
        forge.env().into_iter().fold(tool, |tool: testkit::Invocation, (name, value)| tool.env(name, &value))
    };
    in_forge(sandbox.tool("git", &["push", "--quiet", "origin", "main"])).run().with_code(0);
    let usual = forge.env().into_iter().find(|(name, _)| *name == "PATH").unwrap().1;
    let path = format!("{}:{usual}", bin.display());
    let text = fs::read_to_string(root().join("docs/how-to/coming-from.md")).unwrap();
    let commands = commands(&text);
    let names: BTreeSet<_> = commands.iter().map(|(command, _)| command.as_str()).collect();
    assert!(names.len() > 7 && commands.len() > 15, "{commands:?}");
    for (command, typed) in &commands {
        let Some(script) = script(command, typed) else { continue };
        let shell = in_forge(sandbox.tool("bash", &["-c", &script]));
        let shell = shell.env("PATH", &path).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "s");
        let begun = shell.run().with_code(0).stdout;
        free(&sandbox, &begun, typed);
    }
}

/// Ends a loop whose name no later line needs, so that the next has the worktree, and its branch.
fn free(sandbox: &Sandbox, begun: &str, typed: &str) {
    if !typed.contains("--name") && !typed.contains("--resume") && begun.lines().count() == 2 {
        sandbox.refrain(&["cancel", begun.lines().next().unwrap()]).with_code(0);
        sandbox.git(&["switch", "--quiet", "main"]);
    }
}

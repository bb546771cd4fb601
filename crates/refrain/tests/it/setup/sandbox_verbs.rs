//! `--sandbox` and what runs beside a loop or after it: verbs that merge, ask and move, and what the user does meanwhile.

use std::fs;

use rstest::rstest;
use testkit::{Sandbox, Signal, signal_process};

use super::sandbox::{sandbox, start, write};
use super::sandbox_git::{ATTACK, commit_all, nothing_escaped};
use crate::CLAIM;

fn runs(sandbox: &Sandbox) -> usize {
    sandbox.note("said").lines().filter(|line| line.starts_with("ran ")).count()
}

#[test]
fn gates_of_a_merge_run_in_the_sandbox() {
    let Some(sandbox) = sandbox() else { return };
    let script = format!("cat > check.sh <<'END'\n{ATTACK}\nEND\n{CLAIM}");
    let more = ["--worktree", "--git-workflow", "commit", "--gate", "tests=sh ./check.sh"];
    start(&sandbox, &script, &more).with_code(0);
    let before = runs(&sandbox);
    assert!(before > 0, "{}", sandbox.note("said"));
    // The branches have to be joined, so that the gates run on the result.
    write(&sandbox.project().join("mine"), "mine\n");
    commit_all(&sandbox);
    sandbox.refrain(&["merge", "job"]).with_code(0);
    assert!(runs(&sandbox) > before, "{}", sandbox.note("said"));
    assert!(sandbox.project().join("check.sh").exists());
    nothing_escaped(&sandbox);
}

/// It is in the work, and a merge would run what the agent wrote.
#[test]
fn no_script_of_the_work_is_a_filter_of_a_merge() {
    let Some(sandbox) = sandbox() else { return };
    write(&sandbox.project().join("up.sh"), "cat\n");
    commit_all(&sandbox);
    sandbox.git(&["config", "filter.up.smudge", "sh \"$(git rev-parse --show-toplevel)/up.sh\""]);
    let script = format!(
        "printf '%s; cat\\n' '{ATTACK}' > up.sh\necho '*.up filter=up' > .gitattributes\necho new > new.up\n{CLAIM}"
    );
    start(&sandbox, &script, &["--worktree", "--git-workflow", "commit", "--gate", "true"]).with_code(0);
    let refused = sandbox.refrain(&["merge", "job"]).with_code(1);
    assert!(refused.stderr.contains("new.up: smudge filter up failed"), "{}", refused.stderr);
    assert_eq!((runs(&sandbox), sandbox.git(&["status", "--short"]).as_str()), (0, ""));
    nothing_escaped(&sandbox);
}

/// What a gate or an agent wrote into a cache has no effect on a later verification, nor on a reviewer.
#[test]
fn no_verification_finds_what_an_earlier_one_left_in_a_cache() {
    let Some(sandbox) = sandbox() else { return };
    fs::create_dir_all(sandbox.root().join("home/.npm")).unwrap();
    write(
        &sandbox.project().join("gate.sh"),
        "test -e ~/.npm/base || echo base > ~/.npm/base\necho \"$(ls ~/.npm)\" | tr '\\n' ' ' >> $NOTES/said\necho >> $NOTES/said\nsh ./code.sh\n",
    );
    write(&sandbox.project().join("code.sh"), "true\n");
    commit_all(&sandbox);
    let script = format!(
        "touch ~/.npm/agent\necho 'touch ~/.npm/planted; false' > code.sh\n[ $REFRAIN_ITERATION = 1 ] || echo true > code.sh\n{CLAIM}"
    );
    let reviewer = sandbox.agent(
        "reviewer",
        "echo \"reviewer $(ls ~/.npm)\" >> $NOTES/said; touch ~/.npm/reviewer; echo SPEC_PASS",
    );
    let spec = sandbox.root().join("notes/spec.md");
    write(&spec, "Is it right?\n");
    let spec = spec.to_str().unwrap();
    let agent = sandbox.agent("agent", &script);
    let start = [
        "start",
        "--command",
        &agent,
        "--name",
        "job",
        "-p",
        "Mend it.",
        "--max-iterations",
        "2",
        "--sandbox",
    ];
    let gates = ["--worktree", "--clean-checkout", "--gate-when", "claim", "--gate", "sh ./gate.sh"];
    let review = ["--spec-gate", spec, "--reviewer", &reviewer];
    sandbox.refrain(&[&start[..], &gates, &review].concat()).with_code(0);
    let said: Vec<_> = sandbox.note("said").lines().map(|line| line.trim_end().to_owned()).collect();
    assert_eq!(
        said,
        ["base", "base", "base", "reviewer"],
        "before the first iteration, after the first, and after the second"
    );
    nothing_escaped(&sandbox);
}

/// Git makes a checkout for that agent, with the filters of the user.
#[test]
fn the_agent_that_tunes_a_task_runs_in_the_sandbox() {
    let Some(sandbox) = sandbox() else { return };
    let tasks =
        r#"{"tag": "x", "tasks": [{"id": 1, "title": "One", "status": "pending", "depends_on": []}]}"#;
    write(&sandbox.project().join(".scud/tasks/x.json"), tasks);
    write(&sandbox.project().join(".gitattributes"), "*.up filter=up\n");
    write(&sandbox.project().join("work.up"), "work\n");
    commit_all(&sandbox);
    let filter = sandbox.root().join("notes/filter.sh");
    write(&filter, ATTACK);
    sandbox.git(&["config", "filter.up.smudge", &format!("sh {} > /dev/null; cat", filter.display())]);
    let agent = sandbox.agent("worker", "true");
    let words = ["plan", "run", "--tag", "x", "--command", &agent, "--name", "x", "--sandbox", "--tune"];
    sandbox.refrain(&[&words[..], &["--quiet"]].concat()).with_code(14);
    let filtered = || sandbox.note("said").matches(&format!("ran {}", filter.display())).count();
    let before = filtered();
    let look = "ls $HOME/state/refrain | grep -v '^worktrees$\\|^checkouts$' >> $NOTES/said";
    let tuner = format!("{ATTACK}\n{look}\nprintf 'REFINEMENT:\\nUse pine.\\n'");
    let tuner = sandbox.agent("tuner", &tuner);
    let run = sandbox.refrain(&["plan", "tune", "1", "--reviewer", &tuner]).with_code(0);
    assert!(run.stderr.contains("Use pine."), "{}", run.stderr);
    let said = sandbox.note("said");
    assert!(filtered() > before && said.contains(&format!("ran {tuner}")), "{said}");
    assert!(said.lines().all(|line| line.starts_with("ran ")), "nothing else is seen: {said}");
    nothing_escaped(&sandbox);
}

/// What the user of the other machine has configured counts there, and filters of that machine run in the sandbox.
#[test]
fn a_moved_loop_gets_the_sandbox_that_both_users_allow() {
    let (Some(one), Some(two)) = (sandbox(), sandbox()) else { return };
    let shared = one.root().join("notes");
    let configure = |sandbox: &Sandbox, more: &str| {
        let text = format!("[sandbox]\nwrite = [{shared:?}, {more:?}]\nhide = [\"~/private\"]\n");
        write(&sandbox.root().join("home/config/refrain/config.toml"), text);
    };
    configure(&one, "~/of-one");
    configure(&two, "~/of-two");
    write(&two.root().join("home/private/taxes"), "mine");
    write(&one.project().join(".gitattributes"), "*.up filter=up\n");
    write(&one.project().join("work.up"), "work\n");
    commit_all(&one);
    let attack = ATTACK.replace("$NOTES", shared.to_str().unwrap());
    let agent = format!(
        "cat > check.sh <<'END'\n{attack}\nEND\nls $HOME/private/taxes 2> /dev/null && echo seen\necho $REFRAIN_ITERATION >> file"
    );
    write(&one.project().join("agent.sh"), format!("#!/bin/sh\n{agent}\n"));
    one.tool("chmod", &["755", "agent.sh"]).run().with_code(0);
    commit_all(&one);
    let words =
        ["start", "--sandbox", "--sandbox-localhost", "5432", "--command", "./agent.sh", "--name", "job"];
    let more = ["-p", "x", "--max-iterations", "1", "--worktree", "--git-workflow", "commit"];
    one.refrain(&[&words[..], &more].concat()).with_code(10);

    let remote = one.root().join("state.git");
    let remote = remote.to_str().unwrap();
    one.git(&["init", "--quiet", "--bare", remote]);
    one.refrain(&["move", "job", "--to", remote]).with_code(0);
    two.git(&["fetch", "--quiet", one.project().to_str().unwrap(), "main"]);
    two.git(&["reset", "--quiet", "--hard", "FETCH_HEAD"]);
    two.git(&["config", "filter.up.smudge", "sh ./check.sh > /dev/null; cat"]);
    let keys = one.journal("job").into_iter().rev();
    let key =
        keys.filter_map(|record| record["signature"]["key"].as_str().map(str::to_owned)).next().unwrap();
    two.refrain(&["move", "job", "--from", remote, "--signer", &key]).with_code(0);
    assert!(runs(&one) > 0, "{}", one.note("said"));
    let moved = two.journal("job").into_iter().rev().find(|record| record["event"]["type"] == "loop.moved");
    let sandbox = &moved.unwrap()["event"]["data"]["sandbox"];
    assert_eq!(sandbox["write"], serde_json::json!([shared]));
    assert_eq!(sandbox["localhost"], serde_json::Value::Null);
    let hidden = sandbox["hide"].to_string();
    assert!(
        hidden.contains(two.root().join("home/private").to_str().unwrap())
            && hidden.contains(one.root().join("home/private").to_str().unwrap()),
        "{hidden}"
    );
    let run = two.refrain(&["resume", "job", "--max-iterations", "2"]).with_code(10);
    assert!(!run.stdout.contains("seen"), "{}", run.stdout);
    nothing_escaped(&two);
}

/// Where git takes the files of a worktree from is what its `.git` file says. What a killed sandbox left of it runs nothing.
#[test]
fn no_verb_runs_programs_of_a_worktree_that_leads_elsewhere() {
    let Some(sandbox) = sandbox() else { return };
    let script = format!("echo new > new\ngit add -A\ngit commit -qm New\n{CLAIM}");
    start(&sandbox, &script, &["--worktree", "--git-workflow", "commit"]).with_code(0);
    let worktree = sandbox.status("job")["worktree"].as_str().unwrap().to_owned();
    let evil = sandbox.root().join("notes/evil");
    let attack = format!("sh -c 'echo ran >> {}'", sandbox.root().join("notes/said").display());
    sandbox.git(&["clone", "--quiet", "--bare", ".", evil.to_str().unwrap()]);
    let settings = [("core.fsmonitor", &*attack), ("core.bare", "false")];
    let root = sandbox.root().join("project");
    for (name, value) in settings.into_iter().chain([("core.worktree", root.to_str().unwrap())]) {
        sandbox.git(&["--git-dir", evil.to_str().unwrap(), "config", name, value]);
    }
    let _ = fs::create_dir_all(&worktree);
    write(std::path::Path::new(&worktree).join(".git").as_path(), format!("gitdir: {}\n", evil.display()));
    for words in [
        &["status", "job"][..],
        &["show", "job"],
        &["diff", "job"],
        &["report", "job"],
        &["doctor"],
        &["gc"],
        &["merge", "job"],
        &["resume", "job", "--max-iterations", "2"],
        &["discard", "job"],
        &["gc", "--yes"],
    ] {
        let run = sandbox.refrain(words);
        assert_eq!(sandbox.note("said"), "", "{words:?}: {}{}", run.stdout, run.stderr);
    }
    sandbox.no_process_is_left();
}

/// Each process that could put the places back is killed too.
#[rstest]
#[case::when_the_loop_continues(&["resume", "job"])]
#[case::by_gc(&["gc"])]
fn what_a_killed_sandbox_left_is_removed(#[case] verb: &[&str]) {
    let Some(sandbox) = sandbox() else { return };
    let git = sandbox.project().join(".git");
    // In a folder that is missing nothing can be protected beforehand.
    fs::remove_dir(git.join("objects/info")).unwrap();
    let script = format!(
        "test -e $NOTES/second && {{ {CLAIM}; exit; }}\n\
         mkdir .git/objects/info\necho /nowhere > .git/objects/info/alternates\n\
         ln -s $HOME .git/logs/link\necho ready >> $NOTES/ready\nsleep 600"
    );
    let agent = sandbox.agent("agent", &script);
    let session = sandbox.spawn(&["start", "--sandbox", "--command", &agent, "--name", "job", "-p", "x"]);
    sandbox.wait_for_note("ready");
    let mut all: Vec<i32> = sandbox.survivors().into_iter().map(|process| process.pid).collect();
    all.push(session.pid());
    all.sort_unstable();
    all.into_iter().for_each(|pid| signal_process(pid, Signal::KILL));
    session.wait();
    sandbox.no_process_is_left();
    assert!(git.join("objects/info/alternates").exists() && git.join("logs/link").is_symlink());
    write(&sandbox.root().join("notes/second"), "");
    sandbox.refrain(verb).with_code(0);
    for name in ["objects/info/alternates", "logs/link", "commondir", "config.worktree"] {
        assert!(git.join(name).symlink_metadata().is_err(), "{name}");
    }
    assert!(git.join("objects/info/alternates.refrain-refused-1").exists());
    nothing_escaped(&sandbox);
}

#[test]
fn a_loop_whose_worktree_is_gone_is_resumed_in_its_sandbox() {
    let Some(sandbox) = sandbox() else { return };
    let more = ["--worktree", "--git-workflow", "commit"];
    start(&sandbox, "echo x >> work\ntest -z \"$HTTPS_PROXY\" || echo x >> $NOTES/confined", &more)
        .with_code(10);
    let worktree = sandbox.status("job")["worktree"].as_str().unwrap().to_owned();
    fs::remove_dir_all(worktree).unwrap();
    let run = sandbox.refrain(&["resume", "job", "--max-iterations", "2"]).with_code(10);
    assert!(run.stderr.contains("is made anew from its branch"), "{}", run.stderr);
    assert_eq!(sandbox.note("confined").lines().count(), 2);
}

#[test]
fn a_worktree_that_the_user_adds_meanwhile_is_protected_and_stays() {
    let Some(sandbox) = sandbox() else { return };
    let script = format!(
        "echo ready >> $NOTES/ready\nuntil test -e $NOTES/added; do sleep 0.05; done\n\
         (echo /nowhere > .git/worktrees/beside/commondir) 2> /dev/null && echo open >> $NOTES/said\n{CLAIM}"
    );
    let agent = sandbox.agent("agent", &script);
    let session = sandbox.spawn(&["start", "--sandbox", "--command", &agent, "--name", "job", "-p", "x"]);
    sandbox.wait_for_note("ready");
    sandbox.git(&["worktree", "add", "--quiet", "../beside"]);
    write(&sandbox.root().join("notes/added"), "");
    session.wait().with_code(0);
    assert_eq!(sandbox.note("said"), "");
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 2);
    assert_eq!(sandbox.git(&["-C", "../beside", "status", "--short"]), "");
}

/// The user looks while the agent runs: git would run what the settings of the other folder name.
#[test]
fn the_users_git_runs_no_program_of_an_agent_that_runs() {
    let Some(sandbox) = sandbox() else { return };
    let attack = format!("sh -c 'echo ran >> {}'", sandbox.root().join("notes/said").display());
    let script = format!(
        "cp -r .git $NOTES/evil 2> /dev/null\nrm -f $NOTES/evil/commondir\ngit config -f $NOTES/evil/config core.fsmonitor \"{attack}\"\n\
         (echo $NOTES/evil > .git/commondir) 2> /dev/null\n(rm -f .git/commondir; ln -s $NOTES/evil/config .git/config.worktree) 2> /dev/null\n\
         echo ready >> $NOTES/ready\nuntil test -e $NOTES/seen; do sleep 0.05; done\n{CLAIM}"
    );
    sandbox.git(&["config", "extensions.worktreeConfig", "true"]);
    let agent = sandbox.agent("agent", &script);
    let before = fs::read_dir(sandbox.project().join(".git")).unwrap().count();
    let session = sandbox.spawn(&["start", "--sandbox", "--command", &agent, "--name", "job", "-p", "x"]);
    sandbox.wait_for_note("ready");
    assert_eq!(sandbox.git(&["status", "--short"]), "");
    sandbox.git(&["commit", "--quiet", "--allow-empty", "-m", "Mine"]);
    for words in [&["status", "job"][..], &["diff", "job"], &["gc"], &["doctor"]] {
        sandbox.refrain(words);
    }
    write(&sandbox.root().join("notes/seen"), "");
    session.wait().with_code(0);
    assert_eq!(sandbox.note("said"), "");
    for name in ["commondir", "config.worktree"] {
        assert!(!sandbox.project().join(".git").join(name).exists(), "{name}");
    }
    // Folders: hooks, info and worktrees may be new, and Refrain's own.
    let names = fs::read_dir(sandbox.project().join(".git")).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.len() <= before + 4 && names.iter().all(|name| !name.contains("refused")), "{names:?}");
}

#[test]
fn a_gate_that_fails_only_in_the_sandbox_names_what_was_refused() {
    let Some(sandbox) = sandbox() else { return };
    let ask = r#"exec 3<>/dev/tcp/127.0.0.1/3128; printf "CONNECT evil.example:443 HTTP/1.1\r\n\r\n" >&3; read line <&3; test -z "$line""#;
    let script = sandbox.project().join("ask.sh");
    write(&script, ask);
    commit_all(&sandbox);
    let gates = ["--gate", "path=touch $HOME/file", "--gate", "host=bash ask.sh"];
    let run = start(&sandbox, CLAIM, &gates).with_code(10);
    let file = sandbox.root().join("home/file");
    assert!(run.stdout.contains(&format!("'{}': Read-only file system", file.display())), "{}", run.stdout);
    assert!(run.stdout.contains("refrain sandbox allow job evil.example:443 allows it"), "{}", run.stdout);
}

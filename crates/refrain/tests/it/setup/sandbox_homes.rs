//! What an agent in a sandbox can change in its own home, which later sessions of the user share, and in folders that the
//! user opens.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::CLAIM;
use crate::adapters::agents::claude;
use crate::setup::sandbox::{sandbox, write};

#[test]
fn an_agent_writes_its_data_and_no_program_that_the_user_runs_later() {
    let Some(sandbox) = sandbox() else { return };
    let home = sandbox.root().join("home");
    let own = home.join(".claude");
    for (name, mode) in [
        ("scripts/deep/notify.sh", 0o644),
        ("ccline/ccline", 0o755),
        ("statusline.sh", 0o755),
        ("notes/text.md", 0o644),
        ("projects/-old/session.jsonl", 0o644),
        ("file-history/a/run.sh", 0o755),
    ] {
        write(&own.join(name), "mine\n");
        fs::set_permissions(own.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    write(&home.join("dotfiles/hook.sh"), "mine\n");
    symlink("../dotfiles", own.join("linked")).unwrap();
    symlink(home.join("dotfiles"), own.join("projects/mine")).unwrap();
    let script = r#"
    cd $HOME/.claude
    try() { if sh -c "$2" 2> /dev/null; then echo "$1 open"; else echo "$1 refused"; fi >> $NOTES/said; }
    try script 'echo evil > scripts/deep/notify.sh'
    try script-moved 'mv scripts elsewhere'
    try program 'echo evil > ccline/ccline'
    try status 'echo evil > statusline.sh'
    try linked 'rm linked'
    try config 'echo {} > .config.json'
    try notes 'echo more >> notes/text.md'
    try session 'echo more >> projects/-old/session.jsonl'
    try history 'echo more >> file-history/a/run.sh'
    try new 'mkdir -p todos/a && echo more > todos/a/1.json'
    try login 'echo new > login && mv login .credentials.json'
    try link 'ln -s $HOME/config projects/-new && ln -s $HOME/config todos/a/b && chmod 111 todos/a'
    says '<promise>COMPLETE</promise>'
    "#;
    let agent = claude(&sandbox, script);
    let words = ["start", "--sandbox", "--command", &agent, "--name", "job", "--max-iterations", "1", "p"];
    sandbox.refrain(&words).with_code(0);
    let expected = "script refused\nscript-moved refused\nprogram refused\nstatus refused\nlinked refused\n\
        config open\nnotes open\nsession open\nhistory open\nnew open\nlogin open\nlink open\n";
    assert_eq!(sandbox.note("said"), expected);
    for name in ["scripts/deep/notify.sh", "ccline/ccline", "statusline.sh", "linked/hook.sh"] {
        assert_eq!(fs::read_to_string(own.join(name)).unwrap(), "mine\n", "{name}");
    }
    assert_eq!(fs::read_to_string(own.join("todos/a/1.json")).unwrap(), "more\n");
    assert!(!own.join(".config.json").exists(), "it would count before the user's ~/.claude.json");
    for name in ["projects/-new", "todos/a/b"] {
        assert!(!own.join(name).is_symlink(), "{name} would lead a later session elsewhere");
    }
    assert!(own.join("projects/mine").is_symlink(), "the user's own link stays");
    sandbox.no_process_is_left();
}

#[test]
fn the_user_can_open_a_folder_of_programs() {
    let Some(sandbox) = sandbox() else { return };
    let own = sandbox.root().join("home/.claude");
    write(&own.join("server/run.js"), "mine\n");
    let open = own.join("server");
    crate::setup::sandbox::configure(&sandbox, "");
    let config = sandbox.root().join("home/config/refrain/config.toml");
    let text = fs::read_to_string(&config).unwrap().replace("write = [", &format!("write = [{open:?}, "));
    write(&config, text);
    let agent = claude(&sandbox, "echo data > $HOME/.claude/server/data\nsays '<promise>COMPLETE</promise>'");
    let words = ["start", "--sandbox", "--command", &agent, "--name", "job", "--max-iterations", "1", "p"];
    sandbox.refrain(&words).with_code(0);
    assert_eq!(fs::read_to_string(open.join("data")).unwrap(), "data\n");
}

/// A link in them would be followed, and the agent that writes there can make one at any time.
#[test]
fn a_path_of_write_leads_through_no_folder_that_an_agent_writes() {
    let Some(sandbox) = sandbox() else { return };
    let (home, project, mine) = (sandbox.root().join("home"), sandbox.project(), sandbox.root().join("mine"));
    let config = home.join("config/refrain/config.toml");
    let usual = fs::read_to_string(&config).unwrap();
    let start = |write: &Path| {
        testkit::write(&config, usual.replace("write = [", &format!("write = [{write:?}, ")));
        sandbox.refrain(&[
            "start",
            "--sandbox",
            "--command",
            "true",
            "--name",
            "two",
            "--worktree",
            "-p",
            "x",
        ])
    };
    for name in ["project/out", "project/inner", "plain"] {
        fs::create_dir_all(sandbox.root().join(name)).unwrap();
    }
    symlink("project/inner/../planted", &mine).unwrap();
    symlink("../plain", project.join("planted")).unwrap();
    for (path, why) in [
        (home.join("state/refrain/worktrees"), "Refrain's own data"),
        (project.join(".git/refrain/loops"), "Refrain's own data"),
        (project.join("planted"), "a link in the project"),
        (mine.clone(), "a link in the project"),
    ] {
        let refused = start(&path).with_code(2).stderr;
        assert!(refused.contains(&format!("{} leads through {why}", path.display())), "{refused}");
        assert!(!sandbox.loop_dir("two").exists());
    }
    let agent = sandbox.agent("one", "echo ready >> $NOTES/ready; sleep 600");
    testkit::write(&config, &usual);
    let one = sandbox.spawn(&["start", "--sandbox", "--command", &agent, "--name", "one", "-p", "x"]);
    sandbox.wait_for_note("ready");
    for path in [&project.join("out"), &mine, &project.join("planted/new")] {
        let refused = start(path).with_code(2).stderr;
        assert!(refused.contains("leads through the worktree of loop one"), "{refused}");
    }
    assert!(!sandbox.loop_dir("two").exists());
    one.kill();
    fs::remove_file(&mine).unwrap();
    symlink("plain", &mine).unwrap();
    let agent = sandbox.agent("two", &format!("echo x > {}/written; {CLAIM}", mine.display()));
    testkit::write(&config, usual.replace("write = [", &format!("write = [{mine:?}, ")));
    sandbox
        .refrain(&["start", "--sandbox", "--command", &agent, "--name", "two", "--worktree", "-p", "x"])
        .with_code(0);
    assert!(sandbox.root().join("plain/written").exists(), "a link of the user's is followed");
}

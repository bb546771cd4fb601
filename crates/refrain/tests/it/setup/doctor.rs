//! What hinders loops, and what dead runners leave: found, reported, and repaired if that is safe.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::{Invocation, Sandbox, Signal, signal_process, write};

use crate::{CLAIM, plain_folder, sandbox};

/// The doctor, in a `PATH` that leads to git and the shell's tools, and to no agent but those of the sandbox.
fn doctor(sandbox: &Sandbox, args: &[&str]) -> Invocation {
    let agents = sandbox.root().join("agents");
    let git = agents.join("git");
    if !git.exists() {
        let found = sandbox.tool("sh", &["-c", "command -v git"]).run().with_code(0).stdout;
        symlink(found.trim(), &git).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", agents.display());
    sandbox.command(&[&["doctor"], args].concat()).env("PATH", &path)
}

/// The lock of this machine's processes: a doctor finds what dead runners left in every test, and `--fix` ends it.
pub(crate) fn machine() -> File {
    let user = fs::metadata("/proc/self").unwrap().uid();
    File::create(std::env::temp_dir().join(format!("refrain-tests-of-doctor-{user}"))).unwrap()
}

#[track_caller]
fn findings(sandbox: &Sandbox, args: &[&str], code: i32) -> Vec<Value> {
    let machine = machine();
    machine.lock_shared().unwrap();
    diagnose(sandbox, args, code)
}

/// The same for a test that holds the lock.
#[track_caller]
fn diagnose(sandbox: &Sandbox, args: &[&str], code: i32) -> Vec<Value> {
    let run = doctor(sandbox, &[&["--json"], args].concat()).run().with_code(code).json();
    run["findings"].as_array().expect("there are findings").clone()
}

/// The findings of one subject that are not ok.
fn wrong<'a>(findings: &'a [Value], subject: &str) -> Vec<&'a Value> {
    findings.iter().filter(|finding| finding["subject"] == subject && finding["grade"] != "ok").collect()
}

/// A program of this name, outside of the project, that answers by these lines of shell.
fn program(sandbox: &Sandbox, name: &str, script: &str) {
    let _ = sandbox.agent(name, script);
}

#[test]
fn a_healthy_doctor_run_says_so_and_touches_nothing() {
    let sandbox = sandbox();
    program(&sandbox, "claude", "echo '{\"loggedIn\": true, \"authMethod\": \"api_key\"}'");
    let before = sandbox.snapshot();
    let run = doctor(&sandbox, &[]).run().with_code(0);
    assert!(sandbox.snapshot() == before, "something was touched");
    assert!(run.stdout.contains("ok       login          claude: logged in (api_key)\n"), "{}", run.stdout);
    assert!(run.stdout.contains("commits are made by Test <test@localhost>"), "{}", run.stdout);
    let object = doctor(&sandbox, &["--json"]).run().with_code(0).json();
    assert_eq!((&object["schema"], &object["problems"]), (&json!(1), &json!(0)));
    assert!(sandbox.snapshot() == before, "something was touched");
}

#[test]
fn every_agent_is_asked_in_its_own_way_with_the_environment_of_a_loop() {
    let sandbox = sandbox();
    program(
        &sandbox,
        "claude",
        "test \"$1\" = auth && env > $NOTES/env\necho '{\"loggedIn\": false, \"authMethod\": \"none\"}'; exit 1",
    );
    program(
        &sandbox,
        "codex",
        "case $1 in --version) echo codex-cli 0.169.0 ;; login) echo Not logged in >&2; exit 1 ;; sandbox) echo no namespaces >&2; exit 1 ;; esac",
    );
    program(
        &sandbox,
        "opencode",
        "case $2 in auth) printf '└  2 credentials\\n' ;; debug) echo '{\"permission\":{\"bash\":\"ask\"}}' ;; *) echo 9.9.9 ;; esac",
    );
    program(&sandbox, "gemini", "echo 0.61.0");
    let run = doctor(&sandbox, &["--json"])
        .env("CLAUDECODE", "1")
        .env("REFRAIN_ITERATION", "7")
        .env("PATH_OF_MINE", "kept")
        .run()
        .with_code(0)
        .json();
    let of = |subject: &str, about: &str| {
        let findings = run["findings"].as_array().unwrap().iter();
        let of: Vec<_> = findings.filter(|f| f["subject"] == subject && f["about"] == about).collect();
        let [finding] = of.as_slice() else { panic!("{subject} of {about}: {of:#?}") };
        (finding["grade"].as_str().unwrap().to_owned(), finding["found"].as_str().unwrap().to_owned())
    };
    assert_eq!(of("login", "claude"), ("warning".to_owned(), "not logged in".to_owned()));
    assert_eq!(of("agent", "codex").0, "ok", "the version that the program says was tested");
    assert_eq!(of("login", "codex").0, "warning");
    assert!(of("permissions", "codex").1.ends_with("no namespaces"));
    assert_eq!(
        of("login", "opencode"),
        ("ok".to_owned(), "2 credentials of its own, 0 in variables".to_owned())
    );
    assert!(of("permissions", "opencode").1.contains("asks before bash"));
    assert!(of("agent", "opencode").1.starts_with("9.9.9 was not tested"));
    assert_eq!(of("agent", "gemini").0, "ok");
    assert_eq!(of("login", "gemini").0, "warning");
    let env = sandbox.note("env");
    assert!(env.contains("PATH_OF_MINE=kept") && !env.contains("CLAUDECODE"), "{env}");
    assert!(!env.contains("REFRAIN_"), "{env}");
}

#[test]
fn a_login_that_is_missing_is_a_problem_where_no_agent_has_one() {
    let sandbox = sandbox();
    program(&sandbox, "gemini", "echo 0.61.0");
    let found = findings(&sandbox, &[], 1);
    assert_eq!(wrong(&found, "login")[0]["grade"], "problem");
    let found = doctor(&sandbox, &["--json"]).env("GEMINI_API_KEY", "dummy").run().with_code(0).json();
    assert!(wrong(found["findings"].as_array().unwrap(), "login").is_empty(), "{found:#}");
}

#[test]
fn the_lock_that_a_killed_gemini_leaves_is_removed() {
    let sandbox = sandbox();
    let lock = sandbox.root().join("home/.gemini/projects.json.lock");
    fs::create_dir_all(&lock).unwrap();
    let found = findings(&sandbox, &[], 0);
    assert!(wrong(&found, "agent").iter().any(|finding| finding["fix"] == "possible"), "{found:#?}");
    assert!(lock.exists());
    findings(&sandbox, &["--fix"], 0);
    assert!(!lock.exists());
}

#[test]
fn a_program_that_does_not_answer_does_not_block_the_doctor() {
    let sandbox = sandbox();
    program(&sandbox, "claude", "sleep 1000 & exec sleep 1000");
    let found = findings(&sandbox, &[], 0);
    assert!(
        wrong(&found, "login")[0]["found"].as_str().unwrap().contains("did not say in time"),
        "{found:#?}"
    );
    sandbox.no_process_is_left();
}

#[test]
fn no_program_of_the_project_is_asked() {
    let sandbox = sandbox();
    let machine = machine();
    machine.lock_shared().unwrap();
    for folder in ["", "tools/"] {
        for name in ["claude", "node"] {
            let path = sandbox.project().join(format!("{folder}{name}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            testkit::write(&path, "#!/bin/sh\necho ran >> $NOTES/ran\n");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    program(&sandbox, "codex", "node; echo 'Logged in using ChatGPT'");
    let _ = doctor(&sandbox, &[]).run();
    let path = format!(".:tools:{}:", sandbox.project().join("tools").display());
    let agents = sandbox.root().join("agents");
    let run =
        sandbox.command(&["doctor"]).env("PATH", &format!("{path}{}:/usr/bin:/bin", agents.display())).run();
    assert!(run.stdout.contains("codex: Logged in"), "{}", run.stdout);
    assert!(run.stdout.contains("not installed: claude"), "{}", run.stdout);
    assert_eq!(sandbox.note("ran"), "");
}

/// Starts a loop whose runner and keeper are killed in one instant, while its agent has a child; returns that agent's pid.
fn crash(sandbox: &Sandbox, id: &str) -> i32 {
    let agent = sandbox.agent("left", "echo $$ > $NOTES/left.$REFRAIN_LOOP_ID\nexec sleep 1000");
    crash_of(sandbox, &["start", "--command", &agent, "--name", id, "p"], id)
}

/// The same while a gate runs, which nothing names but its mark.
fn crash_in_a_gate(sandbox: &Sandbox) -> i32 {
    let agent = sandbox.agent("agent", CLAIM);
    let gate = "held=setsid -w sh -c 'echo $$ > $NOTES/left.job; exec sleep 1000'";
    crash_of(sandbox, &["start", "--command", &agent, "--name", "job", "--gate", gate, "p"], "job")
}

fn crash_of(sandbox: &Sandbox, words: &[&str], id: &str) -> i32 {
    let session = sandbox.spawn(words);
    let pid = sandbox.wait_for_note(&format!("left.{id}")).trim().parse().expect("a pid");
    // Both stopped, then killed: neither can end other processes. The keeper first: the kernel continues it when its runner
    // ends.
    let both = [sandbox.processes_named("refrain-keeper")[0], session.pid()];
    both.iter().for_each(|pid| signal_process(*pid, Signal::STOP));
    both.iter().for_each(|pid| signal_process(*pid, Signal::KILL));
    session.wait().with_code(128 + 9);
    pid
}

#[test]
fn processes_left_by_a_dead_runner_are_found_and_ended() {
    let machine = machine();
    machine.lock().unwrap();
    left_behind_is_found_and_ended(|sandbox| crash(sandbox, "job"));
    left_behind_is_found_and_ended(crash_in_a_gate);
}

fn left_behind_is_found_and_ended(crash: impl Fn(&Sandbox) -> i32) {
    let sandbox = sandbox();
    let pid = crash(&sandbox);
    let found = diagnose(&sandbox, &[], 0);
    let left = wrong(&found, "processes");
    assert_eq!((left.len(), &left[0]["about"], &left[0]["fix"]), (1, &json!("job"), &json!("possible")));
    assert!(left[0]["found"].as_str().unwrap().contains(&format!("{pid} ")), "{left:#?}");
    let crashed = wrong(&found, "loops");
    assert!(crashed[0]["advice"].as_str().unwrap().contains("refrain resume job"), "{crashed:#?}");
    assert!(sandbox.survivors().iter().any(|found| found.pid == pid), "looking ends no process");

    let found = diagnose(&sandbox, &["--fix"], 0);
    let done: Vec<_> = found.iter().filter(|finding| finding["fix"] == "done").collect();
    assert_eq!((done.len(), &done[0]["grade"]), (1, &json!("ok")));
    assert!(done[0]["found"].as_str().unwrap().ends_with(" ended"), "{done:#?}");
    sandbox.no_process_is_left();
    assert!(wrong(&diagnose(&sandbox, &[], 0), "processes").is_empty());
}

#[test]
fn processes_of_a_running_loop_are_not_touched() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", &format!("echo up > $NOTES/up\nread -r _ < \"$GATES/go\"\n{CLAIM}"));
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up");
    let found = findings(&sandbox, &["--fix"], 0);
    assert!(wrong(&found, "processes").is_empty(), "{found:#?}");
    gate.let_one_pass();
    session.wait().with_code(0);
}

#[test]
fn inside_an_attempt_it_looks_and_changes_nothing() {
    let sandbox = sandbox();
    let script = format!(
        "\"$REFRAIN\" doctor --fix > $NOTES/fix 2>&1; echo $? >> $NOTES/codes\n\
         \"$REFRAIN\" doctor --autostart on > $NOTES/on 2>&1; echo $? >> $NOTES/codes\n\
         \"$REFRAIN\" doctor > $NOTES/look 2>&1; echo $? >> $NOTES/codes\n{CLAIM}"
    );
    let agent = sandbox.agent("agent", &script);
    let program = format!("REFRAIN={}", env!("CARGO_BIN_EXE_refrain"));
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--env", &program, "p"]).with_code(0);
    assert!(sandbox.note("codes").starts_with("17\n17\n"), "{}", sandbox.note("codes"));
    assert!(sandbox.note("fix").contains("from inside an attempt of loop job"), "{}", sandbox.note("fix"));
    assert!(sandbox.note("look").contains("no orphan processes"), "{}", sandbox.note("look"));
}

#[test]
fn a_damaged_journal_and_an_unheard_request_are_named() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    for id in ["whole", "broken"] {
        sandbox.refrain(&["start", "--command", &agent, "--name", id, "p"]).with_code(0);
    }
    let journal = sandbox.loop_dir("broken").join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap().replacen("COMPLETE", "COMPLETF", 1);
    write(&journal, text);
    write(&sandbox.loop_dir("whole").join("doorbell.txt"), "nothing of ours");
    let found = findings(&sandbox, &[], 1);
    let broken = wrong(&found, "loops");
    assert_eq!(
        (broken.len(), &broken[0]["about"], &broken[0]["grade"]),
        (1, &json!("broken"), &json!("problem"))
    );
    assert!(broken[0]["found"].as_str().unwrap().contains("journal.jsonl"), "{broken:#?}");
}

#[test]
fn an_invalid_doorbell_and_an_unread_request_are_reported() {
    let machine = machine();
    machine.lock().unwrap();
    let sandbox = sandbox();
    crash(&sandbox, "job");
    let dir = sandbox.loop_dir("job");
    fs::remove_file(dir.join("doorbell")).unwrap();
    write(&dir.join("doorbell"), "no bell");
    fs::create_dir_all(dir.join("inbox")).unwrap();
    let id = "01-asked";
    write(&dir.join("inbox").join(id), json!({"id": id, "ask": {"pause": "now"}}).to_string());
    let found = diagnose(&sandbox, &[], 1);
    let told: Vec<_> =
        wrong(&found, "requests").iter().map(|f| f["found"].as_str().unwrap().to_owned()).collect();
    for part in ["no FIFO", "1 request that no runner heard"] {
        assert!(told.iter().any(|found| found.contains(part)), "{part}: {told:?}");
    }
    diagnose(&sandbox, &["--fix"], 0);
    assert!(!dir.join("doorbell").exists());
}

#[test]
fn a_stopped_runner_is_reported() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo up > $NOTES/up\nexec sleep 1000");
    let session = sandbox.spawn(&["start", "--command", &agent, "--name", "job", "p"]);
    sandbox.wait_for_note("up");
    session.signal(Signal::STOP);
    let request = sandbox.loop_dir("job").join("inbox/01-asked");
    fs::create_dir_all(request.parent().unwrap()).unwrap();
    write(&request, json!({"id": "01-asked", "ask": {"pause": "now"}}).to_string());
    assert!(wrong(&findings(&sandbox, &[], 0), "requests").is_empty(), "it was asked just now");
    age(&sandbox, &request);
    let found = findings(&sandbox, &["--fix"], 1);
    let told = wrong(&found, "requests");
    assert!(told[0]["advice"].as_str().unwrap().contains("hangs or was stopped"), "{told:#?}");
    session.signal(Signal::CONT);
    session.signal(Signal::TERM);
    session.wait().with_code(16);
}

#[test]
fn folders_that_others_may_look_into_are_made_private() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    let data = sandbox.project().join(".git/refrain");
    let mode = || fs::metadata(&data).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o700);
    fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
    let found = findings(&sandbox, &[], 0);
    assert_eq!(wrong(&found, "privacy").len(), 1, "{found:#?}");
    assert_eq!(mode(), 0o755);
    findings(&sandbox, &["--fix"], 0);
    assert_eq!(mode(), 0o700);
    assert!(wrong(&findings(&sandbox, &[], 0), "privacy").is_empty());
}

/// Makes it look as if a file had been left there an hour ago.
fn age(sandbox: &Sandbox, path: &Path) {
    let path = path.to_str().unwrap();
    sandbox.tool("touch", &["-d", "1 hour ago", path]).run().with_code(0);
}

#[test]
fn odd_repository_states_are_reported_and_a_stale_lock_is_removed() {
    let sandbox = sandbox();
    let git = sandbox.project().join(".git");
    let lock = git.join("index.lock");
    write(&lock, "");
    assert!(wrong(&findings(&sandbox, &[], 0), "git").is_empty(), "a git process may be running");
    age(&sandbox, &lock);
    write(&git.join("MERGE_HEAD"), "");
    write(&sandbox.root().join("home/.gitconfig"), "[user]\nuseConfigOnly = true\n");
    let found = findings(&sandbox, &[], 1);
    let told: Vec<_> = wrong(&found, "git").iter().map(|f| f["found"].as_str().unwrap().to_owned()).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    for part in ["does not know who you are", "a merge is under way", "index.lock"] {
        assert!(told.iter().any(|found| found.contains(part)), "{part}: {told:?}");
    }
    findings(&sandbox, &["--fix"], 0);
    assert!(!lock.exists() && git.join("MERGE_HEAD").exists());
}

#[test]
fn worktrees_of_loops_that_lost_their_folder_are_forgotten_and_others_kept() {
    let sandbox = sandbox();
    let trees = sandbox.root().join("home/state/refrain/worktrees");
    fs::create_dir_all(&trees).unwrap();
    fs::set_permissions(trees.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
    let at = |name: &str| trees.join(name).to_str().unwrap().to_owned();
    let elsewhere: PathBuf = sandbox.root().join("elsewhere");
    for (branch, path) in
        [("gone", &*at("gone")), ("kept", &*at("kept")), ("mine", elsewhere.to_str().unwrap())]
    {
        sandbox.git(&["worktree", "add", "--quiet", "-b", branch, path]);
    }
    fs::remove_dir_all(at("gone")).unwrap();
    fs::remove_dir_all(&elsewhere).unwrap();
    let found = findings(&sandbox, &[], 0);
    let told = wrong(&found, "worktrees");
    assert_eq!(told.len(), 2, "{told:#?}");
    assert!(told.iter().all(|finding| finding["about"] != json!(elsewhere)), "{told:#?}");
    findings(&sandbox, &["--fix"], 0);
    let listed = sandbox.git(&["worktree", "list"]);
    assert!(
        !listed.contains("/gone ") && listed.contains("/kept ") && listed.contains("/elsewhere "),
        "{listed}"
    );
    sandbox.git(&["rev-parse", "--verify", "gone"]);
}

#[test]
fn a_plain_folder_is_looked_at_too() {
    let sandbox = plain_folder();
    let before = sandbox.snapshot();
    let found = findings(&sandbox, &[], 0);
    assert!(
        found.iter().any(|f| f["found"].as_str().unwrap().starts_with("no repository here")),
        "{found:#?}"
    );
    assert!(sandbox.snapshot() == before, "something was touched");
}

#[test]
fn autostart_is_switched_on_and_off() {
    let sandbox = sandbox();
    let run = doctor(&sandbox, &["--autostart"]).env("OPENAI_API_KEY", "dummy").run().with_code(0);
    let unit = sandbox.root().join("home/config/systemd/user/refrain-resume.service");
    assert!(run.stdout.contains(unit.to_str().unwrap()), "{}", run.stdout);
    assert!(run.stdout.contains("refrain doctor --autostart off"), "how to undo it: {}", run.stdout);
    assert!(
        run.stdout.contains("loginctl enable-linger") && run.stdout.contains("OPENAI_API_KEY"),
        "{}",
        run.stdout
    );
    let text = fs::read_to_string(&unit).unwrap();
    assert!(!text.contains("dummy") && text.contains(env!("CARGO_BIN_EXE_refrain")), "{text}");
    let told = |found: &[Value]| {
        let mut autostart = found.iter().filter(|finding| finding["subject"] == "autostart");
        autostart.next().unwrap()["found"].as_str().unwrap().to_owned()
    };
    assert!(told(&findings(&sandbox, &[], 0)).starts_with("on"), "it is on");
    doctor(&sandbox, &["--autostart", "off"]).run().with_code(0);
    assert!(!unit.exists() && told(&findings(&sandbox, &[], 0)).starts_with("off"));
    doctor(&sandbox, &["--autostart", "perhaps"]).run().with_code(2);
}

#[test]
fn after_a_reboot_only_interrupted_loops_are_resumed() {
    let sandbox = sandbox();
    sandbox.refrain(&["resume", "--after-reboot"]).with_code(2);
    crash(&sandbox, "job");
    let run = sandbox.refrain(&["resume", "--all", "--after-reboot"]).with_code(0);
    assert_eq!(run.stdout, "Nothing to resume.\n", "its runner died in this run of the machine");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let known = fs::read_to_string(sandbox.root().join("home/state/refrain/boot")).unwrap();
    assert_eq!(known, boot.trim());
    assert_eq!(sandbox.status("job")["status"], "crashed");
}

/// The findings about the configuration: grade, file or key, text.
fn of_configuration(found: &[Value]) -> Vec<(String, String, String)> {
    let of = found.iter().filter(|finding| finding["subject"] == "configuration");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of.map(|it| (text(&it["grade"]), text(&it["about"]), text(&it["found"]))).collect()
}

#[test]
fn configuration_that_would_keep_a_loop_from_starting_is_found_before() {
    let sandbox = sandbox();
    let codex = "case $1 in --version) echo codex-cli 0.169.0 ;; *) echo ok ;; esac";
    program(&sandbox, "codex", codex);
    let look = |code| of_configuration(&findings(&sandbox, &[], code));
    let [(grade, _, found)] = look(0).try_into().unwrap();
    assert_eq!((grade.as_str(), found.as_str()), ("ok", "nothing is configured: all is as built in"));

    let shared = sandbox.project().join("refrain.toml");
    write(&shared, "[start]\nmax-iteration = 3\n");
    let [(grade, _, found)] = look(0).try_into().unwrap();
    assert!(grade == "warning" && found.contains("refrain.toml:2") && found.contains("max-iterations"));
    assert!(found.contains("not trusted either"), "{found}");

    let agents = "[agents.here]\nkind = \"codex\"\n[agents.gone]\ncommand = \"./gone.sh\"\n";
    write(&shared, format!("{agents}[prompts.fix]\nfile = \"fix.md\"\n[start]\nprompt-name = \"mend\"\n"));
    let [(grade, about, found)] = look(0).try_into().unwrap();
    assert!(grade == "warning" && about.ends_with("refrain.toml") && found.contains("not trusted"));
    sandbox.trust();
    let found = look(0);
    let told: Vec<_> = found.iter().map(|(grade, about, _)| (grade.as_str(), about.as_str())).collect();
    let [("ok", _), ("warning", "agents.gone"), ("warning", "prompts.fix"), ("warning", "")] = told[..]
    else {
        panic!("{found:#?}");
    };
    assert!(found[3].2.contains("refrain.toml:8: there is no prompt \"mend\""), "{found:#?}");

    let home = sandbox.root().join("home/config/refrain");
    fs::create_dir_all(&home).unwrap();
    write(&home.join("config.toml"), "[start]\ntimeout = \"soon\"\n");
    let found = look(1);
    assert!(found[0].0 == "problem" && found[0].2.contains("config.toml:2: start.timeout"), "{found:#?}");
    fs::remove_file(home.join("config.toml")).unwrap();
    let run = doctor(&sandbox, &["--json"]).env("REFRAIN_MAX_ITERATIONS", "many").run().with_code(1).json();
    let found = of_configuration(run["findings"].as_array().unwrap());
    assert!(found[1].2.contains("REFRAIN_MAX_ITERATIONS"), "{found:#?}");
}

#[test]
fn a_catalog_that_was_put_aside_can_be_removed() {
    let sandbox = sandbox();
    program(&sandbox, "claude", "echo '{\"loggedIn\": true, \"authMethod\": \"api_key\"}'");
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "p"]).with_code(0);
    let catalog = find_file(&sandbox.root().join("home"), "catalog.sqlite").expect("there is a catalog");
    write(&catalog, "no SQLite at all, and long enough to be told from an empty file");
    sandbox.refrain(&["list"]).with_code(0);
    let aside = catalog.with_file_name("catalog.sqlite.aside");
    assert!(aside.exists());
    assert_eq!(wrong(&findings(&sandbox, &[], 0), "loops")[0]["fix"], "possible");
    findings(&sandbox, &["--fix"], 0);
    assert!(!aside.exists() && catalog.exists());
}

/// A file of this name somewhere below a folder.
fn find_file(dir: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<_> = fs::read_dir(dir).unwrap().flatten().map(|entry| entry.path()).collect();
    let own = entries.iter().find(|path| path.file_name().is_some_and(|own| own == name)).cloned();
    own.or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|dir| find_file(dir, name)))
}

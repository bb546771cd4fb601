use super::pipe_io::COMPLAINT;
use super::*;

fn sh(script: &str) -> Tool<'_> {
    Tool::new("sh", Path::new("/")).args(["-c", script])
}

#[test]
fn a_missing_folder_is_no_missing_program() {
    let gone = Path::new("/nowhere/at/all");
    let run = Tool::new("true", gone).run();
    assert!(matches!(run, Err(ToolError::NoFolder { dir, .. }) if dir == gone));
    assert!(matches!(Tool::new("no-such-tool", Path::new("/")).run(), Err(ToolError::Missing { .. })));
}

#[test]
fn a_tool_gets_its_input_and_returns_its_output() {
    let input = b"line\n".repeat(100_000);
    let done = sh("cat; echo no >&2; exit 3").input(&input).run().unwrap();
    assert_eq!(done.status.code(), Some(3));
    assert_eq!(done.stdout, input);
    assert_eq!(done.stderr, b"no\n");
}

#[test]
fn a_command_line_of_git_is_shown_without_settings() {
    let shown = |program, args: &[&str]| Tool::new(program, Path::new("/")).args(args).command();
    assert_eq!(shown("git", &["-c", "core.fsmonitor=", "-c", "a=b", "diff", "-c"]), "git diff -c");
    assert_eq!(shown("/usr/bin/git", &["-c", "a=b", "status"]), "/usr/bin/git status");
    assert_eq!(shown("sh", &["-c", "true"]), "sh -c true");
}

#[test]
fn a_tool_that_does_not_read_its_input_succeeds() {
    assert_eq!(sh("echo done").input(&[b'x'; 1 << 20]).output().unwrap(), b"done\n");
}

#[test]
fn a_tool_has_only_the_given_environment() {
    let env = [("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "1".into())];
    let said = sh("echo $A-$B-$HOME").env(&env).with("B", "2").output().unwrap();
    assert_eq!(said, b"1-2-\n");
}

#[test]
fn a_tool_is_not_found_where_an_agent_writes() {
    let [clone, user] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let bin = clone.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let plant = r#"for name in sh uname planted; do printf '#!/bin/sh\necho planted\n' > $name; chmod +x $name; done"#;
    run("sh", &["-c", plant], &bin).unwrap();
    // A link of the user's that leads into the clone.
    std::os::unix::fs::symlink(bin.join("planted"), user.path().join("planted")).unwrap();
    std::os::unix::fs::symlink(&bin, user.path().join("link")).unwrap();
    let path = format!("{0}:{1}/link:bin:.:{1}:/usr/bin:/bin", bin.display(), user.path().display());
    let (env, dirs) = ([("PATH".into(), path.into())], [Utf8Path::from_path(clone.path()).unwrap()]);
    let outside = |program| Tool::new(program, clone.path()).outside(&env, &dirs);
    let said = outside("sh").args(["-c", "uname; echo $PATH"]).output().unwrap();
    let expected = format!("Linux\n{}:/usr/bin:/bin\n", user.path().display());
    assert_eq!(String::from_utf8(said).unwrap().replace("Darwin", "Linux"), expected);
    assert!(
        matches!(outside("planted").run(), Err(ToolError::Missing { program, .. }) if program == "planted")
    );
    // One that is named by its path is the user's choice.
    let named = bin.join("planted");
    assert_eq!(Tool::new(&named, clone.path()).outside(&env, &dirs).output().unwrap(), b"planted\n");
    // Without a `PATH`, the system has one.
    assert_eq!(sh("echo ok").outside(&[], &dirs).output().unwrap(), b"ok\n");
}

#[test]
fn a_tool_writes_only_the_folders_that_it_may_write() {
    if !file_limits::is_supported() {
        return eprintln!("skipped: this kernel has no Landlock, or an old one");
    }
    let [inside, outside] = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let victim = outside.path().join("victim");
    run("sh", &["-c", "echo mine > victim"], outside.path()).unwrap();
    std::os::unix::fs::symlink(&victim, inside.path().join("link")).unwrap();
    let script = "echo in > file; mv file moved; mkdir folder; echo no > /dev/null; \
                  (echo more >> link; echo new > $0/new; rm $0/victim; ln moved $0/moved); cat moved";
    let limited = Tool::new("sh", inside.path());
    let limited = limited.args(["-c".as_ref(), script.as_ref(), outside.path().as_os_str()]);
    let limits = FileLimits { written: vec![inside.path().to_owned()], run: Vec::new() };
    let done = limited.held_to(Some(limits)).run().unwrap();
    assert_eq!(done.stdout, b"in\n", "{done:?}");
    assert_eq!(std::fs::read(&victim).unwrap(), b"mine\n");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    // It holds for that tool alone.
    let free = Tool::new("sh", inside.path()).args(["-c", "echo more >> link"]);
    assert!(free.run().unwrap().status.success());
}

#[test]
fn a_tool_runs_only_the_programs_that_it_may_run() {
    if !file_limits::is_supported() {
        return eprintln!("skipped: this kernel has no Landlock, or an old one");
    }
    let dir = tempfile::tempdir().unwrap();
    let env: Vec<_> = std::env::vars_os().collect();
    let sh = in_path("sh", &env).unwrap().canonicalize().unwrap();
    let loader = loader(&sh).unwrap();
    let limits = FileLimits { written: Vec::new(), run: [sh].into_iter().chain(loader).collect() };
    let script = "sh -c 'echo one'; ls / || echo no";
    let done = Tool::new("sh", dir.path()).args(["-c", script]).held_to(Some(limits)).run().unwrap();
    assert_eq!(done.stdout, b"one\nno\n", "{done:?}");
    run("sh", &["-c", "echo '#!/bin/sh' > script"], dir.path()).unwrap();
    assert_eq!(super::loader(&dir.path().join("script")), None);
}

#[test]
fn a_process_left_in_the_group_of_a_tool_is_ended_without_delay() {
    let script = "cat /dev/zero >/dev/null & echo started";
    let said = sh(script).limit(Duration::from_secs(60)).output().unwrap();
    assert_eq!(said, b"started\n");
}

#[test]
fn an_errand_has_the_users_language_and_may_leave_processes() {
    let dir = tempfile::tempdir().unwrap();
    let language = std::env::vars_os().find(|(name, _)| name == "LC_ALL").unwrap_or_default().1;
    let errand = |script: &str| {
        let words = ["-c".as_ref(), script.as_ref(), "sh".as_ref(), language.as_os_str()];
        Tool::errand("sh", dir.path()).args(words).input(b"a text\n").run().unwrap()
    };
    // The background process waits for a FIFO, prints, and records that it did.
    let left = "mkfifo go; (read -r _ < go; echo heard && echo yes > said) &";
    let done = errand(&format!("{left} cat > text; test \"$LC_ALL\" = \"$1\""));
    assert!(done.status.success(), "{done:?}");
    assert_eq!(std::fs::read(dir.path().join("text")).unwrap(), b"a text\n");
    let hears = Tool::new("sh", dir.path()).args(["-c", "echo go > go; until [ -e said ]; do :; done"]);
    hears.limit(Duration::from_secs(60)).output().unwrap();

    let failed = errand("echo no such host >&2; exit 6");
    assert_eq!((failed.status.code(), failed.stderr), (Some(6), b"no such host\n".to_vec()));
}

#[test]
fn a_tool_over_its_limits_or_cancelled_is_ended() {
    let error = sh("cat /dev/zero >/dev/null").limit(Duration::from_millis(20)).run().unwrap_err();
    assert!(matches!(error, ToolError::TimedOut { .. }), "{error}");
    let error = sh("cat /dev/zero").most(1 << 20).run().unwrap_err();
    assert!(matches!(error, ToolError::TooMuch { .. }), "{error}");
    let cancel = Cancel::new().unwrap();
    cancel.cancel();
    let error = sh("cat /dev/zero >/dev/null").cancel(Some(&cancel)).run().unwrap_err();
    assert!(matches!(error, ToolError::Cancelled { .. }), "{error}");
}

#[test]
fn a_tool_is_ended_once_its_lookout_sees_what_it_waits_for() {
    let looks = std::cell::Cell::new(0);
    let look = || {
        looks.set(looks.get() + 1);
        (looks.get() == 2).then(|| "a FIFO".to_owned())
    };
    let stuck = sh("cat /dev/zero >/dev/null").lookout(Duration::from_millis(10), &look);
    let error = stuck.run().unwrap_err();
    assert!(matches!(&error, ToolError::Blocked { by, .. } if by == "a FIFO"), "{error}");
    assert_eq!(looks.get(), 2);
    assert_eq!(sh("echo done").lookout(Duration::from_hours(1), &look).output().unwrap(), b"done\n");
}

#[test]
fn an_ended_tool_may_clean_up_but_not_for_long() {
    let dir = tempfile::tempdir().unwrap();
    let begin = |rest: &str| {
        let script = format!("trap 'sleep 0.05; rm lock; exit' TERM; touch lock; {rest}");
        Tool::new("sh", dir.path()).args(["-c", &script]).limit(Duration::from_millis(200)).run()
    };
    // Also below a program that ends at once.
    for rest in
        ["while :; do sleep 0.01; done", "(trap 'sleep 0.1; rm -f deep' TERM; touch deep; sleep 9) & wait"]
    {
        let error = begin(rest).unwrap_err();
        assert!(matches!(error, ToolError::TimedOut { .. }), "{error}");
        assert!(!dir.path().join("lock").exists() && !dir.path().join("deep").exists(), "{rest}");
    }
    let began = Instant::now();
    let stubborn = sh("trap '' TERM; while :; do echo x; done").limit(Duration::from_millis(20)).run();
    assert!(matches!(stubborn, Err(ToolError::TimedOut { .. })), "{stubborn:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn of_a_long_complaint_the_end_is_kept() {
    let done = sh("yes no | head -c 1000000 >&2; echo end >&2").run().unwrap();
    assert_eq!(done.stderr.len(), COMPLAINT);
    assert!(done.stderr.ends_with(b"end\n"));
}

#[test]
fn a_missing_tool_is_named() {
    let error = Tool::new("no-such-tool-at-all", Path::new("/")).run().unwrap_err();
    assert_eq!(error.to_string(), "no-such-tool-at-all cannot be started");
}

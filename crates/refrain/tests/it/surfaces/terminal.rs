//! A real pseudo-terminal: Ctrl-C, a terminal that is closed, and what may be shown on one.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;
use testkit::{Sandbox, eventually};

use crate::{CLAIM, sandbox};

/// A person's terminal with a program in it.
pub(crate) struct Terminal {
    master: File,
    child: Child,
    shown: Arc<Mutex<Vec<u8>>>,
    closing: Arc<AtomicBool>,
    reader: JoinHandle<()>,
}

impl Terminal {
    pub(crate) fn open(sandbox: &Sandbox, words: &[&str], env: &[(&str, &str)]) -> Self {
        Self::of_width(120, sandbox, words, env)
    }

    pub(crate) fn of_width(cols: u16, sandbox: &Sandbox, words: &[&str], env: &[(&str, &str)]) -> Self {
        Self::of_program(env!("CARGO_BIN_EXE_refrain"), cols, sandbox, words, env)
    }

    /// Another program, a shell for one, in which things are typed.
    pub(crate) fn of_program(
        program: &str,
        cols: u16,
        sandbox: &Sandbox,
        words: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        Self::of_size(program, (cols, 40), sandbox, words, env)
    }

    pub(crate) fn of_size(
        program: &str,
        size: (u16, u16),
        sandbox: &Sandbox,
        words: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let master =
            File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap());
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, window(size)).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave =
            OpenOptions::new().read(true).write(true).open(OsStr::from_bytes(name.to_bytes())).unwrap();
        // It makes the terminal that of a new session, and becomes the program.
        #[expect(clippy::disallowed_methods, reason = "only a session of its own can have this terminal")]
        let child = Command::new("setsid")
            .args(["--ctty", program])
            .args(words)
            .env_clear()
            .envs(sandbox.env())
            .env("TERM", "xterm-256color")
            .envs(env.iter().copied())
            .current_dir(sandbox.project())
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave)
            .spawn()
            .unwrap();
        let mut from = master.try_clone().unwrap();
        let (shown, closing) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (sink, stop) = (Arc::clone(&shown), Arc::clone(&closing));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = from.read(&mut buffer) {
                sink.lock().unwrap().extend_from_slice(&buffer[..length]);
                if stop.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        Self { master, child, shown, closing, reader }
    }

    /// Another size, as when its window is drawn.
    pub(crate) fn resize(&self, size: (u16, u16)) {
        tcsetwinsize(&self.master, window(size)).unwrap();
    }

    /// The process in it.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().try_into().unwrap()
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, part: &str) {
        eventually(&format!("the terminal shows {part:?}"), || self.text().contains(part).then_some(()));
    }

    #[track_caller]
    pub(crate) fn wait(mut self) -> (i32, String) {
        let status = eventually("the program ends", || self.child.try_wait().unwrap());
        drop(self.master);
        let _ = self.reader.join();
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        (code.unwrap(), String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned())
    }

    /// Closes it as its window would be. The reader holds it open too, and lets go with the next output, which `print` causes.
    fn close(self, print: impl FnOnce()) -> Child {
        self.closing.store(true, Ordering::SeqCst);
        print();
        self.reader.join().unwrap();
        drop(self.master);
        self.child
    }
}

fn window((columns, rows): (u16, u16)) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

#[test]
fn the_first_ctrl_c_explains_the_second_and_pauses_after_the_iteration() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox.agent("agent", "echo x > $NOTES/up; read -r _ < $GATES/go; echo ended in peace");
    let mut terminal = Terminal::open(&sandbox, &["start", "--command", &agent, "--name", "job", "p"], &[]);
    sandbox.wait_for_note("up");
    terminal.type_keys("\x03");
    terminal.wait_for("Ctrl-C again");
    gate.let_one_pass();
    let (code, text) = terminal.wait();
    assert_eq!(code, 16, "{text}");
    assert!(text.contains("ended in peace") && text.contains("refrain resume job"), "{text}");
    assert_eq!(sandbox.status("job")["charged"], 1);
}

#[test]
fn ctrl_c_twice_ends_the_agent_now() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "echo x > $NOTES/up; exec sleep 1000");
    let mut terminal = Terminal::open(&sandbox, &["start", "--command", &agent, "--name", "job", "p"], &[]);
    sandbox.wait_for_note("up");
    terminal.type_keys("\x03");
    terminal.wait_for("Ctrl-C again");
    terminal.type_keys("\x03");
    let (code, text) = terminal.wait();
    assert_eq!(code, 16, "{text}");
    sandbox.no_process_is_left();
    assert_eq!(sandbox.status("job")["iterations"][0]["outcome"], "interrupted");
}

#[test]
fn ctrl_c_says_how_long_the_end_of_the_agent_may_take_and_a_further_one_kills_it() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("go");
    let agent = sandbox.agent(
        "agent",
        "trap 'read -r _ < $GATES/go; exit' INT; echo x > $NOTES/up; while :; do sleep 0.1; done",
    );
    let mut terminal = Terminal::open(&sandbox, &["start", "--command", &agent, "--name", "job", "p"], &[]);
    sandbox.wait_for_note("up");
    terminal.type_keys("\x03");
    terminal.wait_for("Ctrl-C again");
    terminal.type_keys("\x03");
    terminal.wait_for("ending the agent, which takes 8.0s at most");
    assert!(!terminal.text().contains("killing"), "{}", terminal.text());
    terminal.type_keys("\x03");
    terminal.wait_for("asked again: killing what has not ended yet");
    let (code, text) = terminal.wait();
    assert_eq!(code, 16, "{text}");
    sandbox.no_process_is_left();
}

#[test]
fn a_closed_terminal_pauses_the_loop_and_leaves_no_process() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent =
        sandbox.agent("agent", "echo x > $NOTES/up; read -r _ < $GATES/go; echo last words; exec sleep 1000");
    let terminal = Terminal::open(&sandbox, &["start", "--command", &agent, "--name", "job", "p"], &[]);
    sandbox.wait_for_note("up");
    terminal.wait_for("[loop job iteration 1/20]");
    let mut child = terminal.close(|| gate.let_one_pass());
    let status = eventually("the runner ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(16));
    sandbox.no_process_is_left();
    assert_eq!(sandbox.kept_text("job", "0001", "output.log"), "last words\n");
    let status = sandbox.status("job");
    assert_eq!((&status["status"], &status["charged"]), (&json!("paused"), &json!(0)));
}

#[test]
fn a_detached_loop_survives_its_terminal() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let agent = sandbox
        .agent("agent", &format!("echo x > $NOTES/up; read -r _ < $GATES/go; echo still here\n{CLAIM}"));
    let terminal =
        Terminal::open(&sandbox, &["start", "--command", &agent, "--name", "job", "--detach", "p"], &[]);
    let (code, text) = terminal.wait();
    assert_eq!(code, 0, "{text}");
    sandbox.wait_for_note("up");
    gate.let_one_pass();
    sandbox.wait_for_status("job", "completed");
    assert!(sandbox.kept_text("job", "0001", "output.log").contains("still here"));
    sandbox.no_process_is_left();
}

/// Sets the title, clears the screen, moves the cursor, asks the terminal, rings, hides a line: each in both encodings.
pub(crate) const HOSTILE: &str = r"printf 'a\033]0;owned\007b\033[2Jc\033[1;1Hd\033[6ne\007f\033]52;c;b3duZWQ=\007g\r\033[Kh\n'
printf '\302\2332J\302\235owned\302\234\n\033[31mred\033[0m\010\010\010\n' >&2";

#[test]
fn agent_output_never_controls_the_terminal() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("{HOSTILE}\n{CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "p"];
    let (code, shown) = Terminal::open(&sandbox, &start, &[]).wait();
    assert_eq!(code, 0, "{shown}");
    let views =
        [["logs", "job"].as_slice(), &["status", "job"], &["show", "job"], &["watch", "job"], &["list"]];
    let others = views.map(|words| Terminal::open(&sandbox, words, &[]).wait().1);
    for text in others.iter().chain([&shown]) {
        for sequence in
            ["\x1b]", "\x1b[2J", "\x1b[1;1H", "\x1b[6n", "\x07", "\x08", "\x1b[K", "\u{9b}", "\u{9d}"]
        {
            assert!(!text.contains(sequence), "{sequence:?} reached the terminal: {text:?}");
        }
        let mut screen = vt100::Parser::new(40.try_into().unwrap(), 120.try_into().unwrap(), 0);
        screen.process(text.as_bytes());
        let first = screen.screen().contents().lines().next().unwrap_or_default().to_owned();
        assert!(
            !first.starts_with('d') && !first.starts_with("h"),
            "the first line was written over: {first}"
        );
    }
    let raw = sandbox.kept("job", "0001", "output.log");
    assert!(raw.windows(4).any(|bytes| bytes == b"\x1b[2J"), "what is kept is raw");
}

#[test]
fn what_is_invisible_or_turns_a_line_round_is_spelled_out() {
    let sandbox = sandbox();
    let hidden = r"pass\342\200\213word \342\200\256gnp.exe \302\255 \357\273\277";
    let agent = sandbox.agent("agent", &format!("printf '{hidden}\\n' | tee seen.txt\n{CLAIM}"));
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "Mend \u{202e}it."]).with_code(0);
    for words in [["logs", "job"].as_slice(), &["diff", "job"], &["show", "job"]] {
        let raw = sandbox.refrain(words).with_code(0).stdout;
        assert!(raw.contains('\u{202e}'), "{words:?}: as it is where it is no terminal: {raw}");
        let (_, shown) = Terminal::open(&sandbox, words, &[("PAGER", "cat")]).wait();
        assert!(shown.contains("[U+202E]"), "{words:?}: {shown}");
        for hidden in ['\u{200b}', '\u{202e}', '\u{ad}', '\u{feff}'] {
            assert!(!shown.contains(hidden), "{words:?} {hidden:?}: {shown}");
        }
    }
    let (_, shown) = Terminal::open(&sandbox, &["diff", "job"], &[("PAGER", "head -n 99")]).wait();
    assert!(shown.contains("pass[U+200B]word [U+202E]gnp.exe [U+00AD] [U+FEFF]"), "{shown}");
}

#[test]
fn ctrl_c_in_a_pager_is_for_the_pager_and_refrain_ends_with_it() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo written > seen.txt\n{CLAIM}"));
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    for (on_interrupt, code) in [("echo stays", 0), ("exit 2", 130)] {
        let reads = "cat; echo ready; until read -r key < /dev/tty; do :; done; echo $key";
        let pager = sandbox.agent("pager", &format!("trap '{on_interrupt}' INT; {reads}"));
        let mut terminal = Terminal::open(&sandbox, &["diff", "job"], &[("PAGER", &pager)]);
        terminal.wait_for("ready");
        terminal.type_keys("\x03");
        if code == 0 {
            terminal.wait_for("stays");
            terminal.type_keys("bye\r");
        }
        let (found, shown) = terminal.wait();
        assert_eq!(found, code, "{shown}");
        assert_eq!(shown.matches("+written").count(), 1, "shown once: {shown}");
    }
    sandbox.no_process_is_left();
}

#[test]
fn no_program_of_the_project_is_the_shell_of_the_pager_the_pager_or_the_editor() {
    let sandbox = sandbox();
    let plant = "mkdir -p .venv/bin; echo .venv > .gitignore; for name in sh less ed; do \
                 printf '#!/bin/sh\\necho planted\\n' > .venv/bin/$name; chmod +x .venv/bin/$name; done";
    let agent = sandbox.agent("agent", &format!("{plant}\necho written > seen.txt\n{CLAIM}"));
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0);
    let (_, path) = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").unwrap();
    let path = format!("{}:{path}", sandbox.project().join(".venv/bin").display());
    let env = [("PATH", path.as_str()), ("EDITOR", "ed"), ("SHELL", "sh")];
    for words in [["diff", "job"].as_slice(), &["open", "job"], &["open", "job", "--shell"]] {
        let mut terminal = Terminal::open(&sandbox, words, &env);
        terminal.type_keys("q\rexit\r");
        let (_, shown) = terminal.wait();
        assert!(!shown.contains("planted"), "{words:?}: {shown}");
    }
}

#[test]
fn colour_only_on_a_terminal_and_without_no_color() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", CLAIM);
    let start = ["start", "--command", &agent, "p"];
    let (_, coloured) = Terminal::open(&sandbox, &start, &[]).wait();
    assert!(coloured.contains("\x1b["), "{coloured:?}");
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let (_, plain) = Terminal::open(&sandbox, &start, &[(name, value)]).wait();
        assert!(!plain.contains('\x1b'), "{name}: {plain:?}");
    }
    let forced = sandbox.command(&start).env("CLICOLOR_FORCE", "1").run().with_code(0);
    assert!(forced.stdout.contains("\x1b[32m"), "{forced:?}");
    for (name, value, has_colour) in
        [("CLICOLOR_FORCE", "1", true), ("FORCE_COLOR", "1", true), ("FORCE_COLOR", "0", false)]
    {
        for words in [["list"].as_slice(), &["config", "show"], &["start", "--help"]] {
            let listed = sandbox.command(words).env(name, value).run().with_code(0).stdout;
            assert_eq!(listed.contains("\x1b["), has_colour, "{name}={value} {words:?}: {listed:?}");
        }
    }
    let both = sandbox.command(&["list"]).env("FORCE_COLOR", "1").env("NO_COLOR", "1").run().with_code(0);
    assert!(!both.stdout.contains('\x1b'), "{both:?}");
    let piped = sandbox.refrain(&start).with_code(0);
    assert!(!piped.stdout.contains('\x1b') && !piped.stderr.contains('\x1b'), "{piped:?}");
    for words in [["--help"].as_slice(), &["start", "--help"], &["start", "--bad"]] {
        let (_, plain) = Terminal::open(&sandbox, words, &[("NO_COLOR", "1")]).wait();
        assert!(!plain.contains('\x1b'), "{words:?}: {plain:?}");
    }
}

#[test]
fn the_remaining_wait_is_redrawn_in_place_and_cleared() {
    let sandbox = sandbox();
    let agent =
        sandbox.agent("agent", &format!("echo $REFRAIN_ITERATION\ntest $REFRAIN_ITERATION = 1 || {CLAIM}"));
    let start = ["start", "--command", &agent, "--name", "job", "--pause", "3", "p"];
    for env in [[].as_slice(), &[("NO_COLOR", "1")]] {
        let mut terminal = Terminal::of_width(60, &sandbox, &start, env);
        terminal.wait_for("rests: 1s left");
        terminal.type_keys("\x03");
        let (code, shown) = terminal.wait();
        assert_eq!(code, 16, "{shown}");
        assert!(env.is_empty() || !shown.contains('\x1b'), "{shown:?}");
        let mut screen = vt100::Parser::new(40.try_into().unwrap(), 60.try_into().unwrap(), 0);
        screen.process(shown.as_bytes());
        let text = screen.screen().contents();
        assert!(!text.contains("rests: ") && !text.contains("^C"), "{text}");
        assert!(text.contains("· rests until") && text.contains("refrain resume job"), "{text}");
        sandbox.refrain(&["cancel", "job"]).with_code(0);
        sandbox.refrain(&["archive", "job"]).with_code(0);
    }
    let (_, dumb) = Terminal::of_width(60, &sandbox, &start, &[("TERM", "dumb")]).wait();
    assert!(!dumb.contains("rests: ") && dumb.contains("rests until"), "{dumb}");
}

#[test]
fn a_terminal_has_a_status_line_below_the_output_and_folds_a_long_one() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let script = format!("seq -f 'line %g' 300; echo x > $NOTES/up; read -r _ < $GATES/go\n{CLAIM}");
    let agent = sandbox.agent("agent", &script);
    let test = sandbox.agent("check", "seq -f 'checked %g' 100");
    let start = ["start", "--command", &agent, "--name", "job", "--gate", &format!("check={test}"), "p"];
    let more = "275 more lines: refrain logs job --iteration 1";
    for (env, width) in [([].as_slice(), 80), (&[("NO_COLOR", "1")], 60)] {
        let terminal = Terminal::of_width(width, &sandbox, &start, env);
        sandbox.wait_for_note("up");
        // The last screen: what was written over is gone.
        let screen = || {
            let mut screen = vt100::Parser::new(200.try_into().unwrap(), width.try_into().unwrap(), 0);
            screen.process(terminal.text().as_bytes());
            screen.screen().contents()
        };
        let last = |text: &str| text.trim_end().lines().last().unwrap_or_default().to_owned();
        eventually("the burst is over", || screen().contains("line 300").then_some(()));
        eventually("it has a status line", || {
            last(&screen()).starts_with("· iteration 1/20 runs for").then_some(())
        });
        let shown = screen();
        assert!(shown.contains("line 10\n") && !shown.contains("line 11\n"), "{shown}");
        assert!(shown.contains(&format!("… {more}")) && shown.contains("line 286\n"), "{shown}");
        gate.let_one_pass();
        let (code, text) = terminal.wait();
        assert_eq!(code, 0, "{text}");
        assert!(env.is_empty() || !text.contains('\x1b'), "{text:?}");
        let mut screen = vt100::Parser::new(200.try_into().unwrap(), width.try_into().unwrap(), 0);
        screen.process(text.as_bytes());
        let text = screen.screen().contents();
        assert!(!text.contains("runs for") && text.contains("verified"), "{text}");
        // Of the gate that ran before the first iteration: nothing has changed since.
        assert_eq!(text.matches("    checked 100").count(), 1, "{text}");
        assert!(text.lines().any(|line| line.trim_end() == "… 75 more lines: refrain logs job"), "{text}");
        sandbox.refrain(&["archive", "job"]).with_code(0);
        std::fs::remove_file(sandbox.root().join("notes/up")).unwrap();
    }
    let agent = sandbox.agent("again", &format!("seq -f 'line %g' 300\n{CLAIM}"));
    let piped = sandbox.refrain(&["start", "--command", &agent, "--name", "job", "p"]).with_code(0).stdout;
    assert!(piped.contains("line 150\n") && !piped.contains("runs for"), "{piped}");
}

#[test]
fn loop_output_fits_a_narrow_terminal() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo a long last line that says much more than a narrow terminal has room for\ntest $REFRAIN_ITERATION = 2 && {CLAIM}"));
    let start =
        ["start", "--command", &agent, "--name", "job", "--timeout", "1h", "--idle-timeout", "10m", "p"];
    for width in [40, 60, 80] {
        let (code, shown) = Terminal::of_width(width, &sandbox, &start, &[("NO_COLOR", "1")]).wait();
        assert_eq!(code, 0, "{shown}");
        let until = shown.lines().skip_while(|line| !line.contains("until "));
        let until: Vec<_> = until.take_while(|line| !line.contains("proof ")).collect();
        assert!(until.iter().all(|line| line.trim_end().chars().count() <= width.into()), "{until:#?}");
        assert!(until.concat().replace("\r         ", " ").contains("10m 0s of silence"), "{until:#?}");
        let next: Vec<_> = shown.lines().skip_while(|line| !line.contains("next: ")).collect();
        assert!(next.iter().all(|line| line.trim_end().chars().count() <= width.into()), "{next:#?}");
        assert!(next[1..].iter().all(|line| line.starts_with("        ")), "{next:#?}");
        for words in [["status", "job"], ["show", "job"], ["watch", "job"]] {
            let (_, shown) = Terminal::of_width(width, &sandbox, &words, &[("NO_COLOR", "1")]).wait();
            // Text to copy is whole: a path, a word, a command.
            let long = |line: &&str| {
                line.trim_end().chars().count() > width.into()
                    && !line.contains('/')
                    && line.trim().contains(' ')
                    && !line.trim_start().starts_with("next")
            };
            assert_eq!(
                shown.lines().filter(long).collect::<Vec<_>>(),
                [""; 0],
                "{words:?} at {width}: {shown}"
            );
        }
        sandbox.refrain(&["archive", "job"]).with_code(0);
    }
    let piped = sandbox.refrain(&["show", "job"]).with_code(0).stdout;
    assert_eq!(
        piped.lines().count(),
        sandbox.refrain(&["show", "job", "--json"]).json().as_array().unwrap().len()
    );
}

#[test]
fn a_list_fits_its_terminal_and_only_there_has_a_header_and_colour() {
    let sandbox = sandbox();
    let ids = ["mend-the-parser-of-all-dates", "short"];
    for (id, script) in ids.iter().zip(["echo not yet", CLAIM]) {
        let agent = sandbox.agent(id, script);
        sandbox.refrain(&["start", "--command", &agent, "--name", id, "-m", "1", "p"]);
    }
    for (width, columns) in [
        (120, "VERIFIED ID STATUS ITER CHANGED REASON"),
        (80, "VERIFIED ID STATUS ITER CHANGED"),
        (60, "VERIFIED ID STATUS"),
    ] {
        let (code, shown) = Terminal::of_width(width, &sandbox, &["list"], &[]).wait();
        assert_eq!(code, 0, "{shown}");
        let mut screen = vt100::Parser::new(40.try_into().unwrap(), width.try_into().unwrap(), 0);
        screen.process(shown.as_bytes());
        let text = screen.screen().contents();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "a line a loop, under a header, at {width}: {text}");
        assert!(lines[0].split_whitespace().eq(columns.split(' ')), "{width}: {text}");
        assert!(
            lines[1].starts_with("◐ unverified  short ") && lines[1].contains("completed"),
            "{width}: {text}"
        );
        assert!(lines[2].contains("mend-the-parser-of-all-dates  iteration-cap"), "{width}: {text}");
        let (green, yellow) = ("\x1b[32m", "\x1b[33m");
        assert!(!shown.contains(green) && shown.contains(yellow), "{width}: unverified: {shown:?}");
    }
    let (_, plain) = Terminal::of_width(80, &sandbox, &["list"], &[("NO_COLOR", "1")]).wait();
    assert!(!plain.contains('\x1b') && plain.starts_with("VERIFIED "), "{plain:?}");
    let (_, ascii) =
        Terminal::of_width(20, &sandbox, &["list"], &[("NO_COLOR", "1"), ("LC_ALL", "C")]).wait();
    assert!(ascii.is_ascii() && ascii.contains("..."), "{ascii:?}");
    let pager = [("PAGER", "sed 's/^/| /'"), ("NO_COLOR", "1")];
    for (height, is_paged) in [(3, true), (4, false)] {
        let program = env!("CARGO_BIN_EXE_refrain");
        let (_, shown) = Terminal::of_size(program, (80, height), &sandbox, &["list"], &pager).wait();
        assert_eq!(shown.starts_with("| VERIFIED "), is_paged, "{height} lines: {shown:?}");
    }
    let piped = sandbox.refrain(&["list"]).with_code(0).stdout;
    assert!(
        piped.starts_with("short ") && !piped.contains('\x1b') && piped.lines().count() == 2,
        "{piped:?}"
    );
}

#[test]
fn on_a_terminal_nothing_is_trusted_without_a_yes() {
    let sandbox = sandbox();
    testkit::write(&sandbox.project().join("refrain.toml"), "[start]\ncommand = \"agent.sh\"\n");
    for (answer, code, says) in [
        ("\r", 1, "nothing was changed"),
        ("no\r", 1, "nothing was changed"),
        ("y\r", 0, "counts from now on"),
    ] {
        let before = sandbox.snapshot();
        let mut terminal = Terminal::open(&sandbox, &["trust"], &[]);
        terminal.wait_for("Trust it? [y/N]");
        terminal.type_keys(answer);
        let (found, shown) = terminal.wait();
        assert!(
            found == code && shown.contains("agent.sh") && shown.contains(says),
            "{answer:?} {found}: {shown}"
        );
        assert_eq!(sandbox.snapshot() == before, code == 1, "{answer:?}");
    }
}

//! `refrain top` in a real pseudo-terminal.

use testkit::{Sandbox, Signal, eventually, signal_process};

use crate::surfaces::terminal::{HOSTILE, Terminal};
use crate::{CLAIM, sandbox};

/// `refrain top` in a terminal.
struct Top {
    terminal: Terminal,
    size: (u16, u16),
}

impl Top {
    fn open(sandbox: &Sandbox, size: (u16, u16), words: &[&str]) -> Self {
        Self::open_with(sandbox, size, words, &[])
    }

    /// The same, with more variables.
    fn open_with(sandbox: &Sandbox, size: (u16, u16), words: &[&str], env: &[(&str, &str)]) -> Self {
        let words = [&["top"], words].concat();
        let program = env!("CARGO_BIN_EXE_refrain");
        Self { terminal: Terminal::of_size(program, size, sandbox, &words, env), size }
    }

    fn screen(&self) -> String {
        let (cols, rows) = self.size;
        let mut screen = vt100::Parser::new(rows.try_into().unwrap(), cols.try_into().unwrap(), 0);
        screen.process(self.terminal.text().as_bytes());
        screen.screen().contents()
    }

    #[track_caller]
    fn wait_for(&self, part: &str) {
        let shows = || self.screen().contains(part).then_some(());
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually("the screen shows it", shows)
        }));
        assert!(seen.is_ok(), "{part:?} is not on the screen:\n{}", self.screen());
    }

    /// Types keys, and waits for a text on the screen.
    #[track_caller]
    fn press(&mut self, keys: &str, leads_to: &str) {
        self.terminal.type_keys(keys);
        self.wait_for(leads_to);
    }

    fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        self.terminal.resize(size);
    }

    /// Quits, and sees that the terminal is given back.
    #[track_caller]
    fn quit(mut self) -> String {
        self.terminal.type_keys("q");
        let (code, text) = self.terminal.wait();
        assert_eq!(code, 0, "{text:?}");
        is_given_back(&text);
        text
    }
}

#[track_caller]
fn is_given_back(text: &str) {
    for sequence in ["\x1b[?1049l", "\x1b[?1000l", "\x1b[?25h"] {
        assert!(text.contains(sequence), "{sequence:?} is missing: {text:?}");
    }
}

/// Fails the test unless its help contains all of this.
pub(crate) fn help_says(sandbox: &Sandbox, parts: &[&str]) {
    let mut top = Top::open(sandbox, (120, 40), &[]);
    top.wait_for("? help");
    top.press("?", "move, or scroll");
    parts.iter().for_each(|part| top.wait_for(part));
    // The first closes the help.
    top.terminal.type_keys("qq");
    let (code, text) = top.terminal.wait();
    assert_eq!(code, 0, "{text:?}");
}

/// An agent whose iterations wait at a gate.
const WAITS: &str = "echo working on $REFRAIN_ITERATION; echo x > $NOTES/up; read -r _ < $GATES/go";

#[track_caller]
fn start(sandbox: &Sandbox, name: &str, script: &str, more: &[&str]) {
    let agent = sandbox.agent(name, script);
    let words = [&["start", "--command", &agent, "--name", name, "--detach", "--quiet"], more, &["Mend it."]]
        .concat();
    sandbox.refrain(&words).with_code(0);
}

#[test]
fn a_running_loop_is_shown_live_and_steered() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    start(&sandbox, "job", WAITS, &[]);
    let mut top = Top::open(&sandbox, (80, 24), &[]);
    top.wait_for("running");
    top.press("\r", "working on 1");
    assert!(top.screen().contains("goal  Mend it."), "{}", top.screen());
    top.press("slook at the tests", "tell job: look at the tests");
    top.press("\r", "will be told with its next attempt");
    gate.let_one_pass();
    top.wait_for("working on 2");
    assert!(sandbox.kept_text("job", "0002", "prompt.md").contains("look at the tests"));
    top.press("p", "will pause after this iteration");
    gate.let_one_pass();
    sandbox.wait_for_status("job", "paused");
    top.wait_for("next: refrain resume job");
    top.press("r", "working on 3");
    top.resize((40, 12));
    top.wait_for("3/20");
    top.resize((120, 40));
    top.wait_for("Iterations");
    top.press("c", "cancel job?");
    top.press("a", "cancelled");
    top.quit();
    sandbox.wait_for_status("job", "cancelled");
    sandbox.no_process_is_left();
}

#[test]
fn a_loop_that_waits_for_a_person_is_sent_back_and_approved() {
    let sandbox = sandbox();
    start(
        &sandbox,
        "job",
        "echo work >> work.txt; echo '<promise>COMPLETE</promise>'",
        &["--require-approval"],
    );
    sandbox.wait_for_status("job", "blocked");
    let mut top = Top::open(&sandbox, (120, 40), &[]);
    top.wait_for("blocked");
    // The list shows why it waits already; its goal only the opened loop.
    top.press("\r", "goal  Mend it.");
    top.press("r", "job waits for approval");
    top.press("A", "approve job?");
    top.press("b", "send job back");
    top.press("no cake\r", "job is sent back");
    top.wait_for("2/20");
    sandbox.wait_for_status("job", "blocked");
    top.press("A", "approve job?");
    top.press("y", "job is approved");
    sandbox.wait_for_status("job", "completed");
    top.quit();
}

#[test]
fn a_list_is_filtered_and_left_while_its_loops_continue() {
    let sandbox = sandbox();
    let _gate = sandbox.gate("go");
    start(&sandbox, "mend-the-parser", WAITS, &[]);
    start(&sandbox, "write-docs", &format!("echo docs\n{CLAIM}"), &["--share-worktree"]);
    sandbox.wait_for_status("write-docs", "completed");
    for size in [(80, 24), (120, 40), (40, 12)] {
        let mut top = Top::open(&sandbox, size, &[]);
        top.wait_for("mend-the");
        top.wait_for("unverified");
        let screen = top.screen();
        assert!(screen.lines().all(|line| line.chars().count() <= size.0.into()), "{screen}");
        top.terminal.type_keys("/docs\r");
        let is_alone = || Some(!top.screen().contains("mend-the")).filter(|is| *is);
        eventually("the other one is filtered out", is_alone);
        top.press("\r", "Activity");
        top.press("\x1b", "STATUS");
        top.press("\x1b", "mend-the");
        top.quit();
    }
    assert_eq!(sandbox.status("mend-the-parser")["status"], "running");
}

#[test]
fn a_new_loop_appears_and_a_capped_one_is_granted_more() {
    let sandbox = sandbox();
    let mut top = Top::open(&sandbox, (120, 40), &[]);
    top.wait_for("No loops yet");
    start(&sandbox, "job", "echo not yet", &["-m", "1"]);
    top.wait_for("iteration-cap");
    top.press("r", "resume job with:");
    top.press("\x15--max-iterations 3\r", "job continues");
    top.wait_for("3/3");
    top.quit();
    assert_eq!(sandbox.status("job")["charged"], 3);
}

#[test]
fn the_log_of_an_attempt_is_opened_from_its_loop_at_every_size() {
    let sandbox = sandbox();
    start(&sandbox, "job", "seq -f 'line %g' 60; echo 'the end of $REFRAIN_ITERATION'", &["-m", "2"]);
    sandbox.wait_for_status("job", "iteration-cap");
    let mut top = Top::open(&sandbox, (80, 24), &[]);
    top.wait_for("iteration-cap");
    top.press("\r", "Iterations");
    top.press("\t", "enter opens the log");
    // The rows come after the pane.
    top.wait_for("2    0s");
    top.press("k\r", "Log of job, iteration 1");
    top.wait_for("line 60");
    for size in [(40, 12), (200, 60), (80, 24)] {
        top.resize(size);
        top.wait_for("line 60");
    }
    top.press("/line 7\r", "line 7");
    top.press("\x1b", "iteration-cap");
    top.quit();
}

#[test]
fn changes_and_logs_are_read_in_the_users_pager() {
    let sandbox = sandbox();
    start(&sandbox, "job", "echo what the agent printed; echo made > made.txt", &["-m", "1"]);
    sandbox.wait_for_status("job", "iteration-cap");
    let pager = sandbox.agent("pager", "cat; echo 'the end of it'; read -r _ < /dev/tty");
    let mut top = Top::open_with(&sandbox, (80, 24), &[], &[("PAGER", &pager)]);
    top.wait_for("iteration-cap");
    top.press("d", "the end of it");
    assert!(top.screen().contains("+made") && !top.screen().contains("STATUS"), "{}", top.screen());
    // Keys are the pager's, and so is Ctrl-C, of which its whole process group hears.
    top.press("q\r", "STATUS");
    top.press("l", "what the agent printed\nthe end of it");
    signal_process(top.terminal.pid(), Signal::INT);
    top.press("\r", "STATUS");
    top.press("/nowhere", "filter: nowhere");
    top.press("\x1b", "? help");
    top.quit();
    // Without one, the program's own view is there.
    let mut top = Top::open_with(&sandbox, (80, 24), &[], &[("PAGER", "cat")]);
    top.wait_for("iteration-cap");
    top.press("d", "Changes of job");
    top.wait_for("+made");
    top.quit();
}

#[test]
fn no_key_is_lost_while_the_terminal_is_resized() {
    let sandbox = sandbox();
    let mut top = Top::open(&sandbox, (80, 24), &[]);
    top.wait_for("No loops yet");
    for round in 0..60 {
        top.resize(if round % 2 == 0 { (100, 30) } else { (80, 24) });
        let word = format!("word{round}");
        top.press(&format!("/{word}"), &word);
        top.press("\x15\x1b", "No loops yet");
    }
    top.quit();
}

#[test]
fn colours_are_limited_to_sixteen_or_none() {
    let sandbox = sandbox();
    start(&sandbox, "job", CLAIM, &[]);
    sandbox.wait_for_status("job", "completed");
    for (env, is_coloured) in [([("TERM", "xterm")], true), ([("NO_COLOR", "1")], false)] {
        let mut top = Top::open_with(&sandbox, (80, 24), &[], &env);
        top.wait_for("unverified");
        top.press("\r", "Activity");
        let text = top.quit();
        let colours = text.split("\x1b[").filter_map(|part| part.split_once('m'));
        let codes: Vec<_> = colours.map(|(codes, _)| codes.to_owned()).collect();
        let is_colour = |code: &String| code.split(';').any(|code| matches!(code, "31" | "32" | "33" | "36"));
        let has_more = |code: &String| code.starts_with("38;2") || code.starts_with("48;2");
        assert_eq!(
            codes.iter().any(|code| is_colour(code) || code.starts_with("38;5;")),
            is_coloured,
            "{env:?} {codes:?}"
        );
        assert!(!codes.iter().any(has_more), "{codes:?}");
    }
}

#[test]
fn the_theme_setting_precedes_the_terminal_colours() {
    let sandbox = sandbox();
    start(&sandbox, "job", CLAIM, &[]);
    sandbox.wait_for_status("job", "completed");
    for (theme, background, is_light) in
        [("dark", "0;15", false), ("light", "15;0", true), ("auto", "0;15", true)]
    {
        sandbox.refrain(&["config", "set", "top.theme", theme]).with_code(0);
        let top = Top::open_with(&sandbox, (80, 24), &[], &[("TERM", "xterm"), ("COLORFGBG", background)]);
        top.wait_for("unverified");
        let text = top.quit();
        let codes = text.split("\x1b[").filter_map(|part| part.split_once('m'));
        let is_yellow = |codes: &str| codes.contains("38;5;3;") || codes.split(';').any(|it| it == "33");
        let has_yellow = codes.map(|(codes, _)| codes).any(is_yellow);
        assert_eq!(has_yellow, !is_light, "{theme}: {text:?}");
    }
}

#[test]
fn a_damaged_loop_is_named_and_the_others_are_seen() {
    let sandbox = sandbox();
    for name in ["good", "torn"] {
        start(&sandbox, name, &format!("echo fine\n{CLAIM}"), &[]);
        sandbox.wait_for_status(name, "completed");
    }
    let journal = sandbox.loop_dir("torn").join("journal.jsonl");
    testkit::write(&journal, "no journal\x1b[2J\n");
    let mut top = Top::open(&sandbox, (80, 24), &[]);
    top.wait_for("damaged");
    top.wait_for("unverified");
    top.press("G", "journal.jsonl");
    top.quit();
}

#[test]
fn agent_output_controls_nothing() {
    let sandbox = sandbox();
    start(&sandbox, "job", &format!("{HOSTILE}\n{CLAIM}"), &[]);
    sandbox.wait_for_status("job", "completed");
    let mut top = Top::open(&sandbox, (80, 24), &[]);
    top.wait_for("unverified");
    top.press("\r", "Activity");
    top.wait_for("claims to be done");
    let text = top.quit();
    for sequence in ["\x1b]", "\x07", "\x08", "\x1b[6n", "\u{9b}", "\u{9d}"] {
        assert!(!text.contains(sequence), "{sequence:?} reached the terminal: {text:?}");
    }
}

#[test]
fn a_signal_gives_the_terminal_back() {
    let sandbox = sandbox();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let top = Top::open(&sandbox, (80, 24), &[]);
        top.wait_for("No loops yet");
        signal_process(top.terminal.pid(), signal);
        let (code, text) = top.terminal.wait();
        assert_eq!(code, 0, "{text:?}");
        is_given_back(&text);
    }
}

#[test]
fn without_a_terminal_top_names_the_alternatives() {
    let sandbox = sandbox();
    let run = sandbox.refrain(&["top"]).with_code(2);
    assert!(run.stderr.contains("refrain list") && run.stderr.contains("refrain watch"), "{run:?}");
    assert_eq!(run.stdout, "");
    let words = ["top"];
    let (code, text) = Terminal::open(&sandbox, &words, &[("TERM", "dumb")]).wait();
    assert_eq!(code, 2, "{text}");
    let (_, text) = Terminal::open(&sandbox, &["top", "extra"], &[]).wait();
    assert!(text.contains("extra"), "{text}");
}

#[test]
fn the_loops_of_other_projects_are_opened_too() {
    let sandbox = sandbox();
    let other = sandbox.root().join("other");
    sandbox.git(&["clone", "--quiet", ".", other.to_str().unwrap()]);
    let agent = sandbox.agent("agent", &format!("echo from elsewhere\n{CLAIM}"));
    let words =
        ["-C", other.to_str().unwrap(), "start", "--command", &agent, "--name", "far", "--quiet", "p"];
    sandbox.refrain(&words).with_code(0);
    let mut top = Top::open(&sandbox, (120, 40), &["--all-projects"]);
    top.wait_for("other");
    top.press("\r", "goal  p");
    top.quit();
}

#[test]
fn a_plan_is_seen_with_its_waves_and_tasks_and_the_loops_of_these_are_opened() {
    let sandbox = sandbox();
    let gate = sandbox.gate("go");
    let task = |id: u32, after: &[u32]| {
        format!(r#"{{"id": {id}, "title": "Task {id}", "status": "pending", "depends_on": {after:?}}}"#)
    };
    let tasks = [task(1, &[]), task(2, &[1]), task(3, &[2])].join(",");
    std::fs::create_dir_all(sandbox.project().join(".scud/tasks")).unwrap();
    let file = sandbox.project().join(".scud/tasks/x.json");
    testkit::write(&file, format!("{{\"tag\": \"x\", \"tasks\": [{tasks}]}}\n"));
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-qm", "Plan"]);
    let agent =
        sandbox.agent("worker", "echo at it; echo x > done.txt; read -r _ < $GATES/go; echo TASK_COMPLETE");
    let words =
        ["plan", "run", "--tag", "x", "--command", &agent, "--name", "x", "--verify", "true", "--detach"];
    sandbox.refrain(&words).with_code(0);
    let mut top = Top::open(&sandbox, (100, 40), &[]);
    top.wait_for("running plan");
    top.press("\r", "critical path  1 → 2 → 3");
    top.wait_for("in-progress");
    assert!(top.screen().contains("Wave 1"), "{}", top.screen());
    top.press("\r", "at it");
    top.press("\x1b", "critical path");
    top.press("G\r", "was not begun yet");
    gate.let_one_pass();
    top.wait_for("critical path  2 → 3");
    top.resize((60, 12));
    top.wait_for("Tasks");
    top.press("\t", "Waves");
    top.press("c", "cancel x?");
    top.press("a", "cancelled");
    top.quit();
}

#[test]
fn a_dumb_terminal_is_named_as_the_obstacle() {
    let (code, shown) = Terminal::open(&sandbox(), &["top"], &[("TERM", "dumb")]).wait();
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("TERM is dumb"), "{shown}");
}

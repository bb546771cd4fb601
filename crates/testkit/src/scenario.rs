//! Scenarios: sessions with the program in plain text, as a person types them, with the output that is expected.
//! CONTRIBUTING.md says how they are written. With `UPDATE_SCENARIOS=1` they are rewritten: a part of a line becomes the
//! whole line, a path without a value gets it, and all else that does not match becomes the output in full.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Invocation, Run, Sandbox, Session};

const INDENT: &str = "    ";
const STDERR: &str = "2> ";

/// Lines that begin at the margin, and the indented ones after them.
#[derive(Debug)]
struct Step {
    head: Vec<String>,
    body: Vec<String>,
    /// Empty lines after it.
    gap: usize,
}

/// Plays the scenario in this file with `program`, and fails the test at the first step that differs.
#[track_caller]
pub fn play(program: &str, path: &Path) {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_update = crate::npm::variable("UPDATE_SCENARIOS").is_some();
    let mut steps = parse(&text);
    let described = steps.first().is_some_and(|step| step.head[0].starts_with("# "));
    assert!(described, "{}: its first line is no comment that says what it shows", path.display());
    let mut stage = Stage::new(program, steps.iter().any(|step| step.head[0] == "in a plain folder"));
    for step in &mut steps {
        match stage.take(step) {
            Some(result) if is_update => *step = result,
            Some(result) => panic!(
                "{}: differs\n--- expected\n{}--- found\n{}(UPDATE_SCENARIOS=1 takes what is found)",
                path.display(),
                print(std::slice::from_ref(step)),
                print(&[result]),
            ),
            None => {}
        }
    }
    assert!(stage.background.is_none(), "{}: no `$ wait` for the command with `&`", path.display());
    stage.sandbox.no_process_is_left();
    if print(&steps) != text {
        assert!(is_update, "{}: it has a line that is neither a step nor indented", path.display());
        crate::write(path, print(&steps));
    }
}

fn parse(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        let continues = line.starts_with("> ") || line.starts_with("? ");
        match (steps.last_mut(), line.strip_prefix(INDENT)) {
            (Some(step), None) if line.is_empty() => step.gap += 1,
            (Some(step), Some(line)) => {
                step.body.extend(std::iter::repeat_n(String::new(), std::mem::take(&mut step.gap)));
                step.body.push(line.to_owned());
            }
            (Some(step), None) if continues => step.head.push(line.to_owned()),
            _ => steps.push(Step { head: vec![line.to_owned()], body: Vec::new(), gap: 0 }),
        }
    }
    steps
}

fn print(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        let indent = |line: &String| if line.is_empty() { String::new() } else { format!("{INDENT}{line}") };
        let lines = step.head.iter().cloned().chain(step.body.iter().map(indent));
        lines.chain(std::iter::repeat_n(String::new(), step.gap)).for_each(|line| text += &(line + "\n"));
    }
    text
}

/// A line of output, which a scenario may expect with its times and names of objects too.
struct Line {
    /// Without what differs from run to run.
    shown: String,
    raw: String,
}

/// Where a scenario is played.
struct Stage {
    sandbox: Sandbox,
    path: String,
    /// The command that ended with `&`, until `wait`.
    background: Option<Session>,
    /// The beginnings of the names of git's objects, in the order of their appearance.
    objects: Vec<String>,
}

impl Stage {
    fn new(program: &str, is_plain: bool) -> Self {
        let sandbox = if is_plain { Sandbox::without_git(program) } else { Sandbox::new(program) };
        let bin = sandbox.root().join("bin");
        fs::create_dir(&bin).expect("a folder can be made");
        std::os::unix::fs::symlink(program, bin.join("refrain")).expect("a link can be made");
        let usual = sandbox.env().into_iter().find(|(name, _)| *name == "PATH").expect("there is a PATH").1;
        let path = format!("{0}/bin:{0}/agents:{usual}", sandbox.root().display());
        Self { sandbox, path, background: None, objects: Vec::new() }
    }

    /// Takes a step. Returns it as it should be if it is not as expected.
    #[track_caller]
    fn take(&mut self, step: &Step) -> Option<Step> {
        let head = step.head[0].as_str();
        let body = || step.body.join("\n") + "\n";
        match head.split_once(' ').unwrap_or((head, "")) {
            ("$", command) => return self.run(command, step),
            ("agent", name) => drop(self.sandbox.agent(name, &step.body.join("\n"))),
            ("file", name) => {
                let path = self.sandbox.project().join(name);
                fs::create_dir_all(path.parent().expect("it is below the project")).expect("it can be made");
                crate::write(&path, if step.body.is_empty() { String::new() } else { body() });
            }
            ("#", _) => {}
            _ => assert_eq!(head, "in a plain folder", "this is no step of a scenario"),
        }
        None
    }

    #[track_caller]
    fn run(&mut self, command: &str, step: &Step) -> Option<Step> {
        let more = step.head[1..].iter().filter_map(|line| line.strip_prefix("> "));
        let command = more.fold(command.to_owned(), |all, line| all + "\n" + line);
        let expected = step.head.iter().find_map(|line| line.strip_prefix("? ")).unwrap_or("0");
        let (code, is_still) = match expected.split_once(' ') {
            Some((code, "unchanged")) => (code, true),
            _ => (expected, expected == "2"),
        };
        let before = is_still.then(|| self.sandbox.snapshot());
        let run = match command.strip_suffix(" &") {
            _ if command == "wait" => {
                self.background.take().expect("a command runs in the background").wait()
            }
            Some(command) => {
                let is_bare = expected == "0" && step.body.is_empty();
                assert!(is_bare, "{command} &: its exit code and output belong to its `$ wait`");
                assert!(
                    self.background.is_none(),
                    "another command runs in the background: wait for it first"
                );
                self.background = Some(self.shell(command).spawn());
                return None;
            }
            None => self.shell(&command).run(),
        };
        let is_changed = before.is_some_and(|before| before != self.sandbox.snapshot());
        assert!(!is_changed, "{command}: it changed files\n{}{}", run.stdout, run.stderr);
        let body = self.compare(&step.body, &run);
        if body.is_none() && run.code.to_string() == code {
            return None;
        }
        let mut head: Vec<_> = step.head.iter().filter(|line| !line.starts_with("? ")).cloned().collect();
        match run.code.to_string() {
            now if now == code => head.extend((expected != "0").then(|| format!("? {expected}"))),
            now => head.extend((now != "0").then(|| format!("? {now}"))),
        }
        Some(Step { head, body: body.unwrap_or_else(|| step.body.clone()), gap: step.gap })
    }

    fn shell(&self, command: &str) -> Invocation {
        self.sandbox.tool("sh", &["-c", command]).env("PATH", &self.path)
    }

    /// The output as it should be expected, if it is not as expected.
    fn compare(&mut self, expected: &[String], run: &Run) -> Option<Vec<String>> {
        let has_paths = expected.first().is_some_and(|line| line.starts_with('.') && line != "...");
        let json = serde_json::from_str::<Value>(&run.stdout).ok().filter(|_| has_paths);
        let mut lines: Vec<String> = if let Some(value) = json {
            let paths = expected.iter().filter(|line| line.starts_with('.'));
            let paths = paths.map(|line| line.split(" = ").next().unwrap_or_default());
            let shown = |path| select(&value, path).map_or("absent".to_owned(), |value| value.to_string());
            paths.map(|path| format!("{path} = {}", shown(path))).collect()
        } else {
            run.stdout.lines().map(str::to_owned).collect()
        };
        lines.extend(run.stderr.lines().map(|line| format!("{STDERR}{line}").trim_end().to_owned()));
        // Empty lines before the next step are the scenario's own.
        lines.truncate(lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
        let found: Vec<_> = lines.into_iter().map(|line| self.line(line)).collect();
        let shown = || found.iter().map(|line| line.shown.clone()).collect();
        (!is_match(expected, &found)).then(|| completed(expected, &found).unwrap_or_else(shown))
    }

    fn line(&mut self, line: String) -> Line {
        let root = self.sandbox.root().display().to_string();
        Line { shown: self.redact(&line), raw: line.replace(&root, "[root]") }
    }

    /// The text without what differs from run to run.
    fn redact(&mut self, text: &str) -> String {
        let mut redacted = String::new();
        for word in self.sandbox.redact(text).split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let name = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let is_hex = name.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
            if is_hex && [10, 12, 40, 64].contains(&name.len()) {
                let known = self.objects.iter().position(|object| name.starts_with(object));
                let at = known.unwrap_or(self.objects.len());
                self.objects.extend(known.is_none().then(|| name[..10].to_owned()));
                redacted += &word.replacen(name, &format!("[object {}]", at + 1), 1);
            } else {
                redacted += word;
            }
        }
        redacted
    }
}

/// The value at a path such as `.a.b[0].c` or `.a[].b`, the latter of each element.
fn select(value: &Value, path: &str) -> Option<Value> {
    let path = path.strip_prefix('.').unwrap_or(path);
    if let Some((index, rest)) = path.strip_prefix('[').and_then(|path| path.split_once(']')) {
        let items = value.as_array()?;
        return match index.parse::<usize>() {
            Ok(index) => select(items.get(index)?, rest),
            Err(_) => Some(items.iter().map(|item| select(item, rest).unwrap_or_default()).collect()),
        };
    }
    if path.is_empty() {
        return Some(value.clone());
    }
    let (key, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    select(value.get(key)?, rest)
}

fn is_match(expected: &[String], found: &[Line]) -> bool {
    match expected {
        [] => found.is_empty(),
        [line, rest @ ..] if line.trim_start_matches(STDERR) == "..." => {
            let is_stderr = |line: &str| line.starts_with(STDERR);
            let skippable = found.iter().take_while(|it| is_stderr(&it.raw) == is_stderr(line)).count();
            (0..=skippable).any(|skipped| is_match(rest, &found[skipped..]))
        }
        [line, rest @ ..] => found.split_first().is_some_and(|(first, more)| {
            (is_line(line, &first.shown) || is_line(line, &first.raw)) && is_match(rest, more)
        }),
    }
}

fn is_line(expected: &str, found: &str) -> bool {
    let Some((first, mut rest)) = expected.split_once("[..]") else { return expected == found };
    let Some(mut found) = found.strip_prefix(first) else { return false };
    while let Some((part, more)) = rest.split_once("[..]") {
        let Some(at) = found.find(part) else { return false };
        (found, rest) = (&found[at + part.len()..], more);
    }
    found.ends_with(rest)
}

/// With each line of which only a part is given as the whole line, if all of them are found in this order.
fn completed(expected: &[String], found: &[Line]) -> Option<Vec<String>> {
    let mut left = found.iter();
    let complete = |line: &String| match line.trim_start_matches(STDERR) {
        "..." => Some(line.clone()),
        part => left.find_map(|found| match found {
            Line { raw, .. } if is_line(line, raw) => Some(line.clone()),
            Line { shown, .. } => (is_line(line, shown) || shown.contains(part)).then(|| shown.clone()),
        }),
    };
    let lines: Vec<_> = expected.iter().map(complete).collect::<Option<_>>()?;
    is_match(&lines, found).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn printed(text: &str) -> Vec<Line> {
        text.lines().map(|line| Line { shown: line.replace("2s", "[took]"), raw: line.to_owned() }).collect()
    }

    #[test]
    fn what_is_elided_may_be_anything_on_the_same_stream() {
        let found = printed("one\ntwo 2s and\nthree\n2> note: four");
        for (expected, matches) in [
            ("one\ntwo [took] and\nthree\n2> note: four", true),
            ("one\ntwo 2s and\n...\n2> ...", true),
            ("one\ntwo 3s and\n...\n2> ...", false),
            ("...\ntwo [..] and\n...\n2> ...", true),
            ("one\n...\nthree\n...\n2> note: [..]our", true),
            ("...\ntwo\n...\n2> ...", false),
            ("...\nthree\none\n...\n2> ...", false),
            ("one\ntwo [took] and\nthree", false),
            ("...", false),
            ("...\nfour\n2> ...", false),
        ] {
            assert_eq!(is_match(&lines(expected), &found), matches, "{expected}");
        }
        let partial = lines("...\ntwo\n...\n2> note");
        assert_eq!(completed(&partial, &found), Some(lines("...\ntwo [took] and\n...\n2> note: four")));
        assert_eq!(completed(&lines("...\nfive\n...\n2> ..."), &found), None);
    }

    #[test]
    fn a_scenario_is_printed_as_it_was_read() {
        let text = "# A note.\n\nagent a\n    true\n\n    false\n$ a\n> b\n? 1\n    ...\n\n$ c\n";
        assert_eq!(print(&parse(text)), text);
    }

    #[test]
    fn a_path_selects_one_value_or_that_of_each_element() {
        let value = serde_json::json!({"a": [{"b": 1}, {"b": [2, 3]}], "c d": null});
        for (path, found) in
            [(".a[0].b", "1"), (".a[].b", "[1,[2,3]]"), (".a[1].b[1]", "3"), (".c d", "null")]
        {
            assert_eq!(select(&value, path).unwrap().to_string(), found, "{path}");
        }
        for path in [".no", ".a[2]", ".a.b", ".a[0].b[0]"] {
            assert_eq!(select(&value, path), None, "{path}");
        }
    }
}

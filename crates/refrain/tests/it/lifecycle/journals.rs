//! `verify`, and damaged journals: a changed byte is found and nothing is written; a torn tail is set aside.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use testkit::Sandbox;

use crate::{CLAIM, sandbox};

fn finished(sandbox: &Sandbox) -> (PathBuf, Vec<u8>) {
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "--quiet", "p"]).with_code(0);
    let path = sandbox.loop_dir("job").join("journal.jsonl");
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

/// The distance of the sampled positions: the store's own tests try every byte, without starting a process.
const STEP: usize = 11;

#[test]
fn verify_finds_any_single_flipped_byte() {
    let sandbox = sandbox();
    let (path, whole) = finished(&sandbox);
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    let positions = (0..whole.len()).step_by(STEP).chain(ends);
    for (k, at) in positions.enumerate() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (k % 8);
        testkit::write(&path, &bytes);
        let run = sandbox.refrain(&["verify", "job"]);
        let says_torn = run.code == 0 && run.stdout.contains("torn");
        let is_last_newline = at == whole.len() - 1;
        assert!(run.code == 1 || (says_torn && is_last_newline), "byte {at} of {}: {run:?}", whole.len());
        if run.code == 1 {
            let line = 1 + whole[..at].iter().filter(|byte| **byte == b'\n').count();
            let named = [line, line + 1].iter().any(|line| run.stderr.contains(&format!("{line}")));
            assert!(run.stderr.contains("journal.jsonl") && named, "byte {at}, line {line}: {}", run.stderr);
        }
        assert_eq!(fs::read(&path).unwrap(), bytes, "readers never repair");
    }
}

#[test]
fn verify_finds_lines_that_are_missing_doubled_or_swapped() {
    let sandbox = sandbox();
    let (path, whole) = finished(&sandbox);
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let [mut missing, mut doubled, mut swapped] = [lines.clone(), lines.clone(), lines.clone()];
    missing.remove(2);
    doubled.insert(2, lines[2]);
    swapped.swap(2, 3);
    for (what, lines) in [("missing", missing), ("doubled", doubled), ("swapped", swapped)] {
        testkit::write(&path, lines.concat());
        let run = sandbox.refrain(&["verify", "job"]);
        assert_eq!(run.code, 1, "{what}: {run:?}");
    }
}

#[test]
fn a_damaged_journal_is_never_written_to() {
    let sandbox = sandbox();
    let (path, mut bytes) = finished(&sandbox);
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    testkit::write(&path, &bytes);
    for words in [
        ["resume", "job"].as_slice(),
        &["cancel", "job"],
        &["pause", "job"],
        &["steer", "job", "x"],
        &["archive", "job"],
    ] {
        let run = sandbox.refrain(words).with_code(1);
        assert!(run.stderr.contains("journal.jsonl"), "{words:?}: {}", run.stderr);
        assert_eq!(fs::read(&path).unwrap(), bytes, "{words:?} wrote to it");
    }
}

#[test]
fn verify_says_when_a_tail_was_torn_and_the_next_writer_puts_it_aside() {
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", "true");
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "-m", "2", "-q", "p"]).with_code(10);
    let path = sandbox.loop_dir("job").join("journal.jsonl");
    let whole = fs::read(&path).unwrap();
    let intact = sandbox.refrain(&["verify", "job"]).with_code(0);
    assert!(!intact.stdout.contains("torn"), "{}", intact.stdout);

    let torn = &whole[..whole.len() - 20];
    testkit::write(&path, torn);
    sandbox.forget_signed_records();
    let run = sandbox.refrain(&["verify", "job"]).with_code(0);
    assert!(run.stdout.contains("records, each as it was written\n  its tail was torn"), "{}", run.stdout);
    let verdict = sandbox.refrain(&["verify", "job", "--json"]).with_code(0).json();
    let start_of_last = torn.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    assert_eq!(verdict["torn_bytes"], torn.len() - start_of_last);
    assert_eq!(sandbox.status("job")["status"], "crashed", "what is torn did not happen");
    assert_eq!(fs::read(&path).unwrap(), torn, "readers never repair");

    sandbox.refrain(&["resume", "job"]).with_code(10);
    let names = sandbox.event_names("job");
    assert!(names.contains(&"journal.torn".to_owned()), "{names:?}");
    let kept: Vec<Vec<u8>> = fs::read_dir(sandbox.loop_dir("job"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| fs::read(entry.path()).ok())
        .filter(|bytes| *bytes == torn[start_of_last..])
        .collect();
    assert_eq!(kept.len(), 1, "the torn bytes are kept beside it");
    let run = sandbox.refrain(&["verify", "job"]).with_code(0);
    assert!(!run.stdout.contains("torn"), "{}", run.stdout);
}

/// How much there is of a journal whose first record is cut off: of `whole`, so many bytes; or no file at all.
fn beheaded(whole: &[u8]) -> [Option<usize>; 4] {
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
    [Some(0), Some(100), Some(first), None]
}

#[test]
fn a_loop_whose_first_record_is_cut_off_is_listed_as_damaged_by_every_verb() {
    let sandbox = sandbox();
    let (path, whole) = finished(&sandbox);
    let agent = sandbox.agent("agent", CLAIM);
    for length in beheaded(&whole) {
        match length {
            Some(length) => testkit::write(&path, &whole[..length]),
            None => fs::remove_file(&path).unwrap(),
        }
        let before = fs::read(&path).ok();
        let rows = sandbox.refrain(&["list", "--json"]).with_code(0).json();
        let row = &rows[0];
        assert_eq!((&row["id"], &row["status"]), (&json!("job"), &json!("damaged")), "{length:?}: {rows}");
        assert!(row["reason"].as_str().unwrap().contains("journal.jsonl, line 1"), "{rows}");
        let listed = sandbox.refrain(&["list"]).with_code(0).stdout;
        assert!(listed.contains("job") && listed.contains("damaged"), "{length:?}: {listed}");
        assert!(listed.contains("refrain verify job"), "{listed}");
        let status = sandbox.refrain(&["status", "job", "--json"]).with_code(1).json();
        assert_eq!(&status, row);
        for words in [
            ["status", "job"].as_slice(),
            &["status"],
            &["show", "job"],
            &["logs", "job"],
            &["report", "job"],
            &["verify", "job"],
            &["verify"],
            &["resume", "job"],
            &["resume"],
            &["pause", "job"],
            &["cancel", "job"],
            &["steer", "job", "x"],
            &["approve", "job"],
            &["archive", "job"],
        ] {
            let run = sandbox.refrain(words).with_code(1);
            assert!(run.stderr.contains("journal.jsonl, line 1"), "{words:?}: {}", run.stderr);
            let is_told = words[0] == "verify" || run.stderr.contains("refrain verify job");
            assert!(is_told, "{words:?}: {}", run.stderr);
        }
        let verdict = sandbox.refrain(&["verify", "job", "--json"]).with_code(1).json();
        assert_eq!((&verdict["intact"], &verdict["records"]), (&json!(false), &json!(0)));
        let doctor = sandbox.refrain(&["doctor"]).with_code(1);
        assert!(doctor.stdout.contains("journal.jsonl, line 1"), "{}", doctor.stdout);
        assert!(!doctor.stdout.contains("no loops here yet"), "{}", doctor.stdout);
        let start = ["start", "--command", &agent, "--name", "job", "-q", "p"];
        sandbox.refrain(&start).with_code(17);
        assert_eq!(fs::read(&path).ok(), before, "nothing is written to it");
    }
    fs::rename(sandbox.loop_dir("job"), sandbox.root().join("away")).unwrap();
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "-q", "p"]).with_code(0);
}

#[test]
fn a_plan_whose_first_record_is_cut_off_is_listed_as_damaged() {
    let sandbox = sandbox();
    let plan = sandbox.project().join(".git/refrain/plans/px");
    fs::create_dir_all(&plan).unwrap();
    testkit::write(&plan.join("journal.jsonl"), "{\"seq\":1,");
    testkit::write(&plan.join("runner.log"), "");
    let row = &sandbox.refrain(&["list", "--json"]).with_code(0).json()[0];
    let seen = (&row["id"], &row["kind"], &row["status"]);
    assert_eq!(seen, (&json!("px"), &json!("plan"), &json!("damaged")));
    for words in [["status", "px", "--json"].as_slice(), &["plan", "status", "px", "--json"]] {
        assert_eq!(sandbox.refrain(words).with_code(1).json()["status"], "damaged");
    }
    for words in
        [["show", "px"].as_slice(), &["verify", "px"], &["resume", "px"], &["cancel", "px"], &["doctor"]]
    {
        let run = sandbox.refrain(words).with_code(1);
        let told = [run.stdout, run.stderr].concat();
        assert!(told.contains("journal.jsonl, line 1"), "{words:?}: {told}");
    }
}

#[test]
fn a_start_that_was_killed_in_its_first_write_is_no_loop() {
    let sandbox = sandbox();
    let (path, whole) = finished(&sandbox);
    fs::remove_dir_all(sandbox.loop_dir("job")).unwrap();
    fs::create_dir_all(sandbox.loop_dir("job").join("inbox")).unwrap();
    for length in beheaded(&whole).into_iter().flatten() {
        testkit::write(&path, &whole[..length]);
        assert_eq!(sandbox.refrain(&["list", "--json"]).with_code(0).json(), json!([]), "{length} bytes");
        sandbox.refrain(&["status", "job"]).with_code(3);
        sandbox.refrain(&["resume", "job"]).with_code(3);
    }
    let agent = sandbox.agent("agent", CLAIM);
    sandbox.refrain(&["start", "--command", &agent, "--name", "job", "-q", "p"]).with_code(0);
    assert_eq!(sandbox.status("job")["status"], "completed");
}

#[test]
fn verify_names_a_log_that_was_deleted_and_says_that_the_journal_is_intact() {
    let sandbox = sandbox();
    finished(&sandbox);
    fs::remove_file(sandbox.loop_dir("job").join("iterations/0001/output.log")).unwrap();
    let run = sandbox.refrain(&["verify", "job"]).with_code(1);
    for part in [
        "every byte as it was written\n",
        "DIFFERS: iterations/0001/output.log: it is not there any more\n",
        "the journal itself is intact; only the files named above are not as it says\n",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
}

#[test]
fn a_journal_that_cannot_be_read_is_said_so_in_list_and_status() {
    let sandbox = sandbox();
    let (path, _) = finished(&sandbox);
    sandbox.refrain(&["list"]).with_code(0);
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let listed = sandbox.refrain(&["list"]).with_code(0).stdout;
    assert!(listed.contains("damaged") && listed.contains("refrain verify job"), "{listed}");
    let refused = sandbox.refrain(&["status", "job"]).with_code(1);
    for part in ["journal.jsonl", "Is a directory", "nothing was changed", "refrain doctor"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
}

#[test]
fn a_journal_of_a_newer_version_is_named_as_such() {
    let sandbox = sandbox();
    let (path, whole) = finished(&sandbox);
    let text = String::from_utf8(whole).unwrap().replacen("\"format\":2", "\"format\":99", 1);
    assert!(text.contains("\"format\":99"));
    testkit::write(&path, text);
    sandbox.refrain(&["status", "job"]).with_code(1);
    sandbox.refrain(&["resume", "job"]).with_code(1);
}

#[test]
fn raw_files_are_readable_only_by_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = sandbox();
    let agent = sandbox.agent("agent", &format!("echo err >&2\n{CLAIM}"));
    sandbox
        .refrain(&["start", "--command", &agent, "--name", "job", "-q", "--env", "KEY=hunter2", "p"])
        .with_code(0);
    let dir = sandbox.loop_dir("job");
    for name in [
        "journal.jsonl",
        "iterations/0001/output.log",
        "iterations/0001/stderr.log",
        "iterations/0001/prompt.md",
    ] {
        let mode = fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name} is {mode:o}");
    }
}

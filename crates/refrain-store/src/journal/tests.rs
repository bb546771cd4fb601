//! What a journal promises: every byte counts, a torn tail is distinguished from damage, and what is deleted comes
//! back.

use std::fs;
use std::io::Write;
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use refrain_core::event::{Ask, Asker, End, FORMAT, Identity, LoopStarted, Process, Urgency};
use refrain_core::signature::Signatures;
use refrain_core::spec::{AgentKind, AgentSpec, Limits};
use refrain_core::{AttemptId, Damage, Event, LoopState, Spec};

use super::{
    Durability, Journal, JournalError, Tail, Unreplicated, Witness, read, read_believed, read_signed,
    records, whole,
};
use crate::access::signing::Signing;
use crate::project::layout::LoopDir;

pub(super) struct Sandbox {
    _dir: tempfile::TempDir,
    pub(super) loop_dir: LoopDir,
}

pub(super) fn sandbox() -> Sandbox {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
    Sandbox { _dir: dir, loop_dir: LoopDir(path.join("loops/a")) }
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

pub(crate) fn started() -> Event {
    let here = Utf8PathBuf::from("/project");
    Event::LoopStarted(Box::new(LoopStarted {
        format: FORMAT,
        refrain: "0.0.0".into(),
        spec: Spec {
            limits: Limits { max_iterations: Some(20), ..Limits::default() },
            ..Spec::new(
                "a".parse().unwrap(),
                AgentSpec::new(AgentKind::Generic, "agent"),
                "Mend the tests: \"quoted\", ünïcode\nand lines.",
                here.clone(),
            )
        },
    }))
}

/// A home without a key.
pub(super) fn unsigned(dir: &LoopDir) -> Signing {
    Signing::new(&dir.0.join("no-state"), &dir.0.join("no-config"))
}

/// A journal with a few records, the last one not synced.
fn sample(dir: &LoopDir) -> Journal {
    let mut journal: Journal = Journal::create(dir.clone(), started(), at(0)).unwrap();
    let process = Process { pid: 7, start: 8 };
    let runner = Identity { process, boot: "b".into(), host: "h".into() };
    journal
        .push(
            Event::RunnerStarted { runner, interrupted: None, adopted: None, judged: None, fence: None },
            at(1),
        )
        .unwrap();
    journal.push(Event::IterationBegun { iteration: 1, work: None }, at(2)).unwrap();
    journal.push(Event::AttemptStarted(AttemptId { iteration: 1, attempt: 1 }), at(3)).unwrap();
    journal.commit(Durability::Synced).unwrap();
    journal.push(Event::AttemptSpawned { process }, at(4)).unwrap();
    journal.commit(Durability::Written).unwrap();
    journal
}

#[test]
fn committed_records_are_read_back() {
    let sandbox = sandbox();
    let journal = sample(&sandbox.loop_dir);
    let snapshot = read(&sandbox.loop_dir).unwrap();
    assert_eq!(snapshot.state, *journal.state());
    assert_eq!((snapshot.state.seq, snapshot.torn), (5, 0));
    let checked = whole(&sandbox.loop_dir, &unsigned(&sandbox.loop_dir)).unwrap();
    assert_eq!((checked.records.len(), checked.hashes.len(), checked.torn), (5, 5, 0));
    let again: Journal = Journal::open(sandbox.loop_dir.clone(), at(9)).unwrap();
    assert_eq!(again.state(), journal.state());
}

/// A remote that may be away, or have another owner.
#[derive(Debug, Default)]
struct Remote {
    has: Mutex<(u64, Vec<u8>)>,
    fails: Mutex<Option<Unreplicated>>,
}

impl Witness for Remote {
    fn replicate(&self, seq: u64, journal: &[u8]) -> Result<(), Unreplicated> {
        match self.fails.lock().unwrap().clone() {
            Some(why) => Err(why),
            None => {
                *self.has.lock().unwrap() = (seq, journal.to_vec());
                Ok(())
            }
        }
    }

    fn covers(&self, seq: u64) -> bool {
        self.has.lock().unwrap().0 >= seq
    }
}

#[test]
fn replicated_records_equal_those_on_disk() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    journal.commit(Durability::Replicated).unwrap();
    let remote = Arc::new(Remote::default());
    journal.replicate_to(remote.clone());
    let swept = || Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] };
    journal.push(swept(), at(5)).unwrap();
    journal.commit(Durability::Synced).unwrap();
    assert!(remote.has.lock().unwrap().1.is_empty() && !journal.is_replicated());
    journal.commit(Durability::Replicated).unwrap();
    let on_disk = fs::read(sandbox.loop_dir.journal()).unwrap();
    assert_eq!(*remote.has.lock().unwrap(), (6, on_disk));
    assert!(journal.is_replicated());

    *remote.fails.lock().unwrap() = Some(Unreplicated::Unreachable("away".into()));
    journal.push(swept(), at(6)).unwrap();
    let error = journal.commit(Durability::Replicated).unwrap_err();
    assert!(matches!(error, JournalError::Unreplicated(Unreplicated::Unreachable(_))), "{error}");
    assert_eq!(read(&sandbox.loop_dir).unwrap().state.seq, 7, "it is on disk all the same");
    *remote.fails.lock().unwrap() = None;
    journal.commit(Durability::Replicated).unwrap();
    assert!(journal.is_replicated());
}

#[test]
fn pushed_events_are_on_disk_only_once_they_are_committed() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    journal.push(Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] }, at(5)).unwrap();
    assert_eq!(read(&sandbox.loop_dir).unwrap().state.seq, 5);
    journal.commit(Durability::Written).unwrap();
    assert_eq!(read(&sandbox.loop_dir).unwrap().state.seq, 6);
}

#[test]
fn any_single_changed_byte_is_found() {
    let sandbox = sandbox();
    let _journal = sample(&sandbox.loop_dir);
    let path = sandbox.loop_dir.journal();
    let good = fs::read(&path).unwrap();
    let last = good.len() - 1;
    for position in 0..good.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut bad = good.clone();
            bad[position] ^= bit;
            write(&path, &bad);
            match whole(&sandbox.loop_dir, &unsigned(&sandbox.loop_dir)) {
                Err(JournalError::Damaged { line, .. }) => {
                    let expected = 1 + good[..position].iter().filter(|byte| **byte == b'\n').count();
                    // A missing line break joins two lines: the damage is reported on the first.
                    assert_eq!(line as usize, expected, "byte {position}");
                }
                // Without its line break the last line is a write that was cut off: reported, not silently skipped.
                Ok(found) => assert!(position == last && found.torn > 0, "byte {position}"),
                Err(other) => panic!("byte {position}: {other}"),
            }
        }
    }
}

#[test]
fn every_cut_leaves_a_journal_that_can_be_read_and_written() {
    let sandbox = sandbox();
    let whole = sample(&sandbox.loop_dir);
    let path = sandbox.loop_dir.journal();
    let good = fs::read(&path).unwrap();
    let first = good.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    drop(whole);
    for length in 0..good.len() {
        write(&path, &good[..length]);
        let whole_lines = good[..length].iter().filter(|byte| **byte == b'\n').count();
        if length < first {
            assert!(matches!(read(&sandbox.loop_dir), Err(JournalError::Missing(_))), "{length}");
            continue;
        }
        let snapshot = read(&sandbox.loop_dir).unwrap();
        assert_eq!(snapshot.state.seq, whole_lines as u64, "{length}");
        let torn = snapshot.torn;

        let mut journal: Journal = Journal::open(sandbox.loop_dir.clone(), at(60)).unwrap();
        journal.push(Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] }, at(61)).unwrap();
        journal.commit(Durability::Synced).unwrap();
        assert_eq!(read(&sandbox.loop_dir).unwrap().torn, 0);
        let cut = records(&sandbox.loop_dir).unwrap().iter().find_map(|record| match &record.event {
            Event::JournalTorn { bytes, kept_as } => Some((*bytes, kept_as.clone())),
            _ => None,
        });
        match cut {
            Some((bytes, kept_as)) => {
                assert_eq!(bytes, torn);
                let kept = fs::read(sandbox.loop_dir.0.join(kept_as)).unwrap();
                assert_eq!(kept, good[length - torn as usize..length], "the tail is kept beside it");
            }
            None => assert_eq!(torn, 0),
        }
    }
}

#[test]
fn a_deleted_journal_is_written_back() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    fs::remove_dir_all(sandbox.loop_dir.0.parent().unwrap()).unwrap();
    journal.push(Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] }, at(5)).unwrap();
    journal.commit(Durability::Synced).unwrap();
    let snapshot = read(&sandbox.loop_dir).unwrap();
    assert_eq!(snapshot.state, *journal.state(), "nothing is missing");
    let last = records(&sandbox.loop_dir).unwrap().pop().unwrap();
    assert!(matches!(last.event, Event::JournalRestored { .. }), "and it is on record: {last:?}");
}

#[test]
fn a_journal_that_was_deleted_alone_is_written_back_too() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    let _held = crate::RunnerLock::try_take(&sandbox.loop_dir).unwrap().unwrap();
    fs::remove_file(sandbox.loop_dir.journal()).unwrap();
    journal.push(Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] }, at(5)).unwrap();
    journal.commit(Durability::Synced).unwrap();
    assert_eq!(read(&sandbox.loop_dir).unwrap().state, *journal.state());
}

#[test]
fn a_writer_whose_lock_was_deleted_takes_it_again_unless_another_has() {
    let sandbox = sandbox();
    let dir = &sandbox.loop_dir;
    crate::make_dir_nofollow(&dir.0).unwrap();
    let _first = crate::RunnerLock::try_take(dir).unwrap().unwrap();
    let mut journal = sample(dir);
    assert!(journal.is_in_place());
    fs::remove_file(dir.runner_lock()).unwrap();
    assert!(!journal.is_in_place());
    journal.keep_lock().unwrap();
    assert!(journal.is_in_place() && !crate::RunnerLock::is_free(dir));
    for deleted in [dir.runner_lock(), dir.0.clone()] {
        let is_file = deleted.is_file();
        if is_file {
            fs::remove_file(&deleted).unwrap()
        } else {
            fs::remove_dir_all(&deleted).unwrap()
        }
        let other = crate::RunnerLock::claim(dir).unwrap().unwrap();
        assert!(matches!(journal.keep_lock(), Err(JournalError::Usurped(_))));
        if !is_file {
            journal.push(Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] }, at(5)).unwrap();
            assert!(matches!(journal.commit(Durability::Synced), Err(JournalError::Usurped(_))));
        }
        drop(other);
    }
}

/// A file with another name stays alive, but no reader finds it any more.
#[test]
fn a_journal_that_was_given_another_name_is_written_back() {
    let sandbox = sandbox();
    let (mut journal, _held) = driven(&sandbox.loop_dir);
    let other = sandbox.loop_dir.0.join("other");
    fs::hard_link(sandbox.loop_dir.journal(), &other).unwrap();
    crate::write_atomic(&sandbox.loop_dir.journal(), b"something else\n").unwrap();
    journal.push(Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] }, at(5)).unwrap();
    journal.commit(Durability::Synced).unwrap();
    assert_eq!(read(&sandbox.loop_dir).unwrap().state, *journal.state());
    assert_eq!(fs::read(sandbox.loop_dir.0.join("foreign-1")).unwrap(), b"something else\n");
}

fn driven(dir: &LoopDir) -> (Journal, crate::RunnerLock) {
    let held = crate::RunnerLock::claim(dir).unwrap().unwrap();
    (sample(dir), held)
}

/// The changes of another process to a journal while its writer was at work.
fn foreign(dir: &LoopDir, own: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let path = dir.journal();
    let forged = {
        let mut other: Journal = Journal::open(dir.clone(), at(9)).unwrap();
        other
            .push(Event::Asked { request: None, ask: Ask::Pause(Urgency::Now), by: Asker::Person }, at(10))
            .unwrap();
        other.commit(Durability::Synced).unwrap();
        fs::read(&path).unwrap()
    };
    let mut changed = own.to_vec();
    changed[20] ^= 1;
    vec![
        ("a record was appended", forged),
        ("half a line was appended", [own, b"{\"seq\":6,"].concat()),
        ("a byte was changed", changed),
        ("it was cut", own[..own.len() - 30].to_vec()),
        ("it was emptied", Vec::new()),
        ("it was made longer", [own, own, own].concat()),
    ]
}

#[test]
fn a_journal_changed_by_another_process_is_put_aside_and_recorded() {
    let sandbox = sandbox();
    let dir = &sandbox.loop_dir;
    let (mut journal, _held) = driven(dir);
    let own = fs::read(dir.journal()).unwrap();
    for (number, (what, bytes)) in (1..).zip(foreign(dir, &own)) {
        let own = journal.state().clone();
        fs::File::options()
            .write(true)
            .truncate(true)
            .open(dir.journal())
            .unwrap()
            .write_all(&bytes)
            .unwrap();
        assert!(!journal.is_in_place(), "{what}");
        journal.push(Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] }, at(20)).unwrap();
        journal.commit(Durability::Synced).unwrap();
        assert!(journal.is_in_place(), "{what}");
        assert_eq!(read(dir).unwrap().state, *journal.state(), "{what}");
        assert_eq!(journal.state().seq, own.seq + 2, "{what}");
        let name = format!("foreign-{number}");
        let last = records(dir).unwrap().pop().unwrap().event;
        let Event::JournalRestored { kept_as: Some(kept_as), .. } = last else { panic!("{what}: {last:?}") };
        assert_eq!((&kept_as, fs::read(dir.0.join(&name)).unwrap()), (&name, bytes), "{what}");
    }
}

#[test]
fn a_journal_with_changed_permissions_stays_its_writers() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = sandbox();
    let (mut journal, _held) = driven(&sandbox.loop_dir);
    fs::set_permissions(sandbox.loop_dir.journal(), fs::Permissions::from_mode(0o640)).unwrap();
    journal.push(Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] }, at(5)).unwrap();
    journal.commit(Durability::Synced).unwrap();
    assert!(matches!(records(&sandbox.loop_dir).unwrap().pop().unwrap().event, Event::AttemptSwept { .. }));
}

#[test]
fn a_reader_of_a_restored_journal_restarts_if_its_records_are_gone() {
    let sandbox = sandbox();
    let dir = &sandbox.loop_dir;
    let (mut journal, _held) = driven(dir);
    let (mut early, mut late) = (Tail::<Event>::new(dir), Tail::<Event>::new(dir));
    assert_eq!(early.next(u64::MAX).unwrap().len(), 5);
    let own = fs::read(dir.journal()).unwrap();
    let (_, forged) = foreign(dir, &own).remove(0);
    fs::File::options().write(true).truncate(true).open(dir.journal()).unwrap().write_all(&forged).unwrap();
    assert_eq!(late.next(u64::MAX).unwrap().len(), 6);
    journal.commit(Durability::Synced).unwrap();
    let seqs = |tail: &mut Tail| tail.next(u64::MAX).unwrap().iter().map(|it| it.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&mut early), [6], "what it read is still there");
    assert_eq!(seqs(&mut late), [1, 2, 3, 4, 5, 6]);
}

/// A loop goes to the archive under its own name; nothing is made anew where it was. Another name is no loop's.
#[test]
fn a_journal_moves_with_its_folder() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    let named = |name: &str| LoopDir(sandbox.loop_dir.0.with_file_name(name));
    let moved = named("a-2026-11-28T04-55-00Z");
    fs::rename(&sandbox.loop_dir.0, &moved.0).unwrap();
    journal.push(Event::AttemptSwept { killed: 1, survivors: vec![], names: vec![] }, at(5)).unwrap();
    journal.commit(Durability::Synced).unwrap();
    assert_eq!(read(&moved).unwrap().state, *journal.state());
    assert!(!sandbox.loop_dir.0.exists());
    for name in ["b", "a-b", "a-b-2026-11-28T04-55-00Z", "a-"] {
        fs::rename(&moved.0, &named(name).0).unwrap();
        let damaged = read(&named(name));
        assert!(matches!(&damaged, Err(JournalError::Damaged { line: 1, .. })), "{name}: {damaged:?}");
        fs::rename(&named(name).0, &moved.0).unwrap();
    }
}

#[test]
fn a_loop_is_made_once() {
    let sandbox = sandbox();
    let _journal = sample(&sandbox.loop_dir);
    let again = Journal::<LoopState>::create(sandbox.loop_dir.clone(), started(), at(9));
    assert!(matches!(again, Err(JournalError::Taken(_))));
}

#[test]
fn the_first_half_of_a_first_line_is_no_loop() {
    let sandbox = sandbox();
    fs::create_dir_all(&sandbox.loop_dir.0).unwrap();
    write(&sandbox.loop_dir.journal(), b"{\"seq\":1,\"at\":");
    assert!(Journal::<LoopState>::create(sandbox.loop_dir.clone(), started(), at(0)).is_ok());
    assert_eq!(read(&sandbox.loop_dir).unwrap().state.seq, 1);
}

#[test]
fn two_writers_do_not_mix() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    let mut other = Journal::open(sandbox.loop_dir.clone(), at(9)).unwrap();
    other
        .push(Event::Asked { request: None, ask: Ask::Pause(Urgency::Now), by: Default::default() }, at(10))
        .unwrap();
    other.commit(Durability::Synced).unwrap();
    journal.push(Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] }, at(11)).unwrap();
    assert!(matches!(journal.commit(Durability::Synced), Err(JournalError::Foreign(_))));
    journal.push(Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] }, at(12)).unwrap();
    assert!(
        matches!(journal.commit(Durability::Synced), Err(JournalError::Failed(_))),
        "a failed writer stays so"
    );
    assert_eq!(read(&sandbox.loop_dir).unwrap().state, *other.state());
}

#[test]
fn an_event_that_cannot_follow_changes_nothing() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    let before = journal.state().clone();
    assert!(journal.push(Event::IterationBegun { iteration: 7, work: None }, at(5)).is_err());
    assert_eq!(*journal.state(), before);
    assert!(!journal.has_pending());
}

#[test]
fn a_journal_of_another_version_is_refused_as_such() {
    let sandbox = sandbox();
    let Event::LoopStarted(mut newer) = started() else { unreachable!() };
    newer.format = FORMAT + 1;
    let made = Journal::<LoopState>::create(sandbox.loop_dir.clone(), Event::LoopStarted(newer), at(0));
    assert!(
        matches!(made, Err(JournalError::OutOfOrder(_, Damage::Format { found })) if found == FORMAT + 1)
    );
}

#[test]
fn a_clock_that_was_set_back_does_not_turn_a_journal_around() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    journal.push(Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] }, at(-500)).unwrap();
    journal.commit(Durability::Written).unwrap();
    let records = records(&sandbox.loop_dir).unwrap();
    assert!(records.is_sorted_by_key(|record| record.at));
}

#[test]
fn a_tail_sees_whole_lines_as_they_come() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    let mut tail: Tail = Tail::new(&sandbox.loop_dir);
    assert_eq!(tail.next(u64::MAX).unwrap().len(), 5);
    assert!(tail.next(u64::MAX).unwrap().is_empty());
    let length = journal.batch(Durability::Written).write().unwrap().length;
    journal.push(Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] }, at(5)).unwrap();
    journal.commit(Durability::Written).unwrap();
    assert!(tail.next(length).unwrap().is_empty(), "not beyond what is committed");
    assert_eq!(tail.next(u64::MAX).unwrap()[0].seq, 6);
}

/// The screen that an agent blinded: what it put in the journal's place is not what was written.
#[test]
fn a_tail_of_a_writer_reads_the_written_records_not_the_replaced_file() {
    let sandbox = sandbox();
    let mut journal = sample(&sandbox.loop_dir);
    let mut tail = Tail::of(&journal);
    let length = journal.batch(Durability::Written).write().unwrap().length;
    write(&sandbox.loop_dir.0.join("other"), b"{}\nno line of ours");
    fs::rename(sandbox.loop_dir.0.join("other"), sandbox.loop_dir.journal()).unwrap();
    assert_eq!(tail.next(length).unwrap().len(), 5);
    fs::remove_file(sandbox.loop_dir.journal()).unwrap();
    journal.push(Event::AttemptSwept { killed: 0, survivors: vec![], names: vec![] }, at(5)).unwrap();
    journal.commit(Durability::Written).unwrap();
    assert_eq!(tail.next(u64::MAX).unwrap().len(), 2, "what came since, and that it was written back");
}

fn write(path: &Utf8Path, bytes: &[u8]) {
    let mut file = fs::File::create(path).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn an_event_of_a_later_version_is_an_error_that_names_it() {
    let sandbox = sandbox();
    drop(sample(&sandbox.loop_dir));
    let path = sandbox.loop_dir.journal();
    let text = fs::read_to_string(&path).unwrap();
    let head: [u8; 32] =
        text.trim_end().strip_suffix("\"}").unwrap().as_bytes()[text.len() - 35..].try_into().unwrap();
    let mut line =
        br#"{"seq":6,"at":"2023-11-14T22:13:30Z","event":{"type":"attempt.dreamt","data":{}}"#.to_vec();
    super::line::seal(&mut line, 0, head);
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(&line).unwrap();
    let error = read(&sandbox.loop_dir).unwrap_err().to_string();
    assert!(
        error.contains("line 6") && error.contains("attempt.dreamt") && error.contains("Refrain 0.0.0"),
        "{error}"
    );
}

#[test]
fn an_end_is_believed_once_it_is_signed_and_a_cut_behind_it_shows() {
    let sandbox = sandbox();
    let dir = &sandbox.loop_dir;
    let home = dir.0.parent().unwrap().with_file_name("state");
    let signing = Signing::new(&home, &home);
    let _held = crate::RunnerLock::claim(dir).unwrap().unwrap();
    let signatures = || read_signed(dir, &signing).unwrap().state.signatures;
    drop(Journal::<LoopState>::create_signed(dir.clone(), started(), at(0), signing.clone()).unwrap());
    assert_eq!(signatures(), Signatures::Open);

    let mut forger: Journal = Journal::open(dir.clone(), at(1)).unwrap();
    forger.push(Event::LoopEnded(End::Paused), at(1)).unwrap();
    forger.commit(Durability::Synced).unwrap();
    assert_eq!(signatures().is_signed(), Some(false));
    assert_eq!(read_believed::<LoopState>(dir, &signing).unwrap().ended, None);

    let mut journal: Journal = Journal::open_signed(dir.clone(), at(2), signing.clone()).unwrap();
    assert!(dir.0.join("foreign-1").is_file() && journal.state().ended.is_none());
    assert_eq!(signatures(), Signatures::Open);
    journal.push(Event::LoopEnded(End::Paused), at(3)).unwrap();
    journal.commit(Durability::Written).unwrap();
    assert_eq!(signatures(), Signatures::Signed);
    assert!(Signing::new(&home.with_file_name("other"), &home).public_key().is_none());

    let whole = fs::read(dir.journal()).unwrap();
    let cut = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    write(&dir.journal(), &whole[..cut]);
    for damaged in [read_signed(dir, &signing).map(drop), read_believed::<LoopState>(dir, &signing).map(drop)]
    {
        assert!(matches!(damaged, Err(JournalError::Damaged { line: 3, .. })), "{damaged:?}");
    }
    assert!(Journal::<LoopState>::open_signed(dir.clone(), at(4), signing).is_err());
    // It holds no more than that it was so.
    assert!(read(dir).is_ok());
}

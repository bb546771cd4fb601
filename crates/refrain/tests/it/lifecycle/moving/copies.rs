//! Loops that are read as a remote has them.

use std::fs;

use serde_json::Value;
use testkit::{Run, Sandbox, write};

use super::{Machines, key, leave, worktree};

/// The row of the loop in a list.
fn listed(machine: &Sandbox, more: &[&str]) -> Value {
    let list = machine.refrain(&[&["list", "--json"], more].concat()).with_code(0).json();
    list.as_array().unwrap().iter().find(|row| row["id"] == "job").expect("it is listed").clone()
}

fn shows_age(run: &Run, remote: &str) {
    assert!(run.stderr.contains("job: as of ") && run.stderr.contains(remote), "{}", run.stderr);
}

#[test]
fn a_loop_that_left_is_read_as_the_remote_has_it() {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    machines.leave(&["--with-changes"]).with_code(0);
    let status = one.status("job");
    assert_eq!(status["mirrored"]["remote"], remote.as_str(), "{status}");
    assert!(status["mirrored"]["at"].is_string() && status["mirrored"]["holder"].is_null(), "{status}");
    let away = "refrain archive job removes it from the list here";
    assert_eq!(status["needs"], format!("refrain move job --from {remote} takes it over; {away}"));
    let text = one.refrain(&["status", "job"]).with_code(0).stdout;
    assert!(!text.contains("(on another machine)"), "its folder is still here: {text}");
    machines.take_accepted().with_code(0);
    let taken = one.refrain(&["status", "job"]).with_code(0);
    shows_age(&taken, remote);
    let words = taken.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let back = format!("unless it is completed there, refrain move job --to {remote} on ");
    assert!(words.contains(&back) && !words.contains("takes it over"), "{words}");
    assert!(taken.stderr.contains("has taken it over"), "{}", taken.stderr);
    assert!(one.status("job")["mirrored"]["holder"].is_string());

    // The other machine continues, and leaves again.
    two.refrain(&["resume", "job", "-q", "--max-iterations", "3"]).with_code(10);
    write(&worktree(two).join("draft"), "draft\n");
    leave(two, remote, &["--with-changes"]).with_code(0);
    let before = (fs::read(one.loop_dir("job").join("journal.jsonl")).unwrap(), one.git(&["for-each-ref"]));
    assert_eq!(listed(one, &[])["iteration"], 2, "no remote is asked for a list");
    let status = one.status("job");
    assert_eq!((&status["status"], &status["iteration"]), (&"moved".into(), &3.into()), "{status}");
    assert_eq!(status["worktree"].as_str(), worktree(two).to_str());
    for verb in ["show", "logs", "report", "verify", "diff"] {
        shows_age(&one.refrain(&[verb, "job"]).with_code(0), remote);
    }
    let stat = one.refrain(&["diff", "job", "--stat"]).with_code(0).stdout;
    assert!(stat.contains("line3") && stat.contains("draft"), "{stat}");
    let logs = one.refrain(&["logs", "job", "--iteration", "3"]).with_code(0).stdout;
    assert!(logs.contains("== iteration 3"), "{logs}");
    let row = listed(one, &[]);
    assert_eq!(
        (&row["iteration"], &row["mirrored"]["remote"]),
        (&3.into(), &remote.as_str().into()),
        "{row}"
    );
    let text = one.refrain(&["list"]).with_code(0).stdout;
    assert!(text.contains("3/3") && text.contains("(as of "), "{text}");
    let after = (fs::read(one.loop_dir("job").join("journal.jsonl")).unwrap(), one.git(&["for-each-ref"]));
    assert_eq!(before, after, "nothing here was changed");

    // A remote that is away: the last copy, and its age; without one, the loop as it left.
    let away = format!("{remote}.away");
    fs::rename(remote, &away).unwrap();
    let old = one.refrain(&["status", "job", "--json"]).with_code(0);
    assert_eq!(old.json()["iteration"], 3);
    shows_age(&old, remote);
    assert!(old.stderr.contains("job cannot be read at a remote"), "{}", old.stderr);
    fs::remove_dir_all(one.loop_dir("job").parent().unwrap().with_file_name("mirrors")).unwrap();
    let old = one.refrain(&["status", "job", "--json"]).with_code(0);
    assert_eq!((&old.json()["iteration"], old.json().get("mirrored")), (&2.into(), None));
    assert!(old.stderr.contains("job: as it left this machine"), "{}", old.stderr);

    // A loop that came back is read here.
    fs::rename(&away, remote).unwrap();
    let _ = one.status("job");
    machines.take(one, &["--signer", &key(two)]).with_code(0);
    let here = one.status("job");
    assert_eq!((&here["status"], here.get("mirrored")), (&"iteration-cap".into(), None), "{here}");
}

#[test]
fn usage_includes_what_other_machines_did_as_of_the_last_look() {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    let used = || one.refrain(&["usage", "--json"]).with_code(0).json();
    let before = used();
    assert_eq!((&before["total"]["attempts"], before.get("elsewhere")), (&2.into(), None), "{before}");
    machines.leave(&["--with-changes"]).with_code(0);
    machines.take_accepted().with_code(0);
    two.refrain(&["resume", "job", "-q", "--max-iterations", "3"]).with_code(10);
    leave(two, remote, &["--with-changes"]).with_code(0);
    assert_eq!(used()["total"]["attempts"], 2, "no remote is asked for sums");
    let _ = one.status("job");
    let after = used();
    let all = after["total"]["attempts"].as_u64().unwrap();
    assert!(all > 2, "{after}");
    assert_eq!((&after["elsewhere"]["used"]["attempts"], &after["total"]["loops"]), (&all.into(), &1.into()));
    let text = one.refrain(&["usage"]).with_code(0).stdout;
    assert!(text.contains("of 1 loop on other machines, as of the last look at each"), "{text}");
}

#[test]
fn a_loop_that_was_never_here_is_read_at_a_remote() {
    let machines = Machines::paused();
    let Machines { one, two, remote } = &machines;
    machines.leave(&["--with-changes"]).with_code(0);
    let at = |words: &[&str]| two.refrain(&[words, &["--at", remote]].concat());
    let status = at(&["status", "job", "--json"]).with_code(0);
    shows_age(&status, remote);
    assert_eq!(status.json()["mirrored"]["remote"], remote.as_str());
    assert_eq!(status.json()["needs"], format!("refrain move job --from {remote} takes it over"));
    assert_eq!(status.json()["worktree"].as_str(), worktree(one).to_str());
    for verb in ["status", "show", "logs", "report", "verify", "diff"] {
        shows_age(&at(&[verb, "job"]).with_code(0), remote);
    }
    let stat = at(&["diff", "job", "--stat"]).with_code(0).stdout;
    assert!(stat.contains("line1") && stat.contains("half"), "{stat}");
    assert_eq!(listed(two, &["--at", remote])["status"], "moved");
    assert!(!two.loop_dir("job").exists() && !two.project().join("half").exists());
    assert_eq!(two.refrain(&["list", "--json"]).with_code(0).json(), serde_json::json!([]));

    // It can only be read, and only there.
    for words in [&["steer", "job", "x"][..], &["resume", "job"], &["status", "job"]] {
        let refused = two.refrain(words).with_code(3).stderr;
        let command = format!("refrain move job --from {remote} takes it over");
        assert!(refused.contains(&command), "{words:?}: {refused}");
    }
    let none = at(&["status", "nowhere"]).with_code(3).stderr;
    assert!(none.contains("does not have it"), "{none}");
    let missing = format!("{remote}.missing");
    two.refrain(&["status", "job", "--at", &missing]).with_code(1);
    two.refrain(&["list", "--at", &missing]).with_code(1);
    two.refrain(&["status", "--at", remote]).with_code(2);
    two.refrain(&["status", "job", "--at", "https://me:word@host/a"]).with_code(2);
    machines.take_accepted().with_code(0);
    assert_eq!(two.status("job").get("mirrored"), None);
}

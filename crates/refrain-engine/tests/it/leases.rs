//! Two machines and a bare repository between them: a loop moves from one to the other when the first is dead, frozen or
//! cut off, and what the first does after that is never known.

use std::fs;

use serde_json::Value;
use testkit::{Gate, Invocation, Run, Sandbox, Session, Signal, eventually, write};

use crate::example;

/// Writes a line each iteration, prints a long log in the first, and claims in the fourth. On a machine that says so it waits in the second, or hangs.
const WORKER: &str = r#"echo "$REFRAIN_ITERATION.$REFRAIN_ATTEMPT" >> $NOTES/attempts
if [ $REFRAIN_ITERATION = 2 ] && [ -e $NOTES/hold ]; then
    echo held > $NOTES/held
    case $(cat $NOTES/hold) in
    gate) read -r _ < "$GATES/held" ;;
    *) echo half > half; exec sleep 1000 ;;
    esac
fi
echo x > line$REFRAIN_ITERATION
if [ $REFRAIN_ITERATION = 1 ]; then seq 100000; fi
if [ $REFRAIN_ITERATION -ge 4 ]; then echo '<promise>COMPLETE</promise>'; fi"#;

struct Machines {
    one: Sandbox,
    two: Sandbox,
    remote: String,
}

impl Machines {
    /// A loop that machine one drives, in the second iteration.
    fn held(how: &str, lease: &str) -> (Self, Session, Gate) {
        let (one, two) = (Sandbox::new(&example("leased")), Sandbox::without_git(&example("leased")));
        let remote = format!("{}/state.git", one.root().display());
        one.git(&["init", "--quiet", "--bare", &remote]);
        two.git(&["clone", "--quiet", &one.project().to_string_lossy(), "."]);
        write(&one.root().join("notes/hold"), how);
        let gate = one.gate("held");
        let agent = one.agent("worker", WORKER);
        let machines = Self { one, two, remote };
        let session = machines.command(&machines.one, 1, lease, &["Write lines.", &agent]).spawn();
        machines.one.wait_for_note("held");
        trust(&machines.two, &machines.one);
        (machines, session, gate)
    }

    fn command(&self, machine: &Sandbox, fence: u32, lease: &str, more: &[&str]) -> Invocation {
        let (remote, fence) = (self.remote.as_str(), fence.to_string());
        machine.command(&[&["job", remote, fence.as_str(), lease], more].concat())
    }

    fn drive(&self, machine: &Sandbox, fence: u32) -> Run {
        self.command(machine, fence, "60000", &[]).run().with_code(0)
    }

    /// The last commits of the loop's branch at the remote, the first iteration first: what each added.
    fn lines(&self) -> Vec<String> {
        let log = ["-C", &self.remote, "log", "--reverse", "--format=", "--name-only", "work"];
        let added = self.one.git(&log);
        added.lines().filter(|name| *name != "README.md" && !name.is_empty()).map(str::to_owned).collect()
    }

    /// Each iteration is on the branch once, and what this machine has of the loop is as it was written.
    fn assert_whole(&self, machine: &Sandbox) {
        assert_eq!(self.lines(), ["line1", "line2", "line3", "line4"]);
        let verdict: Value = machine.command(&["job"]).run().with_code(0).json();
        assert!(verdict["intact"] == true && verdict["agrees"] == true, "{verdict:#}");
        let events = machine.event_names("job");
        let count = |name: &str| events.iter().filter(|found| *found == name).count();
        assert_eq!(
            (count("iteration.begun"), count("attempt.started")),
            (4, 5),
            "one was refunded: {events:?}"
        );
        self.one.no_process_is_left();
        self.two.no_process_is_left();
    }
}

/// The user of a machine trusts the key that signed the loop last on another.
fn trust(machine: &Sandbox, other: &Sandbox) {
    let signed = other.journal("job").into_iter().rev();
    let mut keys = signed.filter_map(|record| record["signature"]["key"].as_str().map(str::to_owned));
    let folder = machine.root().join("home/leased/config");
    let _ = fs::create_dir_all(&folder);
    let key = keys.next().unwrap_or_default();
    write(&folder.join("config.toml"), format!("[trust]\nsigners = [\"{key}\"]\n"));
}

#[test]
fn a_loop_continues_on_another_machine_when_its_machine_dies() {
    let (machines, session, _gate) = Machines::held("hang", "60000");
    let Machines { one, two, .. } = &machines;
    session.kill();
    one.no_process_is_left();
    let driven = machines.drive(two, 2);
    assert!(driven.stdout.contains("Ended(Completed"), "{}{}", driven.stdout, driven.stderr);
    machines.assert_whole(two);
    // Of a long log the git remote has the begin and the end; all of it stays where it was printed.
    let log = |machine: &Sandbox, name: &str| {
        fs::read_to_string(machine.loop_dir("job").join("iterations/0001").join(name))
    };
    let excerpt = log(two, "output.log.excerpt").unwrap();
    assert!(excerpt.starts_with("1\n2\n") && excerpt.ends_with("\n100000\n"), "both ends");
    assert!(excerpt.contains(" bytes are not here: the machine ") && excerpt.len() < 1 << 18, "and a mark");
    assert!(log(two, "output.log").is_err());
    let verdict: Value = two.command(&["job"]).run().with_code(0).json();
    let unchecked = verdict["checks"].as_array().unwrap().iter().find(|check| check["outcome"] != "agrees");
    let why = unchecked.unwrap()["why"].as_str().unwrap();
    assert!(why.contains("only its begin and end are here"), "{verdict:#}");
    // A stale order is refused; a later one finds what the other machine made of the loop.
    assert_eq!(machines.drive(one, 2).stdout, "Fenced\n");
    trust(one, two);
    let driven = machines.drive(one, 3);
    assert!(driven.stdout.contains("completed"), "{}", driven.stdout);
    machines.assert_whole(one);
    assert_eq!(log(one, "output.log").unwrap().lines().count(), 100_000);
    assert!(log(one, "output.log.excerpt").is_err(), "it has all of it");
}

#[test]
fn a_frozen_machine_spends_nothing_and_makes_nothing_known() {
    let (machines, session, _gate) = Machines::held("hang", "6000");
    let Machines { one, two, .. } = &machines;
    // Only the runner: its keeper ends the agent when the lease is over.
    session.signal(Signal::STOP);
    eventually("the agent of the frozen runner ends", || {
        one.processes_named("sleep").is_empty().then_some(())
    });
    let driven = machines.drive(two, 2);
    assert!(driven.stdout.contains("Ended(Completed"), "{}{}", driven.stdout, driven.stderr);
    session.signal(Signal::CONT);
    let thawed = session.wait().with_code(0).stdout;
    assert!(thawed == "Lapsed\n" || thawed == "Fenced\n", "{thawed}");
    machines.assert_whole(two);
    assert_eq!(one.note("attempts"), "1.1\n2.1\n", "nothing was begun after that");
    trust(one, two);
    machines.drive(one, 3);
    machines.assert_whole(one);
}

#[test]
fn a_machine_that_cannot_replicate_begins_nothing() {
    let (machines, session, gate) = Machines::held("gate", "8000");
    let Machines { one, two, remote } = &machines;
    let away = format!("{remote}.away");
    fs::rename(remote, &away).unwrap();
    gate.let_one_pass();
    let ended = session.wait().with_code(0).stdout;
    assert!(ended.starts_with("Unable(\"the journal cannot be replicated: "), "{ended}");
    assert!(!one.note("attempts").contains("3.1"), "{}", one.note("attempts"));
    fs::rename(&away, remote).unwrap();
    let driven = machines.drive(two, 2);
    assert!(driven.stdout.contains("Ended(Completed"), "{}{}", driven.stdout, driven.stderr);
    assert_eq!(machines.lines(), ["line1", "line2", "line3", "line4"]);
}

#[test]
fn a_fault_of_one_machine_does_not_block_the_loop() {
    let (machines, session, _gate) = Machines::held("hang", "60000");
    let Machines { one, two, .. } = &machines;
    session.kill();
    let agent = one.root().join("agents/worker");
    let script = fs::read_to_string(&agent).unwrap();
    write(&agent, script.replace("#!/bin/sh", "#!/no/such/shell"));
    let driven = machines.drive(two, 2);
    assert!(driven.stdout.starts_with("Unable("), "{}", driven.stdout);
    assert!(!two.event_names("job").contains(&"loop.ended".to_owned()));
    write(&agent, script);
    let driven = machines.drive(two, 3);
    assert!(driven.stdout.contains("Ended(Completed"), "{}{}", driven.stdout, driven.stderr);
}

#[test]
fn a_drained_machine_gives_the_loop_away_after_the_iteration() {
    let (machines, session, gate) = Machines::held("gate", "60000");
    session.signal(Signal::TERM);
    session.wait_for_output("drains");
    gate.let_one_pass();
    let drained = session.wait().with_code(0).stdout;
    assert_eq!(drained, "drains\nYielded\n");
    assert_eq!(machines.lines(), ["line1", "line2"]);
    let driven = machines.drive(&machines.two, 2);
    assert!(driven.stdout.contains("Ended(Completed"), "{}{}", driven.stdout, driven.stderr);
    assert_eq!(machines.lines(), ["line1", "line2", "line3", "line4"]);
    let attempts = machines.two.event_names("job").into_iter().filter(|name| name == "attempt.started");
    assert_eq!(attempts.count(), 4, "none was refunded");
}

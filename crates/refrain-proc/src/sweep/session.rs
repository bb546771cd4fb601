//! What a session that was killed left running: the processes of its tools, which bear a variable of the session.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use super::{bears, count, descendants, end_all, names};
use crate::identity::{self, Stat};
use crate::keeper::is_keeper;
use crate::system;

/// Ends the processes that bear this variable, `NAME=value`, and their descendants. Returns how many there were, and the
/// names of their programs.
///
/// Three kinds stay: what is below an agent (`is_agent`) that does not bear the variable, as the session lives there;
/// what Refrain runs for other loops; and what this process was started in.
pub fn sweep_session(variable: &str, is_agent: impl Fn(&Utf8Path) -> bool) -> (u32, Vec<String>) {
    let variables = [variable.to_owned()];
    let own: BTreeSet<i32> = identity::ancestors()
        .into_iter()
        .map(|stat| stat.process.pid)
        .chain([rustix::process::getpid().as_raw_nonzero().get()])
        .collect();
    let list = || {
        let all: Vec<Stat> = identity::all().collect();
        let parents: BTreeMap<i32, i32> = all.iter().map(|stat| (stat.process.pid, stat.parent)).collect();
        let bearing: BTreeSet<i32> = parents.keys().copied().filter(|pid| bears(*pid, &variables)).collect();
        let stays = |pid: i32| {
            let runs_refrain = || {
                identity::runs(pid, |path| path.file_name() == Some("refrain"))
                    || is_keeper(&system::arguments(pid))
            };
            match bearing.contains(&pid) {
                true => own.contains(&pid) || runs_refrain(),
                false => runs_refrain() || identity::runs(pid, &is_agent),
            }
        };
        let is_left = |pid: i32| {
            let above = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
            // The system has no circle of parents; what is read one by one may have one.
            !above.take(parents.len()).take_while(|pid| *pid > 1).any(stays)
        };
        let mut found: BTreeSet<(i32, u64)> = all
            .iter()
            .filter(|stat| !stat.zombie && bearing.contains(&stat.process.pid) && is_left(stat.process.pid))
            .map(|stat| (stat.process.pid, stat.process.start))
            .collect();
        let roots: Vec<i32> = found.iter().map(|(pid, _)| *pid).collect();
        found.extend(descendants(&roots, &all).into_iter().filter(|(pid, _)| is_left(*pid)));
        found
    };
    let names = names(list());
    (count(&end_all(list)), names)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell that waits for its child, `sleep`, and is known by this name.
    #[expect(clippy::disallowed_methods, reason = "processes to be ended")]
    fn shell(folder: &Utf8Path, name: &str, mark: &str) -> Child {
        let program = folder.join(name);
        let inner = if name == "tool" { String::new() } else { format!("env {mark} ") };
        std::fs::write(&program, format!("{inner}sleep 1000 & echo; wait")).unwrap();
        let mut shell = Command::new("/bin/sh");
        if name == "tool" {
            let (name, value) = mark.split_once('=').unwrap();
            shell.env(name, value);
        }
        let mut child = shell.arg(&program).stdout(Stdio::piped()).spawn().unwrap();
        // The sleep is there once the line is.
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        child
    }

    #[test]
    fn only_processes_of_a_dead_session_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8Path::from_path(folder.path()).unwrap();
        let mark = format!("TEST_SESSION=s-{}", std::process::id());
        let mut tool = shell(folder, "tool", &mark);
        // A session of the same name that lives, and a runner that the session started.
        let living = ["session-agent", "refrain"].map(|name| shell(folder, name, &mark));
        let is_agent = |path: &Utf8Path| path.file_name() == Some("session-agent");
        let (ended, names) = sweep_session(&mark, is_agent);
        assert_eq!((ended, names[0].as_str()), (2, "sh"), "{names:?}");
        assert!(!tool.wait().unwrap().success());
        for mut child in living {
            assert!(child.try_wait().unwrap().is_none());
            let below =
                descendants(&[i32::try_from(child.id()).unwrap()], &identity::all().collect::<Vec<_>>());
            assert!(!below.is_empty());
            below.into_iter().for_each(|process| super::super::send(process, rustix::process::Signal::KILL));
            child.wait().unwrap();
        }
        assert_eq!(sweep_session(&mark, is_agent), (0, vec![]));
    }
}

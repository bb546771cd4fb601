//! Processes that still bear a loop's mark though no runner drives that loop: its runner and keeper died in one
//! instant. Those of every project of this user's state home are found, as the whole machine is searched.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use refrain_agents::environment;
use refrain_core::view::checkup::{Finding, Subject};
use refrain_core::{LoopId, Spec};
use refrain_proc::orphans::{self, Orphan};
use refrain_store::{LoopDir, Project, RunnerLock};

use super::cure::{Cure, Diagnosis};
use crate::Host;

/// Variables of every process of an agent; the first is unique to the loop.
const VARIABLES: [&str; 3] = ["REFRAIN_STATE_FILE", "REFRAIN_LOOP_ID", "REFRAIN_PROJECT"];
/// Variables that say which state home its Refrain has, as far as the agent got them.
const HOMES: [&str; 2] = ["XDG_STATE_HOME", "HOME"];
const NAMED: usize = 5;

/// Leftover processes of agents. `of_gates` says that gates started them.
pub(super) fn look(host: &Host, of_gates: bool) -> Vec<Diagnosis> {
    let mut loops: BTreeMap<String, Vec<Orphan>> = BTreeMap::new();
    for stray in
        orphans::bearing(&VARIABLES, &HOMES).into_iter().filter(|stray| !is_of_other_home(host, stray))
    {
        let mark = stray.variables.get(VARIABLES[0]).cloned().unwrap_or_default();
        loops.entry(mark).or_default().push(stray);
    }
    let found: Vec<Diagnosis> = loops.iter().filter_map(|(mark, strays)| of_loop(mark, strays)).collect();
    if found.is_empty() && !of_gates {
        return vec![Finding::ok(Subject::Processes, "no orphan processes").into()];
    }
    found
}

/// Whether another state home has its loop: its doctor tells of it.
fn is_of_other_home(host: &Host, stray: &Orphan) -> bool {
    let of = |name| stray.variables.get(name).map(Utf8PathBuf::from);
    let own = || host.env.iter().find(|(name, _)| *name == *"HOME").map(|(_, home)| home);
    match (of("XDG_STATE_HOME"), of("HOME")) {
        (Some(state), _) => state.join("refrain") != host.state_home,
        (None, Some(home)) => own().is_some_and(|own| *own != *home.as_str()),
        (None, None) => false,
    }
}

/// Processes of the gates of a loop without a runner: their mark says nothing of the loop.
pub(super) fn of_gates(dir: &LoopDir, spec: &Spec) -> Option<Diagnosis> {
    let (name, value) = environment::gate_mark(spec);
    let variable = format!("{name}={value}");
    let strays = orphans::marked(&variable);
    (!strays.is_empty() && RunnerLock::is_free(dir))
        .then(|| left(&spec.id, (&spec.project, dir.clone()), &strays, variable))
}

fn of_loop(mark: &str, strays: &[Orphan]) -> Option<Diagnosis> {
    let of = |name| strays.first().and_then(|stray| stray.variables.get(name));
    // A text that is no id names no loop, and would be no path of one either.
    let id: LoopId = of(VARIABLES[1])?.parse().ok()?;
    let project = Utf8Path::new(of(VARIABLES[2])?);
    let dir = match Project::find(project) {
        Ok(project) => project.loop_dir(&id),
        Err(_) => LoopDir(project.join("gone")),
    };
    if !RunnerLock::is_free(&dir) {
        return None;
    }
    Some(left(&id, (project, dir), strays, format!("{}={mark}", VARIABLES[0])))
}

fn left(id: &LoopId, (project, dir): (&Utf8Path, LoopDir), strays: &[Orphan], variable: String) -> Diagnosis {
    let named: Vec<String> =
        strays.iter().take(NAMED).map(|stray| format!("{} {}", stray.process.pid, stray.command)).collect();
    let more = if strays.len() > NAMED { ", …" } else { "" };
    let finding = Finding::warning(
        Subject::Processes,
        format!("{} left behind in {project}: {}{more}", strays.len(), named.join(", ")),
        format!("refrain doctor --fix ends them; so does refrain resume {id}, where its runner died"),
    );
    Diagnosis::with(finding.about(id.as_str()), Cure::EndProcesses { variable, dir })
}

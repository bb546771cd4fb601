//! The agents' programs: where they are, which version they have, and what they and their files report. All are asked
//! at once, with the environment that a loop would give them.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use refrain_agents::adapter::Adapter;
use refrain_agents::checkup::{AgentDirs, Question};
use refrain_agents::{environment, gemini, generic, output_parser, version};
use refrain_core::spec::AgentKind;
use refrain_core::view::checkup::{Finding, Grade, Subject};
use refrain_core::view::plugin::PluginState;
use refrain_proc::probe::{self, ProbeOutput};
use refrain_proc::{identity, program};

use super::cure::{Cure, Diagnosis};
use crate::{Host, Service};

/// How long a program may take for one answer: a person waits for it.
const PATIENCE: Duration = Duration::from_secs(3);
/// The agents that are found by the name of their program.
const KNOWN: [AgentKind; 4] = [AgentKind::Claude, AgentKind::Codex, AgentKind::Opencode, AgentKind::Gemini];

impl Service {
    /// The known agents whose programs are in the user's `PATH`.
    pub fn installed_agents(&self) -> Vec<AgentKind> {
        let env = environment::of_person(self.host().env.iter().cloned());
        let is_there =
            |kind: &AgentKind| kind.program().is_some_and(|it| generic::in_path(it, &env).is_some());
        KNOWN.into_iter().filter(is_there).collect()
    }
}

pub(super) fn look(service: &Service) -> Vec<Diagnosis> {
    let project = service.project();
    // A program in the project may be anyone's, and nothing of the project is to run here.
    let mut dirs = vec![project.worktree.as_path(), project.root.as_path()];
    let env: Vec<_> = environment::of_person(service.host().env.iter().cloned());
    // The user's own programs are in the home, which is a project if loops work there.
    dirs.retain(|dir| env.iter().all(|(name, value)| name != "HOME" || value != dir.as_os_str()));
    let env = program::env_outside(&env, &dirs);
    let place = AgentDirs { env: &env, dir: &project.worktree, root: &project.root };
    let mut findings: Vec<Finding> = std::thread::scope(|scope| {
        let asked: Vec<_> =
            KNOWN.into_iter().map(|kind| scope.spawn(move || of_kind(kind, &place))).collect();
        asked.into_iter().flat_map(|asked| asked.join().unwrap_or_default()).collect()
    });
    // A user of one agent need not be logged in to all that are installed.
    let is_ready = |finding: &Finding| finding.subject == Subject::Login && finding.grade == Grade::Ok;
    if findings.iter().any(is_ready) {
        let logins = findings.iter_mut().filter(|finding| finding.subject == Subject::Login);
        logins.for_each(|finding| finding.grade = finding.grade.min(Grade::Warning));
    }
    let missing: Vec<&str> = KNOWN
        .into_iter()
        .filter_map(AgentKind::program)
        .filter(|program| !findings.iter().any(|finding| finding.about.as_deref() == Some(program)))
        .collect();
    if missing.len() == KNOWN.len() {
        findings.push(Finding::warning(
            Subject::Agent,
            format!("none of {} is in PATH", missing.join(", ")),
            "install one, or loop any other command with --command",
        ));
    } else if !missing.is_empty() {
        findings.push(Finding::ok(Subject::Agent, format!("not installed: {}", missing.join(", "))));
    }
    findings.into_iter().map(Diagnosis::from).chain(gemini_lock(&env)).collect()
}

/// The installed plugins of agents, and the program that they call.
pub(super) fn plugins(host: &Host) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for agent in KNOWN {
        // Without a home there is no plugin; what cannot be read is said by `plugin status`.
        let Ok(status) = host.plugin_status(agent) else { continue };
        let install = format!("refrain plugin install {agent}");
        let about_plugin = |finding: Finding| finding.about(agent.to_string()).into();
        if let Some((program, why)) = status.program.as_ref().zip(status.problem.as_ref()) {
            let text = format!("its plugin calls {program}, which a shell cannot run: {why}");
            found.push(about_plugin(Finding::problem(Subject::Agent, text, install)));
            continue;
        }
        match status.standing {
            PluginState::NotInstalled => {}
            PluginState::Installed => {
                found.push(about_plugin(Finding::ok(Subject::Agent, "the plugin is installed")));
            }
            PluginState::Older | PluginState::Partly => {
                let text = format!("the plugin is {}", status.standing.as_str());
                found.push(about_plugin(Finding::warning(Subject::Agent, text, install)));
            }
        }
    }
    found
}

fn of_kind(kind: AgentKind, place: &AgentDirs<'_>) -> Vec<Finding> {
    let (Some(name), Some(adapter)) = (kind.program(), output_parser::adapter(kind)) else { return vec![] };
    let Some(program) = program::in_path_outside(name, place.env, &[place.dir, place.root]) else {
        return vec![];
    };
    let (installed, answers) = std::thread::scope(|scope| {
        let program = &program;
        let asked: Vec<_> = adapter
            .questions()
            .iter()
            .map(|question| scope.spawn(move || ask(program, question, place)))
            .collect();
        // A program without a package around it has the version of the package above it, or none.
        let tested = adapter.tested();
        let of_files = version::installed(program);
        let is_tested = of_files.as_deref().is_some_and(|version| tested.contains(&version));
        let installed = if is_tested { of_files } else { ask_version(program, place).or(of_files) };
        let answers: Vec<_> = asked.into_iter().map(|asked| asked.join().ok().flatten()).collect();
        (installed, answers)
    });
    let mut findings = vec![judge(name, adapter, installed.as_deref(), &program)];
    findings.extend(adapter.findings(place, &answers));
    findings.into_iter().map(|finding| finding.about(name)).collect()
}

fn judge(name: &str, adapter: &dyn Adapter, installed: Option<&str>, program: &Path) -> Finding {
    let (tested, at) = (adapter.tested(), program.display());
    match installed {
        Some(version) if tested.contains(&version) => {
            Finding::ok(Subject::Agent, format!("{version}, tested, {at}"))
        }
        Some(version) => Finding::warning(
            Subject::Agent,
            format!("{version} was not tested, {at}"),
            format!("it will most likely work; tested is {}", tested.join(", ")),
        ),
        None => Finding::warning(
            Subject::Agent,
            format!("its version cannot be told, {at}"),
            format!("see that {name} --version works; tested is {}", tested.join(", ")),
        ),
    }
}

fn ask(program: &Path, question: &Question, place: &AgentDirs<'_>) -> Option<ProbeOutput> {
    let ours = question.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let env: Vec<_> = place.env.iter().cloned().chain(ours).collect();
    probe::ask(program, question.args, place.dir.as_std_path(), &env, PATIENCE).ok()
}

fn ask_version(program: &Path, place: &AgentDirs<'_>) -> Option<String> {
    let answer = ask(program, &Question { args: &["--version"], env: &[] }, place)?;
    version_in(&answer.stdout).map(str::to_owned)
}

/// The first word with a dot and nothing but numbers around it: `2.1.329 (Claude Code)`, `codex-cli 0.169.0`.
fn version_in(said: &str) -> Option<&str> {
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    said.split_whitespace().map(|word| word.trim_start_matches('v')).find(is_version)
}

/// The stale lock of a Gemini that was killed: each next one waits 13 s for it (agent-clis.md). A loop removes it by
/// itself.
fn gemini_lock(env: &[(OsString, OsString)]) -> Option<Diagnosis> {
    let path = camino::Utf8PathBuf::from_path_buf(gemini::lock(env)?).ok()?;
    let home = env.iter().rev().find(|(name, _)| name == "HOME").map(|(_, home)| home)?;
    let home = [b"HOME=", home.as_encoded_bytes()].concat();
    if !path.exists() || identity::is_running_with("gemini", &home) {
        return None;
    }
    let finding = Finding::warning(
        Subject::Agent,
        format!("it was killed and left a lock for which the next one waits 13 s: {path}"),
        "refrain doctor --fix removes it; so does a loop that starts it",
    );
    Some(Diagnosis::with(finding.about("gemini"), Cure::Remove(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_among_the_words() {
        for (said, version) in [
            ("2.1.329 (Claude Code)\n", Some("2.1.329")),
            ("codex-cli 0.169.0\n", Some("0.169.0")),
            ("v1.18.33", Some("1.18.33")),
            ("Something. Went wrong at 12:30", None),
            ("", None),
        ] {
            assert_eq!(version_in(said), version, "{said}");
        }
    }
}

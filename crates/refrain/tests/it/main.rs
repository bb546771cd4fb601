//! The program from outside, as a person or a script meets it: sessions with the real binary, in sandboxes of their own.
//! Agents are small shell scripts. Every module is listed here; one binary holds them all.

#[cfg(test)]
mod acp_bridge;
#[cfg(test)]
mod agents;
#[cfg(test)]
mod approval;
#[cfg(test)]
mod at_once;
#[cfg(test)]
mod blocked;
#[cfg(test)]
mod budgets;
#[cfg(test)]
mod caller;
#[cfg(test)]
mod catalog;
#[cfg(test)]
mod cheats;
#[cfg(test)]
mod clean_checkout;
#[cfg(test)]
mod committing;
#[cfg(test)]
mod committing_care;
#[cfg(test)]
mod completions;
#[cfg(test)]
mod configuration;
#[cfg(test)]
mod critique;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod evolution;
#[cfg(test)]
mod failure_branch;
#[cfg(test)]
mod finishing;
#[cfg(test)]
mod forged;
#[cfg(test)]
mod from_other_systems;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod golden_home;
#[cfg(test)]
mod hosted;
#[cfg(test)]
mod hostile_project;
#[cfg(test)]
mod init;
#[cfg(test)]
mod journals;
#[cfg(test)]
mod links;
#[cfg(test)]
mod main_job;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod mirrors;
#[cfg(test)]
mod missing_gates;
#[cfg(test)]
mod modes;
#[cfg(test)]
mod no_effect;
#[cfg(test)]
mod notifications;
#[cfg(test)]
mod plan_files;
#[cfg(test)]
mod plan_runs;
#[cfg(test)]
mod plan_show;
#[cfg(test)]
mod plan_verbs;
#[cfg(test)]
mod planted_git;
#[cfg(test)]
mod plugins;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod projects;
#[cfg(test)]
mod promise;
#[cfg(test)]
mod prompt_text;
#[cfg(test)]
mod prompts;
#[cfg(test)]
mod protect;
#[cfg(test)]
mod provider_waits;
#[cfg(test)]
mod publishing;
#[cfg(test)]
mod red_team;
#[cfg(test)]
mod refusals;
#[cfg(test)]
mod removed;
#[cfg(test)]
mod report;
#[cfg(test)]
mod reviewers;
#[cfg(test)]
mod run_task;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod seeing;
#[cfg(test)]
mod serve;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod slack;
#[cfg(test)]
mod stopped;
#[cfg(test)]
mod stopping;
#[cfg(test)]
mod stuck;
#[cfg(test)]
mod success_command;
#[cfg(test)]
mod sums;
#[cfg(test)]
mod task_loops;
#[cfg(test)]
mod task_worktrees;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod top;
#[cfg(test)]
mod verbs;
#[cfg(test)]
mod webhooks;

use testkit::Sandbox;

/// A sandbox for this build of the program, in a repository.
fn sandbox() -> Sandbox {
    Sandbox::new(env!("CARGO_BIN_EXE_refrain"))
}

/// A sandbox for this build of the program, in a plain folder.
fn plain_folder() -> Sandbox {
    Sandbox::without_git(env!("CARGO_BIN_EXE_refrain"))
}

/// What an agent prints, alone on a line, to claim the work done.
const CLAIM: &str = "echo '<promise>COMPLETE</promise>'";

/// Every source file beside this one is listed above: a forgotten one would never run.
#[test]
fn no_module_is_forgotten() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let listed = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        // What insta leaves when a snapshot differs is no module.
        if !name.ends_with(".rs") {
            continue;
        }
        let module = name.trim_end_matches(".rs");
        assert!(
            module == "main" || listed.contains(&format!("mod {module};")),
            "{name} is not listed in main.rs"
        );
    }
}

//! Sessions in plain text, one file a test: `scenarios/AREA/NAME.txt`. CONTRIBUTING.md says how they are written.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/scenarios")
}

macro_rules! scenarios {
    ($($area:ident: $($name:ident)*;)*) => {
        $(mod $area {
            $(#[test]
            fn $name() {
                let file = concat!(stringify!($area), "/", stringify!($name), ".txt");
                testkit::play(env!("CARGO_BIN_EXE_refrain"), &super::folder().join(file));
            })*
        })*

        const LISTED: &[&str] = &[$($(concat!(stringify!($area), "/", stringify!($name), ".txt")),*),*];
    };
}

scenarios! {
    adapters: clean_environment configured_modes context_file context_of_a_failure contract_variables
        cost_of_critic critique echoed_prompt exact exported_variable failing_critic idle_runs
        invalid_stuck_options long_prompt maximum mentions mentions_with_gate mode_prompts no_promise
        other_failures own_prompt promise promise_after_words promise_and_gate prompt_modes prompt_sources
        state_file stuck stuck_agent stuck_asks stuck_switches stuck_threshold summaries unchanged_files;
    commits: failure_branch failure_in_a_plain_folder failure_without_branch failure_without_gates
        options_of_a_resume options_of_a_session options_without_effect;
    finish: answer answer_at_the_cap approval_first busy_folder compiled_files conflict discard_archived discard_nothing
        discard_secret discard_uncommitted discarded_branch earlier_changes editor fast_forward
        file_in_no_commit file_in_the_way file_name finished_plan killed_merge locked_branch merge_with_commits merged_once
        nothing_changed patch refused_merges short_timeout;
    lifecycle: agent_is_blocked archive churn completed depth detach discard_too_early folders grace grace_over
        inside_an_attempt invalid_start invalid_verbs iteration_cap linked_worktree looking lost_agent
        no_churn no_front_matter notes_folder omitted_id plain_folder quoted_need taken_name time_cap
        uncounted_state_file unknown_id unknown_verb way_out;
    plans: blocked_task broken_tasks defaults dry_run edited_status export file_system_error freed_name
        handed_over invalid_tasks large_prompts markdown merge_after_cancel missing_on_the_branch
        mistyped_gates no_loop offered_gate other_spelling plan_to_its_end prompt prompt_controls
        prompt_once refused_options secret tune which_plan;
    proof: advisory_gate cancel_in_a_gate changes_of_the_user changing_gate commit_hook
        commit_of_verified_work configured_gates configured_protection created_gate earlier_failures
        empty_tests flaky_gate gate_that_may_not_run gate_variables gate_without_program gates_for_claims
        invalid_gates invalid_protection missing_program missing_program_in_a_plain_folder mistyped_gates
        offered_and_given_gates offered_protection partial_tree pause_in_a_gate plain_folder
        processes_of_gates protected_changes_in_a_pause protected_changes_of_the_user protected_paths
        protection_without_files protection_without_git refused_claims shell_gates slow_gate stale_gate
        success_and_claims success_and_gates success_command success_from_the_start
        success_in_a_plain_folder success_is_committed success_of_a_session success_of_ignored_files
        touched_paths unchanged_candidate without_promise;
}

#[test]
fn every_file_is_listed() {
    let entries = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let files = entries(&folder()).flat_map(|area| entries(&area).collect::<Vec<_>>());
    let files: BTreeSet<_> =
        files.map(|file| file.strip_prefix(folder()).unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(files, LISTED.iter().map(|&name| name.to_owned()).collect());
}

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
        other_failures own_model own_prompt promise promise_after_words promise_and_gate prompt_modes
        prompt_sources state_file stuck stuck_agent stuck_asks stuck_switches stuck_threshold summaries
        unchanged_files;
    approval: agents answer edited exact_number failed_gates no_iteration_left omitted_id
        refused_options sent_back sessions_and_plans waits;
    checkouts: candidate configured impossible moved_worktree no_repository other_files
        planted_by_tested_code planted_files protected_files rewritten_test shared_files;
    commits: another_branch changes_in_a_pause commits_of_the_agent each_iteration failure_branch
        failure_in_a_plain_folder failure_without_branch failure_without_gates kept_worktree
        locked_index merging no_identity no_repository nothing_changed obstacles options_of_a_resume
        options_of_a_session options_without_effect own_branch own_branch_each refusal_of_a_hook secret
        summary waiting_worktree worktree worktree_for_itself;
    configuration: demo doctor_of_errors edit effects init_over_errors inside_an_attempt kept_settings
        linked_worktree mistyped_notify_command no_words notify origins prices single_keys untrustable
        untrusted wrong_values;
    finish: answer answer_at_the_cap approval_first busy_folder changed_checkout compiled_files conflict
        cut_short discard_archived discard_archived_worktree discard_elsewhere discard_nothing
        discard_secret discard_uncommitted discarded_branch discarded_name earlier_changes editor
        fast_forward file_in_no_commit file_in_the_way file_name finished_plan killed_merge
        locked_branch merge_keeps_own_commits merge_with_commits merged_once mixed_file nothing_changed
        patch path_of_no_checkout refused_merges reused_name short_timeout switched_branch
        text_before_approval uncommitted_worktree;
    lifecycle: agent_is_blocked archive bare_repository churn completed deleted_repository
        demo_without_end depth detach discard_too_early few_open_files folders git_folder grace
        grace_over inside_an_attempt invalid_start invalid_verbs iteration_cap linked_worktree looking
        lost_agent lost_link moved_project no_churn no_front_matter notes_folder omitted_id plain_folder
        quoted_need taken_back taken_name time_cap uncounted_state_file unknown_id unknown_verb way_out
        without_git;
    memory: agents damaged invalid_arguments known_agent plan planted projects recalled resumed secret
        unrelated verbs where_asked;
    plans: blocked_task branch_moved_back branch_set_back broken_tasks busy_folder cancelled_dependency
        commits_meanwhile defaults done_by_another_plan dry_run edited_status edited_tasks export
        fails_with_landed_work file_system_error freed_name handed_over hostile_title invalid_tasks
        large_prompts locked_branch mark_left_alone markdown merge_after_cancel missing_on_the_branch
        mistyped_gates no_loop no_repository offered_gate one_job other_branch other_spelling
        own_verifications path_of_no_checkout plan_to_its_end planted_links planted_references prompt
        prompt_controls prompt_once question refused_options refused_repository refused_tasks
        retried_task same_failure same_line secret spoiled_tasks tune tune_after_cancel
        uncommitted_files unneeded_verification verified_with_commits which_plan work_beside_a_task;
    proof: advisory_gate cancel_in_a_gate changed_git_settings changes_of_the_user changing_gate
        commit_hook commit_of_verified_work commits_of_submodules configured_gates configured_protection
        converted_files created_gate earlier_failures empty_tests flaky_gate forged_index forged_objects
        forged_objects_of_the_start forged_objects_of_verified_work forged_packs gate_that_may_not_run
        gate_variables gate_without_program gates_for_claims invalid_gates invalid_protection
        links_to_omitted_files missing_program missing_program_in_a_plain_folder mistyped_gates
        offered_and_given_gates offered_protection partial_tree pause_in_a_gate plain_folder
        processes_of_gates protected_changes_in_a_pause protected_changes_of_the_user protected_paths
        protection_without_files protection_without_git refused_claims shell_gates slow_gate
        slow_ignore_rules stale_gate success_and_claims success_and_gates success_command
        success_from_the_start success_in_a_plain_folder success_is_committed success_of_a_session
        success_of_ignored_files touched_paths unchanged_candidate unknown_key without_promise;
    reports: capped changed_log cleaned_up damaged_journal endless_line for_people gone_commit resumed
        unchanged unverified which_loop;
    sessions: begun_in_a_turn claim_first compacted exact exit_codes gates gemini infinite
        inner_repository invalid_hook_input no_text no_transcript options_of_start orders own_folder
        printed_lines promise shared subagents two typed_gates typed_text without_its_session;
    task_files: blocked_meanwhile cancelled checkout errors missing_program no_tasks obstacles shapes
        unusable valid waves;
    tasks: done earlier_run gave_up ids no_tests notes options_of_start ralph_run refused
        refusing_reviewer tests_of_the_start variables;
}

#[test]
fn every_file_is_listed() {
    let entries = |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let files = entries(&folder()).flat_map(|area| entries(&area).collect::<Vec<_>>());
    let files: BTreeSet<_> =
        files.map(|file| file.strip_prefix(folder()).unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(files, LISTED.iter().map(|&name| name.to_owned()).collect());
}

//! Table tests of a loop's rendering in Slack, and of the next message.

use refrain_core::prompt::state_file::WorkStatus;
use refrain_core::view::StatusWord;
use refrain_engine::{Delivery, StopRequest, Talk};
use rstest::rstest;
use serde_json::json;

use super::next_action::{NextAction, is_settled, next, reacted, thread};
use super::render::{LoopSummary, Notes, escaped};

fn seen() -> LoopSummary {
    LoopSummary {
        id: "slack-1a2b3c4d".parse().unwrap(),
        goal: "Mend the parser.".to_owned(),
        status: StatusWord::Running,
        verified: None,
        charged: 0,
        of: Some(20),
        cost: Some(0.0),
        at_least: false,
        max_cost: Some(5.0),
        reason: "iteration 1 runs".to_owned(),
        needs: None,
        says: None,
        started: 1,
        ended: None,
        notes: String::new(),
        seq: 1,
        bytes: 100,
    }
}

fn at_work(charged: u32, of: Option<u32>) -> LoopSummary {
    LoopSummary { charged, of, ..seen() }
}

fn stopped(status: StatusWord) -> LoopSummary {
    LoopSummary {
        status,
        ended: Some(9),
        charged: 3,
        cost: Some(0.123_44),
        reason: "so it is".to_owned(),
        ..seen()
    }
}

#[rstest]
#[case::none(1, Some(200), "[░░░░░░░░░░] · 1/200")]
#[case::half(5, Some(10), "[█████░░░░░] · 5/10")]
#[case::rounded_up(1, Some(20), "[█░░░░░░░░░] · 1/20")]
#[case::rounded_down(1, Some(21), "[░░░░░░░░░░] · 1/21")]
#[case::full(10, Some(10), "[██████████] · 10/10")]
#[case::more_than_there_are(30, Some(20), "[██████████] · 30/20")]
#[case::without_a_cap(7, None, "[░░░░░░░░░░] · 7/∞")]
fn the_bar_has_ten_cells(#[case] charged: u32, #[case] of: Option<u32>, #[case] shows: &str) {
    let view = at_work(charged, of).view(None);
    assert_eq!(view.text, format!(":repeat: Loop `slack-1a2b3c4d` · {shows} · $0.00/$5.00 · running"));
}

#[rstest]
#[case(Some(1.239), Some(5.0), "· $1.24/$5.00 ·")]
#[case(Some(1.239), None, "· $1.24 ·")]
#[case(None, Some(5.0), "· $?/$5.00 ·")]
#[case(None, None, "· 2/20 · running")]
fn an_unknown_cost_is_not_shown_as_zero(
    #[case] cost: Option<f64>,
    #[case] max: Option<f64>,
    #[case] shows: &str,
) {
    let text = LoopSummary { cost, max_cost: max, ..at_work(2, Some(20)) }.view(None).text;
    assert!(text.contains(shows), "{text}");
}

#[test]
fn a_loop_is_announced_with_its_goal_and_its_limits() {
    let first = seen().first_words();
    assert_eq!(
        first,
        ":repeat: Loop `slack-1a2b3c4d` · up to 20 iterations · up to $5.00\n> Mend the parser."
    );
    let long = LoopSummary { goal: "x\ny".repeat(100), of: None, max_cost: None, ..seen() }.first_words();
    assert!(
        long.starts_with(":repeat: Loop `slack-1a2b3c4d` · no cap on its iterations\n> x\n> yx\n"),
        "{long}"
    );
    assert!(long.ends_with('…') && long.replace("\n> ", "\n").chars().count() < 270, "{long}");
}

#[rstest]
#[case(StatusWord::Completed, "large_yellow_circle", "completed, ◐ unverified")]
#[case(StatusWord::Cancelled, "octagonal_sign", "cancelled")]
#[case(StatusWord::BudgetExceeded, "warning", "budget-exceeded")]
#[case(StatusWord::IterationCap, "warning", "iteration-cap")]
#[case(StatusWord::Failed, "x", "failed")]
#[case(StatusWord::Stuck, "x", "stuck")]
#[case(StatusWord::Crashed, "x", "crashed")]
#[case(StatusWord::TimedOut, "alarm_clock", "timed-out")]
#[case(StatusWord::Blocked, "raised_hand", "blocked")]
#[case(StatusWord::Paused, "double_vertical_bar", "paused")]
fn an_end_has_its_reaction_and_no_button(
    #[case] status: StatusWord,
    #[case] emoji: &str,
    #[case] word: &str,
) {
    let view = stopped(status).view(None);
    let line = format!(":{emoji}: Loop `slack-1a2b3c4d` · [██░░░░░░░░] · 3/20 · $0.1234/$5.00 · {word}");
    assert_eq!((view.text, view.blocks), (format!("{line}\nso it is"), vec![]));
    assert_eq!(stopped(status).reaction(), emoji);
    let old = stopped(status).old_reactions(Some("arrows_counterclockwise"));
    assert_eq!(old, ["hourglass_flowing_sand", "arrows_counterclockwise"]);
}

#[test]
fn the_needed_action_and_the_proof_are_shown() {
    let needs = Some("answer <its> question".to_owned());
    let text = LoopSummary { needs, ..stopped(StatusWord::Blocked) }.view(None).text;
    assert!(text.ends_with("\n:raised_hand: answer &lt;its&gt; question"), "{text}");
    let text = LoopSummary { verified: Some(true), ..stopped(StatusWord::Completed) }.view(None).text;
    assert!(text.contains("· completed, ✔ verified\n"), "{text}");
    let text = LoopSummary { says: Some(WorkStatus::Blocked), ..at_work(2, Some(20)) }.view(None).text;
    assert!(text.ends_with("· running, its agent says blocked"), "{text}");
}

#[test]
fn the_button_goes_with_every_edit_until_it_is_pressed() {
    for seen in [seen(), at_work(1, Some(20)), at_work(2, Some(20))] {
        let view = seen.view(None);
        assert_eq!(view.blocks[0]["text"]["text"], json!(view.text));
        let button = &view.blocks[1]["elements"][0];
        assert_eq!(view.blocks[1]["block_id"], "refrain_actions_slack-1a2b3c4d");
        assert_eq!((&button["style"], &button["value"]), (&json!("danger"), &json!("slack-1a2b3c4d")));
        assert_eq!(button["action_id"], "refrain:loop_stop:slack-1a2b3c4d");
    }
    let stop = StopRequest { user: "U1".to_owned(), was_running: true };
    let view = seen().view(Some(&stop));
    assert_eq!(view.blocks[1]["elements"][0]["text"], "Stop requested by <@U1> · it was running");
    assert_eq!(view.blocks.len(), 2);
    let view = stopped(StatusWord::Cancelled).view(Some(&stop));
    assert!(view.text.ends_with("\nso it is\nStop requested by <@U1> · it was running"), "{}", view.text);
    assert!(
        view.blocks.is_empty() && stopped(StatusWord::Completed).view(Some(&stop)).text.ends_with("so it is")
    );
}

#[rstest]
#[case("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d")]
#[case("<!channel> <@U1> <https://x|y>", "&lt;!channel&gt; &lt;@\u{2060}U1&gt; &lt;https:\u{2060}//x|y&gt;")]
#[case("@channel @here", "@\u{2060}channel @\u{2060}here")]
#[case("&lt;!here&gt;", "&amp;lt;!here&amp;gt;")]
#[case("www.x.y mailto:a", "www\u{2060}.x.y mailto\u{2060}:a")]
#[case("gnp.\u{202e}exe", "gnp.[U+202E]exe")]
fn agent_text_mentions_no_user_and_has_no_links(#[case] text: &str, #[case] shown: &str) {
    assert_eq!(escaped(text), shown);
}

#[test]
fn short_notes_are_a_message_and_long_notes_a_file() {
    let of = |notes: &str| LoopSummary { notes: notes.to_owned(), ..stopped(StatusWord::Completed) }.state();
    assert_eq!(of(""), None);
    let header = ":notebook: State of loop `slack-1a2b3c4d`";
    assert_eq!(of("## Goal\na & b"), Some(Notes::Said(format!("{header}\n## Goal\na &amp; b"))));
    assert!(matches!(of(&"x".repeat(2_900)), Some(Notes::Said(_))));
    let long = format!("## Goal\n{}", "x".repeat(4_000));
    let Some(Notes::File { comment, content, instead }) = of(&long) else { panic!("no file") };
    assert_eq!(content, long);
    assert!(
        comment.starts_with(&format!("{header}: ## Goal xxx")) && comment.chars().count() < 260,
        "{comment}"
    );
    assert!(instead.chars().count() < 3_560 && instead.ends_with('…'), "{instead}");
}

/// Executes the pending deeds, as if Slack accepted all of them; returns them.
fn told(talk: &mut Talk, seen: &LoopSummary) -> Vec<String> {
    let mut done = Vec::new();
    while let Some(deed) = next(talk, seen) {
        assert!(done.len() < 9, "{done:?}");
        match deed {
            NextAction::Post(text) => {
                done.push(format!("post {}", text.lines().next().unwrap()));
                talk.message = Delivery::At("5.5".to_owned());
            }
            NextAction::Edit(view) => {
                done.push(format!("edit, {} blocks", view.blocks.len()));
                talk.shown = Some(view.mark());
            }
            NextAction::React { remove, add } => {
                done.push(format!("-{} +{add}", remove.join(" -")));
                talk.reaction = Some(add.to_owned());
            }
            NextAction::Reply(_) => {
                done.push("reply".to_owned());
                talk.reply = Some((seen.ended.unwrap(), Delivery::At("6.6".to_owned())));
            }
        }
    }
    done
}

#[test]
fn a_loop_is_reported_to_slack_from_its_start_to_its_end() {
    let mut talk = Talk { trigger: Some("1.5".to_owned()), ..Talk::default() };
    let first = "post :repeat: Loop `slack-1a2b3c4d` · up to 20 iterations · up to $5.00";
    let hourglass = "-arrows_counterclockwise +hourglass_flowing_sand";
    assert_eq!(told(&mut talk, &seen()), [first, "edit, 2 blocks", hourglass]);
    assert_eq!(told(&mut talk, &seen()), [""; 0], "nothing is said twice");
    let swap = "-hourglass_flowing_sand +arrows_counterclockwise";
    assert_eq!(told(&mut talk, &at_work(1, Some(20))), ["edit, 2 blocks", swap]);
    assert_eq!(told(&mut talk, &at_work(2, Some(20))), ["edit, 2 blocks"]);
    assert!(!is_settled(&talk, &at_work(2, Some(20))));
    let capped = LoopSummary { notes: "all of it".to_owned(), ..stopped(StatusWord::IterationCap) };
    let warning = "-hourglass_flowing_sand -arrows_counterclockwise +warning";
    assert_eq!(told(&mut talk, &capped), ["edit, 0 blocks", warning, "reply"]);
    assert!(is_settled(&talk, &capped));
    // It continues, and ends again.
    let on = "-hourglass_flowing_sand -warning +arrows_counterclockwise";
    assert_eq!(told(&mut talk, &at_work(4, Some(30))), ["edit, 2 blocks", on]);
    let done = LoopSummary { ended: Some(12), notes: "more".to_owned(), ..stopped(StatusWord::Completed) };
    let check = "-hourglass_flowing_sand -arrows_counterclockwise +large_yellow_circle";
    assert_eq!(told(&mut talk, &done), ["edit, 0 blocks", check, "reply"]);
}

#[test]
fn only_the_end_of_a_loop_from_elsewhere_is_reported() {
    let mut talk = Talk { only_ends: true, ..Talk::default() };
    assert_eq!(told(&mut talk, &at_work(3, Some(20))), [""; 0]);
    let done = told(&mut talk, &stopped(StatusWord::Completed));
    assert!(done[0].starts_with("post :large_yellow_circle: Loop `slack-1a2b3c4d`"), "{done:?}");
    assert_eq!((reacted(&talk), thread(&talk)), (Some("5.5"), Some("5.5")));
}

#[test]
fn a_pause_is_no_end_and_refused_messages_are_not_retried() {
    let mut talk =
        Talk { thread: Some("1.0".to_owned()), trigger: Some("1.5".to_owned()), ..Talk::default() };
    let paused = LoopSummary { notes: "so far".to_owned(), ..stopped(StatusWord::Paused) };
    assert!(!told(&mut talk, &paused).contains(&"reply".to_owned()));
    assert_eq!((reacted(&talk), thread(&talk)), (Some("1.5"), Some("1.0")));
    let talk = Talk { message: Delivery::Refused, ..Talk::default() };
    assert_eq!(next(&talk, &paused), None);
    let unsure = Talk { message: Delivery::Intended, ..Talk::default() };
    assert!(matches!(next(&unsure, &paused), Some(NextAction::Post(_))), "it is looked for, then posted");
}

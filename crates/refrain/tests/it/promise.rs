//! `refrain promise`: a message on stdin, 0 if it is a claim, 1 if not. The table of messages stands in the core's tests.

use crate::sandbox;

#[test]
fn a_claim_is_0_and_no_claim_is_1() {
    let sandbox = sandbox();
    let tag = "<promise>COMPLETE</promise>";
    let cases: [(&[&str], String, i32); 16] = [
        (&[], format!("All done.\n\n{tag}\n"), 0),
        (&[], format!("All done. {tag}"), 0),
        (&[], format!("- **{tag}**.\nGood bye.\n"), 0),
        (&[], "<promise>  COMPLETE  </promise>\n".into(), 0),
        (&[], format!("I will print {tag} when I am done.\n"), 1),
        (&[], format!("```\n{tag}\n```\n"), 1),
        (&[], format!("> {tag}\n"), 1),
        (&[], format!("`{tag}`\n"), 1),
        (&[], format!("    {tag}\n"), 1),
        (&[], "<promise>complete</promise>\n".into(), 1),
        (&[], "COMPLETE\n".into(), 1),
        (&["--promise-match", "plain"], "Well.\n\n**complete**\n".into(), 0),
        (&["--promise-match", "plain"], "It is not complete\n".into(), 1),
        (&["--promise-match", "substring"], "it is COMPLETE, I think".into(), 0),
        (&["--completion-promise", "ALL TESTS PASS"], "<promise>ALL TESTS PASS</promise>".into(), 0),
        (&["--completion-promise", "ALL TESTS PASS"], String::new(), 1),
    ];
    for (options, message, code) in cases {
        let words = [&["promise"], options].concat();
        let run = sandbox.command(&words).stdin(&message).run();
        assert_eq!(run.code, code, "{options:?} {message:?}: {}", run.stdout);
    }
}

#[test]
fn a_message_may_be_anything() {
    let sandbox = sandbox();
    let escapes = b"\x1b[31m<promise>COMPLETE</promise>\x1b[0m\n";
    sandbox.command(&["promise"]).stdin(escapes).run().with_code(0);
    sandbox.command(&["promise"]).stdin(b"\xff\xfe\n<promise>COMPLETE</promise>\n").run().with_code(0);
    let long = format!("{}\n<promise>COMPLETE</promise>\n", "x".repeat(4 << 20));
    sandbox.command(&["promise"]).stdin(long).run().with_code(0);
}

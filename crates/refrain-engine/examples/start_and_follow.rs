//! Starts a loop from Rust and follows its events until it has ended:
//!
//! ```sh
//! cargo run -p refrain-engine --example start_and_follow -- FOLDER PROMPT PROGRAM [ARGUMENT…]
//! ```
//!
//! `refrain start` does no more than this, with a screen in place of the printed lines.

use std::error::Error;
use std::path::PathBuf;

use camino::Utf8PathBuf;
use refrain_core::event::Event;
use refrain_core::view::{self, Alive};
use refrain_core::{LoopState, Spec};
use refrain_engine::{FollowEvent, Follower, Host, Service, Signals, keeper};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    // The engine starts this program again, under another name, as the loop's keeper: the small process that starts its
    // agents and lets none of them survive. So this check comes first.
    let mut words = std::env::args();
    if words.next().as_deref() == Some(keeper::KEEPER_NAME) {
        return Ok(keeper::run()?);
    }
    let folder = Utf8PathBuf::from(words.next().ok_or("which folder?")?).canonicalize_utf8()?;
    let prompt = words.next().ok_or("which prompt?")?;
    let program = words.next().ok_or("which program?")?;

    // The engine looks for nothing by itself: what it needs to know of its surroundings is a value.
    let host = Host {
        program: std::env::current_exe()?,
        env: std::env::vars_os().collect(),
        config_home: home()?.join("config"),
        data_home: home()?.join("data"),
        state_home: home()?.join("state"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let service = Service::open(&folder, host.clone())?;
    let spec = spec(&service, &folder, &prompt, &program, words.collect())?;

    // From here on the loop exists, and `runner` is the right to drive it. None is its name: one is made up.
    let runner = service.start(spec, None)?;
    let follower = runner.follow();
    let watching = std::thread::spawn(move || watch(follower));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Signals are this program's own affair; `Service::ask` pauses and cancels, from any process.
    let state = runtime.block_on(runner.drive(&host, Signals::None, || {}))?;
    watching.join().map_err(|_| "the watcher panicked")??;
    say(&format!("{}: {}", state.spec.id, ending(&state)));
    Ok(())
}

/// The specification: it is part of the journal's first event (`docs/schema/event.json`).
fn spec(
    service: &Service,
    folder: &Utf8PathBuf,
    prompt: &str,
    program: &str,
    args: Vec<String>,
) -> Result<Spec, Box<dyn Error>> {
    let project = service.project();
    Ok(serde_json::from_value(json!({
        "id": "example",
        "agent": {
            "kind": "generic", "program": program, "args": args, "env": {}, "clean_env": false, "prompt_mode": "auto"
        },
        "prompt": prompt,
        "iteration_context": true,
        "promise": {"text": "COMPLETE", "match": "plain"},
        "limits": {"max_iterations": 5},
        "project": project.root, "worktree": project.worktree, "working_dir": folder,
        "depth": 0, "output_cap": Spec::OUTPUT_CAP,
    }))?)
}

/// Prints the events in order until the loop has stopped. It reads what is on disk, so however slow it is, it delays no
/// other process.
fn watch(mut follower: Follower) -> Result<(), refrain_engine::JournalError> {
    while let Some(sight) = follower.look()? {
        match sight {
            FollowEvent::Event(record) => match record.event {
                Event::IterationBegun { iteration, .. } => say(&format!("iteration {iteration} begins")),
                Event::AttemptFinished(finished) => say(&format!("it ended with {:?}", finished.exit)),
                // Everything else that happens has a variant of its own, too.
                _ => {}
            },
            FollowEvent::Output { bytes, .. } => {
                say(&format!("it prints {:?}", String::from_utf8_lossy(&bytes)))
            }
            // The stream of a known agent is parsed; its events replace its output.
            FollowEvent::Said(event) => say(&format!("it says {event:?}")),
            FollowEvent::Past(_) | FollowEvent::Joined | FollowEvent::Quiet => {}
        }
    }
    Ok(())
}

/// How it ended, in the words that `refrain status` has.
fn ending(state: &LoopState) -> String {
    let status = view::status(state, Alive::NO_RUNNER);
    format!("{} after {} iterations: {}", status.status.as_str(), status.charged, status.reason)
}

fn home() -> Result<Utf8PathBuf, Box<dyn Error>> {
    let home: Option<PathBuf> = std::env::home_dir();
    let home =
        Utf8PathBuf::from_path_buf(home.ok_or("who are you?")?).map_err(|_| "the home is not UTF-8")?;
    Ok(home.join(".local/share/refrain-example"))
}

#[expect(clippy::print_stdout, reason = "an example that shows what it does")]
fn say(text: &str) {
    println!("{text}");
}

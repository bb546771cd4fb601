//! The requests of every surface to loops and plans, defined once.
//!
//! A surface (command line, HTTP, tools, Slack, sessions, `top`) decodes what was sent into a request, calls this
//! crate, and encodes what comes back. Here the request and the configuration become a specification ([`resolve`]), the
//! caller's permission is checked ([`caller`]), and the engine does the work. What a loop decides lives in
//! `refrain-core`; how a request is read and an answer is shown lives in the surface.
//!
//! A surface that starts a loop, follows it, sends its agent a message, and finds it at its end:
//!
//! ```standalone_crate
//! use std::error::Error;
//!
//! use refrain_app::options::work::{TaskArgs, WorkArgs};
//! use refrain_app::resolve::StartLoop;
//! use refrain_app::verbs::cancel::cancel;
//! use refrain_app::verbs::start::start;
//! use refrain_app::verbs::steer::{Steering, steer};
//! use refrain_app::verbs::{Outcome, Slow, Urgent};
//! use refrain_app::{Caller, Context, Event, FollowEvent, Host, keeper};
//!
//! /// Claims to be done once its prompt, the last argument, has the words that this surface says.
//! const AGENT: &str = r#"
//! case "$1" in
//! *"Use tabs."*) echo "<promise>COMPLETE</promise>" ;;
//! *) while ! test -e told; do sleep 0.1; done ;;
//! esac"#;
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     // A loop's processes are kept by a small process: this program, started again under another name.
//!     if std::env::args().next().as_deref() == Some(keeper::KEEPER_NAME) {
//!         return Ok(keeper::run()?);
//!     }
//!     let project = tempfile::tempdir()?;
//!     let dir = camino::Utf8PathBuf::try_from(project.path().canonicalize()?)?;
//!     std::fs::write(dir.join("agent.sh"), AGENT)?;
//!     let home = dir.join("home");
//!     let host = Host {
//!         program: std::env::current_exe()?,
//!         env: std::env::vars_os().collect(),
//!         data_home: home.clone(),
//!         state_home: home.clone(),
//!         config_home: home,
//!         version: "example".to_owned(),
//!     };
//!     // The surface says where and by whom the request is made; the request does not.
//!     let context = Context::new(dir, host, Caller::Person);
//!
//!     let mut request = StartLoop::default();
//!     request.options.task = TaskArgs { prompt: Some("Indent the file.".into()), ..TaskArgs::default() };
//!     request.options.work = WorkArgs { command: Some("sh agent.sh".parse()?), ..WorkArgs::default() };
//!     let started = start(&context, &request, &mut |note| println!("note: {note}"))?;
//!
//!     let (id, service, mut follower) =
//!         (started.runner.id().clone(), started.service.clone(), started.runner.follow());
//!     let driven = std::thread::spawn({
//!         let context = context.clone();
//!         move || started.drive(&context)
//!     });
//!     while let Some(sight) = follower.look()? {
//!         if let FollowEvent::Event(record) = sight
//!             && let Event::IterationBegun { iteration: 1, .. } = record.event
//!         {
//!             let steering = Steering { text: "Use tabs.".to_owned() };
//!             steer(&context, &service, &id, &steering, Slow::Wait)?;
//!             std::fs::write(context.dir.join("told"), "")?;
//!         }
//!     }
//!     let state = driven.join().map_err(|_| "the runner panicked")??;
//!     assert_eq!(state.iteration, 2);
//!     let outcome = cancel(&context, &service, &id, Urgent { now: true }, Slow::Wait)?;
//!     assert!(matches!(outcome, Outcome::Over("completed")), "{outcome:?}");
//!     Ok(())
//! }
//! ```

pub mod book;
pub mod caller;
mod context;
pub mod differences;
pub mod effects;
pub mod environment;
pub mod error;
pub mod options;
pub mod plan;
pub mod remote;
pub mod repository_command;
pub mod resolve;
pub mod sandbox;
pub mod trust;
pub mod verbs;

pub use caller::{Action, Attempt, Caller, Permission, Relation};
pub use context::Context;
pub use error::{Code, RequestError};
pub use refrain_core::event::Event;
pub use refrain_engine::{FollowEvent, Host, keeper};

/// Receives notes for the user as they arise, even if the request is refused later.
pub type Note<'a> = &'a mut dyn FnMut(String);

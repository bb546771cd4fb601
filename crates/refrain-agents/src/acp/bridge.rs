//! The process between an ACP agent and our keeper: it starts the agent's program, exchanges messages with it, and
//! prints our events.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use agent_client_protocol::{Client, Lines, UntypedMessage};
use refrain_core::agent::{AgentEvent, Fault, FaultKind};
use refrain_core::spec::Permissions;
use refrain_proc::child_io::ChildPipes;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::conversation::{Conversation, ConversationError, IncomingMessage, no_agent};
use super::faults::{self, Phase};
use super::map::Map;
use super::pipes;
use crate::summarize;

/// How long a program may be silent before it counts as no ACP agent.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it may take to exit after its input is closed; codex-acp never does, gemini takes up to 1.3 s.
const LEAVING: Duration = Duration::from_secs(2);
/// How long it may take to exit while the user waits for that.
const HURRYING: Duration = Duration::from_millis(500);
const WAITING: usize = 64;

#[derive(Clone, Debug)]
pub struct Bridge {
    pub program: String,
    pub args: Vec<String>,
    /// The working folder, absolute.
    pub dir: PathBuf,
    pub permissions: Permissions,
    pub model: Option<String>,
    /// The time limit for its first message.
    pub patience: Duration,
}

impl Bridge {
    pub fn new(program: String, args: Vec<String>, dir: PathBuf, permissions: Permissions) -> Self {
        Self { program, args, dir, permissions, model: None, patience: PATIENCE }
    }

    /// Runs the agent with `prompt`, prints its events to `out`, one JSON object per line, and returns whether it
    /// ended normally. SIGINT and SIGTERM stop it; a second one does so at once.
    pub fn run(&self, prompt: &str, out: &mut dyn Write) -> io::Result<bool> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stops) = mpsc::unbounded_channel();
        runtime.block_on(async {
            for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
                let (mut signals, stop) = (signal(kind)?, stop.clone());
                tokio::spawn(async move { while signals.recv().await.is_some() && stop.send(()).is_ok() {} });
            }
            let mut say = |event: AgentEvent| {
                let line = serde_json::to_string(&event).map_err(io::Error::other);
                if line.and_then(|line| writeln!(out, "{line}")).and_then(|()| out.flush()).is_err() {
                    // Its output is no longer read, so it can stop.
                    let _ = stop.send(());
                }
            };
            Ok(self.converse(prompt, stops, &mut say).await)
        })
    }

    /// The same, with all external inputs as parameters.
    pub(super) async fn converse(
        &self,
        prompt: &str,
        stops: mpsc::UnboundedReceiver<()>,
        say: &mut dyn FnMut(AgentEvent),
    ) -> bool {
        let (mut piped, stdin, stdout) = match ChildPipes::start(&self.program, &self.args) {
            Ok(started) => started,
            Err(error) => {
                let message = format!("{} cannot be started: {error}", self.program);
                return fail(faults::of(FaultKind::Setup, &message), say);
            }
        };
        let (sender, hearing) = mpsc::channel(WAITING);
        let junk = {
            let sender = sender.clone();
            move |line| {
                let _ = sender.blocking_send(IncomingMessage::Junk(line));
            }
        };
        let lines = Lines::new(pipes::outgoing(stdin), pipes::incoming(stdout, junk));
        let (notified, asked) = (sender.clone(), sender);
        let client = Client
            .v1()
            .name("refrain")
            .on_receive_notification(
                async move |message: UntypedMessage, _| {
                    let _ = notified.send(IncomingMessage::Notification(message)).await;
                    Ok(())
                },
                agent_client_protocol::on_receive_notification!(),
            )
            .on_receive_request(
                async move |message: UntypedMessage, responder, _| {
                    let _ = asked.send(IncomingMessage::Request(message, Box::new(responder))).await;
                    Ok(())
                },
                agent_client_protocol::on_receive_request!(),
            );
        let mut talk =
            Conversation { bridge: self, map: Map::default(), hearing, stops, junk: Vec::new(), say };
        let held = client.connect_with(lines, async |agent| Ok(talk.hold(&agent, prompt).await)).await;
        let Conversation { mut map, junk, say, .. } = talk;
        match held {
            Ok(Ok(prompted)) => {
                let is_ok = map.end(&prompted, say);
                let _ = piped.end(LEAVING);
                is_ok
            }
            Ok(Err(ConversationError::Fault(fault))) => {
                let _ = piped.end(HURRYING);
                fail(fault, say)
            }
            Ok(Err(ConversationError::Stopped)) => {
                let _ = piped.end(HURRYING);
                say(AgentEvent::Fault(faults::of(FaultKind::Aborted, "the agent was interrupted")));
                false
            }
            // No final message: only the reader of its standard error knows more.
            Ok(Err(ConversationError::Gone(at))) => {
                let how =
                    piped.end(HURRYING).map_or_else(|error| error.to_string(), |status| status.to_string());
                say(AgentEvent::Fault(gone(&self.program, at, &how, &junk)));
                false
            }
            Err(error) => {
                let _ = piped.end(HURRYING);
                let message = format!("the conversation with {} broke: {error}", self.program);
                fail(faults::of(FaultKind::Other, &message), say)
            }
        }
    }
}

fn fail(fault: Fault, say: &mut dyn FnMut(AgentEvent)) -> bool {
    say(AgentEvent::Fault(fault));
    say(AgentEvent::Final { ok: false, message: None });
    false
}

fn gone(program: &str, at: Phase, how: &str, junk: &[String]) -> Fault {
    match at {
        Phase::Setup => no_agent(program, &format!("it ended ({how}) instead of answering"), junk),
        Phase::Prompt => {
            let message = format!("{program} ended ({how}) in the middle of its work");
            faults::of(FaultKind::Other, &summarize::line(&message))
        }
    }
}

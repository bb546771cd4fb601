//! The conversation with an ACP agent: initialize, open a session, set its model and mode, prompt once, answer its
//! requests meanwhile.

use std::pin::pin;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, Implementation, InitializeRequest,
    NewSessionRequest, PromptRequest, SetSessionModeRequest, TextContent,
};
use agent_client_protocol::{
    Agent, Error, JsonRpcMessage, Responder, UntypedMessage, V1, is_connection_terminated,
    is_incoming_transport_closed,
};
use refrain_core::agent::{AgentEvent, Fault, FaultKind};
use refrain_core::spec::Permissions;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::bridge::Bridge;
use super::faults::{self, Phase};
use super::map::Map;
use super::wire::{Choice, ChoiceKind, InitializeResult, NewSession, PromptResult, Question, ToolStatus};
use crate::summarize;

/// How long opening and setting up a session may take: tool servers are started then.
const OPENING: Duration = Duration::from_secs(120);
/// How long an agent may take to react to a `session/cancel`.
const CANCELLING: Duration = Duration::from_secs(2);
/// After so many junk lines without a message the program counts as no ACP agent.
const JUNK: usize = 100;
/// The modes without questions, by their ids (agent-clis.md, "ACP"): Gemini's, Claude's, Codex's.
const FULL: [&str; 3] = ["yolo", "bypassPermissions", "agent-full-access"];
/// The read-only modes: Claude's and OpenCode's, Codex's.
const READ_ONLY: [&str; 2] = ["plan", "read-only"];
/// The kinds of tools that change nothing, in the protocol's names.
const READING: [&str; 3] = ["read", "search", "think"];

pub(super) enum IncomingMessage {
    Notification(UntypedMessage),
    Request(UntypedMessage, Box<Responder<Value, V1>>),
    /// A line that is no message.
    Junk(Vec<u8>),
}

pub(super) enum ConversationError {
    /// An error, reported by the program or found by us.
    Fault(Fault),
    Gone(Phase),
    /// It was stopped, and did not end by itself.
    Stopped,
}

/// A conversation that sends its events to `say`.
pub(super) struct Conversation<'a> {
    pub(super) bridge: &'a Bridge,
    pub(super) map: Map,
    pub(super) hearing: mpsc::Receiver<IncomingMessage>,
    /// Requests to stop; the second one stops at once.
    pub(super) stops: mpsc::UnboundedReceiver<()>,
    pub(super) junk: Vec<String>,
    pub(super) say: &'a mut dyn FnMut(AgentEvent),
}

impl Conversation<'_> {
    pub(super) async fn hold(
        &mut self,
        agent: &ConnectionTo<Agent>,
        prompt: &str,
    ) -> Result<PromptResult, ConversationError> {
        let result = self.talk(agent, prompt).await;
        // The receiver is gone, so no sender may wait for it.
        self.hearing.close();
        result
    }

    async fn talk(
        &mut self,
        agent: &ConnectionTo<Agent>,
        prompt: &str,
    ) -> Result<PromptResult, ConversationError> {
        let client = Implementation::new("refrain", env!("CARGO_PKG_VERSION"));
        // No files and no terminals are offered: the agent then uses its own.
        let hello = InitializeRequest::new(ProtocolVersion::V1)
            .client_capabilities(ClientCapabilities::new())
            .client_info(client);
        let initialized: InitializeResult =
            self.ask(agent, &hello, ReplyDeadline::within(self.bridge.patience)).await?;
        if initialized.protocol_version != 1 {
            let version = &initialized.protocol_version;
            return Err(self.no_agent(&format!("it speaks version {version} of ACP, not 1")));
        }
        self.map.introduce(initialized);

        let new = NewSessionRequest::new(&self.bridge.dir);
        let new: NewSession = self.ask(agent, &new, ReplyDeadline::within(OPENING)).await?;
        self.map.open(&new, self.say);
        if let Some(model) = &self.bridge.model {
            self.set_model(agent, &new, model).await?;
        }
        let wanted: &[&str] = match self.bridge.permissions {
            Permissions::Full => &FULL,
            Permissions::ReadOnly => &READ_ONLY,
            Permissions::Auto | Permissions::Agent => &[],
        };
        if let Some(mode) = offered_mode(&new, wanted) {
            let mode = SetSessionModeRequest::new(new.session_id.clone(), mode);
            self.ask::<Value>(agent, &mode, ReplyDeadline::within(OPENING)).await?;
        }

        self.map.begin();
        let content = vec![ContentBlock::Text(TextContent::new(prompt))];
        let cancel = CancelNotification::new(new.session_id.clone());
        self.ask(agent, &PromptRequest::new(new.session_id, content), ReplyDeadline::cancelled(cancel)).await
    }

    /// Sends a request and handles all other messages until it is answered.
    async fn ask<T: DeserializeOwned>(
        &mut self,
        agent: &ConnectionTo<Agent>,
        request: &impl JsonRpcMessage,
        mut until: ReplyDeadline,
    ) -> Result<T, ConversationError> {
        let (at, method) = (until.at(), request.method().to_owned());
        let request = request.to_untyped_message().map_err(|error| broken(at, error))?;
        let mut answer = pin!(agent.send_request(request).block_task());
        let answer = loop {
            // Unbiased: an agent that sends without end must not prevent us from stopping it.
            tokio::select! {
                Some(heard) = self.hearing.recv() => self.attend(heard)?,
                answer = &mut answer => break answer,
                Some(()) = self.stops.recv() => until.stop(agent)?,
                () = until.is_over() => return Err(until.late(self, &method)),
            }
        };
        // Updates before the response are queued by now; those after it may continue for ever.
        for _ in 0..self.hearing.len() {
            let Ok(heard) = self.hearing.try_recv() else { break };
            self.attend(heard)?;
        }
        let answer = answer.map_err(|error| match broken(at, error) {
            ConversationError::Gone(_) if until.is_cancelling() => ConversationError::Stopped,
            broken => broken,
        })?;
        serde_json::from_value(answer)
            .map_err(|error| self.no_agent(&format!("its answer to {method} cannot be read: {error}")))
    }

    fn attend(&mut self, heard: IncomingMessage) -> Result<(), ConversationError> {
        match heard {
            IncomingMessage::Notification(message) if message.method() == "session/update" => {
                self.map.hear(message.params(), self.say);
            }
            IncomingMessage::Notification(_) => (self.say)(AgentEvent::Unknown),
            IncomingMessage::Request(message, responder) => {
                // If a response cannot be sent, no request waits for it.
                let _ = match message.method() {
                    "session/request_permission" => match serde_json::from_value(message.params) {
                        Ok(question) => responder.respond(self.answer(question)),
                        Err(_) => responder.respond_with_error(Error::invalid_params()),
                    },
                    method => {
                        (self.say)(AgentEvent::Notice(summarize::line(&format!(
                            "the agent asks for {method}, which it was not offered"
                        ))));
                        responder.respond_with_error(Error::method_not_found())
                    }
                };
            }
            IncomingMessage::Junk(line) => {
                let line = summarize::raw(&line);
                (self.say)(AgentEvent::Notice(line.clone()));
                if self.junk.len() < JUNK {
                    self.junk.push(line);
                }
                if self.junk.len() == JUNK && !self.map.is_introduced() {
                    return Err(self.no_agent("what it prints is no protocol"));
                }
            }
        }
        Ok(())
    }

    /// Answers a question. `allow_once` before `allow_always`: the latter is written into the agent's own settings,
    /// which may lie in the project.
    fn answer(&mut self, question: Question) -> Value {
        let Question { mut tool_call, options } = question;
        // No further update of it comes before the answer.
        tool_call.status = Some(ToolStatus::InProgress);
        let about = tool_call.title.clone().unwrap_or_default();
        let only_reads = tool_call.kind.as_deref().is_some_and(|kind| READING.contains(&kind));
        self.map.tool(tool_call, self.say);
        let pick = |kinds: [ChoiceKind; 2]| -> Option<&Choice> {
            kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind))
        };
        let choice = match self.bridge.permissions {
            Permissions::Auto | Permissions::Full => pick([ChoiceKind::AllowOnce, ChoiceKind::AllowAlways]),
            Permissions::ReadOnly if only_reads => pick([ChoiceKind::AllowOnce, ChoiceKind::AllowAlways]),
            Permissions::ReadOnly | Permissions::Agent => None,
        };
        if let Some(choice) = choice {
            return json!({"outcome": {"outcome": "selected", "optionId": choice.option_id}});
        }
        let notice = format!("the agent asked to be allowed this, and was not: {about}");
        (self.say)(AgentEvent::Notice(summarize::line(&notice)));
        match pick([ChoiceKind::RejectOnce, ChoiceKind::RejectAlways]) {
            Some(choice) => json!({"outcome": {"outcome": "selected", "optionId": choice.option_id}}),
            None => json!({"outcome": {"outcome": "cancelled"}}),
        }
    }

    /// Sets the model, in one of the two ways that the agent offers.
    async fn set_model(
        &mut self,
        agent: &ConnectionTo<Agent>,
        new: &NewSession,
        model: &str,
    ) -> Result<(), ConversationError> {
        let session = &new.session_id;
        let option = new.config_options.iter().flatten().find(|option| {
            let is_offered =
                || option.options.iter().flatten().any(|offered| offered.value.as_str() == model);
            option.category.as_deref() == Some("model") && is_offered()
        });
        let is_listed = || {
            let mut models = new.models.iter().flat_map(|models| &models.available_models);
            models.any(|offered| offered.model_id == model)
        };
        let (method, params) = match option {
            Some(option) => {
                let params = json!({"sessionId": session, "configId": option.id, "value": model});
                ("session/set_config_option", params)
            }
            None if is_listed() => ("session/set_model", json!({"sessionId": session, "modelId": model})),
            None => {
                let message = format!("the agent does not offer the model {model:?}");
                return Err(ConversationError::Fault(faults::of(FaultKind::Model, &message)));
            }
        };
        let request = UntypedMessage::new(method, params).map_err(|error| broken(Phase::Setup, error))?;
        self.ask::<Value>(agent, &request, ReplyDeadline::within(OPENING)).await?;
        self.map.use_model(model, self.say);
        Ok(())
    }

    /// The program is no ACP agent, or an incompatible one; with its first line of output, the most informative one.
    fn no_agent(&self, why: &str) -> ConversationError {
        ConversationError::Fault(no_agent(&self.bridge.program, why, &self.junk))
    }
}

/// The error for a program that is no ACP agent.
pub(super) fn no_agent(program: &str, why: &str, junk: &[String]) -> Fault {
    let printed = junk.first().map_or_else(String::new, |line| format!("; it printed: {line}"));
    faults::of(FaultKind::Setup, &format!("{program} is no ACP agent: {why}{printed}"))
}

/// The first of these modes that the agent offers.
fn offered_mode<'a>(new: &NewSession, wanted: &[&'a str]) -> Option<&'a str> {
    let modes = new.modes.iter().flat_map(|modes| &modes.available_modes).map(|mode| &mode.id);
    let options = new.config_options.iter().flatten();
    let values = options
        .filter(|option| option.category.as_deref() == Some("mode"))
        .flat_map(|option| option.options.iter().flatten().map(|offered| &offered.value));
    let offered: Vec<_> = modes.chain(values).collect();
    wanted.iter().copied().find(|mode| offered.iter().any(|offered| *offered == mode))
}

fn broken(at: Phase, error: Error) -> ConversationError {
    if is_incoming_transport_closed(&error) || is_connection_terminated(&error) {
        return ConversationError::Gone(at);
    }
    ConversationError::Fault(faults::of_answer(at, error.code.into(), &error.message, error.data.as_ref()))
}

enum ReplyDeadline {
    Late(Instant, Duration),
    /// Without limit; a stop cancels it.
    Cancelled(CancelNotification),
    /// It was cancelled: until this time.
    Cancelling(Instant),
}

impl ReplyDeadline {
    fn within(patience: Duration) -> Self {
        Self::Late(Instant::now() + patience, patience)
    }

    fn cancelled(by: CancelNotification) -> Self {
        Self::Cancelled(by)
    }

    fn at(&self) -> Phase {
        match self {
            Self::Late(..) => Phase::Setup,
            Self::Cancelled(_) | Self::Cancelling(_) => Phase::Prompt,
        }
    }

    fn is_cancelling(&self) -> bool {
        matches!(self, Self::Cancelling(_))
    }

    fn stop(&mut self, agent: &ConnectionTo<Agent>) -> Result<(), ConversationError> {
        let Self::Cancelled(by) = self else { return Err(ConversationError::Stopped) };
        agent.send_notification(by.clone()).map_err(|error| broken(Phase::Prompt, error))?;
        *self = Self::Cancelling(Instant::now() + CANCELLING);
        Ok(())
    }

    async fn is_over(&self) {
        match self {
            Self::Late(when, _) | Self::Cancelling(when) => sleep_until(*when).await,
            Self::Cancelled(_) => std::future::pending().await,
        }
    }

    fn late(&self, talk: &Conversation<'_>, method: &str) -> ConversationError {
        match self {
            Self::Late(_, patience) => {
                talk.no_agent(&format!("it did not answer {method} within {patience:?}"))
            }
            Self::Cancelled(_) | Self::Cancelling(_) => ConversationError::Stopped,
        }
    }
}

//! Reads a child's output while it runs. Lives on the supervisor's thread, which may block.

use std::time::Instant;

use camino::Utf8PathBuf;
use refrain_agents::adapter::Call;
use refrain_agents::output_parser::OutputParser;
use refrain_core::event::Seal;
use refrain_core::gate::GateName;
use refrain_core::view::seal::Sealing;
use refrain_proc::Listener;
use refrain_store::project::layout::AttemptDir;
use tokio::sync::mpsc;

use super::ChildEvent;
use crate::sandbox::RefusedHosts;

/// The purpose of an agent, on which the conclusion from its end depends.
pub(crate) enum AgentRole {
    /// A working agent: the folder of its attempt, and the seal of its prompt as it was written.
    Worker(AttemptDir, Seal),
    Reviewer(GateName),
    Critic,
}

pub(crate) struct ChildOutput {
    pub(super) kind: ChildKind,
    pub(super) log: Utf8PathBuf,
    pub(super) stderr_log: Utf8PathBuf,
    pub(super) began: Instant,
    /// The seal of standard output, as it passes.
    pub(super) sealing: Sealing,
    pub(crate) refused: RefusedHosts,
}

pub(super) enum ChildKind {
    /// A gate. Its log is read when it has ended.
    Command {
        gate: GateName,
        expected_summaries: u32,
    },
    Agent(AgentRole, Box<AgentOutput>),
}

/// The parser of an agent's stream, and the channel for its events.
pub(super) struct AgentOutput {
    pub(super) parser: OutputParser,
    news: mpsc::Sender<ChildEvent>,
    is_answered: bool,
    /// The number of the last retry that was reported.
    retry: Option<u32>,
}

impl ChildOutput {
    pub(crate) fn of_agent(
        role: AgentRole,
        call: &Call<'_>,
        logs: (Utf8PathBuf, Utf8PathBuf),
        news: mpsc::Sender<ChildEvent>,
    ) -> Self {
        // Only the loop's own agent opens the gate of its account.
        let is_answered = !matches!(role, AgentRole::Worker(..));
        let output = AgentOutput { parser: OutputParser::new(call), news, is_answered, retry: None };
        Self::new(ChildKind::Agent(role, Box::new(output)), logs)
    }

    fn new(kind: ChildKind, (log, stderr_log): (Utf8PathBuf, Utf8PathBuf)) -> Self {
        Self {
            kind,
            log,
            stderr_log,
            began: Instant::now(),
            sealing: Sealing::default(),
            refused: RefusedHosts::default(),
        }
    }

    /// With the number of test runners that have to print their summary if the gate passes.
    pub(crate) fn of_command(
        (gate, expected_summaries): (GateName, u32),
        logs: (Utf8PathBuf, Utf8PathBuf),
    ) -> Self {
        Self::new(ChildKind::Command { gate, expected_summaries }, logs)
    }
}

impl AgentOutput {
    fn hear(&mut self, chunk: &[u8]) {
        // A busy runner gets the next total, or the end.
        if let Some(used) = self.parser.hear(chunk) {
            let _: Result<(), _> = self.news.try_send(ChildEvent::Used(used));
        }
        if !self.is_answered && self.parser.is_answered() {
            self.is_answered = self.news.try_send(ChildEvent::Answered).is_ok();
        }
        self.report_retry();
    }

    /// Reports another retry. This thread may wait for the runner: a lost report would not come again.
    fn report_retry(&mut self) {
        let retrying = self.parser.retrying();
        let number = retrying.map(|(number, _)| number);
        if number != self.retry {
            self.retry = number;
            let retrying = retrying.map(|(_, fault)| (fault.kind, fault.until));
            // Without a runner there is no receiver.
            let _ = self.news.blocking_send(ChildEvent::Retrying(retrying));
        }
    }
}

impl Listener for ChildOutput {
    fn hear(&mut self, chunk: &[u8]) {
        self.sealing.add(chunk);
        if let ChildKind::Agent(_, output) = &mut self.kind {
            output.hear(chunk);
        }
    }

    fn hear_stderr(&mut self, chunk: &[u8]) {
        if let ChildKind::Agent(_, output) = &mut self.kind {
            output.parser.hear_stderr(chunk);
            output.report_retry();
        }
    }
}

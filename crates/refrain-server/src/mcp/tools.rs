//! The tools. Their names, parameters and results are public: seed 003's words, with one tool for each of its actions,
//! because a tool whose parameters depend on one of them cannot be typed.

use std::time::{Duration, Instant};

use refrain_app::remote::{PlanRun, Start};
use refrain_core::view::StatusWord;
use refrain_engine::Changes;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, tool, tool_router};

use super::Mcp;
use crate::requests::{
    AnswerResult, Difference, DiscardSummary, List, Listing, LoopParams, MergeSummary, Progress, Refusal,
    Reported, StartResult, Status, Steer, SteerResult, Stop, StopResult, ToolDiff, ToolMerge, WithWait,
};

/// How often a waiting call checks that its client still waits.
const LOOK: Duration = Duration::from_secs(1);

impl IntoCallToolResult for Refusal {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        // Text only: clients check structured content against the schema of the tool's successful result.
        Ok(CallToolResult::error(vec![ContentBlock::text(self.to_string())]).into())
    }
}

#[tool_router(vis = "pub(super)")]
impl Mcp {
    #[tool(
        description = "Start a loop: a coding agent is run again and again on one goal, each time with a fresh session, until \
                       the work is done and, with gates, proven. It runs by itself in the background and outlives this \
                       session. Between iterations only the files and .refrain/ID/state.md remain. Ask loop_status how it \
                       gets on.",
        annotations(
            title = "Start a loop",
            read_only_hint = false,
            destructive_hint = true,
            open_world_hint = true
        )
    )]
    async fn loop_start(&self, Parameters(asked): Parameters<Start>) -> Result<Json<StartResult>, Refusal> {
        self.run_blocking(move |handler| handler.start(&asked)).await.map(Json)
    }

    #[tool(
        description = "How a loop, or a plan, stands: status, iterations, cost, what it needs from a person, and the \
                       beginning of its state.md. With wait_seconds it answers once the loop has got on.",
        annotations(title = "Show a loop", read_only_hint = true, open_world_hint = false)
    )]
    async fn loop_status(
        &self,
        Parameters(asked): Parameters<WithWait>,
        context: RequestContext<RoleServer>,
    ) -> Result<Json<Status>, Refusal> {
        let which = asked.which();
        if asked.wait_seconds > 0 {
            self.wait(which.clone(), Duration::from_secs(asked.wait_seconds.into()), context).await?;
        }
        self.run_blocking(move |handler| handler.status(&which)).await.map(Json)
    }

    #[tool(
        description = "Stop a loop, or a plan, for good: after the iteration at work, or now. Files stay as they are.",
        annotations(
            title = "Stop a loop",
            read_only_hint = false,
            destructive_hint = true,
            idempotent_hint = true
        )
    )]
    async fn loop_stop(&self, Parameters(asked): Parameters<Stop>) -> Result<Json<StopResult>, Refusal> {
        self.run_blocking(move |handler| handler.stop(&asked)).await.map(Json)
    }

    #[tool(
        description = "The loops and plans that are not over, oldest first; with include_finished the last 50, newest first.",
        annotations(title = "List loops", read_only_hint = true, open_world_hint = false)
    )]
    async fn loop_list(&self, Parameters(asked): Parameters<List>) -> Result<Json<Listing>, Refusal> {
        self.run_blocking(move |handler| handler.list(&asked)).await.map(Json)
    }

    #[tool(
        description = "Say something to the agent of a loop: it gets the text with its next iteration.",
        annotations(title = "Steer a loop", read_only_hint = false, destructive_hint = false)
    )]
    async fn loop_steer(&self, Parameters(asked): Parameters<Steer>) -> Result<Json<SteerResult>, Refusal> {
        self.run_blocking(move |handler| handler.steer(&asked)).await.map(Json)
    }

    #[tool(
        description = "Answer the question that a loop waits with: its agent gets the text with its next iteration, and a loop \
                       that has stopped continues in the background.",
        annotations(title = "Answer a loop", read_only_hint = false, destructive_hint = false)
    )]
    async fn loop_answer(&self, Parameters(asked): Parameters<Steer>) -> Result<Json<AnswerResult>, Refusal> {
        self.run_blocking(move |handler| handler.answer_loop(&asked)).await.map(Json)
    }

    #[tool(
        description = "What a loop, or a plan, was asked, what its agent claimed, what proved it and what it took.",
        annotations(title = "Report on a loop", read_only_hint = true, open_world_hint = false)
    )]
    async fn loop_report(
        &self,
        Parameters(asked): Parameters<LoopParams>,
    ) -> Result<Json<Reported>, Refusal> {
        self.run_blocking(move |handler| handler.report(&asked)).await.map(Json)
    }

    #[tool(
        description = "What a loop, or a plan, has changed: so far, or in one iteration. With stat only the files and how many \
                       lines of each.",
        annotations(title = "Show the changes of a loop", read_only_hint = true, open_world_hint = false)
    )]
    async fn loop_diff(&self, Parameters(asked): Parameters<ToolDiff>) -> Result<Json<Difference>, Refusal> {
        self.run_blocking(move |handler| handler.difference_of_loop(&asked)).await.map(Json)
    }

    #[tool(
        description = "Merge the verified work of a stopped loop, or of a plan, into the branch that is checked out in the \
                       project. Required gates run on the merged work first; nothing changes if one fails or if there is a \
                       conflict. Call it only if the user asks for it.",
        annotations(title = "Merge a loop", read_only_hint = false, destructive_hint = true)
    )]
    async fn loop_merge(
        &self,
        Parameters(asked): Parameters<ToolMerge>,
    ) -> Result<Json<MergeSummary>, Refusal> {
        self.run_blocking(move |handler| handler.merge_loop(&asked)).await.map(Json)
    }

    #[tool(
        description = "Discard a stopped loop, or a plan: it is archived, and its branch is kept as a reference for 30 days. \
                       Call it only if the user asks for it.",
        annotations(title = "Discard a loop", read_only_hint = false, destructive_hint = true)
    )]
    async fn loop_discard(
        &self,
        Parameters(asked): Parameters<LoopParams>,
    ) -> Result<Json<DiscardSummary>, Refusal> {
        self.run_blocking(move |handler| handler.discard_loop(&asked)).await.map(Json)
    }

    #[tool(
        description = "Work on all tasks of a plan in the background, several at a time: each is a loop in a worktree of its \
                       own, and what is proven lands on the branch. loop_status, loop_stop and loop_report take its id.",
        annotations(
            title = "Run a plan",
            read_only_hint = false,
            destructive_hint = true,
            open_world_hint = true
        )
    )]
    async fn plan_run(&self, Parameters(asked): Parameters<PlanRun>) -> Result<Json<StartResult>, Refusal> {
        self.run_blocking(move |handler| handler.run_plan(&asked)).await.map(Json)
    }
}

impl Mcp {
    /// Waits until the loop has progressed, the time is over, or the client is gone; reports progress meanwhile.
    async fn wait(
        &self,
        which: LoopParams,
        at_most: Duration,
        context: RequestContext<RoleServer>,
    ) -> Result<(), Refusal> {
        let until = Instant::now() + at_most;
        let (token, asked) = (context.meta.get_progress_token(), which.clone());
        // Subscribe before the first look, so that no change is missed.
        let mut changes = self.run_blocking(move |handler| handler.changes(&asked)).await?;
        let (mut begun, mut heard) = (None::<Progress>, 0);
        loop {
            let asked = which.clone();
            let now = self.run_blocking(move |handler| handler.progress(&asked)).await?;
            if let Some(token) = &token {
                // A client that does not listen is not waited for longer than it waits.
                let _ = context.peer.notify_progress(notice(token.clone(), &now, heard)).await;
            }
            let left = until.saturating_duration_since(Instant::now());
            let begun = begun.get_or_insert_with(|| now.clone());
            let has_got_on = begun.charged != now.charged || begun.status != now.status;
            // A crashed loop makes no progress either.
            let stands = now.status.has_stopped() || now.status == StatusWord::Crashed;
            if stands || has_got_on || left.is_zero() || context.ct.is_cancelled() {
                return Ok(());
            }
            changes = self.run_blocking(move |_| Ok(next(changes, until))).await?;
            heard += 1;
        }
    }
}

fn next(mut changes: Changes, until: Instant) -> Changes {
    let left = until.saturating_duration_since(Instant::now());
    changes.wait(left.min(LOOK));
    changes
}

/// How far it is: the iterations that count, and of the one at work a share that grows with each look, as the protocol wants
/// it to grow.
fn notice(token: ProgressToken, progress: &Progress, heard: u32) -> ProgressNotificationParam {
    let share = 1.0 - 1.0 / (f64::from(heard) + 2.0);
    let share = if progress.status == StatusWord::Completed { 0.0 } else { share };
    let notice = ProgressNotificationParam::new(token, f64::from(progress.charged) + share);
    let notice = notice.with_message(progress.reason.clone());
    match progress.of {
        Some(most) => notice.with_total(f64::from(most)),
        None => notice,
    }
}

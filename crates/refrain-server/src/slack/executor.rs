//! Executes a request from Slack once: through the same [`RequestHandler`](crate::RequestHandler) as every other protocol, and only for
//! users that the configuration names.

use std::time::Duration;

use refrain_app::remote::Start;
use refrain_app::verbs::approve::Approve;
use refrain_core::LoopId;
use refrain_core::view::{progress, sum};
use refrain_engine::{Delivery, Service, StopRequest, Talk};
use tokio::time::sleep;

use super::api::Fault;
use super::command_parser::{HELP, SlackRequest};
use super::envelope::Request;
use super::render::{escaped, said};
use super::{SlackWorkspace, run_blocking};
use crate::requests::{AnswerResult, List, LoopParams, LoopView, Refusal, RefusalKind, Steer, Stop};

const TRIES: u32 = 4;
const MOST_LISTED: usize = 20;
/// How much of a goal a list shows, in characters.
const SHORT: usize = 80;

impl SlackWorkspace {
    /// Executes the request, answers it, and forgets it.
    pub(super) async fn serve(self: std::sync::Arc<Self>, request: Request) {
        let answer = match self.permit(&request) {
            Ok(()) => self.grant(&request).await,
            Err(refused) => Some(refused),
        };
        // An answer may get lost; nothing is done twice for its sake.
        self.asked.forget(&request.key);
        if let Some(answer) = answer {
            self.answer(&request, &answer).await;
        }
    }

    fn permit(&self, request: &Request) -> Result<(), String> {
        if !self.hears(&request.channel) {
            let where_else = "`[slack] channels` of Refrain's configuration says where";
            return Err(format!("Refrain takes no commands in this channel; {where_else}."));
        }
        let (start, stop) =
            (self.config.may_start.contains(&request.user), self.config.may_stop.contains(&request.user));
        let (may, what, list) = match &request.wish {
            SlackRequest::Help | SlackRequest::Unknown(_) => return Ok(()),
            SlackRequest::Start { .. } => (start, "start loops", "may-start"),
            SlackRequest::Steer { .. } => (start, "steer loops", "may-start"),
            SlackRequest::Answer { .. } => (start, "answer loops", "may-start"),
            SlackRequest::Approve { .. } => (start, "approve work", "may-start"),
            SlackRequest::Stop(_) => (stop, "stop loops", "may-stop"),
            SlackRequest::Status(_) => (start || stop, "look at loops", "may-start"),
        };
        match may {
            true => Ok(()),
            false => Err(format!(
                "You may not {what} here; `[slack] {list}` of Refrain's configuration says who may. Nothing was done."
            )),
        }
    }

    async fn grant(self: &std::sync::Arc<Self>, request: &Request) -> Option<String> {
        let done = match &request.wish {
            SlackRequest::Help => Ok(Some(HELP.to_owned())),
            SlackRequest::Unknown(words) => Ok(Some(format!(
                "`{}` is nothing that I know.\n{HELP}",
                said(words, SHORT).replace('`', "'")
            ))),
            SlackRequest::Start { project, goal } => self.start(request, project.as_deref(), goal).await,
            SlackRequest::Status(Some(id)) => {
                let which = LoopParams { loop_id: id.clone(), workspace: None };
                run_blocking(&self.handler, move |handler| Ok(Some(told(&handler.status(&which)?.view))))
                    .await
            }
            SlackRequest::Status(None) => {
                run_blocking(&self.handler, |handler| {
                    let loops = handler.list(&List { workspace: None, include_finished: false })?.loops;
                    let lines: Vec<_> = loops.iter().rev().take(MOST_LISTED).map(listed).collect();
                    Ok(Some(if lines.is_empty() {
                        "No loop is at work.".to_owned()
                    } else {
                        lines.join("\n")
                    }))
                })
                .await
            }
            SlackRequest::Stop(id) => self.stop(request, id).await,
            SlackRequest::Steer { id, text } => {
                let steer = Steer { loop_id: id.clone(), workspace: None, text: text.clone() };
                run_blocking(&self.handler, move |handler| {
                    let heard = handler.steer(&steer)?;
                    Ok(Some(format!("Loop `{}` gets it with its next iteration.", heard.loop_id)))
                })
                .await
            }
            SlackRequest::Answer { id, text } => {
                let answer = Steer { loop_id: id.clone(), workspace: None, text: text.clone() };
                run_blocking(&self.handler, move |handler| {
                    let AnswerResult { loop_id, .. } = handler.answer_loop(&answer)?;
                    Ok(Some(format!("Loop `{loop_id}` continues with your answer.")))
                })
                .await
            }
            SlackRequest::Approve { id, tree } => {
                let (id, tree) = (id.clone(), Some(tree.clone()));
                run_blocking(&self.handler, move |handler| {
                    let id = handler.approve_loop(&id, &Approve { tree })?;
                    Ok(Some(format!("Approved: loop `{id}` finishes.")))
                })
                .await
            }
        };
        done.unwrap_or_else(|refusal| Some(refused(&refusal)))
    }

    /// Starts a loop whose name is derived from the user, place and time of the request: a repeated request finds the
    /// same loop.
    async fn start(
        self: &std::sync::Arc<Self>,
        request: &Request,
        project: Option<&str>,
        goal: &str,
    ) -> Result<Option<String>, Refusal> {
        let name = format!("slack-{}", &request.key[..8]);
        let roots = self.handler.roots();
        let workspace = match project {
            None => None,
            Some(name) => {
                let found = roots.iter().find(|root| root.file_name() == Some(name));
                let names: Vec<_> = roots.iter().filter_map(|root| root.file_name()).collect();
                let refused = || Refusal::new(format!("project {name}: accepted: {}", names.join(", ")));
                Some(found.ok_or_else(refused)?.to_string())
            }
        };
        let start = Start { goal: goal.to_owned(), workspace, name: Some(name.clone()), ..Start::default() };
        let talk = Talk {
            channel: request.channel.clone(),
            thread: request.thread.clone(),
            trigger: request.trigger.clone(),
            ..Talk::default()
        };
        let (service, id, notes) = run_blocking(&self.handler, move |handler| {
            let notes = match handler.of_loop(&name, None) {
                // It was begun before we broke off.
                Ok(_) => Ok(Vec::new()),
                Err(_) => handler.start(&start).map(|started| started.notes),
            };
            // A concurrent start may have taken the name by now.
            let (service, id) = match handler.of_loop(&name, None) {
                Ok(found) => found,
                Err(_) => return Err(notes.err().unwrap_or_else(|| Refusal::new("it is gone already"))),
            };
            let notes = notes.unwrap_or_default();
            if service.talk(&id)?.is_none() {
                service.note_talk(&id, &talk)?;
            }
            Ok((service, id, notes))
        })
        .await?;
        self.follow(service, id);
        let notes: Vec<_> = notes.iter().map(|note| escaped(note)).collect();
        Ok((!notes.is_empty()).then(|| notes.join("\n")))
    }

    async fn stop(
        self: &std::sync::Arc<Self>,
        request: &Request,
        id: &str,
    ) -> Result<Option<String>, Refusal> {
        let (asked, is_button) = (request.clone(), request.button.is_some());
        let stop = Stop { loop_id: id.to_owned(), workspace: None, now: true };
        let (service, id, stopped) = run_blocking(&self.handler, move |handler| {
            let (service, id) = handler.of_loop(&stop.loop_id, None)?;
            if let Some(ts) = &asked.button {
                belongs(&service, &id, &asked.channel, ts)?;
            }
            let stopped = handler.stop(&stop)?;
            Ok((service, id, stopped))
        })
        .await?;
        let pressed = StopRequest { user: request.user.clone(), was_running: stopped.stop_requested };
        let has_talk = self.note(&service, &id, move |talk| talk.stop = Some(pressed)).await;
        if has_talk {
            self.follow(service, id.clone());
        }
        let said = match stopped.stop_requested {
            true => format!("Loop `{id}` is asked to stop."),
            false => format!("Loop `{id}` had stopped already: {}.", stopped.status.as_str()),
        };
        Ok((!is_button).then_some(said))
    }

    async fn answer(&self, request: &Request, text: &str) {
        let Request { channel, thread, user, .. } = request;
        let mut rest = Duration::from_secs(1);
        for _ in 0..TRIES {
            let told = match self.api.whisper(channel, thread.as_deref(), user, text).await {
                // The bot is not in that channel; a command can be answered at its response URL.
                Err(Fault::Refused(why)) => match &request.answer_at {
                    Some(url) => self.api.respond(url, text).await,
                    None => Err(Fault::Refused(why)),
                },
                told => told,
            };
            match told {
                Ok(()) => return,
                Err(Fault::Refused(why)) => return self.complain(&format!("no answer for {user}: {why}")),
                Err(Fault::Again(..)) => sleep(rest).await,
            }
            rest *= 2;
        }
    }
}

/// A refusal in words of Slack, where no command line, tool or form is at hand.
fn refused(refusal: &Refusal) -> String {
    let next = match refusal.kind() {
        RefusalKind::NotFound => "; `list` shows which there are",
        RefusalKind::Conflict => "; `status ID` says how it stands",
        RefusalKind::Asked | RefusalKind::Failed => "",
    };
    format!("Refused: {}{next}", escaped(refusal.text()))
}

/// That a button is the one of the loop that it names.
fn belongs(service: &Service, id: &LoopId, channel: &str, ts: &str) -> Result<(), Refusal> {
    let is_it = |talk: &Talk| talk.channel == channel && talk.message == Delivery::At(ts.to_owned());
    match service.talk(id)?.is_some_and(|talk| is_it(&talk)) {
        true => Ok(()),
        false => Err(Refusal::new(format!("this is not the button of {id}"))),
    }
}

/// The status of a loop, in lines.
fn told(view: &LoopView) -> String {
    let mut lines = vec![listed(view), said(&view.reason, 300)];
    lines.extend(view.needs.as_deref().map(|needs| format!(":raised_hand: {}", said(needs, 300))));
    lines.join("\n")
}

fn listed(view: &LoopView) -> String {
    let at = progress(view.iteration_count, view.max_iterations);
    let cost = view.total_cost_usd.map(|cost| sum(&format!("${cost:.2}"), view.at_least));
    let cost = cost.map(|cost| format!(" · {cost}")).unwrap_or_default();
    let goal = said(&view.goal, SHORT);
    format!("`{}` · {} · {at}{cost} · {goal}", view.id, view.status.as_str())
}

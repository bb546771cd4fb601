//! `refrain top`: connects the terminal user interface to the verbs' texts and actions.

use std::io::{IsTerminal, stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;

use refrain_app::remote::{self, Start};
use refrain_app::verbs::Slow;
use refrain_app::verbs::answer::answer_detached;
use refrain_app::verbs::approve::{Approve, approve_detached, awaits};
use refrain_app::verbs::archive::archive;
use refrain_app::verbs::merge::{Merge, merge};
use refrain_app::verbs::resume::{check, resume_detached};
use refrain_app::verbs::steer::Steering;
use refrain_app::{Code, Context, RequestError};
use refrain_core::agent::AgentEvent;
use refrain_core::r#loop::Grant;
use refrain_core::text::printable;
use refrain_core::view::Charset;
use refrain_core::{AttemptId, LoopId, LoopState};
use refrain_engine::config::{AgentChoice, Theme};
use refrain_engine::{ByKind, FollowEvent, Service, chain, now};
use refrain_tui::{Act, Narrator, NewLoop, Objection, Program};

use crate::cmd::control::merge::merge_words;
use crate::cmd::control::{cancel, pause, steer};
use crate::cmd::inspect::diff::coloured;
use crate::cmd::launch::resume::parse_grant;
use crate::plan::status_text::{self, Art};
use crate::render::agent_text::AgentText;
use crate::render::narrator;
use crate::run::runtime;
use crate::values::charset;
use crate::{out, pager};

/// How much of a log is shown at once, in bytes.
const LONGEST_LOG: u64 = 512 << 10;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  refrain top
  refrain top --all-projects")]
pub(crate) struct Args {
    /// The loops and plans of every project that Refrain has worked in
    #[arg(long)]
    all_projects: bool,
}

/// Shows them until the person has seen enough.
pub(crate) fn run(context: &Context, args: &Args) -> Result<ExitCode, RequestError> {
    let obstacle = match context.variable("TERM") {
        _ if !stdin().is_terminal() || !stdout().is_terminal() => Some("standard input and output are none"),
        Some("dumb") => Some("TERM is dumb"),
        _ => None,
    };
    if let Some(obstacle) = obstacle {
        let error = format!("refrain top needs a terminal that it can draw on; {obstacle}");
        let instead = "refrain list and refrain status show the state of loops, refrain watch ID follows one";
        return Err(RequestError::usage(error).hint(instead));
    }
    let service = context.service()?;
    let blocks = charset() == Charset::Unicode;
    let light =
        match service.settings(AgentChoice::default(), context.has_variables()).map(|it| it.config.top.theme)
        {
            Ok(Theme::Light) => true,
            Ok(Theme::Dark) => false,
            // A broken configuration keeps no loop from being seen.
            Ok(Theme::Auto) | Err(_) => context.variable("COLORFGBG").is_some_and(is_light),
        };
    let art = refrain_tui::Art { colour: out::is_coloured(), blocks, light };
    let program = Arc::new(Verbs { context: context.clone() });
    refrain_engine::leave_signals();
    refrain_tui::run(&service, args.all_projects, art, program)
        .map_err(|error| RequestError::new(Code::Failed, format!("the terminal cannot be used: {error}")))?;
    Ok(Code::Done.into())
}

/// Whether terminals that set `COLORFGBG` say that their background is light: its last part is its colour of sixteen.
fn is_light(colours: &str) -> bool {
    let background = colours.rsplit(';').next().and_then(|colour| colour.parse::<u8>().ok());
    background.is_some_and(|colour| matches!(colour, 7 | 9..=15))
}

struct Verbs {
    context: Context,
}

impl Verbs {
    /// Not a loop that waits for approval: one key must not reject the work.
    fn resume(&self, service: &Service, id: &LoopId, grant: (&Grant, bool)) -> Result<String, RequestError> {
        if awaits(service, id)? {
            return Err(RequestError::new(Code::Refused, format!("{id} waits for approval: A asks for it")));
        }
        resume_detached(&self.context, service, id, grant, Slow::Wait)?;
        Ok(format!("{id} continues"))
    }

    fn merge(&self, service: &Service, id: &LoopId, squash: bool) -> Result<String, RequestError> {
        let how = Merge { squash, unverified: false };
        let merged = runtime()?.block_on(merge(&self.context, service, id, how, &|_, _| ()))?;
        Ok(merge_words(&merged))
    }

    fn send_back(&self, service: &Service, id: &LoopId, words: &str) -> Result<String, RequestError> {
        if !awaits(service, id)? {
            return Err(RequestError::new(Code::Refused, format!("{id} does not wait for approval")));
        }
        check(&self.context, service, id, &Grant::default())?;
        if !words.is_empty() {
            let steering = Steering { text: words.to_owned() };
            steer::steer(&self.context, service, id, steering, Slow::Wait)?;
        }
        resume_detached(&self.context, service, id, (&Grant::default(), false), Slow::Wait)?;
        Ok(format!("{id} is sent back, and continues"))
    }
}

impl Program for Verbs {
    fn act(&self, service: &Service, id: &LoopId, act: &Act) -> Result<String, Objection> {
        let context = &self.context;
        // The screen shows that it takes long.
        let done = match act {
            Act::Pause { now } => pause::pause(context, service, id, *now, Slow::Wait),
            Act::Cancel { now } => cancel::cancel(context, service, id, *now, Slow::Wait),
            Act::Steer { words } => {
                steer::steer(context, service, id, Steering { text: words.clone() }, Slow::Wait)
            }
            Act::Answer { words } => {
                answer_detached(context, service, id, &Steering { text: words.clone() }, Slow::Wait)
                    .map(|()| format!("{id} has the answer, and continues"))
            }
            Act::Resume { grant, now } => self.resume(service, id, (grant, *now)),
            Act::Approve { tree } => approve_detached(context, service, id, &Approve { tree: tree.clone() })
                .map(|()| format!("{id} is approved, and finishes")),
            Act::SendBack { words } => self.send_back(service, id, words),
            Act::Merge { squash } => self.merge(service, id, *squash),
            Act::Archive => archive(context, service, id).map(|_| format!("{id} is archived")),
        };
        done.map_err(|error| match error.lacks() {
            Some((used, flags)) => Objection::Lacks(used.clone(), flags.clone()),
            None => Objection::Refused(error.line()),
        })
    }

    fn start(&self, service: &Service, new: &NewLoop) -> Result<LoopId, String> {
        let context = Context { dir: service.project().worktree.clone(), ..self.context.clone() };
        let asked = Start {
            goal: new.goal.clone(),
            agent: Some(new.agent.clone()),
            gates: new.gates.clone(),
            // The form shows the gates that are found.
            no_gates: new.gates.is_empty(),
            place: Some(new.place.to_owned()),
            ..Start::default()
        };
        let started = remote::start(&context, &asked, &mut |_| ());
        started.map(|(_, id)| id).map_err(|error| error.line())
    }

    fn grant(&self, line: &str) -> Result<(Grant, bool), String> {
        parse_grant(line).map_err(|error| error.line())
    }

    fn narrator(&self) -> Box<dyn Narrator> {
        Box::new(FollowNarrator::default())
    }

    fn changes(&self, service: &Service, id: &LoopId) -> Result<String, String> {
        let found = service.differences_of(id, None).map_err(|error| chain(&error))?;
        let diff = coloured(&printable(&found.diff));
        Ok(format!("{}\n{}\n{diff}", printable(&found.note), printable(&found.stat)))
    }

    fn log(&self, service: &Service, id: &LoopId, attempt: Option<AttemptId>) -> Result<String, String> {
        let latest = match attempt.is_none().then(|| service.standing(id)) {
            Some(Ok(ByKind::Loop(status))) => status.iterations.unwrap_or_default().last().map(|it| it.id()),
            Some(Ok(ByKind::Plan(plan))) => return Ok(status_text::text(&plan, Art::current(), now())),
            Some(Err(_)) | None => None,
        };
        let attempt = attempt.or(latest).ok_or_else(|| format!("no iteration of {id} has started"))?;
        let heard = service.heard(id, attempt, None, LONGEST_LOG).map_err(|error| chain(&error))?;
        let heard = heard.ok_or_else(|| format!("iteration {attempt} printed nothing"))?;
        let mut text = match heard.from {
            0 => String::new(),
            left_out => format!("… {left_out} bytes before; refrain logs {id} has all\n"),
        };
        match heard.said.as_slice() {
            // No stream of events.
            [AgentEvent::Notice(printed)] => text.push_str(printed),
            said => {
                let mut says = AgentText::default();
                said.iter().for_each(|event| text.push_str(&says.show(event)));
            }
        }
        Ok(text)
    }

    fn page(&self, text: &str, at_end: bool) -> bool {
        let less = if at_end { "less -R +G" } else { "less -R" };
        pager::show(&self.context, less, text).unwrap_or_default()
    }
}

/// Renders events as `watch` does.
#[derive(Default)]
struct FollowNarrator(narrator::Narrator);

impl Narrator for FollowNarrator {
    fn tell(&mut self, sight: &FollowEvent) -> String {
        self.0.tell(sight, None)
    }

    fn state(&self) -> Option<&LoopState> {
        self.0.state()
    }
}

//! Requests to loops. A person's words travel by the git remote: the server gets an id.

use camino::Utf8Path;
use refrain_app::verbs::approve::Approve;
use refrain_app::verbs::fleet::FleetRequest;
use refrain_app::verbs::resume::Resume;
use refrain_app::verbs::steer::{Steering, steer};
use refrain_app::verbs::{Slow, Urgent, cancel, pause};
use refrain_app::{Caller, Code, Context, RequestError};
use refrain_core::LoopId;
use refrain_core::event::Ask;
use refrain_core::r#loop::Grant;
use refrain_engine::tool::{Tool, ToolError};
use refrain_engine::{EngineError, LoopRequest, Runner, Service};

use crate::clone;
use crate::host::Worker;
use crate::order::{Order, WaitingRequest};

const GONE: &str = "a request is not done: its text is not at the git remote";

/// Whether it can be a part of a reference's name: the id of a request comes from the server.
fn is_name(request: &str) -> bool {
    !request.is_empty() && request.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn reference(id: &LoopId, request: &str) -> String {
    format!("refs/refrain/{id}/requests/{request}")
}

fn git(dir: &Utf8Path, words: &[&str], input: &[u8]) -> Result<String, ToolError> {
    let tool = Tool::new("git", dir.as_std_path()).args(words).input(input);
    let said = tool.limit(std::time::Duration::from_secs(20)).output()?;
    Ok(String::from_utf8_lossy(&said).trim().to_owned())
}

/// Leaves a text at the git remote.
pub(crate) fn leave(
    dir: &Utf8Path,
    (remote, id, request): (&str, &LoopId, &str),
    text: &str,
) -> Result<(), ToolError> {
    let blob = git(dir, &["hash-object", "-w", "--stdin"], text.as_bytes())?;
    let tree = git(dir, &["mktree"], format!("100644 blob {blob}\ttext\n").as_bytes())?;
    let own = ["-c", "user.name=refrain", "-c", "user.email=refrain@localhost"];
    let commit = git(dir, &[&own[..], &["commit-tree", &tree, "-m", "A request"]].concat(), &[])?;
    git(dir, &["push", "--quiet", remote, &format!("{commit}:{}", reference(id, request))], &[]).map(drop)
}

fn found(dir: &Utf8Path, (remote, id, request): (&str, &LoopId, &str)) -> Result<String, ToolError> {
    let name = reference(id, request);
    git(
        dir,
        &["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote, &format!("+{name}:{name}")],
        &[],
    )?;
    let tool = Tool::new("git", dir.as_std_path());
    let said = tool.args(["cat-file", "blob", &format!("{name}:text")]).output()?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The git remote has the text in the journal: it is needed beside that no longer.
pub(crate) fn forget(dir: &Utf8Path, (remote, id): (&str, &LoopId), asked: &WaitingRequest) {
    if asked.what.clone().take_text().is_none() || !is_name(&asked.id) {
        return;
    }
    let name = reference(id, &asked.id);
    let _ = git(dir, &["push", "--quiet", remote, &format!(":{name}")], &[]);
    let _ = git(dir, &["update-ref", "-d", &name], &[]);
}

/// The request as the person made it; none if its text is not at the git remote.
fn whole(
    dir: &Utf8Path,
    (remote, id): (&str, &LoopId),
    asked: &WaitingRequest,
) -> Result<Option<FleetRequest>, ToolError> {
    let mut what = asked.what.clone();
    if what.clone().take_text().is_none() {
        return Ok(Some(what));
    }
    if !is_name(&asked.id) {
        return Ok(None);
    }
    match found(dir, (remote, id, &asked.id)) {
        Ok(text) => what.put_text(text),
        Err(error) => {
            let there = git(dir, &["ls-remote", remote, &reference(id, &asked.id)], &[])?;
            return if there.is_empty() { Ok(None) } else { Err(error) };
        }
    }
    Ok(Some(what))
}

fn asks(context: &Context) -> Context {
    Context { caller: Caller::Person, ..context.clone() }
}

/// Asks a loop that is here. What it refuses, as it has ended meanwhile, is done with.
pub(crate) fn carry(
    worker: &Worker,
    (dir, remote, id): (&Utf8Path, &str, &LoopId),
    asked: &WaitingRequest,
) -> Result<(), &'static str> {
    let tell = |why: &str| worker.say(id.as_str(), why);
    let what = whole(dir, (remote, id), asked).map_err(|error| {
        tell(&error.to_string());
        "no text"
    })?;
    let Some(what) = what else {
        tell(GONE);
        return Ok(());
    };
    let context = asks(&Context { dir: dir.to_owned(), ..worker.context.clone() });
    let service = Service::open(dir, worker.context.host.clone()).map_err(|_| "no repository")?;
    match apply(&context, &service, id, &what) {
        Ok(()) => {}
        Err(error) if matches!(error.code(), Code::Refused | Code::Usage) => tell(&error.line()),
        Err(error) => {
            tell(&error.line());
            return Err("not possible now");
        }
    }
    Ok(())
}

fn apply(context: &Context, service: &Service, id: &LoopId, what: &FleetRequest) -> Result<(), RequestError> {
    let says =
        |text: &String| steer(context, service, id, &Steering { text: text.clone() }, Slow::Wait).map(drop);
    match what {
        FleetRequest::Pause { now } => {
            pause::pause(context, service, id, Urgent { now: *now }, Slow::Wait).map(drop)
        }
        FleetRequest::Cancel { now } => {
            cancel::cancel(context, service, id, Urgent { now: *now }, Slow::Wait).map(drop)
        }
        FleetRequest::Steer { text } | FleetRequest::Answer { text } => says(text),
        FleetRequest::Resume(Resume { now: true, .. }) => {
            let ask = (Ask::Proceed, context.caller.asker());
            service.ask(id, LoopRequest::Resume, ask, |_| ()).map(drop).map_err(RequestError::from)
        }
        // It is driven, and waits for neither.
        FleetRequest::Approve { .. } | FleetRequest::Resume(_) => Ok(()),
    }
}

/// What requests to a loop that nothing drives came to.
#[derive(Default)]
pub(crate) struct RequestOutcome {
    grant: Grant,
    proceed: bool,
    approved: Option<Option<String>>,
    /// Those that were carried out, or refused. The others are tried again when the loop is driven.
    pub(crate) done: Vec<WaitingRequest>,
}

/// Does what waits for a loop that nothing drives.
pub(crate) fn carry_out(
    worker: &Worker,
    service: &Service,
    (dir, id): (&Utf8Path, &LoopId),
    order: &Order,
) -> RequestOutcome {
    let context = asks(&Context { dir: dir.to_owned(), ..worker.context.clone() });
    let mut outcome = RequestOutcome::default();
    for asked in &order.waiting {
        let says = |why: &str| worker.say(id.as_str(), why);
        match whole(dir, (&order.remote, id), asked) {
            Err(error) => {
                says(&error.to_string());
                continue;
            }
            Ok(None) => says(GONE),
            Ok(Some(FleetRequest::Resume(more))) => match more.grant() {
                Ok(granted) => {
                    outcome.grant = granted;
                    outcome.proceed |= more.now;
                }
                Err(error) => says(&error.line()),
            },
            Ok(Some(FleetRequest::Approve { tree })) => outcome.approved = Some(tree),
            Ok(Some(
                what @ (FleetRequest::Pause { .. }
                | FleetRequest::Cancel { .. }
                | FleetRequest::Steer { .. }
                | FleetRequest::Answer { .. }),
            )) => {
                if let Err(error) = apply(&context, service, id, &what) {
                    says(&error.line());
                    if !matches!(error.code(), Code::Refused | Code::Usage) {
                        continue;
                    }
                }
            }
        }
        outcome.done.push(asked.clone());
    }
    outcome
}

/// Takes the loop over as the requests to it say.
pub(crate) fn resume(
    service: &Service,
    id: &LoopId,
    outcome: &RequestOutcome,
) -> Result<Runner, EngineError> {
    match &outcome.approved {
        Some(tree) => {
            let tree = tree.as_deref().filter(|tree| *tree != Approve::NO_TREE);
            service.approve(id, &outcome.grant, tree)
        }
        None => service.resume(id, &outcome.grant, outcome.proceed),
    }
}

/// The server was asked to cancel it.
pub(crate) fn cancel(worker: &std::sync::Arc<Worker>, order: &Order) {
    let (worker, order) = (std::sync::Arc::clone(worker), order.clone());
    let what = FleetRequest::Cancel { now: true };
    drop(tokio::task::spawn_blocking(move || {
        let dir = clone::folder(&worker.context, &order.remote);
        let Ok(id) = order.id.parse::<LoopId>() else { return };
        let asked = WaitingRequest { id: "server".to_owned(), what };
        let _ = carry(&worker, (&dir, &order.remote, &id), &asked);
    }));
}

#[cfg(test)]
mod tests {
    use testkit::Sandbox;

    use super::*;

    #[test]
    fn a_text_that_is_gone_is_told_apart_from_one_that_cannot_be_fetched() {
        let here = Sandbox::new("true");
        let project = here.project();
        let dir = Utf8Path::from_path(&project).unwrap();
        let remote = format!("{}/state.git", here.root().display());
        here.git(&["init", "--quiet", "--bare", &remote]);
        let id: LoopId = "job".parse().unwrap();
        let asked = |request: &str| WaitingRequest {
            id: request.to_owned(),
            what: FleetRequest::Steer { text: String::new() },
        };
        let text = |request: &str| whole(dir, (&remote, &id), &asked(request));
        leave(dir, (&remote, &id, "1"), "Use tabs.").unwrap();
        assert_eq!(text("1").unwrap(), Some(FleetRequest::Steer { text: "Use tabs.".to_owned() }));
        forget(dir, (&remote, &id), &asked("1"));
        for gone in ["1", "2", "../journal", ""] {
            assert_eq!(text(gone).unwrap(), None, "{gone}");
        }
        // The remote has the name, and cannot give away what it names.
        leave(dir, (&remote, &id, "3"), "Use spaces.").unwrap();
        let blob = here.git(&["-C", &remote, "rev-parse", &format!("{}:text", reference(&id, "3"))]);
        let (folder, file) = blob.trim().split_at(2);
        let object = format!("objects/{folder}/{file}");
        std::fs::remove_file(format!("{remote}/{object}")).unwrap();
        std::fs::remove_file(project.join(".git").join(object)).unwrap();
        assert!(text("3").is_err());
        std::fs::rename(&remote, format!("{remote}.away")).unwrap();
        assert!(text("3").is_err(), "the remote is away");
    }
}
